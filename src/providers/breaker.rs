//! A circuit breaker: after several consecutive faults of a provider it rejects further calls at once, and lets a
//! single probe through from time to time.
//!
//! Owns the counting, not the calls or the clock. Only faults of the provider count: a response that refuses one
//! request shows a healthy provider. A provider that rejects our key or account serves nobody, which is known from the
//! first such response on. Time is passed in as milliseconds since 1970; a clock that was set back restarts
//! the wait instead of prolonging it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{Failure, FailureKind};
use crate::{
    concurrency::lock::lock_unpoisoned,
    metrics::{Counter, Histogram, SLOW_BOUNDS},
    types::milliseconds,
};

/// The failure code of calls that an open breaker rejects.
pub const BREAKER_OPEN: &str = "breaker_open";

/// A breaker for one provider, shared by all callers.
#[derive(Debug)]
pub struct CircuitBreaker {
    provider: &'static str,
    threshold: u32,
    probe_after_millis: i64,
    state: Mutex<BreakerState>,
    /// The code with which the provider rejects all calls; cleared by the next successful call.
    misconfiguration: Mutex<Option<String>>,
    metrics: BreakerMetrics,
}

/// The reason why a provider serves nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outage {
    /// Several calls in a row failed, so that calls are paused.
    Paused,
    /// It rejects all calls with this code until an operator corrects its settings or its account.
    Misconfigured(String),
}

/// Counts of call outcomes since the start.
#[derive(Debug)]
pub struct BreakerMetrics {
    /// The provider returned a usable result.
    pub answered: Counter,
    /// Calls that failed because of the provider or the network.
    pub failed: Counter,
    /// Calls that a healthy provider refused, or that returned no usable result.
    pub refused: Counter,
    /// Calls whose caller disconnected before the response.
    pub cancelled: Counter,
    /// Calls that the open breaker rejected.
    pub not_made: Counter,
    /// Duration of calls in microseconds.
    pub durations: Histogram,
}

/// The permission to make one call. If it is dropped without an outcome, the call counts as nothing and another probe
/// may run.
#[derive(Debug)]
#[must_use]
pub struct BreakerPermit<'a> {
    breaker: &'a CircuitBreaker,
    probing: bool,
    begun: Instant,
}

/// The breaker's state as shown to operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls pass. Counts consecutive faults.
    Closed {
        /// Faults since the last response.
        faults: u32,
    },
    /// Calls are rejected, except for one probe after the wait.
    Open {
        /// Milliseconds since 1970.
        since_millis: i64,
        /// True while a probe is in flight.
        probing: bool,
    },
}

impl CircuitBreaker {
    /// Creates a closed breaker that opens after `threshold` consecutive faults and allows a probe every `probe_after`.
    pub fn new(provider: &'static str, threshold: u32, probe_after: Duration) -> Self {
        Self {
            provider,
            threshold: threshold.max(1),
            probe_after_millis: milliseconds(probe_after),
            state: Mutex::new(BreakerState::Closed { faults: 0 }),
            misconfiguration: Mutex::default(),
            metrics: BreakerMetrics {
                answered: Counter::default(),
                failed: Counter::default(),
                refused: Counter::default(),
                cancelled: Counter::default(),
                not_made: Counter::default(),
                durations: Histogram::new(&SLOW_BOUNDS),
            },
        }
    }

    /// Returns the protected provider.
    pub fn provider(&self) -> &'static str {
        self.provider
    }

    /// Returns the counts of call outcomes.
    pub fn metrics(&self) -> &BreakerMetrics {
        &self.metrics
    }

    /// Returns true if calls are rejected.
    pub fn is_open(&self) -> bool {
        matches!(self.state(), BreakerState::Open { .. })
    }

    /// Returns the outage of the provider, if it has one.
    pub fn outage(&self) -> Option<Outage> {
        let misconfiguration = lock_unpoisoned(&self.misconfiguration).clone();
        misconfiguration.map(Outage::Misconfigured).or_else(|| self.is_open().then_some(Outage::Paused))
    }

    /// Creates a breaker that opens after five consecutive faults and allows a probe every 30 seconds.
    pub fn with_defaults(provider: &'static str) -> Self {
        Self::new(provider, 5, Duration::from_secs(30))
    }

    /// Requests permission for a call. An open breaker fails with `Busy`, code [`BREAKER_OPEN`] and the time left.
    pub fn try_acquire(&self, now_millis: i64) -> Result<BreakerPermit<'_>, Failure> {
        let mut state = lock_unpoisoned(&self.state);
        match &mut *state {
            BreakerState::Closed { .. } => Ok(BreakerPermit { breaker: self, probing: false, begun: Instant::now() }),
            BreakerState::Open { since_millis, probing } => {
                *since_millis = (*since_millis).min(now_millis);
                let left = self.left_millis(*since_millis, now_millis);
                if left > 0 || *probing {
                    self.metrics.not_made.add(1);
                    return Err(self.refusal(left));
                }
                *probing = true;
                Ok(BreakerPermit { breaker: self, probing: true, begun: Instant::now() })
            }
        }
    }

    /// Returns the failure that a call would get from the open breaker now. Counts nothing.
    pub fn rejection(&self, now_millis: i64) -> Option<Failure> {
        let BreakerState::Open { since_millis, probing } = self.state() else { return None };
        let left = self.left_millis(since_millis, now_millis);
        (left > 0 || probing).then(|| self.refusal(left))
    }

    /// Returns the time until the next probe.
    fn left_millis(&self, since_millis: i64, now_millis: i64) -> i64 {
        self.probe_after_millis.saturating_sub(now_millis.saturating_sub(since_millis.min(now_millis)))
    }

    /// Calls through the breaker: acquires permission, calls, and records the outcome.
    pub fn run<T>(&self, clock: impl Fn() -> i64, call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let permit = self.try_acquire(clock())?;
        let result = call();
        permit.record(result.as_ref().err(), clock());
        result
    }

    /// Returns the current state.
    pub fn state(&self) -> BreakerState {
        *lock_unpoisoned(&self.state)
    }

    fn refusal(&self, left_millis: i64) -> Failure {
        // The duration of a probe in flight is unknown; a second is a reasonable guess.
        let left = Duration::from_millis(u64::try_from(left_millis).unwrap_or(0)).max(Duration::from_secs(1));
        Failure::new(FailureKind::Busy, self.provider, BREAKER_OPEN).with_retry_after(Some(left))
    }

    fn record_answer(&self, probing: bool) {
        let mut state = lock_unpoisoned(&self.state);
        // A call that began before the breaker opened must not close it: only the probe may.
        if probing || matches!(*state, BreakerState::Closed { .. }) {
            *state = BreakerState::Closed { faults: 0 };
        }
    }

    fn record_fault(&self, probing: bool, now_millis: i64) {
        let mut state = lock_unpoisoned(&self.state);
        match &mut *state {
            BreakerState::Open { .. } if !probing => {}
            BreakerState::Closed { faults } if !probing && *faults + 1 < self.threshold => {
                *faults += 1;
            }
            _ => *state = BreakerState::Open { since_millis: now_millis, probing: false },
        }
    }

    /// Sets or clears the misconfiguration. A refusal of one request may come before the check of the account, so it clears
    /// nothing.
    fn record_misconfiguration(&self, failure: Option<&Failure>) {
        let code = match failure.map(|failure| (failure.kind, &failure.code)) {
            Some((FailureKind::Misconfigured, code)) => Some(code.clone()),
            None | Some((FailureKind::ContentRefused | FailureKind::Unusable, _)) => None,
            Some(_) => return,
        };
        *lock_unpoisoned(&self.misconfiguration) = code;
    }

    fn give_probe_back(&self) {
        if let BreakerState::Open { probing, .. } = &mut *lock_unpoisoned(&self.state) {
            *probing = false;
        }
    }
}

impl BreakerPermit<'_> {
    /// Records the outcome of the call: `None` for success.
    pub fn record(mut self, failure: Option<&Failure>, now_millis: i64) {
        let metrics = &self.breaker.metrics;
        metrics.durations.add_duration(self.begun.elapsed());
        match failure {
            None => metrics.answered.add(1),
            Some(failure) if failure.is_outage() => metrics.failed.add(1),
            Some(failure) if failure.kind == FailureKind::Cancelled => metrics.cancelled.add(1),
            Some(_) => metrics.refused.add(1),
        }
        self.breaker.record_misconfiguration(failure);
        match failure {
            Some(failure) if failure.kind == FailureKind::Cancelled => return,
            Some(failure) if failure.is_outage() => {
                self.breaker.record_fault(self.probing, now_millis);
            }
            _ => self.breaker.record_answer(self.probing),
        }
        self.probing = false;
    }
}

impl Drop for BreakerPermit<'_> {
    fn drop(&mut self) {
        if self.probing {
            self.breaker.give_probe_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1000;

    fn fault() -> Failure {
        Failure::new(FailureKind::TimedOut, "x", "total_timeout")
    }

    fn opened_at(now: i64) -> CircuitBreaker {
        let breaker = CircuitBreaker::with_defaults("x");
        for _ in 0..5 {
            breaker.try_acquire(now).unwrap().record(Some(&fault()), now);
        }
        breaker
    }

    #[test]
    fn five_faults_in_a_row_open_it() {
        let breaker = CircuitBreaker::with_defaults("x");
        for _ in 0..4 {
            breaker.try_acquire(0).unwrap().record(Some(&fault()), 0);
        }
        assert_eq!(breaker.state(), BreakerState::Closed { faults: 4 });
        breaker.try_acquire(0).unwrap().record(Some(&fault()), 0);
        let refusal = breaker.try_acquire(10 * SECOND).unwrap_err();
        assert_eq!((refusal.kind, refusal.code.as_str()), (FailureKind::Busy, BREAKER_OPEN));
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(20)));
    }

    #[test]
    fn a_success_resets_the_count() {
        let breaker = CircuitBreaker::with_defaults("x");
        let refused = Failure::new(FailureKind::Refused, "x", "bad_number");
        for _ in 0..20 {
            for _ in 0..4 {
                breaker.try_acquire(0).unwrap().record(Some(&fault()), 0);
            }
            breaker.try_acquire(0).unwrap().record(Some(&refused), 0);
        }
        assert_eq!(breaker.state(), BreakerState::Closed { faults: 0 });
    }

    #[test]
    fn one_probe_runs_at_a_time_and_its_success_closes() {
        let breaker = opened_at(0);
        assert!(breaker.try_acquire(30 * SECOND - 1).is_err());
        let probe = breaker.try_acquire(30 * SECOND).unwrap();
        assert!(breaker.try_acquire(31 * SECOND).is_err());
        probe.record(None, 31 * SECOND);
        assert_eq!(breaker.state(), BreakerState::Closed { faults: 0 });
    }

    #[test]
    fn a_failed_probe_restarts_the_wait() {
        let breaker = opened_at(0);
        breaker.try_acquire(30 * SECOND).unwrap().record(Some(&fault()), 40 * SECOND);
        assert!(breaker.try_acquire(70 * SECOND - 1).is_err());
        assert!(breaker.try_acquire(70 * SECOND).is_ok());
    }

    #[test]
    fn a_dropped_permit_allows_another_probe() {
        let breaker = opened_at(0);
        drop(breaker.try_acquire(30 * SECOND).unwrap());
        let cancelled = Failure::new(FailureKind::Cancelled, "x", "cancelled");
        breaker.try_acquire(30 * SECOND).unwrap().record(Some(&cancelled), 30 * SECOND);
        assert!(breaker.try_acquire(30 * SECOND).is_ok());
        assert_eq!((breaker.metrics().cancelled.get(), breaker.metrics().refused.get()), (1, 0));
    }

    #[test]
    fn earlier_calls_do_not_close_an_open_breaker() {
        let breaker = CircuitBreaker::with_defaults("x");
        let (early_success, early_fault) = (breaker.try_acquire(0).unwrap(), breaker.try_acquire(0).unwrap());
        for _ in 0..5 {
            breaker.try_acquire(0).unwrap().record(Some(&fault()), 0);
        }
        early_success.record(None, SECOND);
        early_fault.record(Some(&fault()), 20 * SECOND);
        assert_eq!(breaker.state(), BreakerState::Open { since_millis: 0, probing: false });
    }

    #[test]
    fn a_clock_set_back_restarts_the_wait() {
        let breaker = opened_at(1_000_000 * SECOND);
        assert!(breaker.try_acquire(0).is_err());
        assert!(breaker.try_acquire(30 * SECOND).is_ok());
    }

    #[test]
    fn a_misconfiguration_is_an_outage_until_a_call_succeeds() {
        let breaker = CircuitBreaker::with_defaults("x");
        let record = |kind, code| {
            let failure = Failure::new(kind, "x", code);
            breaker.try_acquire(0).unwrap().record(Some(&failure), 0);
        };
        record(FailureKind::Misconfigured, "http_401");
        let outage = Some(Outage::Misconfigured("http_401".to_owned()));
        assert_eq!((breaker.outage(), breaker.is_open()), (outage.clone(), false));
        record(FailureKind::Refused, "bad_number");
        assert_eq!(breaker.outage(), outage);
        breaker.try_acquire(0).unwrap().record(None, 0);
        assert_eq!(breaker.outage(), None);
        for _ in 0..5 {
            record(FailureKind::Misconfigured, "http_401");
        }
        assert!(breaker.is_open());
        assert_eq!(opened_at(0).outage(), Some(Outage::Paused));
    }

    #[test]
    fn running_a_call_records_it() {
        let breaker = CircuitBreaker::new("x", 1, Duration::from_secs(30));
        let result: Result<(), Failure> = breaker.run(|| 0, || Err(fault()));
        assert_eq!(result, Err(fault()));
        let refused = breaker.run(|| SECOND, || Ok(())).unwrap_err();
        assert_eq!(refused.code, BREAKER_OPEN);
        assert_eq!(breaker.run(|| 31 * SECOND, || Ok(7)), Ok(7));
    }
}
