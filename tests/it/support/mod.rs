//! What every test needs: a real server, callers as values, answers that are easy to ask.

pub mod alipay;
pub mod authority;
pub mod bucket;
pub mod calls;
mod client;
mod killing;
pub mod mail;
mod operator;
mod received;
mod document;
mod model;
mod opened;
mod parallel;
pub mod raw;
mod server;
pub mod tls;
pub mod vendors;
mod waiting;

pub use client::{Answer, Caller, Request};
pub use document::{Document, Operation, Parameter, Place};
pub use killing::{assert_sound, copy_of, count, cut_off, killed_after, started};
pub use model::{Behaviour, Model};
pub use opened::open_app;
pub use operator::{Ended, install};
pub use parallel::at_once;
pub use server::{Binary, Server, Setup, contents_of, kill, log_statement};
pub use waiting::{eventually, found_eventually, settled};
