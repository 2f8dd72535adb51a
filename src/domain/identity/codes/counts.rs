//! Counts of codes, wrong codes and refusals in rolling windows.
//!
//! The row of a subject's events at one time has the total of its events so far, in the order of time. A window holds the
//! difference of two totals, so a full one costs as little as an empty one, and the count is exact. Rows after now, which a
//! clock that ran ahead left behind, do not count.

use std::time::Duration;

use crate::{
    error::{RateLimit, Result},
    store::{Later, Read, Write, sliding_window::WindowUse},
    types::{Timestamp, named_enum},
};

named_enum! {
    /// The events that are counted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CountedEvent {
        /// A code that was sent or may have been sent.
        Sent = "sent",
        /// A wrong code or an invalid proof of identity.
        Wrong = "wrong",
        /// A recorded refusal to send a code.
        Refused = "refused",
    }
}

/// The subject of a limit on all events.
pub(super) const ALL: &str = "";

/// A limit on the events of a subject: a network, or all.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedWindow<'subject> {
    pub(super) limit: RateLimit,
    pub(super) event: CountedEvent,
    pub(super) subject: &'subject str,
}

/// The total of a subject's events up to now, with the part of it in a shorter and in a longer period.
pub(super) struct Totals<'subject> {
    event: CountedEvent,
    subject: &'subject str,
    limits: [RateLimit; 2],
    found: Later<(i64, [i64; 2])>,
}

impl<'subject> Totals<'subject> {
    /// Asks for the totals. The first row has the total before a period if earlier ones were deleted.
    pub(super) fn ask_in(
        tx: &Read<'_>,
        event: CountedEvent,
        subject: &'subject str,
        limits: [RateLimit; 2],
    ) -> Result<Self> {
        let [shorter, longer] = limits.map(|limit| tx.now.minus(limit.window).0);
        let found = tx.first_later(
            "select total, \
             coalesce((select total from code_counts where event = ?1 and subject = ?2 and counted_at <= ?4 \
             order by counted_at desc limit 1), \
             (select total - events from code_counts where event = ?1 and subject = ?2 order by counted_at limit 1)), \
             case when ?5 < ?4 then coalesce( \
             (select total from code_counts where event = ?1 and subject = ?2 and counted_at <= ?5 \
             order by counted_at desc limit 1), \
             (select total - events from code_counts where event = ?1 and subject = ?2 order by counted_at limit 1)) end \
             from code_counts where event = ?1 and subject = ?2 and counted_at <= ?3 order by counted_at desc limit 1",
            (event.name(), subject, tx.now.0, shorter, longer),
            |row| {
                let before: i64 = row.get(1)?;
                Ok((row.get(0)?, [before, row.get::<Option<i64>>(2)?.unwrap_or(before)]))
            },
        )?;
        Ok(Self { event, subject, limits, found })
    }

    /// Returns the number of events in each window, with the time until it accepts another one.
    pub(super) fn states_in(self, tx: &Read<'_>) -> Result<[(u32, Duration); 2]> {
        let Self { event, subject, limits, found } = self;
        let (total, befores) = found.get(tx)?.unwrap_or_default();
        let mut states = befores.map(|before| (used(total, before), Duration::ZERO));
        for ((used, wait), limit) in states.iter_mut().zip(limits) {
            if *used >= limit.quota {
                let leaves =
                    || CountedWindow { limit, event, subject }.leaves_after_in(tx, total - i64::from(limit.quota));
                *wait = if limit.quota == 0 { limit.window } else { leaves()?.unwrap_or_default() };
            }
        }
        Ok(states)
    }
}

/// Returns the number of events since a total.
fn used(total: i64, before: i64) -> u32 {
    u32::try_from((total - before).max(0)).unwrap_or(u32::MAX)
}

impl<'subject> CountedWindow<'subject> {
    pub(super) fn ask_in(&self, tx: &Read<'_>) -> Result<Totals<'subject>> {
        Totals::ask_in(tx, self.event, self.subject, [self.limit; 2])
    }

    /// Returns the number of events in the window, and the time until it accepts another one.
    pub(super) fn state_in(&self, tx: &Read<'_>) -> Result<(u32, Duration)> {
        Ok(self.ask_in(tx)?.states_in(tx)?[0])
    }

    /// Returns the use of the window.
    pub(super) fn use_in(&self, tx: &Read<'_>) -> Result<WindowUse> {
        let (total, [before, _]) = self.ask_in(tx)?.found.get(tx)?.unwrap_or_default();
        let used = used(total, before);
        let frees_after = if used == 0 { None } else { self.leaves_after_in(tx, total - i64::from(used))? };
        Ok(WindowUse { limit: self.limit, remaining: self.limit.quota.saturating_sub(used), frees_after })
    }

    /// Returns the time until the events up to the first one above a total have left the window.
    fn leaves_after_in(&self, tx: &Read<'_>, total: i64) -> Result<Option<Duration>> {
        let row: Option<i64> = tx.first(
            "select counted_at from code_counts where event = ?1 and subject = ?2 and counted_at > ?3 \
             and counted_at <= ?4 and total > ?5 order by counted_at limit 1",
            (self.event.name(), self.subject, tx.now.minus(self.limit.window).0, tx.now.0, total),
            |row| row.get(0),
        )?;
        Ok(row.map(|time| Timestamp(time).plus(self.limit.window).since(tx.now)))
    }
}

/// Counts an event of each subject.
pub(super) fn add_in<'subject>(
    tx: &Write<'_>,
    event: CountedEvent,
    subjects: impl Iterator<Item = &'subject str> + Clone,
) -> Result<()> {
    let sets = subjects.map(|subject| (event.name(), subject, tx.now.0));
    tx.execute_each_later(
        "insert into code_counts (event, subject, counted_at, total, events) values (?1, ?2, ?3, \
         coalesce((select total from code_counts where event = ?1 and subject = ?2 and counted_at <= ?3 \
         order by counted_at desc limit 1), 0) + 1, 1) \
         on conflict (event, subject, counted_at) do update set total = excluded.total, events = code_counts.events + 1",
        sets.clone(),
    )?;
    // Rows after now, which a clock that ran ahead left behind, count again when it is as late.
    let ahead =
        tx.first("select 1 from code_counts where counted_at > ?1 limit 1", [tx.now.0], |row| row.get::<i64>(0))?;
    if ahead.is_some() {
        let later = "update code_counts set total = total + 1 where event = ?1 and subject = ?2 and counted_at > ?3";
        tx.execute_each(later, sets)?;
    }
    Ok(())
}

/// Takes back an event of each subject. Changes the later rows too, so it is for events of a moment ago.
pub(super) fn remove_in<'subject>(
    tx: &Write<'_>,
    event: CountedEvent,
    subjects: impl Iterator<Item = &'subject str>,
    at: Timestamp,
) -> Result<()> {
    tx.execute_each(
        "update code_counts set total = total - 1, events = case when counted_at = ?3 then events - 1 else events end \
         where event = ?1 and subject = ?2 and counted_at >= ?3",
        subjects.map(|subject| (event.name(), subject, at.0)),
    )
    .map(drop)
}

/// Deletes up to `limit` rows that are older than every window.
pub(super) fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from code_counts where (event, subject, counted_at) in \
         (select event, subject, counted_at from code_counts where counted_at <= ?1 order by counted_at limit ?2)",
        (tx.now.minus(age).0, limit),
    )
}
