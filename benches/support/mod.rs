//! What the measurements under load share: servers as processes, the load, and figures.

#![allow(dead_code, reason = "each measurement takes what it needs")]

pub mod chart;
pub mod client;
pub mod measurement;
pub mod process;
pub mod requests;

/// Whatever stops a measurement, as a sentence for whoever runs it.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The items in order, reversed every second round, so that none always comes after the same one.
pub fn in_turn<T>(items: &[T], round: usize) -> Vec<&T> {
    let mut items: Vec<_> = items.iter().collect();
    if round % 2 == 1 {
        items.reverse();
    }
    items
}
