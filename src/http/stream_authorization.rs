//! Ends a stream when its caller's token is revoked, by signing out, by another device or with the account.
//!
//! The guard checks once at the start of a request, but a stream runs for minutes.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::request_context::RequestContext;
use crate::{app::App, concurrency::lock::lock_unpoisoned, domain::identity::tokens, types::Secret};

/// Interval between two checks of the token.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The leave to be told a stream. Not to be asked on worker threads.
pub struct StreamAuthorization {
    app: Arc<App>,
    token: Option<Secret>,
    looked_at: Mutex<Instant>,
    has_ended: AtomicBool,
}

impl StreamAuthorization {
    /// That of a call which the guard has just let in.
    pub fn of(context: &RequestContext) -> Self {
        let (app, token) = (Arc::clone(&context.app), context.bearer());
        Self { app, token, looked_at: Mutex::new(Instant::now()), has_ended: AtomicBool::new(false) }
    }

    /// Whether it holds, as far as that was looked up lately.
    pub fn holds(&self) -> bool {
        if !self.has_ended() && self.is_to_be_looked_at() && self.was_ended() {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        !self.has_ended()
    }

    /// Whether it was found to hold no more.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn is_to_be_looked_at(&self) -> bool {
        let mut looked_at = lock_unpoisoned(&self.looked_at);
        let is_due = looked_at.elapsed() >= LOOK_EVERY;
        if is_due {
            *looked_at = Instant::now();
        }
        is_due
    }

    fn was_ended(&self) -> bool {
        let Some(token) = &self.token else { return false };
        tokens::has_ended(&self.app, token.reveal()).unwrap_or_else(|error| {
            // Who may be told is not decided by a disk that is slow.
            tracing::debug!(%error, "whether a token still holds could not be looked up");
            false
        })
    }
}
