//! The first generation's endpoints, one file for each segment of their paths.

mod auth;
mod coin;
mod divination;
mod divination_history;
mod interpretation_records;
mod llm;
mod feedback;
mod notifications;
mod payment;
mod user;
mod version;
