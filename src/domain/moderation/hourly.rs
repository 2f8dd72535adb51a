//! Counts the texts of each user that were sent to the external service, because the provider bills each.

use std::{collections::HashMap, sync::Mutex, time::Instant};

use crate::{
    concurrency::lock::lock_unpoisoned,
    error::{Code, Error, Result},
    store::sliding_window::HOUR,
    types::UserId,
};

/// Counted in memory, where a restart forgets them: a row for each would cost more than the texts do.
#[derive(Debug, Default)]
pub struct Hours(Mutex<HashMap<UserId, Hour>>);

/// The hour that begins with a user's first text, and the texts in it.
#[derive(Debug)]
struct Hour {
    began: Instant,
    texts: usize,
}

impl Hours {
    /// Counts so many texts more, unless they are too many.
    ///
    /// # Errors
    /// `too_many_requests`, with the time until the user's hour is over.
    pub fn take(&self, user: UserId, texts: usize, allowed: u32, now: Instant) -> Result<()> {
        let mut hours = lock_unpoisoned(&self.0);
        // Evicts expired hours before the map grows.
        if hours.len() == hours.capacity() {
            hours.retain(|_, hour| !hour.is_over(now));
        }
        let hour = hours.entry(user).or_insert(Hour { began: now, texts: 0 });
        if hour.is_over(now) {
            *hour = Hour { began: now, texts: 0 };
        }
        let counted = hour.texts.saturating_add(texts);
        if counted > usize::try_from(allowed).unwrap_or(usize::MAX) {
            let passed = now.saturating_duration_since(hour.began);
            return Err(Error::new(Code::TooManyRequests).retry_after(HOUR.saturating_sub(passed)));
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
    fn an_hour_begins_with_the_first_text_and_what_is_over_makes_room() {
        let (hours, begin) = (Hours::default(), Instant::now());
        let take = |user, texts, after| hours.take(UserId(user), texts, 3, begin + after);
        take(1, 2, Duration::ZERO).unwrap();
        assert!(take(1, 2, Duration::from_secs(1)).is_err(), "two more are too many, and neither counts");
        take(1, 1, Duration::from_secs(2)).unwrap();
        assert!(take(1, 1, Duration::from_secs(3_599)).is_err());
        take(2, 3, Duration::from_secs(3)).unwrap();
        take(1, 3, HOUR).unwrap();
        for user in 3..1_000 {
            take(user, 1, HOUR * u32::try_from(user).unwrap()).unwrap();
        }
        assert!(hours.0.lock().unwrap().capacity() < 100);
    }
}
