//! What every test needs: a real server, callers as values, answers that are easy to ask.

mod client;
mod operator;
mod received;
mod server;
pub mod vendors;

pub use client::{Answer, Body, Caller, Request};
pub use operator::Ended;
pub use server::{Binary, Server, Setup};
