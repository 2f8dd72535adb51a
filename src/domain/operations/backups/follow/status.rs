//! The state of continuous backup in this process. It is not stored: storing it would be a change to ship.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use super::term_holder::TermHolder;
use crate::{concurrency::lock::lock_unpoisoned, types::Timestamp};

/// The state of continuous backup.
#[derive(Clone, Debug, Default)]
pub struct FollowStatus {
    /// True in a server with continuous backup.
    pub is_on: bool,
    /// The claimed term.
    pub term: Option<u64>,
    /// The number of the last object in this term.
    pub seq: u64,
    /// The machine that has taken over.
    pub superseded_by: Option<TermHolder>,
    /// True if the server stores an object only if its key is new.
    pub is_exclusive: Option<bool>,
    /// The backup on which the changes build.
    pub base: Option<String>,
    /// The time of the last state in the bucket.
    pub shipped_at: Option<Timestamp>,
    /// The first change that is not in the bucket was noticed then.
    pub behind_since: Option<Instant>,
    pub shipments: u64,
    pub pages: u64,
    pub bytes: u64,
    pub failures: u64,
    /// The duration of the last comparison of all pages.
    pub pass: Duration,
    /// The last failure, if nothing was shipped since.
    pub failure: Option<String>,
}

impl FollowStatus {
    /// Returns for how long a change has not been in the bucket.
    pub fn lag(&self, now: Instant) -> Duration {
        self.behind_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

/// The state of continuous backup, shared with health and metrics.
#[derive(Debug, Default)]
pub struct FollowMonitor(Mutex<FollowStatus>);

impl FollowMonitor {
    pub fn status(&self) -> FollowStatus {
        lock_unpoisoned(&self.0).clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut FollowStatus)) {
        change(&mut lock_unpoisoned(&self.0));
    }
}
