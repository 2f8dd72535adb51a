//! What only operators may.

mod audit;
mod keys;
mod network_logs;
mod reading;
mod session;
