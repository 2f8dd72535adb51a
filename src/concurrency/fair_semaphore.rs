//! A semaphore whose waiting callers take turns by key, such as their network: a caller never waits behind all those of
//! another key, however many there are. Urgent callers come first. For blocking threads only.

use std::{
    collections::HashMap,
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{lock::lock_unpoisoned, semaphore};
use crate::error::{Error, Result};

/// The limits of a [`FairSemaphore`].
#[derive(Clone, Copy, Debug)]
pub struct FairLimits {
    pub permits: usize,
    /// Callers that wait. Each occupies a thread.
    pub waiting: usize,
    pub waiting_per_key: usize,
    pub max_wait: Duration,
}

pub struct FairSemaphore {
    limits: FairLimits,
    turns: Mutex<Turns>,
    changed: Condvar,
}

/// A permit of a [`FairSemaphore`], released on drop.
pub struct FairPermit<'semaphore>(&'semaphore FairSemaphore);

#[derive(Default)]
struct Turns {
    running: usize,
    waiting: Vec<Waiter>,
    tickets: u64,
    /// The last ticket that was served, by key.
    served: HashMap<String, u64>,
}

struct Waiter {
    ticket: u64,
    key: String,
    is_urgent: bool,
}

impl FairSemaphore {
    pub fn new(limits: FairLimits) -> Self {
        Self { limits, turns: Mutex::default(), changed: Condvar::new() }
    }

    /// Acquires a permit. Blocks until it is this caller's turn.
    ///
    /// # Errors
    /// `overloaded` if the wait took too long or too many callers wait.
    pub fn acquire(&self, key: &str, is_urgent: bool) -> Result<FairPermit<'_>> {
        let deadline = Instant::now() + self.limits.max_wait;
        let mut turns = lock_unpoisoned(&self.turns);
        let ticket = turns.join(key, is_urgent, self.limits).ok_or_else(overloaded)?;
        loop {
            // A ticket that is gone has made room for another key.
            let Some(place) = turns.waiting.iter().position(|waiter| waiter.ticket == ticket) else {
                return Err(overloaded());
            };
            if turns.running < self.limits.permits && turns.next() == Some(ticket) {
                turns.serve(place, self.limits);
                self.changed.notify_all();
                return Ok(FairPermit(self));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                turns.waiting.remove(place);
                self.changed.notify_all();
                return Err(overloaded());
            }
            turns = self.changed.wait_timeout(turns, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Turns {
    /// Adds a caller and returns its ticket. In a full queue it replaces the last caller of the key with the most.
    fn join(&mut self, key: &str, is_urgent: bool, limits: FairLimits) -> Option<u64> {
        let of_key = self.count(key);
        if of_key >= limits.waiting_per_key {
            return None;
        }
        if self.waiting.len() >= limits.waiting && !is_urgent {
            let longest =
                self.waiting.iter().rposition(|waiter| !waiter.is_urgent && self.count(&waiter.key) > of_key + 1)?;
            self.waiting.remove(longest);
        }
        self.tickets += 1;
        self.waiting.push(Waiter { ticket: self.tickets, key: key.to_owned(), is_urgent });
        Some(self.tickets)
    }

    fn count(&self, key: &str) -> usize {
        self.waiting.iter().filter(|waiter| waiter.key == key).count()
    }

    /// Returns the ticket whose turn it is: an urgent one, or one of the key that was served longest ago.
    fn next(&self) -> Option<u64> {
        let rank = |waiter: &&Waiter| {
            (!waiter.is_urgent, self.served.get(&waiter.key).copied().unwrap_or_default(), waiter.ticket)
        };
        self.waiting.iter().min_by_key(rank).map(|waiter| waiter.ticket)
    }

    fn serve(&mut self, place: usize, limits: FairLimits) {
        let waiter = self.waiting.remove(place);
        self.running += 1;
        // Keys that are not waiting lose nothing but the memory of their last turn.
        if self.served.len() >= limits.waiting * 4 {
            self.served.retain(|key, _| self.waiting.iter().any(|waiter| waiter.key == *key));
        }
        self.tickets += 1;
        self.served.insert(waiter.key, self.tickets);
    }
}

impl Drop for FairPermit<'_> {
    fn drop(&mut self) {
        lock_unpoisoned(&self.0.turns).running -= 1;
        self.0.changed.notify_all();
    }
}

fn overloaded() -> Error {
    semaphore::overloaded().retry_after(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    const LIMITS: FairLimits =
        FairLimits { permits: 1, waiting: 4, waiting_per_key: 3, max_wait: Duration::from_millis(20) };

    /// Serves everybody that waits and returns their keys.
    fn served(turns: &mut Turns) -> Vec<String> {
        std::iter::from_fn(|| {
            let ticket = turns.next()?;
            let place = turns.waiting.iter().position(|waiter| waiter.ticket == ticket)?;
            let key = turns.waiting[place].key.clone();
            turns.serve(place, LIMITS);
            Some(key)
        })
        .collect()
    }

    #[test]
    fn keys_take_turns_and_urgent_callers_come_first() {
        let mut turns = Turns::default();
        for (key, is_urgent) in [("flood", false), ("flood", false), ("owner", false), ("session", true)] {
            turns.join(key, is_urgent, LIMITS).unwrap();
        }
        assert_eq!(served(&mut turns), ["session", "flood", "owner", "flood"]);
        turns.join("flood", false, LIMITS).unwrap();
        turns.join("new", false, LIMITS).unwrap();
        assert_eq!(served(&mut turns), ["new", "flood"]);
    }

    #[test]
    fn a_full_queue_makes_room_for_other_keys() {
        let mut turns = Turns::default();
        for key in ["flood", "flood", "flood", "other"] {
            turns.join(key, false, LIMITS).unwrap();
        }
        assert_eq!(turns.join("flood", false, LIMITS), None);
        turns.join("owner", false, LIMITS).unwrap();
        assert_eq!((turns.count("flood"), turns.count("owner"), turns.waiting.len()), (2, 1, 4));
        assert_eq!(turns.join("other", false, LIMITS), None);
        turns.join("session", true, LIMITS).unwrap();
    }

    #[test]
    fn waits_for_a_permit_and_no_longer_than_the_limit() {
        let semaphore = FairSemaphore::new(LIMITS);
        let first = semaphore.acquire("one", false).unwrap();
        assert_eq!(semaphore.acquire("two", false).err().unwrap().code, Code::Overloaded);
        assert!(lock_unpoisoned(&semaphore.turns).waiting.is_empty());
        drop(first);
        assert!(semaphore.acquire("two", false).is_ok());
    }
}
