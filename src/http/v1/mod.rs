//! The current API generation: JSON bodies, query strings, and the acting user always taken from the token.
//!
//! One file for each first segment after `/api/v1`.

pub mod account;
pub mod auth;
pub mod changes;
pub mod devices;
pub mod hexagrams;
pub mod interpretations;
pub mod invite;
pub mod notification_stream;
pub mod orders;
pub mod points;
pub mod products;
pub mod purchases;
pub mod sessions;

pub mod notifications;
pub mod preferences;
