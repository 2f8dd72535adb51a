//! What only operators may.

mod audit;
mod keys;
mod session;
