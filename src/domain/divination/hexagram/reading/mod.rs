//! Reads the cast out of whatever a client sends as `divinationData`.
//!
//! Clients of any design send a JSON object, JSON inside a JSON string, or plain text. This room
//! looks for the six lines, for hexagrams by number, sign, name or trigrams, and for the changing
//! lines, and says field by field what it used. It refuses to guess: what no field names stays
//! unknown, and what fields say against each other is reported, the six lines winning over all else.
//! The surprise: a list of lines that forms the named hexagram only when turned over is read from
//! the top down, because many clients draw, and therefore store, the top line first.

mod conclude;
mod keys;
mod labels;
mod names;
mod normal;
mod observe;
mod positions;
mod sentences;
mod six;
mod text;

use super::cast::Cast;
use super::catalog::Hexagram;
use super::line::Lines;

/// Longer data is not read at all. In bytes.
pub const LARGEST_DATA_BYTES: usize = 64 * 1024;

/// Deeper levels of nesting, counting JSON inside strings, are not read.
const DEEPEST_LEVEL: usize = 32;

/// Of the things noticed, and of the conflicts reported, only so many are kept.
const MOST_ENTRIES: usize = 32;

/// What could be read, and from where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The whole cast, when the changing lines are known along with a hexagram.
    pub cast: Option<Cast>,
    pub primary: Option<Hexagram>,
    /// Absent both when nothing changes and when the data does not say what changes: `cast` tells.
    pub relating: Option<Hexagram>,
    /// Positions from 1 at the bottom to 6 at the top, ascending.
    pub changing: Vec<u8>,
    /// What the facts were taken from, most important first.
    pub found: Vec<Evidence>,
    /// What was set aside.
    pub conflicts: Vec<Conflict>,
}

/// One thing read from one place in the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Field names joined by dots, such as `result.benGua.name`; empty for the data as a whole.
    pub path: String,
    pub content: Content,
}

/// What was read there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Six lines with their changes, here already bottom up.
    Lines { lines: Lines, order: Order },
    /// A hexagram, by one of the ways to name it.
    Hexagram { place: Place, hexagram: Hexagram, form: Form },
    /// The positions of the changing lines.
    Changing(Vec<u8>),
    /// The changing lines follow from comparing the two hexagrams.
    Compared(Vec<u8>),
    /// The primary hexagram follows from turning the changing lines of the relating one back.
    TurnedBack(Hexagram),
}

/// Which of the two hexagrams of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Primary,
    Relating,
}

/// How a hexagram was named, the most trustworthy way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// By six lines that say yin or yang without saying what changes.
    YinYang(Order),
    Trigrams,
    FullName,
    Sign,
    ShortName,
    EnglishName,
    Number,
    /// By a number whose field does not promise a King Wen number, such as `id`. Used when nothing
    /// else names the hexagram, and never held against anything.
    Identifier,
}

/// In which order six lines were listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// The data says which line stands where.
    Stated,
    /// The data does not say; bottom up is the custom.
    BottomUp,
    /// Only from the top down do the lines form the hexagram that the data names.
    TopDown,
}

/// Something in the data that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// It says something other than what was kept.
    Contradiction { dropped: Evidence, kept: Kept },
    /// It stands where lines or hexagrams are expected and cannot be read as such.
    Unreadable { path: String, problem: Problem },
}

/// What won over a contradicting field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    Lines(Lines),
    Hexagram(Place, Hexagram),
    NothingChanges,
    Changing(Vec<u8>),
}

/// Why a place in the data could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// More than [`LARGEST_DATA_BYTES`].
    TooLarge,
    /// Nested too deeply.
    TooDeep,
    /// Not six lines of 6 to 9, or of yin and yang.
    NotSixLines,
    /// Not positions from 1 to 6.
    NotPositions,
    /// No such hexagram.
    NotAHexagram,
    /// Several hexagrams, and nothing says which one is primary.
    SeveralHexagrams,
}

/// Reads the data of a cast. Never fails: data that says nothing yields empty facts.
pub fn read(data: &str) -> Facts {
    if data.len() > LARGEST_DATA_BYTES {
        let problem = Problem::TooLarge;
        let path = String::new();
        return Facts { conflicts: vec![Conflict::Unreadable { path, problem }], ..Facts::default() };
    }
    conclude::conclude(observe::observe(data))
}

impl Facts {
    /// The facts of a cast that this service holds itself, so that nothing had to be read.
    pub fn from_cast(cast: Cast) -> Self {
        let content = Content::Lines { lines: cast.lines(), order: Order::Stated };
        Self {
            cast: Some(cast),
            primary: Some(cast.primary()),
            relating: cast.relating(),
            changing: cast.changing(),
            found: vec![Evidence { path: "lines".to_owned(), content }],
            conflicts: Vec::new(),
        }
    }
}

/// Everything noticed in the data, before it is weighed.
#[derive(Debug, Default)]
struct Observed {
    evidence: Vec<Evidence>,
    problems: Vec<Conflict>,
}

impl Observed {
    fn notice(&mut self, path: &str, content: Content) {
        if self.evidence.len() < MOST_ENTRIES {
            self.evidence.push(Evidence { path: path.to_owned(), content });
        }
    }

    fn notice_hexagram(&mut self, path: &str, place: Place, hexagram: Hexagram, form: Form) {
        self.notice(path, Content::Hexagram { place, hexagram, form });
    }

    fn complain(&mut self, path: &str, problem: Problem) {
        let path = path.to_owned();
        let complaint = Conflict::Unreadable { path, problem };
        if self.problems.len() < MOST_ENTRIES && !self.problems.contains(&complaint) {
            self.problems.push(complaint);
        }
    }
}

#[cfg(test)]
mod tests;
