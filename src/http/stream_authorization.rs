//! Ends a stream when its caller's token is revoked: by sign-out, by another device, or with the account.
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
pub const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Tracks if the token of a stream is still valid. Reads the database, so it must not be used on worker threads.
pub struct StreamAuthorization {
    app: Arc<App>,
    token: Option<Secret>,
    checked_at: Mutex<Instant>,
    is_revoked: AtomicBool,
}

impl StreamAuthorization {
    /// Starts with the token that the guard has just accepted.
    pub fn new(context: &RequestContext) -> Self {
        let (app, token) = (Arc::clone(&context.app), context.token.clone());
        Self { app, token, checked_at: Mutex::new(Instant::now()), is_revoked: AtomicBool::new(false) }
    }

    /// Returns true if the token was valid at the last check, and checks again after an interval.
    pub fn is_valid(&self) -> bool {
        if !self.is_revoked() && self.is_check_due() && self.has_token_ended() {
            self.is_revoked.store(true, Ordering::Relaxed);
        }
        !self.is_revoked()
    }

    /// Like [`Self::is_valid`], for worker threads.
    pub async fn check(authorization: &Arc<Self>) -> bool {
        if authorization.is_revoked() || lock_unpoisoned(&authorization.checked_at).elapsed() < CHECK_INTERVAL {
            return !authorization.is_revoked();
        }
        let checked = Arc::clone(authorization);
        // Fails only while the runtime stops, which ends the stream.
        tokio::task::spawn_blocking(move || checked.is_valid()).await.unwrap_or(true)
    }

    /// Returns true if a check has found the token revoked.
    pub fn is_revoked(&self) -> bool {
        self.is_revoked.load(Ordering::Relaxed)
    }

    fn is_check_due(&self) -> bool {
        let mut checked_at = lock_unpoisoned(&self.checked_at);
        let is_due = checked_at.elapsed() >= CHECK_INTERVAL;
        if is_due {
            *checked_at = Instant::now();
        }
        is_due
    }

    fn has_token_ended(&self) -> bool {
        let Some(token) = &self.token else { return false };
        tokens::has_ended(&self.app.core, &self.app.token_cache, token.reveal()).unwrap_or_else(|error| {
            // A slow disk must not end streams.
            tracing::debug!(%error, "the token of a stream could not be checked");
            false
        })
    }
}
