//! Operating the service: administrators, backups, retention, logs, metrics and alerts.

mod admin_audit;
mod admin_data_cleanup;
mod admin_network_logs;
mod admin_networks;
mod admin_read_access;
mod admin_second_factor;
mod admin_session;
mod alerts;
mod api_keys;
mod backups;
mod clock_jump;
mod console;
mod console_figures;
mod console_moderation;
mod console_operator;
mod data_dir;
mod demo;
mod doctor;
mod figures;
mod health;
mod logs;
mod metrics;
mod offsite_backups;
mod retention;
mod server_log;
mod roles;
