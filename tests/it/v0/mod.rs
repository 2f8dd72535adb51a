//! The first generation.

mod coin;
