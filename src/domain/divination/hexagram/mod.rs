//! The I Ching itself: lines, trigrams, hexagrams, casting, and reading what a client says it cast.
//!
//! Owns every rule of the book and no table in the store; refuses to hold a figure that does not
//! exist, or to guess one that the data does not name. Nothing here does input or output: random
//! bytes come in as a function. The surprise: a [`Cast`] keeps only its six lines, since the primary,
//! relating and nuclear hexagrams all follow from them and so can never disagree.

mod cast;
mod casting;
mod catalog;
mod description;
mod line;
mod reading;
mod table;

pub use cast::Cast;
pub use casting::{three_coins, yarrow_stalks};
pub use catalog::{Hexagram, Trigram};
pub use line::{Line, Lines, LinesError, UnknownLine};
pub use reading::{Conflict, Content, Evidence, Facts, Form, Kept, LARGEST_DATA_BYTES, Order, Place, Problem, read};
