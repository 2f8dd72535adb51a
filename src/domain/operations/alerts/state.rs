//! The alert state of this process: active alerts, what the database stores of them, and undelivered messages.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use super::{ActiveAlerts, ResolvedAlert};
use crate::{concurrency::lock::lock_unpoisoned, error::Result, types::Timestamp};

/// The wait after the first failed delivery. It doubles with each failure.
const FIRST_WAIT: Duration = Duration::from_secs(5);
const MAX_WAIT: Duration = Duration::from_mins(10);

/// The active alerts in memory, so that an unreadable or unwritable database repeats no notification.
#[derive(Debug, Default)]
pub(super) struct AlertState(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    active: ActiveAlerts,
    /// The alerts stored in the database; nothing until they could be read.
    stored: Option<ActiveAlerts>,
    undelivered: Undelivered,
    /// Resolved alerts that are not stored yet, oldest first.
    resolved: Vec<ResolvedAlert>,
}

/// The rules whose message could not be delivered yet.
pub(super) type Undelivered = BTreeMap<String, DeliveryBackoff>;

impl AlertState {
    /// Returns the active alerts, merged with the stored ones once those can be read.
    pub(super) fn active(&self, read: impl FnOnce() -> Result<ActiveAlerts>) -> ActiveAlerts {
        let mut inner = lock_unpoisoned(&self.0);
        if inner.stored.is_none()
            && let Ok(stored) = read()
        {
            let since_start = std::mem::replace(&mut inner.active, stored.clone());
            inner.active.extend(since_start);
            inner.stored = Some(stored);
        }
        inner.active.clone()
    }

    pub(super) fn update(&self, active: &ActiveAlerts, undelivered: Undelivered, resolved: Vec<ResolvedAlert>) {
        let mut inner = lock_unpoisoned(&self.0);
        inner.active.clone_from(active);
        inner.undelivered = undelivered;
        inner.resolved.extend(resolved);
    }

    pub(super) fn undelivered(&self) -> Undelivered {
        lock_unpoisoned(&self.0).undelivered.clone()
    }

    pub(super) fn resolved(&self) -> Vec<ResolvedAlert> {
        lock_unpoisoned(&self.0).resolved.clone()
    }

    /// Returns true if the stored alerts differ, or resolved ones are not stored. Alerts that were never read are not
    /// overwritten.
    pub(super) fn is_unstored(&self) -> bool {
        let inner = lock_unpoisoned(&self.0);
        inner.stored.as_ref().is_some_and(|stored| *stored != inner.active || !inner.resolved.is_empty())
    }

    /// Records that the alerts and so many resolved ones are stored.
    pub(super) fn mark_stored(&self, active: ActiveAlerts, resolved: usize) {
        let mut inner = lock_unpoisoned(&self.0);
        inner.stored = Some(active);
        inner.resolved.drain(..resolved);
    }
}

/// The backoff of a message that could not be delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryBackoff {
    /// The start of the alert, which all attempts report.
    pub(super) since: Timestamp,
    last_attempt: Timestamp,
    wait: Duration,
}

impl DeliveryBackoff {
    pub(super) const fn new(since: Timestamp) -> Self {
        Self { since, last_attempt: since, wait: Duration::ZERO }
    }

    pub(super) fn record_failure(&mut self, now: Timestamp) {
        self.last_attempt = now;
        self.wait = (self.wait * 2).clamp(FIRST_WAIT, MAX_WAIT);
    }

    pub(super) fn is_waiting(&self, now: Timestamp) -> bool {
        self.last_attempt.is_within(self.wait, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ActiveAlert, AlertFact, rules::HEALTH_UNKNOWN};
    use super::*;
    use crate::error::Code;

    #[test]
    fn keeps_stored_alerts_that_could_not_be_read_at_first() {
        let alert = ActiveAlert::new(Timestamp(1), Timestamp(1), AlertFact::NoProblem {}.into());
        let of = |rule: &str| ActiveAlerts::from([(rule.into(), alert.clone())]);
        let state = AlertState::default();
        assert_eq!(state.active(|| Err(Code::StorageFailed.into())), ActiveAlerts::new());
        state.update(&of(HEALTH_UNKNOWN), Undelivered::new(), Vec::new());
        assert!(!state.is_unstored(), "alerts that were never read are not overwritten");
        let both: ActiveAlerts = of(HEALTH_UNKNOWN).into_iter().chain(of("disk_low")).collect();
        assert_eq!(state.active(|| Ok(of("disk_low"))), both);
        assert!(state.is_unstored());
        state.mark_stored(both, 0);
        assert!(!state.is_unstored());
    }

    #[test]
    fn retries_with_exponential_backoff() {
        let mut backoff = DeliveryBackoff::new(Timestamp(0));
        let mut attempts = Vec::new();
        for second in 0..3_000 {
            let now = Timestamp(second * 1_000);
            if !backoff.is_waiting(now) {
                backoff.record_failure(now);
                attempts.push(second);
            }
        }
        assert_eq!(attempts, [0, 5, 15, 35, 75, 155, 315, 635, 1_235, 1_835, 2_435]);
        assert!(!backoff.is_waiting(Timestamp(0)), "a clock that was set back delays nothing");
    }
}
