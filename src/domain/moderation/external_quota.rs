//! The hourly quota of texts per user for the external moderator, which bills each text.

use std::{collections::HashMap, sync::Mutex, time::Instant};

use crate::{
    concurrency::lock::lock_unpoisoned,
    error::{Code, Error, RateLimit, Result},
    store::sliding_window::HOUR,
    types::UserId,
};

/// Counters in memory, because a row per text would cost more than the check. A restart resets them.
#[derive(Debug, Default)]
pub struct ExternalQuota(Mutex<HashMap<UserId, Hour>>);

/// An hour that starts with a user's first text, and the number of texts in it.
#[derive(Debug)]
struct Hour {
    began: Instant,
    texts: usize,
}

impl ExternalQuota {
    /// Counts texts unless they exceed the quota.
    ///
    /// # Errors
    /// `too_many_requests`, with the time until the user's hour ends.
    pub fn consume(&self, user: UserId, texts: usize, allowed: u32, now: Instant) -> Result<()> {
        let mut quota = lock_unpoisoned(&self.0);
        // Removes expired hours before the map grows.
        if quota.len() == quota.capacity() {
            quota.retain(|_, hour| !hour.is_over(now));
        }
        let hour = quota.entry(user).or_insert(Hour { began: now, texts: 0 });
        if hour.is_over(now) {
            *hour = Hour { began: now, texts: 0 };
        }
        let counted = hour.texts.saturating_add(texts);
        if counted > usize::try_from(allowed).unwrap_or(usize::MAX) {
            let passed = now.saturating_duration_since(hour.began);
            let limit = RateLimit { name: "screened-texts", quota: allowed, window: HOUR };
            let wait = HOUR.saturating_sub(passed);
            return Err(Error::new(Code::TooManyRequests).retry_after(wait).exceeding(limit));
        }
        hour.texts = counted;
        Ok(())
    }
}

impl Hour {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) >= HOUR
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn hour_begins_with_first_text_and_expired_hours_are_removed() {
        let (quota, begin) = (ExternalQuota::default(), Instant::now());
        let consume = |user, texts, after| quota.consume(UserId(user), texts, 3, begin + after);
        consume(1, 2, Duration::ZERO).unwrap();
        assert!(consume(1, 2, Duration::from_secs(1)).is_err(), "a rejected batch does not count");
        consume(1, 1, Duration::from_secs(2)).unwrap();
        assert!(consume(1, 1, Duration::from_secs(3_599)).is_err());
        consume(2, 3, Duration::from_secs(3)).unwrap();
        consume(1, 3, HOUR).unwrap();
        for user in 3..1_000 {
            consume(user, 1, HOUR * u32::try_from(user).unwrap()).unwrap();
        }
        assert!(quota.0.lock().unwrap().capacity() < 100);
    }
}
