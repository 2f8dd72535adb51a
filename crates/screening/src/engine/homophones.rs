//! Matches of a word by pronunciation.

use super::{
    candidate::{Alignment, Candidate},
    dictionary::dictionary,
    folding::LetterClass,
    letters::Letter,
    pinyin::pinyin_table,
    types::MatchWay,
};

/// Length in letters of clauses of classical verse.
const VERSE_LENGTHS: [usize; 2] = [5, 7];
/// The frequency class from which a character is a word of every text, such as 见 or 人: 32 000 occurrences.
const COMMON_LETTER: u8 = 30;

/// Conjunctions and prepositions, which stand in texts for themselves.
const CONJUNCTIONS: &str = "或与及而且但则若却即乃于";

/// The likeness of letters that sound like a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    /// With the same tones, or with most letters unchanged.
    Same,
    /// With other tones, or with a sound that many speakers do not tell apart.
    Similar,
}

impl Likeness {
    /// Returns the weight of the assumption that letters of this likeness stand for a word.
    pub(super) fn doubt(self) -> i32 {
        match self {
            Self::Same => 12,
            Self::Similar => 20,
        }
    }
}

impl Candidate<'_> {
    /// Returns how much the letters sound like the word; `None` if they do not, or are the word itself.
    pub(super) fn likeness(&self, alignment: &Alignment) -> Option<Likeness> {
        let shown = &self.page.letters[alignment.first..=alignment.last];
        let word = &self.pattern.letters[..];
        if shown.len() != word.len() {
            return None;
        }
        let pinyin = pinyin_table();
        let (mut kept, mut is_same_sound, mut is_same_tone) = (0, true, true);
        for (&letter, shown) in word.iter().zip(shown) {
            if letter == shown.value {
                kept += 1;
                continue;
            }
            let (expected, reading) = (pinyin.reading(letter), pinyin.reading(shown.value));
            is_same_sound &= expected.sound == reading.sound;
            is_same_tone &= expected.tone == reading.tone;
        }
        let is_same = is_same_sound && (kept * 3 >= word.len() * 2 || is_same_tone);
        if kept == word.len() || !(is_same || kept * 2 >= word.len() || is_same_tone) {
            return None;
        }
        Some(if is_same { Likeness::Same } else { Likeness::Similar })
    }

    /// Returns the way in which letters of this likeness are found; `None` if they are words themselves.
    pub(super) fn sound_way(&self, alignment: &Alignment, likeness: Likeness) -> Option<MatchWay> {
        if is_common(&self.page.letters[alignment.first..=alignment.last]) {
            return None;
        }
        let is_mirrored = self.is_mirrored(alignment);
        if is_mirrored && self.are_common_letters(alignment) {
            return None;
        }
        let is_doubtful = likeness == Likeness::Similar
            || self.has_conjunction(alignment)
            || self.is_counted(alignment)
            || is_mirrored
            || self.is_in_verse(alignment);
        Some(if is_doubtful { MatchWay::Fuzzy } else { MatchWay::Sound })
    }

    /// Returns true if each character is a word of every text by itself, as in 人见人爱.
    fn are_common_letters(&self, alignment: &Alignment) -> bool {
        let shown = &self.page.letters[alignment.first..=alignment.last];
        shown.iter().all(|letter| dictionary().class(&[letter.value]).is_some_and(|class| class >= COMMON_LETTER))
    }

    /// Returns true if a replaced letter joins other words.
    fn has_conjunction(&self, alignment: &Alignment) -> bool {
        let shown = self.page.letters[alignment.first..=alignment.last].iter();
        shown
            .zip(&*self.pattern.letters)
            .any(|(shown, &letter)| shown.value != letter && CONJUNCTIONS.contains(shown.value))
    }

    /// Returns true if the first letter is a unit of the number before it: 4星服务.
    fn is_counted(&self, alignment: &Alignment) -> bool {
        let before = alignment.first.checked_sub(1).map(|index| self.letter(index));
        let first = self.letter(alignment.first);
        first.value != self.pattern.letters[0]
            && !first.gap.is_open()
            && before.is_some_and(|letter| letter.class == LetterClass::Digit)
    }

    /// Returns true if the letter beside the match repeats its other end, as in idioms such as 人见人爱.
    fn is_mirrored(&self, alignment: &Alignment) -> bool {
        let (first, last) = (self.letter(alignment.first), self.letter(alignment.last));
        let before = alignment.first.checked_sub(1).map(|index| self.letter(index).value);
        let after = self.page.letters.get(alignment.last + 1).map(|letter| letter.value);
        before == Some(last.value) || after == Some(first.value)
    }

    /// Returns true if the match stands in one of two neighbouring clauses of classical verse.
    fn is_in_verse(&self, alignment: &Alignment) -> bool {
        let Some(clause) = self.clause_around(alignment.first) else { return false };
        let is_verse = |range: &std::ops::Range<usize>| VERSE_LENGTHS.contains(&range.len());
        let before = clause.start.checked_sub(1).and_then(|index| self.clause_around(index));
        let after = self.clause_around(clause.end);
        is_verse(&clause)
            && alignment.last < clause.end
            && [before, after].into_iter().flatten().any(|other| other.len() == clause.len())
    }

    /// Returns the letters between two gaps; `None` if they are too many for verse, or not all Han.
    fn clause_around(&self, index: usize) -> Option<std::ops::Range<usize>> {
        self.page.letters.get(index)?;
        let longest = VERSE_LENGTHS[1];
        let mut start = index;
        while start > 0 && index - start <= longest && !self.letter(start).gap.is_open() {
            start -= 1;
        }
        let end = self.piece_end(start, (start + longest).min(self.page.letters.len() - 1)) + 1;
        let is_han = (start..end).all(|index| self.letter(index).class == LetterClass::Ideographic);
        (is_han && end - start <= longest).then_some(start..end)
    }
}

/// Returns true if the letters are a word, or adjacent words.
fn is_common(shown: &[Letter]) -> bool {
    let values: Vec<char> = shown.iter().map(|letter| letter.value).collect();
    let is_word = |letters: &[char]| dictionary().contains(letters);
    is_word(&values) || (2..values.len() - 1).any(|cut| is_word(&values[..cut]) && is_word(&values[cut..]))
}
