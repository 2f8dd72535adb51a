//! `/admin`: what only administrators may. One file for each second segment of the path.

pub mod network_logs;
pub mod payments;
pub mod session;
