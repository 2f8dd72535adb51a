//! Shared by the load benchmarks: server processes, the load generator, and figures.

#![allow(dead_code, reason = "each measurement takes what it needs")]

pub mod callgrind;
pub mod chart;
pub mod client;
pub mod measurement;
pub mod postgresql;
pub mod process;
pub mod requests;

/// An error that ends a benchmark, with a message for its operator.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Returns the items in order, reversed in every second round, so that none always follows the same one.
pub fn in_turn<T>(items: &[T], round: usize) -> Vec<&T> {
    let mut items: Vec<_> = items.iter().collect();
    if round % 2 == 1 {
        items.reverse();
    }
    items
}
