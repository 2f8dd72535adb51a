//! A dictionary of common Chinese words, to distinguish a listed word from two adjacent innocent ones.
//!
//! Knows words of one to four characters; it is no segmenter for prose.

use std::{cmp::Reverse, sync::LazyLock};

use super::folding::folded_letter;

const WORDS: &str = include_str!("../../../../assets/han-words.txt");

/// Words that the list lacks: new words and those of this app's subject. All get the same medium frequency.
const SUPPLEMENT: &str = "微信 微博 抖音 快手 淘宝 支付宝 网购 网红 网贷 直播 主播 弹幕 朋友圈 公众号 二维码 小程序 视频号 \
    加微信 扫码 手机号 短信 截图 点赞 评论 私信 群主 群聊 好友 客服 快递 外卖 博客 博主 \
    卦象 乾卦 坤卦 本卦 变卦 互卦 卦辞 爻辞 六爻 动爻 起卦 占卜 占卦 卜卦 问卦 解卦 算卦 周易 易经 吉凶 大吉 \
    见人就 见人都 见人便 逢人就 见人说 见人所 见人笑 见人问 不见人 没见人 怕见人 \
    发件人 取件人 送件人 投件人 自谓 星服务 \
    宝宝 天天 加油 性别 性格 法律 发现 现金流 出货 进货";

/// Maximum length of a word.
pub(super) const MAX_WORD_LENGTH: usize = 4;
/// The lowest frequency class of a common word: 128 occurrences.
const COMMON_FREQUENCY: u8 = 14;
/// The frequency class of the supplement.
const MEDIUM_FREQUENCY: u8 = 16;

/// The letters of a word, with zeros after a short one.
type Key = [u16; MAX_WORD_LENGTH];

/// The frequency classes of the words that begin with a letter, by their length.
pub(super) type WordClasses = [Option<u8>; MAX_WORD_LENGTH];

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
        let mut starts = place.saturating_sub(MAX_WORD_LENGTH - 1)..place;
        starts.any(|start| {
            let classes = self.classes(text[start..].iter().copied());
            classes[place - start..].iter().any(Option::is_some)
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
        let listed = Listed { first, last };
        (index.saturating_sub(MAX_WORD_LENGTH - 1)..=index).any(|start| {
            (index + 1..=(start + MAX_WORD_LENGTH).min(text.len())).any(|end| {
                listed.is_cut_by(start, end)
                    && self.class(&text[start..end]).is_some_and(|class| class >= COMMON_FREQUENCY)
            })
        })
    }

    pub(super) fn class(&self, letters: &[char]) -> Option<u8> {
        let key = key_of(letters)?;
        class_in(self.words_with(key[0]), key)
    }

    /// Returns the frequency classes of the words with which a text begins. One search answers for most texts: few pairs
    /// of letters begin a word.
    pub(super) fn classes(&self, text: impl Iterator<Item = char>) -> WordClasses {
        let mut classes = WordClasses::default();
        let units = text.map_while(|letter| u16::try_from(letter as u32).ok());
        let (mut key, mut length) = (Key::default(), 0);
        for (place, unit) in key.iter_mut().zip(units) {
            (*place, length) = (unit, length + 1);
        }
        let words = self.words_with(key[0]);
        // The letter itself comes first.
        let letter = words.first().filter(|(known, _)| length > 0 && known[1] == 0);
        classes[0] = letter.map(|(_, class)| *class);
        if length < 2 {
            return classes;
        }
        let words = &words[words.partition_point(|(known, _)| known[1] < key[1])..];
        let Some((pair, class)) = words.first().filter(|(known, _)| known[1] == key[1]) else { return classes };
        classes[1] = Some(*class).filter(|_| pair[2] == 0);
        if length > 2 {
            classes[2] = class_in(words, [key[0], key[1], key[2], 0]);
        }
        if length > 3 {
            classes[3] = class_in(words, key);
        }
        classes
    }

    /// Returns the words with this first letter.
    fn words_with(&self, first: u16) -> &[(Key, u8)] {
        let first = usize::from(first);
        &self.words[self.starts[first] as usize..self.starts[first + 1] as usize]
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

/// The first and the last letter of a listed word in a text.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Listed {
    /// Returns true if `start..end` is a part of the listed word.
    pub(super) fn contains(self, start: usize, end: usize) -> bool {
        self.first <= start && end <= self.last + 1
    }

    /// Returns true if a word over `start..end` overlaps the listed word only partly.
    pub(super) fn is_cut_by(self, start: usize, end: usize) -> bool {
        let enters = start < self.first && self.first < end && end <= self.last;
        let leaves = self.first < start && start <= self.last && self.last + 1 < end;
        enters || leaves
    }
}

/// Returns the class of a word among others.
fn class_in(words: &[(Key, u8)], key: Key) -> Option<u8> {
    words.binary_search_by_key(&key, |(known, _)| *known).ok().map(|index| words[index].1)
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

    #[test]
    fn knows_common_words() {
        let count = dictionary().words.len();
        assert!(count > 140_000, "{count}");
        assert!(dictionary().contains(&['妈', '妈']));
        assert!(!dictionary().contains(&['妈', '的']));
    }
}
