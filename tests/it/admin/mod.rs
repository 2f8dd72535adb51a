//! What only operators may.

mod audit;
mod keys;
mod reading;
mod session;
