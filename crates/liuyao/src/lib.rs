//! The I Ching (易经): castings, classical texts, the chart of the six-line method (六爻) with its calendar, and readings.
//!
//! [`hexagram`] has lines, hexagrams and texts; [`chart`] derives a chart from a cast and its time; [`interpreter`] reads
//! both for a question, in words. Everything follows from the arguments: no function reads a clock, the network or a file.

pub mod chart;
mod cycle;
pub mod hexagram;
pub mod interpreter;
mod language;
pub mod script;
mod local_time;

pub use cycle::{Branch, Element, ElementRelation, Stem, StemBranch};
pub use jiff::civil::Date;
pub use language::{ChineseScript, Locale};
pub use local_time::LocalTime;
