//! The most probable segmentation of a text into words around a listed word.
//!
//! Chinese has no spaces: 海军刀枪 contains 军刀. A word boundary inside a match exempts it, unless the boundary leaves a rare
//! single character of the match, as in 赌|博士. Candidates near each other need the same dictionary words, which are looked
//! up once a text.

use std::{
    cell::{Cell, OnceCell},
    ops::Range,
};

use super::{
    dictionary::{Listed, MAX_WORD_LENGTH, WordClasses, dictionary, is_known},
    folding::LetterClass,
    letters::Letter,
};

/// Number of characters around a match that are segmented.
pub(super) const CONTEXT_LENGTH: usize = 4;
/// The frequency class from which a single character is a word of ordinary texts: 16 000 occurrences.
const LONE_FREQUENCY: u8 = 28;
/// Twice the binary logarithm of the number of words counted for the frequencies.
const TOTAL_FREQUENCY: i32 = 52;
/// The difference of weights up to which a less probable segmentation raises doubts about a word of two letters that is
/// written as listed, and about others: chance seldom lets other words cross the edges of longer ones.
const SHORT_MARGIN: i32 = 12;
const MARGIN: i32 = 28;
/// The same for a segmentation that leaves a rare single letter of the listed word, and also if a longer word contains it.
const RARE_MARGIN: i32 = 4;
const COVERED_MARGIN: i32 = 10;
/// The difference of weights from which words within the edges of a disguised word raise doubts: 带练 for 代练.
const PLAIN_MARGIN: i32 = 11;
/// Segmentations that are extended at the same time.
const PENDING: usize = MAX_WORD_LENGTH + 1;

/// The relation between a listed word in a text and the words around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordCut {
    /// The text has the listed word.
    None,
    /// Another word begins or ends inside, but what it leaves of the listed word is hardly a word, as 赌 in 赌博士, or the
    /// other words are little less probable.
    Doubtful,
    /// The text has other words.
    Certain,
}

/// The letters of a text with the dictionary words that begin at each.
pub(super) struct TextWords<'text> {
    letters: &'text [Letter],
    /// Filled on demand: most texts have few candidates.
    classes: OnceCell<Vec<Cell<Option<WordClasses>>>>,
}

impl<'text> TextWords<'text> {
    pub(super) fn new(letters: &'text [Letter]) -> Self {
        Self { letters, classes: OnceCell::new() }
    }

    /// Returns how the most probable segmentation of a part of the text, without gaps, treats the listed word. `doubt` is
    /// the weight of the assumption that the text has the word in disguise, and zero if it has the word itself.
    pub(super) fn cut(&self, part: &Range<usize>, listed: Listed, word: &[char], doubt: i32) -> WordCut {
        let start = part.start.max(listed.first.saturating_sub(CONTEXT_LENGTH));
        let end = part.end.min(listed.last + 1 + CONTEXT_LENGTH);
        if doubt == 0 && !self.is_straddled(start..end, listed) {
            return WordCut::None;
        }
        let best = self.best(start..end, listed, word, doubt);
        if doubt > 0 { best.cut_of_disguised() } else { best.cut(word.len()) }
    }

    /// Returns the words of the most probable segmentation of a part of the text.
    pub(super) fn words_of(&self, part: Range<usize>) -> Vec<Range<usize>> {
        let mut best: Vec<(i32, usize)> = vec![(i32::MIN / 2, part.start); part.len() + 1];
        best[0].0 = 0;
        for start in part.clone() {
            let weight = best[start - part.start].0;
            let lone = self.classes_at(start)[0].is_none().then_some((start + 1, 0));
            for (end, class) in self.words_at(start, part.end).chain(lone) {
                let after = weight + i32::from(class) - TOTAL_FREQUENCY;
                if after > best[end - part.start].0 {
                    best[end - part.start] = (after, start);
                }
            }
        }
        let (mut words, mut end) = (Vec::new(), part.end);
        while end > part.start {
            let start = best[end - part.start].1;
            words.push(start..end);
            end = start;
        }
        words.reverse();
        words
    }

    fn is_straddled(&self, part: Range<usize>, listed: Listed) -> bool {
        let starts = part.start.max(listed.first.saturating_sub(MAX_WORD_LENGTH - 1))..listed.last + 1;
        let may_cut = |start: &usize| (2..=MAX_WORD_LENGTH).any(|length| listed.is_cut_by(*start, start + length));
        starts.filter(may_cut).any(|start| {
            let mut words = self.words_at(start, part.end);
            words.any(|(end, class)| is_known(class) && self.is_cut(listed, start, end))
        })
    }

    /// Returns true if a word over `start..end` speaks against the listed word. A longer word made of the part that both
    /// share, such as 微信号 after 加, does not.
    fn is_cut(&self, listed: Listed, start: usize, end: usize) -> bool {
        let (first, last) = (start.max(listed.first), end.min(listed.last + 1));
        listed.is_cut_by(start, end) && !(last > first + 1 && self.classes_at(first)[last - first - 1].is_some())
    }

    /// Returns the best sums of logarithms of each kind of segmentation.
    fn best(&self, part: Range<usize>, listed: Listed, word: &[char], doubt: i32) -> Segmentation {
        let (listed_weight, is_disguised) = (listed_weight(word) - doubt, doubt > 0);
        let mut best = [Segmentation::IMPOSSIBLE; PENDING];
        best[part.start % PENDING] = Segmentation { plain: 0, plain_fluent: 0, ..Segmentation::IMPOSSIBLE };
        let (mut with_listed, mut is_covered) = (0, false);
        for start in part.clone() {
            let before = std::mem::replace(&mut best[start % PENDING], Segmentation::IMPOSSIBLE);
            if start == listed.first {
                with_listed = before.plain + listed_weight;
            }
            if start == listed.last {
                let after = &mut best[(start + 1) % PENDING];
                after.listed = after.listed.max(with_listed);
            }
            // A single letter is always a possible word.
            let lone = self.classes_at(start)[0];
            let is_rare = lone.is_none_or(|class| class < LONE_FREQUENCY);
            let letter = lone.is_none().then_some((start + 1, 0));
            let is_spaced = |index: usize| self.letters[index].class != LetterClass::Ideographic;
            let continues_latin = start > part.start && is_spaced(start - 1) && is_spaced(start);
            for (end, class) in self.words_at(start, part.end).chain(letter) {
                let weight = if continues_latin { 0 } else { i32::from(class) - TOTAL_FREQUENCY };
                let after = &mut best[end % PENDING];
                if listed.is_cut_by(start, end) && !is_known(class) {
                    continue;
                }
                if self.is_cut(listed, start, end) {
                    after.cut = after.cut.max(before.plain.max(before.cut) + weight);
                    after.cut_fluent = after.cut_fluent.max(before.plain_fluent.max(before.cut_fluent) + weight);
                    continue;
                }
                after.listed = after.listed.max(before.listed + weight);
                // A longer word speaks neither for the listed word nor against it.
                if !is_disguised
                    && start <= listed.first
                    && end > listed.last
                    && end - start > listed.last + 1 - listed.first
                {
                    is_covered = true;
                    continue;
                }
                after.plain = after.plain.max(before.plain + weight);
                after.cut = after.cut.max(before.cut + weight);
                // Without rare single letters of the listed word.
                if !(is_rare && end == start + 1 && listed.contains(start, end)) {
                    after.plain_fluent = after.plain_fluent.max(before.plain_fluent + weight);
                    after.cut_fluent = after.cut_fluent.max(before.cut_fluent + weight);
                }
            }
        }
        Segmentation { is_covered, ..best[part.end % PENDING] }
    }

    /// Returns the ends and classes of the words that begin with a letter and end before another.
    fn words_at(&self, start: usize, limit: usize) -> impl Iterator<Item = (usize, u8)> {
        let words = (start + 1..=limit).zip(self.classes_at(start));
        words.filter_map(|(end, class)| Some((end, class?)))
    }

    fn classes_at(&self, index: usize) -> WordClasses {
        let known = self.classes.get_or_init(|| vec![Cell::new(None); self.letters.len()]);
        known[index].get().unwrap_or_else(|| {
            let classes = dictionary().classes(self.letters[index..].iter().map(|letter| letter.value));
            known[index].set(Some(classes));
            classes
        })
    }
}

/// Returns the weight of a listed word. Assumes a frequency of at least 300, 10 or 3, by length: long words seldom occur by
/// chance, but are rarer in all texts.
fn listed_weight(word: &[char]) -> i32 {
    let prior = match word.len() {
        0..=2 => 16,
        3 => 7,
        _ => 3,
    };
    prior.max(dictionary().class(word).map_or(0, i32::from)) - TOTAL_FREQUENCY
}

/// The best weights of the segmentations of a beginning of a text: those with the listed word, those of words within its
/// edges, those of words that cross them, and the latter two without rare single letters of it.
#[derive(Clone, Copy, Debug)]
struct Segmentation {
    listed: i32,
    plain: i32,
    cut: i32,
    plain_fluent: i32,
    cut_fluent: i32,
    /// True if a longer word contains the listed one.
    is_covered: bool,
}

impl Segmentation {
    const IMPOSSIBLE: Self = {
        let never = i32::MIN / 2;
        Self { listed: never, plain: never, cut: never, plain_fluent: never, cut_fluent: never, is_covered: false }
    };

    /// Returns how the better segmentation of a whole text treats a listed word of this length.
    fn cut(self, length: usize) -> WordCut {
        let whole = self.listed.max(self.plain);
        let margin = if length > 2 { MARGIN } else { SHORT_MARGIN };
        let rare_margin = if self.is_covered { COVERED_MARGIN } else { RARE_MARGIN };
        if self.cut_fluent > whole {
            WordCut::Certain
        } else if (self.cut + rare_margin).max(self.cut_fluent + margin) > whole {
            WordCut::Doubtful
        } else {
            WordCut::None
        }
    }

    /// Returns how it treats a word that the letters may stand for.
    fn cut_of_disguised(self) -> WordCut {
        let other = self.cut_fluent.max(self.cut - RARE_MARGIN).max(self.plain - 2 * PLAIN_MARGIN);
        if other > self.listed {
            WordCut::Certain
        } else if (self.cut + COVERED_MARGIN).max(self.cut_fluent + MARGIN).max(self.plain - PLAIN_MARGIN) > self.listed
        {
            WordCut::Doubtful
        } else {
            WordCut::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::letters;

    fn cut(text: &str, word: &str) -> WordCut {
        let read = letters::read(text, false);
        let (letters, word): (Vec<char>, Vec<char>) =
            (read.iter().map(|letter| letter.value).collect(), word.chars().collect());
        let first = letters.windows(word.len()).position(|window| window == word).expect("the text contains the word");
        TextWords::new(&read).cut(&(0..read.len()), Listed { first, last: first + word.len() - 1 }, &word, 0)
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
