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
    dictionary::{Listed, MAX_WORD_LENGTH, WordClasses, dictionary},
    letters::Letter,
};

/// Number of characters around a match that are segmented.
const CONTEXT_LENGTH: usize = 8;
/// The frequency class from which a single character is a word of ordinary texts: 16 000 occurrences.
const LONE_FREQUENCY: u8 = 28;
/// Twice the binary logarithm of the number of words counted for the frequencies.
const TOTAL_FREQUENCY: i32 = 52;
/// Segmentations that are extended at the same time.
const PENDING: usize = MAX_WORD_LENGTH + 1;

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

    /// Returns how the most probable segmentation of a part of the text, without gaps, treats the listed word.
    pub(super) fn cut(&self, part: &Range<usize>, listed: Listed) -> WordCut {
        let start = part.start.max(listed.first.saturating_sub(CONTEXT_LENGTH));
        let end = part.end.min(listed.last + 1 + CONTEXT_LENGTH);
        if self.is_straddled(start..end, listed) { self.best_cut(start..end, listed) } else { WordCut::None }
    }

    fn is_straddled(&self, part: Range<usize>, listed: Listed) -> bool {
        let starts = part.start.max(listed.first.saturating_sub(MAX_WORD_LENGTH - 1))..listed.last + 1;
        let may_cut = |start: &usize| (2..=MAX_WORD_LENGTH).any(|length| listed.is_cut_by(*start, start + length));
        starts.filter(may_cut).any(|start| {
            let mut words = self.words_at(start, part.end);
            words.any(|(end, _)| listed.is_cut_by(start, end))
        })
    }

    /// Compares the best sums of logarithms of both kinds of segmentation. In a tie the word is whole.
    fn best_cut(&self, part: Range<usize>, listed: Listed) -> WordCut {
        let mut best = [Segmentation::IMPOSSIBLE; PENDING];
        best[part.start % PENDING] = Segmentation { whole: 0, whole_fluent: 0, ..Segmentation::IMPOSSIBLE };
        let mut with_listed = 0;
        for start in part.clone() {
            let before = std::mem::replace(&mut best[start % PENDING], Segmentation::IMPOSSIBLE);
            if start == listed.first {
                with_listed = before.whole + self.listed_weight(listed);
            }
            if start == listed.last {
                let after = &mut best[(start + 1) % PENDING];
                after.whole = after.whole.max(with_listed);
            }
            // A single letter is always a possible word.
            let lone = self.classes_at(start)[0];
            let is_rare = lone.is_none_or(|class| class < LONE_FREQUENCY);
            let letter = lone.is_none().then_some((start + 1, 0));
            for (end, class) in self.words_at(start, part.end).chain(letter) {
                let weight = i32::from(class) - TOTAL_FREQUENCY;
                let after = &mut best[end % PENDING];
                if listed.is_cut_by(start, end) {
                    after.cut = after.cut.max(before.whole.max(before.cut) + weight);
                    after.cut_fluent = after.cut_fluent.max(before.whole_fluent.max(before.cut_fluent) + weight);
                    continue;
                }
                after.whole = after.whole.max(before.whole + weight);
                after.cut = after.cut.max(before.cut + weight);
                // Without rare single letters of the listed word.
                if !(is_rare && end == start + 1 && listed.contains(start, end)) {
                    after.whole_fluent = after.whole_fluent.max(before.whole_fluent + weight);
                    after.cut_fluent = after.cut_fluent.max(before.cut_fluent + weight);
                }
            }
        }
        best[part.end % PENDING].cut()
    }

    /// Returns the weight of the listed word. Assumes a frequency of at least 300, 10 or 3, by length: long words
    /// seldom occur by chance, but are rarer in all texts.
    fn listed_weight(&self, listed: Listed) -> i32 {
        let length = listed.last + 1 - listed.first;
        let prior = match length {
            0..=2 => 16,
            3 => 7,
            _ => 3,
        };
        let class = self.classes_at(listed.first).get(length - 1).copied().flatten();
        prior.max(class.map_or(0, i32::from)) - TOTAL_FREQUENCY
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

/// The best weights of the segmentations of a beginning of a text: those that keep the listed word whole and those that
/// cut it, and the same without rare single letters of it.
#[derive(Clone, Copy)]
struct Segmentation {
    whole: i32,
    cut: i32,
    whole_fluent: i32,
    cut_fluent: i32,
}

impl Segmentation {
    const IMPOSSIBLE: Self =
        Self { whole: i32::MIN / 2, cut: i32::MIN / 2, whole_fluent: i32::MIN / 2, cut_fluent: i32::MIN / 2 };

    /// Returns how the better segmentation of a whole text treats the listed word.
    fn cut(self) -> WordCut {
        match (self.cut > self.whole, self.cut_fluent > self.whole) {
            (false, _) => WordCut::None,
            (true, false) => WordCut::Doubtful,
            (true, true) => WordCut::Certain,
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
        TextWords::new(&read).cut(&(0..read.len()), Listed { first, last: first + word.len() - 1 })
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
