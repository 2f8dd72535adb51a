//! A dictionary of common Chinese words, to distinguish a listed word from two adjacent innocent ones.
//!
//! Chinese has no spaces: 海军刀枪 contains 军刀. The most probable segmentation around a match decides: a word boundary
//! inside the match exempts it, unless the boundary leaves a rare single character of the match, as in 赌|博士. Knows
//! words of one to four characters; it is no segmenter for prose.

use std::{cmp::Reverse, sync::LazyLock};

use super::folding::folded_letter;

const WORDS: &str = include_str!("../../../../assets/han-words.txt");

/// Words that the list lacks: new words and those of this app's subject. All get the same medium frequency.
const SUPPLEMENT: &str = "微信 微博 抖音 快手 淘宝 支付宝 网购 网红 网贷 直播 主播 弹幕 朋友圈 公众号 二维码 小程序 视频号 \
    加微信 扫码 手机号 短信 截图 点赞 评论 私信 群主 群聊 好友 客服 快递 外卖 博客 博主 \
    卦象 乾卦 坤卦 本卦 变卦 互卦 卦辞 爻辞 六爻 动爻 起卦 占卜 占卦 卜卦 问卦 解卦 算卦 周易 易经 吉凶 大吉 \
    见人就 见人都 见人便 逢人就 \
    宝宝 天天 加油 性别 性格 法律 发现 现金流 出货 进货";

/// Maximum length of a word.
pub(super) const MAX_WORD_LENGTH: usize = 4;
/// Number of characters around a match that are segmented.
const CONTEXT_LENGTH: usize = 8;
/// The frequency class from which a single character is a word of ordinary texts: 16 000 occurrences.
const LONE_FREQUENCY: u8 = 28;
/// Twice the binary logarithm of the number of words counted for the frequencies.
const TOTAL_FREQUENCY: i32 = 52;
/// The lowest frequency class of a common word: 128 occurrences.
const COMMON_FREQUENCY: u8 = 14;
/// The frequency class of the supplement.
const MEDIUM_FREQUENCY: u8 = 16;

/// The letters of a word, with zeros after a short one.
type Key = [u16; MAX_WORD_LENGTH];

/// Words with their frequency classes: twice the binary logarithm of their count.
///
/// A sorted list takes a third of the memory of a hash map. A first letter has fifteen words on average, so that a search
/// among them is as fast.
pub(super) struct Dictionary {
    words: Vec<(Key, u8)>,
    /// The number of words before those of each first letter.
    starts: Vec<u32>,
}

/// Returns the dictionary of the process.
pub(super) fn dictionary() -> &'static Dictionary {
    static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(Dictionary::read);
    &DICTIONARY
}

impl Dictionary {
    /// Returns true if these letters are a word.
    pub(super) fn contains(&self, letters: &[char]) -> bool {
        letters.len() > 1 && self.class(letters).is_some()
    }

    /// Returns true if a word begins before this position of a text and ends after it.
    pub(super) fn straddles(&self, text: &[char], place: usize) -> bool {
        let starts = place.saturating_sub(MAX_WORD_LENGTH - 1)..place;
        starts.into_iter().any(|start| {
            (place + 1..=(start + MAX_WORD_LENGTH).min(text.len())).any(|end| self.contains(&text[start..end]))
        })
    }

    /// Returns true if a word contains `first..=last` of a text and more.
    pub(super) fn covers(&self, text: &[char], first: usize, last: usize) -> bool {
        let starts = (last + 1).saturating_sub(MAX_WORD_LENGTH)..=first;
        starts.into_iter().any(|start| {
            (last + 1..=(start + MAX_WORD_LENGTH).min(text.len()))
                .any(|end| end - start > last + 1 - first && self.contains(&text[start..end]))
        })
    }

    /// Returns true if a common word contains the letter at `index` and overlaps `first..=last` of a text only partly.
    pub(super) fn claims(&self, text: &[char], index: usize, first: usize, last: usize) -> bool {
        let window = Window { letters: text, first, last };
        (index.saturating_sub(MAX_WORD_LENGTH - 1)..=index).any(|start| {
            (index + 1..=(start + MAX_WORD_LENGTH).min(text.len())).any(|end| {
                window.is_cut_by(start, end)
                    && self.class(&text[start..end]).is_some_and(|class| class >= COMMON_FREQUENCY)
            })
        })
    }

    /// Returns how the most probable segmentation treats the listed word in `first..=last` of a text without gaps.
    pub(super) fn cut(&self, text: &[char], first: usize, last: usize) -> WordCut {
        let window_start = first.saturating_sub(CONTEXT_LENGTH);
        let window_end = (last + 1 + CONTEXT_LENGTH).min(text.len());
        let window =
            Window { letters: &text[window_start..window_end], first: first - window_start, last: last - window_start };
        if self.is_straddled(&window) { self.best_cut(&window) } else { WordCut::None }
    }

    fn is_straddled(&self, window: &Window<'_>) -> bool {
        (0..window.letters.len()).any(|start| {
            (2..=MAX_WORD_LENGTH).any(|length| {
                window.is_cut_by(start, start + length)
                    && window.letters.get(start..start + length).is_some_and(|letters| self.contains(letters))
            })
        })
    }

    /// Compares the best sums of logarithms of both kinds of segmentation. In a tie the word is whole.
    fn best_cut(&self, window: &Window<'_>) -> WordCut {
        let length = window.letters.len();
        let mut best = vec![Segmentation::default(); length + 1];
        best[0] = Segmentation { whole: 0, whole_fluent: 0, ..Segmentation::default() };
        for start in 0..length {
            let before = best[start];
            for (end, after) in (start + 1..).zip(best[start + 1..].iter_mut().take(MAX_WORD_LENGTH)) {
                let letters = &window.letters[start..end];
                let Some(weight) = self.weight(letters) else {
                    continue;
                };
                let is_fluent = !window.contains(start, end) || !self.is_rare_letter(letters);
                if window.is_cut_by(start, end) {
                    after.cut = after.cut.max(before.whole.max(before.cut) + weight);
                    after.cut_fluent = after.cut_fluent.max(before.whole_fluent.max(before.cut_fluent) + weight);
                } else {
                    after.whole = after.whole.max(before.whole + weight);
                    after.cut = after.cut.max(before.cut + weight);
                    if is_fluent {
                        after.whole_fluent = after.whole_fluent.max(before.whole_fluent + weight);
                        after.cut_fluent = after.cut_fluent.max(before.cut_fluent + weight);
                    }
                }
            }
            if start == window.first {
                let end = window.last + 1;
                let listed = before.whole + self.listed_weight(&window.letters[start..end]);
                best[end].whole = best[end].whole.max(listed);
            }
        }
        let Segmentation { whole, cut, cut_fluent, .. } = best[length];
        match (cut > whole, cut_fluent > whole) {
            (false, _) => WordCut::None,
            (true, false) => WordCut::Doubtful,
            (true, true) => WordCut::Certain,
        }
    }

    /// Returns true for a single letter that is seldom a word by itself.
    fn is_rare_letter(&self, letters: &[char]) -> bool {
        letters.len() == 1 && self.class(letters).is_none_or(|class| class < LONE_FREQUENCY)
    }

    /// Returns the weight of a word. A single letter is always a possible word.
    fn weight(&self, letters: &[char]) -> Option<i32> {
        let class = self.class(letters).or((letters.len() == 1).then_some(0))?;
        Some(i32::from(class) - TOTAL_FREQUENCY)
    }

    /// Returns the weight of the listed word. Assumes a frequency of at least 300, 10 or 3, by length: long words
    /// seldom occur by chance, but are rarer in all texts.
    fn listed_weight(&self, letters: &[char]) -> i32 {
        let prior = match letters.len() {
            0..=2 => 16,
            3 => 7,
            _ => 3,
        };
        prior.max(self.class(letters).map_or(0, i32::from)) - TOTAL_FREQUENCY
    }

    pub(super) fn class(&self, letters: &[char]) -> Option<u8> {
        let key = key_of(letters)?;
        let first = usize::from(key[0]);
        let words = &self.words[self.starts[first] as usize..self.starts[first + 1] as usize];
        words.binary_search_by_key(&key, |(known, _)| *known).ok().map(|index| words[index].1)
    }

    /// Returns the letters of the words with at least this frequency class.
    pub(super) fn words(&self, class: u8) -> impl Iterator<Item = Vec<char>> {
        self.words.iter().filter(move |(_, known)| *known >= class).map(|(key, _)| letters_of(*key))
    }

    fn read() -> Self {
        let mut words = Vec::new();
        WORDS.lines().filter(|line| !line.starts_with('#')).for_each(|line| read_line(&mut words, line));
        for word in SUPPLEMENT.split_whitespace() {
            let folded: Vec<char> = word.chars().filter_map(folded_letter).collect();
            words.extend(key_of(&folded).map(|key| (key, MEDIUM_FREQUENCY)));
        }
        // A word that occurs twice keeps the higher class.
        words.sort_unstable_by_key(|(key, class)| (*key, Reverse(*class)));
        words.dedup_by_key(|(key, _)| *key);
        words.shrink_to_fit();
        let mut starts = vec![0; usize::from(u16::MAX) + 2];
        for (key, _) in &words {
            starts[usize::from(key[0]) + 1] += 1;
        }
        for first in 1..starts.len() {
            starts[first] += starts[first - 1];
        }
        Self { words, starts }
    }
}

/// The relation between a listed word in a text and the words around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordCut {
    /// The text has the listed word.
    None,
    /// Another word begins or ends inside, but what it leaves of the listed word is hardly a word: 赌 in 赌博士.
    Doubtful,
    /// The text has other words.
    Certain,
}

/// The best weights of the segmentations of a beginning of a text: those that keep the listed word whole and those that
/// cut it, and the same without rare single letters of it.
#[derive(Clone, Copy)]
struct Segmentation {
    whole: i32,
    cut: i32,
    whole_fluent: i32,
    cut_fluent: i32,
}

impl Default for Segmentation {
    fn default() -> Self {
        let impossible = i32::MIN / 2;
        Self { whole: impossible, cut: impossible, whole_fluent: impossible, cut_fluent: impossible }
    }
}

/// The letters around a listed word, which is `first..=last` of them.
struct Window<'text> {
    letters: &'text [char],
    first: usize,
    last: usize,
}

impl Window<'_> {
    /// Returns true if `start..end` is a part of the listed word.
    fn contains(&self, start: usize, end: usize) -> bool {
        self.first <= start && end <= self.last + 1
    }

    /// Returns true if a word over `start..end` overlaps the listed word only partly.
    fn is_cut_by(&self, start: usize, end: usize) -> bool {
        let enters = start < self.first && self.first < end && end <= self.last;
        let leaves = self.first < start && start <= self.last && self.last + 1 < end;
        enters || leaves
    }
}

/// Adds the words of a line, which begin with the same letter.
fn read_line(words: &mut Vec<(Key, u8)>, line: &str) {
    let mut characters = line.chars();
    let Some(head) = characters.next().and_then(folded_letter) else {
        return;
    };
    let mut word = vec![head];
    for character in characters {
        if let Some(class) = class_of_code(character) {
            words.extend(key_of(&word).map(|key| (key, class)));
            word.truncate(1);
        } else if let Some(letter) = folded_letter(character) {
            word.push(letter);
        }
    }
}

fn class_of_code(code: char) -> Option<u8> {
    match code {
        'A'..='Z' => Some(code as u8 - b'A'),
        'a'..='z' => Some(code as u8 - b'a' + 26),
        _ => None,
    }
}

/// Returns the key of a word; `None` for longer words and for letters beyond the basic plane, which the dictionary lacks.
fn key_of(letters: &[char]) -> Option<Key> {
    if letters.is_empty() || letters.len() > MAX_WORD_LENGTH {
        return None;
    }
    let mut key = Key::default();
    for (unit, letter) in key.iter_mut().zip(letters) {
        *unit = u16::try_from(*letter as u32).ok()?;
    }
    Some(key)
}

/// Returns the letters of a key.
fn letters_of(key: Key) -> Vec<char> {
    key.into_iter().take_while(|unit| *unit > 0).filter_map(|unit| char::from_u32(u32::from(unit))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, word: &str) -> WordCut {
        let letters: Vec<char> = text.chars().collect();
        let word: Vec<char> = word.chars().collect();
        let first = letters.windows(word.len()).position(|window| window == word).expect("the text contains the word");
        dictionary().cut(&letters, first, first + word.len() - 1)
    }

    #[test]
    fn knows_common_words() {
        let count = dictionary().words.len();
        assert!(count > 140_000, "{count}");
        assert!(dictionary().contains(&['妈', '妈']));
        assert!(!dictionary().contains(&['妈', '的']));
    }

    #[test]
    fn keeps_intended_words() {
        for (text, word) in
            [("他天天在网上赌博害人", "赌博"), ("你他妈的滚", "妈的"), ("赌博机", "赌博"), ("王八蛋", "王八蛋")]
        {
            assert_eq!(cut(text, word), WordCut::None, "{word} in {text}");
        }
    }

    #[test]
    fn cuts_between_adjacent_words() {
        for (text, word) in [
            ("妈妈的生日", "妈的"),
            ("南京市长江大桥", "市长"),
            ("发展中国家庭教育", "国家"),
            ("我在北京大学生活", "大学生"),
        ] {
            assert_eq!(cut(text, word), WordCut::Certain, "{word} in {text}");
        }
    }

    #[test]
    fn doubts_words_that_leave_a_rare_letter() {
        for (text, word) in [("赌博士网", "赌博"), ("买枪支票", "枪支"), ("想赌博物馆", "赌博")] {
            assert_eq!(cut(text, word), WordCut::Doubtful, "{word} in {text}");
        }
    }
}
