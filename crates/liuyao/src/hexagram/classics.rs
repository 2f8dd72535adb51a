//! The classical texts: 卦辞, 彖, 大象, 爻辞 and 小象, and for each hexagram and line one plain sentence of our own.
//!
//! Reads `assets/classics/` at compile time; its `README.md` names the edition and the decisions on variants. Only
//! hexagrams 1 and 2 have a seventh text, 用九 and 用六, which is read when all six lines change.

use super::catalog::{Hexagram, offset};
use super::table;
use named_enum::named_enum;

use crate::Locale;

/// A classical text in both scripts, which have the same number of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassicalText {
    pub traditional: &'static str,
    pub simplified: &'static str,
}

named_enum! {
    /// The judgement of a text, as a careful reader of the whole text takes it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Judgement {
        Good = "good",
        /// No judgement, or no more than 无咎.
        Even = "even",
        /// Good and bad, or good under a condition.
        Mixed = "mixed",
        Warning = "warning",
    }
}

/// The texts of one line, or of 用九 or 用六.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineClassic {
    /// The row of the table of lines, from zero.
    row: usize,
}

impl Hexagram {
    /// Returns the short name in traditional characters, such as 訟.
    pub fn traditional_name(self) -> &'static str {
        self.classic_cell(NAME)
    }

    /// Returns the 卦辞, without the hexagram's name before it.
    pub fn classical_judgement(self) -> ClassicalText {
        self.classic(JUDGEMENT)
    }

    /// Returns the 彖, without "彖曰".
    pub fn classical_commentary(self) -> ClassicalText {
        self.classic(COMMENTARY)
    }

    /// Returns the 大象, without "象曰".
    pub fn classical_image(self) -> ClassicalText {
        self.classic(IMAGE)
    }

    /// Returns the 卦辞 in one plain sentence.
    pub fn plain_judgement(self, locale: Locale) -> &'static str {
        self.classic_cell(PLAIN + offset(locale))
    }

    /// Returns the six lines, bottom up.
    pub fn line_classics(self) -> [LineClassic; 6] {
        let first = first_line_row(self.number());
        std::array::from_fn(|place| LineClassic { row: first + place })
    }

    /// Returns 用九 or 用六 for the hexagrams that have one, 1 and 2.
    pub fn all_changing_classic(self) -> Option<LineClassic> {
        has_all_changing(self.number()).then(|| LineClassic { row: first_line_row(self.number()) + 6 })
    }

    /// Returns the judgement of a text and its words: 0 the 卦辞, 1 to 6 the lines, 7 用九 or 用六.
    pub fn judgement_at(self, position: u8) -> Option<(Judgement, &'static str)> {
        let first = first_line_row(self.number()) + usize::from(self.number()) - 1;
        let [number, place, judgement, clause] = JUDGEMENTS.get(first + usize::from(position))?;
        let is_own = number.parse() == Ok(self.number()) && place.parse() == Ok(position);
        is_own.then(|| Some((Judgement::from_name(judgement)?, *clause)))?
    }

    fn classic(self, column: usize) -> ClassicalText {
        ClassicalText { traditional: self.classic_cell(column), simplified: self.classic_cell(column + 1) }
    }

    fn classic_cell(self, column: usize) -> &'static str {
        HEXAGRAM_CLASSICS[usize::from(self.number()) - 1][column]
    }
}

impl LineClassic {
    /// Returns the name of the line, such as 九四 or 用九. It is the same in both scripts.
    pub fn label(self) -> &'static str {
        self.cell(LINE_LABEL)
    }

    /// Returns the 爻辞, without the line's label before it.
    pub fn text(self) -> ClassicalText {
        self.classic(LINE_TEXT)
    }

    /// Returns the 小象, without "象曰".
    pub fn image(self) -> ClassicalText {
        self.classic(LINE_IMAGE)
    }

    /// Returns the 爻辞 in one plain sentence.
    pub fn plain(self, locale: Locale) -> &'static str {
        self.cell(LINE_PLAIN + offset(locale))
    }

    fn classic(self, column: usize) -> ClassicalText {
        ClassicalText { traditional: self.cell(column), simplified: self.cell(column + 1) }
    }

    fn cell(self, column: usize) -> &'static str {
        LINE_CLASSICS[self.row][column]
    }
}

const NUMBER: usize = 0;
const NAME: usize = 1;
const JUDGEMENT: usize = 2;
const COMMENTARY: usize = 4;
const IMAGE: usize = 6;
const PLAIN: usize = 8;

const LINE_HEXAGRAM: usize = 0;
const LINE_POSITION: usize = 1;
const LINE_LABEL: usize = 2;
const LINE_TEXT: usize = 3;
const LINE_IMAGE: usize = 5;
const LINE_PLAIN: usize = 7;

/// Six lines for each hexagram, and 用九 and 用六.
const LINE_ROWS: usize = 64 * 6 + 2;

/// In the order of hexagrams and positions.
static JUDGEMENTS: [[&str; 4]; LINE_ROWS + 64] =
    table::cells(include_str!("../../../../assets/classics/judgements.tsv"));
static HEXAGRAM_CLASSICS: [[&str; 10]; 64] = hexagram_classics();
static LINE_CLASSICS: [[&str; 9]; LINE_ROWS] = line_classics();

const fn has_all_changing(hexagram: u8) -> bool {
    hexagram <= 2
}

/// Returns the row of the lowest line: six rows for each hexagram before, and one each for 用九 and 用六.
const fn first_line_row(hexagram: u8) -> usize {
    let before = hexagram as usize - 1;
    before * 6 + if before < 2 { before } else { 2 }
}

const fn hexagram_classics() -> [[&'static str; 10]; 64] {
    let cells: [[&'static str; 10]; 64] = table::cells(include_str!("../../../../assets/classics/hexagrams.tsv"));
    let mut row = 0;
    while row < 64 {
        table::assert_number(cells[row][NUMBER], row + 1);
        row += 1;
    }
    cells
}

const fn line_classics() -> [[&'static str; 9]; LINE_ROWS] {
    let cells: [[&'static str; 9]; LINE_ROWS] = table::cells(include_str!("../../../../assets/classics/lines.tsv"));
    let mut hexagram = 1;
    while hexagram <= 64 {
        let first = first_line_row(hexagram);
        let count = if has_all_changing(hexagram) { 7 } else { 6 };
        let mut place = 0;
        while place < count {
            table::assert_number(cells[first + place][LINE_HEXAGRAM], hexagram as usize);
            table::assert_number(cells[first + place][LINE_POSITION], place + 1);
            place += 1;
        }
        hexagram += 1;
    }
    cells
}

#[cfg(test)]
mod tests;
