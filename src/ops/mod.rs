//! What the service can do, one subject a file.
//!
//! A public operation opens its own `store.read` or queues its own `store.write`; a step named `…_in` takes the
//! transaction of its caller, so that operations compose. Operations that call a vendor block, and hold no
//! transaction while they do: they write the intent, close, call, and write the outcome.
//!
//! The modules stand in order: each may use those above it and none below. A table is touched in SQL by one module
//! only, which `schema.sql` names.
//!
//! A subject that holds something of its users has a step `erase_user_in`, by which they leave, and a step `export_in`,
//! which tells them what is held; `accounts` calls them all.

pub mod slots;
pub mod deliveries;
pub mod sliding_window;
pub mod settings;
pub mod sole_run;
pub mod server_key;
pub mod clock_jump;
pub mod residue;
pub mod users;
pub mod tokens;
pub mod words;
pub mod violations;
pub mod moderation;
pub mod audit;
pub mod confirmations;
pub mod idempotency;
pub mod codes;
pub mod ledger;
pub mod integrity;
pub mod backups;
pub mod coins;
pub mod points;
pub mod known_emails;
pub mod admins;
pub mod profile;
pub mod preferences;
pub mod notifications;
pub mod feedback;
pub mod releases;
pub mod history;
pub mod hexagram;
pub mod budget;
pub mod model_calls;
pub mod interpretation;
pub mod chat;
pub mod interruptions;
pub mod sessions;
pub mod invites;
pub mod payment;
pub mod condition;
pub mod alerts;
pub mod access_log;
pub mod accounts;
pub mod preflight;
pub mod doctor;
pub mod user_data;
pub mod support;
pub mod clearing;
pub mod cleanup;
pub mod demonstration;

/// Takes the items of an export, one by one.
pub type Each<'each> = &'each mut dyn FnMut(serde_json::Value) -> crate::error::Result<()>;
