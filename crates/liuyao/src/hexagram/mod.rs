//! The I Ching: lines, trigrams, hexagrams, casting, and reading a client's description of a cast.
//!
//! Owns every rule of the book and no table in the store. It does no input or output: random bytes come from a function
//! argument. A [`Cast`] stores only its six lines; the primary, relating and nuclear hexagrams are derived from them
//! and cannot disagree.

mod cast;
mod casting;
mod catalog;
mod classics;
mod line;
mod reading;
pub(crate) mod table;

pub use cast::Cast;
pub use casting::{three_coins, yarrow_stalks};
pub use catalog::{Hexagram, Trigram};
pub use classics::{ClassicalText, Judgement, LineClassic};
pub use line::{Line, Lines, LinesError, UnknownLine};
pub use reading::{
    AcceptedContent, Conflict, Content, Evidence, Facts, HexagramRole, LARGEST_DATA_BYTES, LineOrder, NameForm,
    ReadingFault, read,
};
