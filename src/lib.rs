//! Yarrow: the whole backend of an I Ching app in one binary over one SQLite file.
//!
//! The modules in reading order. Each knows only those above it, with one exception: an operation is handed the whole
//! [`app`]lication, which is made of what the operations keep.
//!
//! - [`error`] and [`types`]: what can go wrong, and values that are parsed once.
//! - [`clock`], [`tally`], [`locked`], [`priority`], [`config`], [`keys`] and [`certificate`]: the time, counting, locks,
//!   who goes first, every setting declared once, the server's own key, its certificate.
//! - [`store`]: the database file; reading in place, writing by one thread with one sync for many operations.
//! - [`providers`]: the outside world.
//! - [`vendors`]: which drivers there are by the settings.
//! - [`ops`]: what the service can do, one subject a file.
//! - [`installation`]: what is there of one, and what was lost.
//! - [`app`]: all of this opened together.
//! - [`jobs`], [`http`] and, in the binary's own crate, `cli`: the doors. They parse, prove who is calling, and reply;
//!   none of them reaches SQL.
//!
//! What always holds:
//!
//! - A 2xx to a change leaves only after the change is synced to disk.
//! - An operation is whole or absent, also when the process is killed inside it.
//! - The acting user is the token's; ids and phone numbers in a request are only compared with it.
//! - Every endpoint says who may call it; one that does not cannot be written.
//! - Codes and tokens are kept as hashes, and no log line holds a phone number, a code, a token or a question.
//! - No transaction is open while a vendor is asked.

pub mod error;
pub mod types;
pub mod clock;
pub mod metrics;
pub mod concurrency;
pub mod thread_priority;
pub mod config;
pub mod keys;
pub mod certificate;
pub mod store;
pub mod providers;
pub mod core;
pub mod domain;
pub mod data_dir;
pub mod app;
pub mod jobs;
pub mod http;
