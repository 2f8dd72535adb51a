//! The gaps and signs of a listed word, and signs and digits in place of its letters.

use super::{
    candidate::{Alignment, ByteSpan, Candidate, Group},
    confusables::is_leet_for,
    folding::{full_stop, meaningful_symbol},
    letters::Stop,
    pattern::Spacing,
    types::ContentType,
};

/// Number of characters around a word that are searched for its leading and trailing signs.
const SYMBOL_REACH: usize = 16;

impl Candidate<'_> {
    pub(super) fn is_own_gap(&self, alignment: &Alignment, index: usize) -> bool {
        let Some(spacing) = &self.pattern.spacing else {
            return false;
        };
        if self.letter(index).gap.stop == Stop::ClauseMark
            && spacing.required.is_empty()
            && self.page.content_type != ContentType::Nickname
        {
            return false;
        }
        let Some(group) = alignment.groups.iter().find(|group| (group.first..=group.last).contains(&index)) else {
            return false;
        };
        let start = group.start as u32;
        spacing.gaps.iter().any(|&gap| {
            if index == group.first { gap == start } else { gap > start && gap < start + group.count as u32 }
        })
    }

    /// Returns the range of these letters, if the text contains the required signs.
    pub(super) fn span(&self, first: usize, last: usize) -> Option<ByteSpan> {
        let (front, back) = (self.letter(first), self.letter(last));
        let mut span = ByteSpan { start: front.start as usize, end: back.end as usize };
        if let Some(spacing) = &self.pattern.spacing {
            self.require_symbols(spacing, &mut span, first, last)?;
        }
        Some(span)
    }

    fn require_symbols(&self, spacing: &Spacing, span: &mut ByteSpan, first: usize, last: usize) -> Option<()> {
        let count = self.pattern.letters.len() as u32;
        let required = |range: std::ops::Range<u32>| {
            spacing.required.iter().filter(move |required| range.contains(&required.0)).map(|required| required.1)
        };
        let inside = &self.page.text[span.start..span.end];
        skipped(inside.chars(), required(1..count))?;
        let leading: Vec<char> = required(0..1).collect();
        if !leading.is_empty() {
            let from = first.checked_sub(1).map_or(0, |index| self.letter(index).end as usize);
            let before = self.page.text[from..span.start].chars().rev().take(SYMBOL_REACH);
            span.start -= skipped(before, leading.into_iter().rev())?;
        }
        let mut trailing = required(count..count + 1).peekable();
        if trailing.peek().is_some() {
            let to = self.page.letters.get(last + 1).map_or(self.page.text.len(), |letter| letter.start as usize);
            let after = self.page.text[span.end..to].chars().take(SYMBOL_REACH);
            span.end += skipped(after, trailing)?;
        }
        Some(())
    }

    /// Returns true if digits and signs replace letters, at most half of them, in a word of sufficient length.
    pub(super) fn is_leet(&self, alignment: &Alignment) -> bool {
        let substituted = alignment.groups.iter().try_fold(0, |sum, group| Some(sum + self.substitutions(group)?));
        let length = self.pattern.letters.len();
        substituted.is_some_and(|count| count > 0 && length > 2 && count * 2 <= length.max(3))
    }

    /// Returns the number of replaced letters in the group; `None` if another letter is in their place.
    fn substitutions(&self, group: &Group) -> Option<usize> {
        let word = &self.pattern.letters[group.start..group.start + group.count];
        let text = &self.page.letters[group.first..=group.last];
        let is_written = |letter: char, shown: char| shown == letter || is_leet_for(shown, letter);
        if text.len() == word.len() {
            let fits = word.iter().zip(text).all(|(&letter, shown)| is_written(letter, shown.value));
            return fits.then(|| word.iter().zip(text).filter(|&(&letter, shown)| shown.value != letter).count());
        }
        let letter = word[0];
        let fits =
            word.iter().all(|&other| other == letter) && text.iter().all(|shown| is_written(letter, shown.value));
        let is_changed = text.iter().any(|shown| shown.value != letter);
        fits.then_some(if is_changed { word.len() } else { 0 })
    }
}

/// Returns the number of bytes until the required signs appeared in order; `None` if they do not.
fn skipped(text: impl Iterator<Item = char>, required: impl Iterator<Item = char>) -> Option<usize> {
    let mut text = text.scan(0, |bytes, character| {
        *bytes += character.len_utf8();
        Some((character, *bytes))
    });
    let mut passed = 0;
    for symbol in required {
        let found =
            text.find(|&(character, _)| meaningful_symbol(character).or(full_stop(character)) == Some(symbol))?;
        passed = found.1;
    }
    Some(passed)
}
