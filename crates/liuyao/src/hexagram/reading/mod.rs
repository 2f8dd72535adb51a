//! Reads the cast out of `divinationData`, whatever its layout.
//!
//! Clients send a JSON object, JSON inside a JSON string, or plain text. The reader looks for the six lines, for
//! hexagrams by number, sign, name or trigrams, and for the changing lines, and reports field by field what it used. It
//! never guesses: unnamed values stay unknown, and contradictions are reported, with the six lines winning. A list of
//! lines that forms the named hexagram only in reverse is read from the top down, because many clients store the top
//! line first. Positions that contradict two named hexagrams are recounted from zero or from the top in the same way.

mod conclude;
mod keys;
mod labels;
mod names;
mod normalize;
mod observe;
mod positions;
mod sentences;
mod six_lines;
mod text;

use super::cast::Cast;
use super::catalog::Hexagram;
use super::line::Lines;

/// Longer data is not read, in bytes.
pub const LARGEST_DATA_BYTES: usize = 64 * 1024;

/// Levels of nesting that are read, counting JSON inside strings.
const DEEPEST_LEVEL: usize = 32;

/// Maximum number of observations and of reported conflicts.
const MOST_ENTRIES: usize = 32;

/// The facts that could be read, with their sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The whole cast, when the changing lines are known along with a hexagram.
    pub cast: Option<Cast>,
    pub primary: Option<Hexagram>,
    /// Absent when nothing changes, and when the changing lines are unknown; `cast` tells these apart.
    pub relating: Option<Hexagram>,
    /// Positions from 1 at the bottom to 6 at the top, ascending.
    pub changing: Vec<u8>,
    /// The evidence for the facts, most important first.
    pub found: Vec<Evidence>,
    /// Values that were not used.
    pub conflicts: Vec<Conflict>,
}

/// One thing read from one field of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Field names joined by dots, such as `result.benGua.name`; empty for the data as a whole.
    pub path: String,
    pub content: Content,
}

/// The content of a piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Six lines with their changes, already bottom up.
    Lines { lines: Lines, order: LineOrder },
    /// A hexagram, in one of the forms that identify it.
    Hexagram { role: HexagramRole, hexagram: Hexagram, form: NameForm },
    /// The positions of the changing lines.
    Changing(Vec<u8>),
    /// The positions of the changing lines, which the data counts in another way.
    Recounted(Vec<u8>, Count),
    /// The changing lines, from the difference between the two hexagrams.
    Compared(Vec<u8>),
    /// The primary hexagram, from the relating one and its changing lines.
    TurnedBack(Hexagram),
}

/// The role of a hexagram in a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HexagramRole {
    Primary,
    Relating,
}

/// The form in which a hexagram was named, the most trustworthy first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameForm {
    /// By six lines of yin and yang without their changes.
    YinYang(LineOrder),
    Trigrams,
    FullName,
    Sign,
    ShortName,
    EnglishName,
    Number,
    /// By a number whose field may not be a King Wen number, such as `id`. Used only when nothing else names the
    /// hexagram, and never reported as a contradiction.
    Identifier,
}

/// The order in which six lines were listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineOrder {
    /// The data states the position of each line.
    Stated,
    /// The data does not state it; bottom up is the custom.
    BottomUp,
    /// The lines form the named hexagram only from the top down.
    TopDown,
}

/// A way of counting lines that is not from 1 at the bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// From 0 at the bottom.
    FromZero,
    /// From 1 at the top.
    FromTop,
}

/// A value that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// It contradicts the evidence that was used.
    Contradiction { dropped: Evidence, kept: AcceptedContent },
    /// It is in the position of lines or hexagrams but cannot be parsed.
    Unreadable { path: String, problem: ReadingFault },
}

/// The content that was accepted in place of a contradicting field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedContent {
    Lines(Lines),
    Hexagram(HexagramRole, Hexagram),
    NothingChanges,
    Changing(Vec<u8>),
}

/// The reason why a value could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingFault {
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
    /// Several hexagrams, none of them marked as primary.
    SeveralHexagrams,
}

/// Reads the data of a cast. Never fails: data without content yields empty facts.
pub fn read(data: &str) -> Facts {
    if data.len() > LARGEST_DATA_BYTES {
        let problem = ReadingFault::TooLarge;
        let path = String::new();
        return Facts { conflicts: vec![Conflict::Unreadable { path, problem }], ..Facts::default() };
    }
    conclude::conclude(observe::observe(data))
}

impl Facts {
    /// Returns the facts of a cast that this service stores itself. They need no evidence.
    pub fn from_cast(cast: Cast) -> Self {
        Self {
            cast: Some(cast),
            primary: Some(cast.primary()),
            relating: cast.relating(),
            changing: cast.changing(),
            found: Vec::new(),
            conflicts: Vec::new(),
        }
    }

    /// Returns true if the data leaves something open that was assumed, or has values that were not used.
    pub fn has_assumptions(&self) -> bool {
        let is_assumed = |content: &Content| match content {
            Content::Lines { order, .. } => *order == LineOrder::TopDown,
            Content::Hexagram { form, .. } => {
                matches!(form, NameForm::Identifier | NameForm::YinYang(LineOrder::TopDown))
            }
            Content::Recounted(..) | Content::TurnedBack(_) => true,
            Content::Changing(_) | Content::Compared(_) => false,
        };
        !self.conflicts.is_empty() || self.found.iter().any(|evidence| is_assumed(&evidence.content))
    }
}

/// All observations in the data, before they are weighed.
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

    fn notice_hexagram(&mut self, path: &str, role: HexagramRole, hexagram: Hexagram, form: NameForm) {
        self.notice(path, Content::Hexagram { role, hexagram, form });
    }

    fn complain(&mut self, path: &str, problem: ReadingFault) {
        let path = path.to_owned();
        let complaint = Conflict::Unreadable { path, problem };
        if self.problems.len() < MOST_ENTRIES && !self.problems.contains(&complaint) {
            self.problems.push(complaint);
        }
    }
}

#[cfg(test)]
mod tests;
