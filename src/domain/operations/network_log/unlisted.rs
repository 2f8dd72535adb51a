//! Requests that found the queue of the log full, counted by route. They are in no list and no other count.

use std::{
    collections::BTreeMap,
    mem,
    time::{Duration, Instant},
};

use super::{NetworkLog, blocks::PERIOD};
use crate::{
    concurrency::lock::lock_unpoisoned,
    error::Result,
    store::{Read, Write},
    types::Timestamp,
};

const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// The numbers of requests that are in no list, by the template of their route.
pub(super) type Unlisted = BTreeMap<Option<&'static str>, u64>;

/// The requests to one route that are in no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedRequests {
    /// The route's template; nothing if no route matched.
    pub route: Option<String>,
    pub requests: u64,
}

/// Counts that are stored and not in the server's log yet, and when it last had some.
#[derive(Default)]
pub(super) struct Unreported {
    counts: Unlisted,
    last: Option<Instant>,
}

/// Stores the counts, and logs them once a minute. Blocks.
///
/// # Errors
/// Storage errors; counts that were not stored stay in memory.
pub(super) fn store(log: &NetworkLog) -> Result<()> {
    let counts = log.waiting.take_unlisted();
    if !counts.is_empty() {
        let rows: Vec<_> = counts.iter().map(|(route, count)| (route.unwrap_or_default(), *count)).collect();
        if let Err(error) = log.store().write(move |tx| add_in(tx, &rows)).wait() {
            log.waiting.put_back_unlisted(counts);
            return Err(error);
        }
    }
    let mut unreported = lock_unpoisoned(&log.unreported);
    add(&mut unreported.counts, counts);
    if !unreported.counts.is_empty() && unreported.last.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
        let counts = mem::take(&mut unreported.counts);
        unreported.last = Some(Instant::now());
        let routes = counts.iter().map(|(route, count)| format!("{} {count}", route.unwrap_or("(none)")));
        let (requests, routes) = (counts.values().sum::<u64>(), routes.collect::<Vec<_>>().join(", "));
        tracing::warn!(requests, routes, "requests are not in the network log, because the disk was too slow");
    }
    Ok(())
}

/// Adds counts to others.
pub(super) fn add(counts: &mut Unlisted, more: Unlisted) {
    for (route, count) in more {
        *counts.entry(route).or_default() += count;
    }
}

fn add_in(tx: &Write<'_>, counts: &[(&'static str, u64)]) -> Result<()> {
    let period = tx.now.0.div_euclid(PERIOD);
    tx.execute_each(
        "insert into access_log_unlisted (period, route, entries) values (?1, ?2, ?3) \
         on conflict (period, route) do update set entries = access_log_unlisted.entries + excluded.entries",
        counts.iter().map(|(route, count)| (period, *route, i64::try_from(*count).unwrap_or(i64::MAX))),
    )
    .map(drop)
}

/// Returns the requests of the ten minutes of a time range that are in no list, by route. Blocks.
///
/// # Errors
/// Storage errors.
pub fn list(log: &NetworkLog, from: Timestamp, to: Timestamp) -> Result<Vec<UnlistedRequests>> {
    log.read(|tx| list_in(tx, from, to))
}

fn list_in(tx: &Read<'_>, from: Timestamp, to: Timestamp) -> Result<Vec<UnlistedRequests>> {
    let sql = "select route, cast(sum(entries) as bigint) from access_log_unlisted where period >= ?1 and period <= ?2 \
               group by route order by route";
    tx.all(sql, (from.0.div_euclid(PERIOD), to.0.saturating_sub(1).div_euclid(PERIOD)), |row| {
        let (route, requests): (String, i64) = (row.get(0)?, row.get(1)?);
        let route = Some(route).filter(|route| !route.is_empty());
        Ok(UnlistedRequests { route, requests: requests.unsigned_abs() })
    })
}

/// Deletes the counts of ten minutes that ended before a time.
pub(super) fn delete_before_in(tx: &Write<'_>, before: Timestamp) -> Result<()> {
    tx.execute("delete from access_log_unlisted where period < ?1", [before.0.div_euclid(PERIOD)]).map(drop)
}
