//! The web console: server-rendered pages for owner, support, moderator and operator.
//!
//! A third way into the operations beside API and command line. `routes` is the table of its pages, each with the right
//! it requires. `service` runs a request: session, right, cross-site token, audit. Handlers fill the plain structs of
//! `views`, which render them. The cookie of a session opens the console only, and Bearer tokens open no page of it.

mod acts;
mod csv;
mod pages;
mod request;
mod route;
mod routes;
mod service;
mod session;
pub mod views;

pub use request::refusal;
pub use routes::{add_to, reject};
pub use views::context::is_below;
