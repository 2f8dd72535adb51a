//! The current generation, one file for each first segment after `/api/v1`.

mod account;
mod auth;
mod invite;
mod leaving;
mod points;
mod sessions;

mod notifications;
mod preferences;
