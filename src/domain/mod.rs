//! The operations of the service, by area.
//!
//! A public operation opens its own `store.read` or queues its own `store.write`. A step named `…_in` takes the
//! transaction of its caller, so that operations compose. Operations that call a provider block. They hold no
//! transaction during the call: they write the intent, commit, call, and write the outcome.
//!
//! A table is read and written in SQL by one module only, which `schema.sql` names. A subject that stores user data has
//! a step `erase_user_in` for deletion and a step `export_in` for exports; `identity::accounts` calls them all.

pub mod identity;
pub mod divination;
pub mod money;
pub mod moderation;
pub mod messaging;
pub mod operations;

/// A callback for each item of an export.
pub type Each<'each> = &'each mut dyn FnMut(serde_json::Value) -> crate::error::Result<()>;
