//! What this process remembers of its messages: which were told, which the database holds, and which nobody has yet.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use super::AllTold;
use crate::{concurrency::lock::lock_unpoisoned, error::Result, types::Timestamp};

/// How long after the first failed delivery the next is tried; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// What this process has told, so that a database that cannot be read or written makes nobody hear the same again.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    told: AllTold,
    /// What the database is known to hold of it; nothing until it was read.
    stored: Option<AllTold>,
    undelivered: Undelivered,
}

/// Attempts to tell of a rule that nobody has heard of yet.
pub(super) type Undelivered = BTreeMap<String, Attempts>;

impl Memory {
    /// What was told, with what the database says once it can be read.
    pub(super) fn remembered(&self, read: impl FnOnce() -> Result<AllTold>) -> AllTold {
        let mut memory = lock_unpoisoned(&self.0);
        if memory.stored.is_none()
            && let Ok(stored) = read()
        {
            let meanwhile = std::mem::replace(&mut memory.told, stored.clone());
            memory.told.extend(meanwhile);
            memory.stored = Some(stored);
        }
        memory.told.clone()
    }

    pub(super) fn remember(&self, told: &AllTold, undelivered: Undelivered) {
        let mut memory = lock_unpoisoned(&self.0);
        memory.told.clone_from(told);
        memory.undelivered = undelivered;
    }

    pub(super) fn undelivered(&self) -> Undelivered {
        lock_unpoisoned(&self.0).undelivered.clone()
    }

    /// Whether the database says something else. What was never read is not overwritten.
    pub(super) fn is_unstored(&self) -> bool {
        let memory = lock_unpoisoned(&self.0);
        memory.stored.as_ref().is_some_and(|stored| *stored != memory.told)
    }

    pub(super) fn note_stored(&self, told: AllTold) {
        lock_unpoisoned(&self.0).stored = Some(told);
    }
}

/// How often it was tried to tell of a rule, and when again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts {
    /// What the first said, and all others say.
    pub(super) since: Timestamp,
    last: Timestamp,
    /// How long the next waits after the last.
    wait: Duration,
}

impl Attempts {
    pub(super) const fn none(since: Timestamp) -> Self {
        Self { since, last: since, wait: Duration::ZERO }
    }

    pub(super) fn add(&mut self, now: Timestamp) {
        self.last = now;
        self.wait = (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
    }

    /// Whether the next can wait.
    pub(super) fn are_enough(&self, now: Timestamp) -> bool {
        self.last.is_within(self.wait, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Told, rules::UNKNOWN};
    use super::*;
    use crate::error::Code;

    #[test]
    fn what_could_not_be_read_is_not_forgotten() {
        let of = |rule: &str| AllTold::from([(rule.into(), Told { since: 1, at: 1, detail: String::new() })]);
        let memory = Memory::default();
        assert_eq!(memory.remembered(|| Err(Code::StorageFailed.into())), AllTold::new());
        memory.remember(&of(UNKNOWN), Undelivered::new());
        assert!(!memory.is_unstored(), "what was never read is not overwritten");
        let both: AllTold = of(UNKNOWN).into_iter().chain(of("disk_low")).collect();
        assert_eq!(memory.remembered(|| Ok(of("disk_low"))), both);
        assert!(memory.is_unstored());
        memory.note_stored(both);
        assert!(!memory.is_unstored());
    }

    #[test]
    fn what_cannot_be_delivered_is_tried_less_and_less_often() {
        let mut attempts = Attempts::none(Timestamp(0));
        let mut tried_at = Vec::new();
        for second in 0..3_000 {
            let now = Timestamp(second * 1_000);
            if !attempts.are_enough(now) {
                attempts.add(now);
                tried_at.push(second);
            }
        }
        assert_eq!(tried_at, [0, 5, 15, 35, 75, 155, 315, 635, 1_235, 1_835, 2_435]);
        assert!(!attempts.are_enough(Timestamp(0)), "a clock that was ahead holds nothing up");
    }
}
