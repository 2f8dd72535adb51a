//! Operations for running the service: administrators, audit, backups, checks, retention, health and alerts.

pub mod active_users;
pub mod admins;
pub mod alerts;
pub mod audit;
pub mod backups;
pub mod clock_jump;
pub mod confirmations;
pub mod data_dir;
pub mod demo;
pub mod doctor;
pub mod forwarding;
pub mod figures;
pub mod free_space_scrub;
pub mod health;
pub mod idempotency;
pub mod integrity;
pub mod lease;
pub mod network_log;
pub mod preflight;
pub mod purge;
pub mod request_tallies;
pub mod retention;
pub mod server_key;
pub mod settings;
pub mod support;
pub mod table_head;
