//! The eight trigrams and the sixty-four hexagrams in King Wen order, with their names and texts.
//!
//! A [`Hexagram`] always has a number from 1 to 64. A figure is stored as bits with the bottom line lowest, so that
//! every transformation (flipping lines, taking the nuclear figure) is one operation on a byte.

use super::table;
use crate::Locale;

/// One of the eight figures of three lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trigram {
    /// The index in the order of the Unicode signs ☰ to ☷; always below eight.
    place: u8,
}

/// One of the sixty-four figures of six lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hexagram {
    /// The King Wen number; always from 1 to 64.
    number: u8,
}

impl Trigram {
    /// Returns all eight in the order of their Unicode signs, which is also the Earlier Heaven order 1 to 8.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|place| Self { place })
    }

    /// Returns the trigram with this sign (☰ to ☷).
    pub fn from_sign(sign: char) -> Option<Self> {
        Self::all().find(|trigram| trigram.sign().starts_with(sign))
    }

    /// Returns the trigram of three lines from the bottom, `true` for yang.
    pub fn from_figure(figure: [bool; 3]) -> Self {
        Self::from_bits(pack(&figure))
    }

    /// Returns the trigram at which counting the Earlier Heaven order ends: 1 and 9 are 乾, 8 and 16 坤, and so is 0.
    #[allow(clippy::cast_possible_truncation, reason = "the remainder is below eight")]
    pub fn counted(count: u64) -> Self {
        Self { place: ((count % 8 + 7) % 8) as u8 }
    }

    /// Returns the number in the Earlier Heaven order, 1 (乾) to 8 (坤).
    pub fn number(self) -> u8 {
        self.place + 1
    }

    /// Returns the Unicode sign, such as ☵.
    pub fn sign(self) -> &'static str {
        self.cell(TRIGRAM_SIGN)
    }

    /// Returns the three lines from the bottom, `true` for yang.
    pub fn figure(self) -> [bool; 3] {
        let bits = TRIGRAM_BITS[usize::from(self.place)];
        std::array::from_fn(|line| bits >> line & 1 == 1)
    }

    /// Returns the Chinese name, such as 坎.
    pub fn chinese_name(self) -> &'static str {
        self.cell(TRIGRAM_NAME)
    }

    /// Returns the name in pinyin with tones.
    pub fn pinyin(self) -> &'static str {
        self.cell(TRIGRAM_PINYIN)
    }

    /// Returns the usual English name, such as "The Abysmal".
    pub fn english_name(self) -> &'static str {
        self.cell(TRIGRAM_ENGLISH)
    }

    /// Returns the image in nature: 水, water.
    pub fn image(self, locale: Locale) -> &'static str {
        self.cell(TRIGRAM_IMAGE + offset(locale))
    }

    /// Returns the attribute: 险陷, danger.
    pub fn attribute(self, locale: Locale) -> &'static str {
        self.cell(TRIGRAM_ATTRIBUTE + offset(locale))
    }

    fn from_bits(bits: u8) -> Self {
        Self { place: TRIGRAM_BY_BITS[usize::from(bits & 0b111)] }
    }

    fn bits(self) -> u8 {
        TRIGRAM_BITS[usize::from(self.place)]
    }

    fn cell(self, column: usize) -> &'static str {
        TRIGRAMS[usize::from(self.place)][column]
    }
}

impl Hexagram {
    /// Returns all sixty-four in King Wen order.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=64).map(|number| Self { number })
    }

    /// Returns the hexagram with this King Wen number; `None` outside 1 to 64.
    pub fn from_number(number: u8) -> Option<Self> {
        (1..=64).contains(&number).then_some(Self { number })
    }

    /// Returns the hexagram with this Unicode sign (U+4DC0 to U+4DFF).
    pub fn from_sign(sign: char) -> Option<Self> {
        let place = u32::from(sign).checked_sub(FIRST_SIGN)?;
        Self::from_number(u8::try_from(place.checked_add(1)?).ok()?)
    }

    /// Returns the hexagram of six lines from the bottom, `true` for yang.
    pub fn from_figure(figure: [bool; 6]) -> Self {
        Self::from_bits(pack(&figure))
    }

    /// Returns the hexagram composed of two trigrams.
    pub fn from_trigrams(upper: Trigram, lower: Trigram) -> Self {
        Self::from_bits(upper.bits() << 3 | lower.bits())
    }

    /// Returns the King Wen number, 1 to 64.
    pub fn number(self) -> u8 {
        self.number
    }

    /// Returns the Unicode sign, such as ䷂.
    pub fn sign(self) -> &'static str {
        self.cell(HEXAGRAM_SIGN)
    }

    /// Returns the six lines from the bottom, `true` for yang.
    pub fn figure(self) -> [bool; 6] {
        let bits = self.bits();
        std::array::from_fn(|line| bits >> line & 1 == 1)
    }

    /// Returns the short Chinese name, such as 屯.
    pub fn chinese_name(self) -> &'static str {
        self.cell(HEXAGRAM_NAME)
    }

    /// Returns the Chinese name with its trigram images, such as 水雷屯.
    pub fn chinese_full_name(self) -> &'static str {
        self.cell(HEXAGRAM_FULL_NAME)
    }

    /// Returns the short name in pinyin with tones.
    pub fn pinyin(self) -> &'static str {
        self.cell(HEXAGRAM_PINYIN)
    }

    /// Returns the usual English name.
    pub fn english_name(self) -> &'static str {
        self.cell(HEXAGRAM_ENGLISH)
    }

    /// Returns the upper (outer) trigram.
    pub fn upper(self) -> Trigram {
        Trigram::from_bits(self.bits() >> 3)
    }

    /// Returns the lower (inner) trigram.
    pub fn lower(self) -> Trigram {
        Trigram::from_bits(self.bits())
    }

    /// Returns our own counsel, one or two sentences.
    pub fn counsel(self, locale: Locale) -> &'static str {
        self.cell(HEXAGRAM_COUNSEL + offset(locale))
    }

    /// Returns the image formed by the two trigrams, one clause without a full stop.
    pub fn image(self, locale: Locale) -> &'static str {
        self.cell(HEXAGRAM_IMAGE + offset(locale))
    }

    /// Returns the nuclear hexagram: lines 2, 3, 4 below and lines 3, 4, 5 above.
    #[must_use]
    pub fn nuclear(self) -> Self {
        let bits = self.bits();
        Self::from_bits(bits >> 1 & 0b111 | bits << 1 & 0b11_1000)
    }

    /// Returns the hexagram with the lines at these positions (1 at the bottom) changed to their opposites. Positions
    /// outside 1 to 6 are ignored.
    #[must_use]
    pub fn with_lines_changed(self, positions: &[u8]) -> Self {
        let changed = positions
            .iter()
            .filter(|position| (1..=6).contains(*position))
            .fold(0, |bits: u8, position| bits | 1 << (position - 1));
        Self::from_bits(self.bits() ^ changed)
    }

    /// Returns the positions, ascending, at which the lines of the two hexagrams differ.
    pub fn differing_positions(self, other: Self) -> Vec<u8> {
        let difference = self.bits() ^ other.bits();
        (1..=6).filter(|position| difference >> (position - 1) & 1 == 1).collect()
    }

    fn from_bits(bits: u8) -> Self {
        Self { number: NUMBER_BY_BITS[usize::from(bits & 0b11_1111)] }
    }

    fn bits(self) -> u8 {
        HEXAGRAM_BITS[self.row()]
    }

    fn cell(self, column: usize) -> &'static str {
        HEXAGRAMS[self.row()][column]
    }

    fn row(self) -> usize {
        usize::from(self.number) - 1
    }
}

const FIRST_SIGN: u32 = 0x4DC0;

const TRIGRAM_SIGN: usize = 0;
const TRIGRAM_LINES: usize = 1;
const TRIGRAM_NAME: usize = 2;
const TRIGRAM_PINYIN: usize = 3;
const TRIGRAM_ENGLISH: usize = 4;
const TRIGRAM_IMAGE: usize = 5;
const TRIGRAM_ATTRIBUTE: usize = 7;

const HEXAGRAM_NUMBER: usize = 0;
const HEXAGRAM_SIGN: usize = 1;
const HEXAGRAM_LINES: usize = 2;
const HEXAGRAM_NAME: usize = 3;
const HEXAGRAM_FULL_NAME: usize = 4;
const HEXAGRAM_PINYIN: usize = 5;
const HEXAGRAM_ENGLISH: usize = 6;
const HEXAGRAM_COUNSEL: usize = 7;
const HEXAGRAM_IMAGE: usize = 9;

static TRIGRAMS: [[&str; 9]; 8] = TRIGRAM_CELLS;
const TRIGRAM_CELLS: [[&str; 9]; 8] = table::cells(include_str!("../../../../assets/trigrams.tsv"));
const TRIGRAM_BITS: [u8; 8] = trigram_bits();
const TRIGRAM_BY_BITS: [u8; 8] = places_by_bits(TRIGRAM_BITS, 0);

static HEXAGRAMS: [[&str; 11]; 64] = HEXAGRAM_CELLS;
const HEXAGRAM_CELLS: [[&str; 11]; 64] = table::cells(include_str!("../../../../assets/hexagrams.tsv"));
static HEXAGRAM_BITS: [u8; 64] = HEXAGRAM_BITS_BY_ROW;
const HEXAGRAM_BITS_BY_ROW: [u8; 64] = hexagram_bits();
static NUMBER_BY_BITS: [u8; 64] = places_by_bits(HEXAGRAM_BITS_BY_ROW, 1);

/// In every table the English cell follows the Chinese one.
pub(super) const fn offset(locale: Locale) -> usize {
    match locale {
        Locale::Chinese => 0,
        Locale::English => 1,
    }
}

fn pack(lines: &[bool]) -> u8 {
    lines.iter().rev().fold(0, |bits, is_yang| bits << 1 | u8::from(*is_yang))
}

const fn trigram_bits() -> [u8; 8] {
    let mut bits = [0; 8];
    let mut row = 0;
    while row < 8 {
        bits[row] = table::figure(TRIGRAM_CELLS[row][TRIGRAM_LINES], 3);
        row += 1;
    }
    bits
}

const fn hexagram_bits() -> [u8; 64] {
    let mut bits = [0; 64];
    let mut row = 0;
    while row < 64 {
        table::assert_number(HEXAGRAM_CELLS[row][HEXAGRAM_NUMBER], row + 1);
        bits[row] = table::figure(HEXAGRAM_CELLS[row][HEXAGRAM_LINES], 6);
        row += 1;
    }
    bits
}

/// Inverts "row to figure" into "figure to row, counted from `first`". Two rows with the same figure are a compile
/// error, so with as many rows as figures every figure has its row.
#[allow(clippy::cast_possible_truncation, reason = "a constant has no try_from, and there are at most 64 rows")]
const fn places_by_bits<const COUNT: usize>(bits: [u8; COUNT], first: u8) -> [u8; COUNT] {
    let mut places = [u8::MAX; COUNT];
    let mut row = 0;
    while row < COUNT {
        let figure = bits[row] as usize;
        assert!(places[figure] == u8::MAX, "two rows have the same figure");
        places[figure] = first + row as u8;
        row += 1;
    }
    places
}

#[cfg(test)]
mod tests;
