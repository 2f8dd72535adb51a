//! The current generation, one file for each first segment after `/api/v1`.

mod account;
mod auth;
mod interpreting;
mod invite;
mod leaving;
mod points;
mod sessions;
mod traces;

mod notifications;
mod preferences;
