//! Matches of a word by pronunciation.

use super::{
    candidate::{Alignment, Candidate},
    dictionary::dictionary,
    letters::Letter,
    pinyin::pinyin_table,
};

impl Candidate<'_> {
    /// Returns true if the letters are homophones of the word and no word themselves: either with the same tones, or
    /// with most letters of the listed word unchanged.
    pub(super) fn is_homophone(&self, alignment: &Alignment) -> bool {
        let shown = &self.page.letters[alignment.first..=alignment.last];
        let word = self.pattern.letters;
        if shown.len() != word.len() {
            return false;
        }
        let replaced: Vec<_> = word.iter().zip(shown).filter(|(letter, shown)| **letter != shown.value).collect();
        let kept = word.len() - replaced.len();
        let pinyin = pinyin_table();
        let is_same_tone = || replaced.iter().all(|(letter, shown)| pinyin.tone(**letter) == pinyin.tone(shown.value));
        let is_meant = !replaced.is_empty() && (kept * 3 >= word.len() * 2 || is_same_tone());
        is_meant && !is_common(shown)
    }
}

/// Returns true if the letters are a word, or adjacent words.
fn is_common(shown: &[Letter]) -> bool {
    let values: Vec<char> = shown.iter().map(|letter| letter.value).collect();
    let is_word = |letters: &[char]| dictionary().contains(letters);
    is_word(&values) || (2..values.len() - 1).any(|cut| is_word(&values[..cut]) && is_word(&values[cut..]))
}
