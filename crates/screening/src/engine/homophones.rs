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

/// The frequency class of a character that is a word of many texts: 3 000 occurrences.
pub(super) const FREQUENT_LETTER: u8 = 23;

/// Conjunctions and prepositions, which stand in texts for themselves.
const CONJUNCTIONS: &str = "或与及而且但则若却即乃于";

/// The weight of the assumption that a text disguises a word, and more for each letter by how much its sound differs.
const DISGUISE: i32 = 6;
const SAME_SOUND: i32 = 6;
const OTHER_TONE: i32 = 12;
const SIMILAR_SOUND: i32 = 15;

/// Returns the weight of the assumption that so many letters of a text stand for others.
pub(super) fn disguise_doubt(replaced: usize) -> i32 {
    (0..replaced).fold(DISGUISE, |doubt, _| doubt + SAME_SOUND)
}

impl Candidate<'_> {
    /// Returns the weight of the assumption that the letters stand for the word by their sound; `None` if they cannot, or are
    /// the word itself. Half of the letters must be unchanged, or all have the same tones, or, in longer words, the same
    /// syllables.
    pub(super) fn sound_doubt(&self, alignment: &Alignment) -> Option<i32> {
        let shown = &self.page.letters[alignment.first..=alignment.last];
        let word = &self.pattern.letters[..];
        if shown.len() != word.len() {
            return None;
        }
        let pinyin = pinyin_table();
        let (mut kept, mut is_same_sound, mut is_same_tone, mut doubt) = (0, true, true, DISGUISE);
        for (&letter, shown) in word.iter().zip(shown) {
            if letter == shown.value {
                kept += 1;
                continue;
            }
            let (expected, reading) = (pinyin.reading(letter), pinyin.reading(shown.value));
            let (has_sound, has_tone) = (expected.sound == reading.sound, expected.tone == reading.tone);
            is_same_sound &= has_sound;
            is_same_tone &= has_tone;
            doubt += match (has_sound, has_tone) {
                (true, true) => SAME_SOUND,
                (true, false) => OTHER_TONE,
                (false, _) => SIMILAR_SOUND,
            };
        }
        let is_alike = kept * 2 >= word.len() || is_same_tone || is_same_sound && kept > 0;
        (is_alike && kept < word.len()).then_some(doubt)
    }

    /// Returns the way in which letters that sound like the word are found; `None` if they are words themselves.
    pub(super) fn sound_way(&self, alignment: &Alignment) -> Option<MatchWay> {
        if is_common(&self.page.letters[alignment.first..=alignment.last]) {
            return None;
        }
        let is_mirrored = self.is_mirrored(alignment);
        if is_mirrored && self.are_common_letters(alignment) {
            return None;
        }
        let is_doubtful = is_mirrored
            || self.is_other_word(alignment)
            || self.has_conjunction(alignment)
            || self.is_counted(alignment)
            || self.is_in_verse(alignment);
        Some(if is_doubtful { MatchWay::Fuzzy } else { MatchWay::Sound })
    }

    /// Returns true if each character is a word of every text by itself, as in 人见人爱.
    fn are_common_letters(&self, alignment: &Alignment) -> bool {
        let shown = &self.page.letters[alignment.first..=alignment.last];
        shown.iter().all(|letter| dictionary().class(&[letter.value]).is_some_and(|class| class >= COMMON_LETTER))
    }

    /// Returns true if a letter with another tone, or of another syllable, is a word of many texts by itself: 排 for 拍. Longer
    /// words and those that stand alone need no such proof.
    fn is_other_word(&self, alignment: &Alignment) -> bool {
        let (first, last) = (alignment.first, alignment.last);
        let is_alone = (first == 0 || self.letter(first).gap.is_open())
            && self.page.letters.get(last + 1).is_none_or(|letter| letter.gap.is_open());
        if self.pattern.letters.len() > 2 || is_alone {
            return false;
        }
        self.page.letters[first..=last].iter().zip(&*self.pattern.letters).any(|(shown, &letter)| {
            let (expected, reading) = (pinyin_table().reading(letter), pinyin_table().reading(shown.value));
            (expected.sound, expected.tone) != (reading.sound, reading.tone)
                && dictionary().class(&[shown.value]).is_some_and(|class| class >= FREQUENT_LETTER)
        })
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
