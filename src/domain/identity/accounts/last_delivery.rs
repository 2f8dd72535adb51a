//! The last response of a message provider, which requests for review accounts imitate: their duration, or their success
//! during an outage, would reveal them.
//!
//! The surprise: an outage is imitated only for some minutes after the last message that failed. If nobody else asks for
//! codes, nothing shows that the provider works again, and reviewers could never sign in.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::{
    clock::Clock,
    concurrency::lock::lock_unpoisoned,
    providers::{
        Failure,
        breaker::{BREAKER_OPEN, CircuitBreaker},
    },
    types::Timestamp,
};

/// The longest time that a request for a review account takes.
const MAX_DURATION: Duration = Duration::from_secs(5);
/// The time after a failed message for which requests for review accounts fail, too.
const OUTAGE_LASTS: Duration = Duration::from_mins(10);

/// The last success or outage of one provider.
#[derive(Debug, Default)]
pub(super) struct LastDelivery(Mutex<Delivery>);

#[derive(Clone, Debug, Default)]
struct Delivery {
    took: Duration,
    outage: Option<(Timestamp, Failure)>,
}

impl LastDelivery {
    /// Calls the provider and records a success, or a failure that would have met any other message, too.
    pub fn record<T>(&self, clock: &Clock, deliver: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let started = Instant::now();
        let delivered = deliver();
        let outage = match &delivered {
            Ok(_) => None,
            // Without the provider's identifier and words, which belong to the other message.
            Err(failure) if failure.is_outage() && failure.code != BREAKER_OPEN => {
                let failure = Failure::new(failure.kind, failure.provider, failure.code.clone())
                    .with_retry_after(failure.retry_after);
                Some((clock.now(), failure))
            }
            Err(_) => return delivered,
        };
        *lock_unpoisoned(&self.0) = Delivery { took: started.elapsed(), outage };
        delivered
    }

    /// Takes as long as the last call and fails as a call would fail now.
    pub fn imitate(&self, clock: &Clock, breaker: &CircuitBreaker) -> Result<(), Failure> {
        if let Some(rejection) = breaker.rejection(clock.now().0) {
            return Err(rejection);
        }
        let Delivery { took, outage } = lock_unpoisoned(&self.0).clone();
        std::thread::sleep(took.min(MAX_DURATION));
        match outage {
            Some((at, failure)) if clock.now().since(at) < OUTAGE_LASTS => Err(failure),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::FailureKind;

    #[test]
    fn an_outage_is_imitated_until_a_success_or_for_some_minutes() {
        let (last, clock, breaker) = (LastDelivery::default(), Clock::default(), CircuitBreaker::with_defaults("sms"));
        let record = |outcome: Result<(), Failure>| last.record(&clock, || outcome).is_ok();
        let failure = |kind| Err(Failure::new(kind, "sms", "x").with_request_id(Some("R-1")));
        clock.set_back(Duration::from_mins(11));
        assert_eq!(last.imitate(&clock, &breaker), Ok(()));
        record(failure(FailureKind::Refused));
        assert_eq!(last.imitate(&clock, &breaker), Ok(()), "another message could pass");
        record(failure(FailureKind::Misconfigured));
        record(failure(FailureKind::Refused));
        let imitated = last.imitate(&clock, &breaker).unwrap_err();
        assert_eq!((imitated.kind, imitated.request_id), (FailureKind::Misconfigured, None));
        record(Ok(()));
        assert_eq!(last.imitate(&clock, &breaker), Ok(()));
        record(failure(FailureKind::TimedOut));
        clock.set_back(Duration::from_mins(2));
        assert!(last.imitate(&clock, &breaker).is_err());
        clock.set_back(Duration::ZERO);
        assert_eq!(last.imitate(&clock, &breaker), Ok(()));
    }
}
