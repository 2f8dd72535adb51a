//! What only operators may.

mod audit;
mod entrance;
mod data_cleanup;
mod keys;
mod network_logs;
mod reading;
mod second_factor;
mod session;
mod user_data;
