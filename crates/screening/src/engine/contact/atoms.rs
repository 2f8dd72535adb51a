//! A text as plain characters: letters folded, symbols without width, invisible characters left out.

use unicode_normalization::UnicodeNormalization;

use super::super::folding::{Fold, folding};

/// Minimum digits of a number that may have letters for digits.
const SHORTEST_NUMBER: usize = 7;
/// Minimum spaces between single letters that spell an address.
const FEWEST_SPACES: usize = 4;

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
            '〇' | '零' | '洞' => 0,
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

/// Returns the atoms with letters that resemble digits as digits, if runs of such letters and digits have more digits:
/// 138oo138ooo. Each run needs a digit, and all together need those of an account number.
pub(super) fn with_digits(atoms: &[Atom]) -> Vec<Atom> {
    let mut read = atoms.to_vec();
    let digit_of = |atom: &Atom| match atom.plain {
        'o' => Some('0'),
        'l' | 'i' => Some('1'),
        _ => atom.digit().map(|_| atom.plain),
    };
    let mut start = 0;
    while start < read.len() {
        // A run that continues a word is none.
        if start.checked_sub(1).is_some_and(|index| read[index].is_word()) {
            start += 1;
            continue;
        }
        let (mut end, mut letters, mut digits, mut is_mixed) = (start, 0, 0, false);
        while end < read.len() {
            let run = read[end..].iter().take_while(|atom| digit_of(atom).is_some()).count();
            let own = read[end..end + run].iter().filter(|atom| atom.digit().is_some()).count();
            let is_inside_word = read.get(end + run).is_some_and(Atom::is_word);
            if own == 0 || is_inside_word {
                break;
            }
            (letters, digits, is_mixed) = (letters + run - own, digits + own, is_mixed || run > own);
            end += run;
            if !read.get(end).is_some_and(|atom| matches!(atom.plain, ' ' | '-' | '·')) {
                break;
            }
            end += 1;
        }
        if is_mixed && digits >= letters && digits + letters >= SHORTEST_NUMBER {
            for atom in &mut read[start..end] {
                atom.plain = digit_of(atom).unwrap_or(atom.plain);
            }
        }
        start = end.max(start + 1);
    }
    read
}

/// Returns the atoms without the spaces between single letters, if there are some: a b c . c o m.
pub(super) fn unspaced(atoms: &[Atom]) -> Option<Vec<Atom>> {
    let is_space =
        |index: Option<usize>| index.is_none_or(|index| atoms.get(index).is_none_or(|atom| atom.plain == ' '));
    let is_single = |index: usize| is_space(index.checked_sub(1)) && is_space(Some(index + 1));
    let is_left_out = |index: &usize| {
        atoms[*index].plain == ' '
            && index.checked_sub(1).is_some_and(is_single)
            && (*index + 1 < atoms.len() && is_single(index + 1))
    };
    let left_out: Vec<usize> = (0..atoms.len()).filter(is_left_out).collect();
    let kept = (0..atoms.len()).filter(|index| left_out.binary_search(index).is_err());
    (left_out.len() >= FEWEST_SPACES).then(|| kept.map(|index| atoms[index]).collect())
}

/// Returns true if the atoms from `start` on spell this text.
pub(super) fn spells(atoms: &[Atom], start: usize, text: &str) -> bool {
    let mut letters = text.chars().enumerate();
    letters.all(|(offset, letter)| atoms.get(start + offset).is_some_and(|atom| atom.plain == letter))
}
