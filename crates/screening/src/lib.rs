#![doc = include_str!("../README.md")]

pub mod engine;
pub mod risk;

mod invisible;

pub use invisible::is_invisible;
