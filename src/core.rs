//! The handles that most operations need: configuration, clock, store, server key and phone rules.
//!
//! Cheap to clone: services that keep state while the program runs hold a copy. It knows no operation.

use std::sync::Arc;

use crate::{clock::Clock, config::Config, keys::ServerKey, store::Store, types::PhoneRules};

/// The shared handles below all operations.
#[derive(Clone)]
pub struct Core {
    pub config: Arc<Config>,
    pub clock: Clock,
    pub store: Store,
    pub keys: ServerKey,
    pub phone_rules: Arc<PhoneRules>,
}
