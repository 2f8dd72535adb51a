//! The handlers: each fills the data of a view from the operations.

pub mod administrators;
pub mod api_keys;
pub mod audit;
pub mod cleanup;
pub mod feedback;
pub mod figures;
pub mod files;
pub mod health;
pub mod irreversible;
pub mod models;
pub mod log;
pub mod moderation;
pub mod moderation_services;
pub mod network_log;
pub mod orders;
pub mod purchases;
pub mod overview;
pub mod preferences;
pub mod search;
pub mod settings;
pub mod sign_in;
pub mod user_acts;
pub mod user_erasure;
pub mod user_list;
pub mod users;
pub mod words;
