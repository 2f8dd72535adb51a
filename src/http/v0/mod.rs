//! The first API generation: parameters in any place, users named by id and phone number.
//!
//! One file for each first segment of the path.

pub mod auth;
pub mod coin;
pub mod content_moderation;
pub mod divination;
pub mod divination_history;
pub mod llm;
pub mod feedback;
pub mod notifications;
pub mod payment;
pub mod purchases;
pub mod user;
pub mod version;
