//! The drivers against vendors over a real socket: what is sent, and what becomes of every way to answer badly.

mod client;
mod email;
mod language_model;
mod sms;
