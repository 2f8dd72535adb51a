//! Tallies of requests: their number, errors and durations, by minute for a day and by hour for 400 days.
//!
//! Recording a request is one atomic addition. A job moves the sums into the ring of minutes and into the row of the hour
//! once a minute, so a kill loses less than a minute. The ring is in memory and starts empty.

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use crate::{
    concurrency::lock::lock_unpoisoned,
    core::Core,
    error::Result,
    metrics::{Counter, microseconds},
    store::{Read, Write},
    types::Timestamp,
};

/// Upper bounds of the durations, in microseconds.
pub const BOUNDS: [u64; 15] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
    60_000_000,
];
const BUCKETS: usize = BOUNDS.len() + 1;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Minutes in the ring.
const MINUTES: usize = 24 * 60;
/// Hours that are kept: 400 days.
const HOURS: i64 = 400 * 24;

/// The requests of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTally {
    pub requests: u64,
    /// Responses with a status of 500 or more.
    pub errors: u64,
    /// Requests by duration; the last bucket is above all bounds.
    buckets: [u64; BUCKETS],
}

impl RequestTally {
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        for (bucket, added) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += added;
        }
    }

    /// Returns this percentile of the durations in microseconds, interpolated between the bounds. `None` without requests.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let wanted = (self.requests * percent).div_ceil(100);
        if wanted == 0 {
            return None;
        }
        let (mut below, mut lower) = (0, 0);
        for (count, upper) in self.buckets.iter().zip(BOUNDS.iter().chain(BOUNDS.last())) {
            if below + count >= wanted {
                return Some(lower + (upper - lower) * (wanted - below) / count);
            }
            (below, lower) = (below + count, *upper);
        }
        BOUNDS.last().copied()
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            errors: self.errors.saturating_sub(earlier.errors),
            buckets: std::array::from_fn(|index| self.buckets[index].saturating_sub(earlier.buckets[index])),
        }
    }

    fn to_bytes(self) -> Vec<u8> {
        self.buckets.iter().flat_map(|count| count.to_le_bytes()).collect()
    }

    fn from_stored(requests: i64, errors: i64, packed: &[u8]) -> Self {
        let mut buckets = [0; BUCKETS];
        for (bucket, bytes) in buckets.iter_mut().zip(packed.as_chunks::<8>().0) {
            *bucket = u64::from_le_bytes(*bytes);
        }
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        Self { requests: unsigned(requests), errors: unsigned(errors), buckets }
    }
}

/// The tallies of this process.
#[derive(Debug, Default)]
pub struct RequestTallies {
    succeeded: [Counter; BUCKETS],
    failed: [Counter; BUCKETS],
    recent: Mutex<Recent>,
}

/// The last minutes, and the sums that are stored already.
#[derive(Debug, Default)]
struct Recent {
    stored: RequestTally,
    /// Minutes since 1970 with their tallies, oldest first.
    minutes: VecDeque<(i64, RequestTally)>,
}

impl RequestTallies {
    /// Counts a request.
    pub fn record(&self, status: u16, duration: Duration) {
        let bucket = BOUNDS.partition_point(|bound| *bound < microseconds(duration));
        let counters = if status >= 500 { &self.failed } else { &self.succeeded };
        counters[bucket].add(1);
    }

    /// Returns the tallies of the last 24 hours, in periods of this many minutes, oldest first. Periods without requests
    /// are empty.
    pub fn recent(&self, now: Timestamp, minutes: i64) -> Vec<(Timestamp, RequestTally)> {
        let last = now.0 / MINUTE_MS / minutes;
        let first = last - i64::try_from(MINUTES).unwrap_or(0) / minutes + 1;
        let mut periods: Vec<_> =
            (first..=last).map(|period| (Timestamp(period * minutes * MINUTE_MS), RequestTally::default())).collect();
        let recent = lock_unpoisoned(&self.recent);
        for (minute, tally) in &recent.minutes {
            let index = usize::try_from(minute / minutes - first).ok();
            if let Some((_, sum)) = index.and_then(|index| periods.get_mut(index)) {
                sum.add(tally);
            }
        }
        periods
    }

    fn total(&self) -> RequestTally {
        let get = |counters: &[Counter; BUCKETS], index: usize| counters.get(index).map_or(0, Counter::get);
        let errors = std::array::from_fn::<_, BUCKETS, _>(|index| get(&self.failed, index));
        let buckets = std::array::from_fn(|index| get(&self.succeeded, index) + errors[index]);
        RequestTally { requests: buckets.iter().sum(), errors: errors.iter().sum(), buckets }
    }

    /// Stores what was counted since the last call. Only one thread may call it. Blocks.
    ///
    /// # Errors
    /// Storage errors; the next call stores the same requests.
    pub fn flush(&self, core: &Core) -> Result<()> {
        let total = self.total();
        let added = total.since(&lock_unpoisoned(&self.recent).stored);
        if added.requests == 0 {
            return Ok(());
        }
        let now = core.clock.now();
        core.store.write(move |tx| add_in(tx, now.0.div_euclid(HOUR_MS), added)).wait()?;
        let mut recent = lock_unpoisoned(&self.recent);
        recent.stored = total;
        let minute = now.0 / MINUTE_MS;
        match recent.minutes.back_mut() {
            Some((last, tally)) if *last == minute => tally.add(&added),
            _ => recent.minutes.push_back((minute, added)),
        }
        while recent.minutes.len() > MINUTES {
            recent.minutes.pop_front();
        }
        Ok(())
    }
}

fn add_in(tx: &Write<'_>, hour: i64, added: RequestTally) -> Result<()> {
    let mut sum = added;
    let sql = "select requests, errors, buckets from request_hours where hour = ?1";
    if let Some(stored) =
        tx.first(sql, [hour], |row| Ok(RequestTally::from_stored(row.get(0)?, row.get(1)?, &row.get::<Vec<u8>>(2)?)))?
    {
        sum.add(&stored);
    }
    let stored = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    tx.execute(
        "insert into request_hours (hour, requests, errors, buckets) values (?1, ?2, ?3, ?4) \
         on conflict (hour) do update set requests = excluded.requests, errors = excluded.errors, \
         buckets = excluded.buckets",
        (hour, stored(sum.requests), stored(sum.errors), sum.to_bytes()),
    )
    .map(drop)
}

/// Returns the tallies of the hours that begin in `[from, to)`, oldest first.
pub fn hours_in(tx: &Read<'_>, from: Timestamp, to: Timestamp) -> Result<Vec<(Timestamp, RequestTally)>> {
    let sql = "select hour, requests, errors, buckets from request_hours where hour >= ?1 and hour < ?2 order by hour";
    let hour = |at: Timestamp| at.0.div_euclid(HOUR_MS);
    tx.all(sql, (hour(from), hour(to)), |row| {
        let tally = RequestTally::from_stored(row.get(1)?, row.get(2)?, &row.get::<Vec<u8>>(3)?);
        Ok((Timestamp(row.get::<i64>(0)? * HOUR_MS), tally))
    })
}

/// Deletes up to `limit` hours that are too old.
pub fn delete_old_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from request_hours where hour in (select hour from request_hours where hour < ?1 order by hour limit ?2)",
        (tx.now.0.div_euclid(HOUR_MS) - HOURS, limit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_interpolated_between_the_bounds() {
        let tallies = RequestTallies::default();
        for _ in 0..98 {
            tallies.record(200, Duration::from_micros(800));
        }
        tallies.record(404, Duration::from_millis(3));
        tallies.record(500, Duration::from_secs(90));
        let total = tallies.total();
        assert_eq!((total.requests, total.errors), (100, 1));
        assert_eq!(total.percentile(49), Some(750));
        assert_eq!(total.percentile(99), Some(5_000));
        assert_eq!(total.percentile(100), Some(60_000_000));
        assert_eq!(RequestTally::default().percentile(50), None);
        assert_eq!(RequestTally::from_stored(100, 1, &total.to_bytes()), total);
    }
}
