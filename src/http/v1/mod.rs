//! The current generation: JSON bodies and query strings, the acting user always the token's.
//!
//! One file for each first segment after `/api/v1`.

pub mod account;
pub mod auth;
pub mod invite;
pub mod points;
pub mod sessions;

pub mod notifications;
pub mod preferences;
