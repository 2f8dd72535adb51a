//! The handles that most operations need: configuration, clock, store, server key, phone rules and log throttle.
//!
//! Services hold a copy. This module knows no operation.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{
    clock::Clock, concurrency::log_throttle::LogThrottle, config::Config, keys::ServerKey, store::Store,
    types::PhoneRules,
};

/// The shared handles. Cheap to clone.
#[derive(Clone)]
pub struct Core {
    pub config: Arc<Config>,
    pub clock: Clock,
    pub store: Store,
    pub keys: ServerKey,
    pub phone_rules: Arc<PhoneRules>,
    pub log_throttle: Arc<LogThrottle>,
    /// Held by the one long change that has a step in the writer's queue.
    pub step_turn: Arc<Mutex<()>>,
    /// The pause between two steps of a long change, in which other writes take place.
    pub step_pause: Duration,
}
