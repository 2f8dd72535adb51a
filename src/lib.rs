//! Yarrow: the backend of an I Ching app in one binary over SQLite or PostgreSQL.
//!
//! The modules in reading order; each uses only those above it.
//!
//! - [`error`] and [`types`]: error codes, and values that are parsed once.
//! - [`clock`], [`metrics`], [`concurrency`], [`thread_priority`], [`config`], [`keys`] and [`certificate`].
//! - [`store`]: the database. Reads run in place; one thread commits many writes with one sync.
//! - [`providers`]: external services.
//! - [`core`]: the handles that most operations need.
//! - [`domain`]: the operations, by area.
//! - [`app`]: composes core and services.
//! - [`jobs`], [`http`] and [`cli`]: the entry points. They parse, authenticate and reply; none of them uses SQL.
//!
//! Invariants:
//!
//! - A 2xx on a write is sent only after the write is synced to disk.
//! - An operation is whole or absent, also when the process is killed in the middle.
//! - The token decides the acting user; ids and phone numbers in a request are only compared with it.
//! - Every endpoint declares its access; one without does not compile.
//! - Codes and tokens are stored as hashes, and no log line holds a phone number, a code, a token or a question.
//! - No transaction is open during a call to a provider.

pub mod error;
pub mod types;
pub mod clock;
pub mod metrics;
pub mod concurrency;
pub mod thread_priority;
pub mod config;
pub mod keys;
pub mod templates;
pub mod certificate;
pub mod store;
pub mod providers;
pub mod core;
pub mod domain;
pub mod app;
pub mod jobs;
pub mod http;
pub mod cli;
