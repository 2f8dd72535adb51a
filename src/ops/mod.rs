//! What the service can do, one subject a file.
//!
//! A public operation opens its own `store.read` or queues its own `store.write`; a step named `…_in` takes the
//! transaction of its caller, so that operations compose. Operations that call a vendor block, and hold no
//! transaction while they do: they write the intent, close, call, and write the outcome.
//!
//! The modules stand in order: each may use those above it and none below. A table is touched in SQL by one module
//! only, which `schema.sql` names.

pub mod access_log;
pub mod accounts;
pub mod cleanup;
pub mod codes;
pub mod demonstration;
pub mod hexagram;
pub mod history;
pub mod interpretation;
pub mod moderation;
pub mod profile;
pub mod settings;
pub mod tokens;
pub mod users;
pub mod violations;
pub mod words;
