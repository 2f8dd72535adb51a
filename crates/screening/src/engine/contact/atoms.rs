//! A text as plain characters: letters folded, symbols without width, invisible characters left out.

use unicode_normalization::UnicodeNormalization;

use super::super::folding::{Fold, folding};

/// A character of a text in its plain form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atom {
    pub(super) plain: char,
    /// The character as written.
    written: char,
    /// The number of characters before it.
    pub(super) index: usize,
    /// Byte offsets.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Atom {
    /// Returns the value of a digit, also of a Han numeral.
    pub(super) fn digit(&self) -> Option<u8> {
        Some(match self.plain {
            '0'..='9' => self.plain as u8 - b'0',
            '〇' | '零' => 0,
            '一' | '壹' | '幺' => 1,
            '二' | '贰' => 2,
            '三' | '叁' => 3,
            '四' | '肆' => 4,
            '五' | '伍' => 5,
            '六' | '陆' => 6,
            '七' | '柒' => 7,
            '八' | '捌' => 8,
            '九' | '玖' => 9,
            _ => return None,
        })
    }

    pub(super) fn is_word(&self) -> bool {
        self.plain.is_ascii_alphanumeric()
    }

    /// Returns true if the text has another character than the plain one, apart from case and width.
    pub(super) fn is_disguised(&self) -> bool {
        let is_wide = matches!(self.written, '\u{FF01}'..='\u{FF5E}');
        self.written.to_ascii_lowercase() != self.plain && !is_wide && self.plain.is_ascii_alphanumeric()
    }

    /// Returns true for a numeral of Han characters.
    pub(super) fn is_numeral(&self) -> bool {
        !self.plain.is_ascii() && self.digit().is_some()
    }
}

pub(super) fn read(text: &str) -> Vec<Atom> {
    let mut atoms = Vec::with_capacity(text.len());
    for (index, (start, written)) in text.char_indices().enumerate() {
        let end = start + written.len_utf8();
        let mut push = |plain: char| atoms.push(Atom { plain, written, index, start, end });
        match folding().fold(written) {
            // A stroke between other characters is a separator.
            Fold::Letter('丶') => push('·'),
            Fold::Letter(letter) => push(letter),
            Fold::Letters(letters) => letters.iter().for_each(|&letter| push(letter)),
            Fold::Separator | Fold::Stop => push(std::iter::once(written).nfkc().next().unwrap_or(written)),
            Fold::Mark | Fold::Invisible => {}
        }
    }
    atoms
}

/// Returns true if the atoms from `start` on spell this text.
pub(super) fn spells(atoms: &[Atom], start: usize, text: &str) -> bool {
    let mut letters = text.chars().enumerate();
    letters.all(|(offset, letter)| atoms.get(start + offset).is_some_and(|atom| atom.plain == letter))
}
