//! The counts of whole days, which reports over weeks add up instead of the counts of ten minutes.
//!
//! A day is counted once, after its end, from the counts of its periods. Deleted entries are subtracted. The
//! surprise: an entry that is inserted later makes the day uncounted, and it is counted again.

use std::time::Duration;

use super::{
    NetworkLog,
    blocks::{self, Key, PERIOD},
};
use crate::{
    error::Result,
    store::{Read, Write},
};

const DAY: i64 = 24 * 60 * 60 * 1000;
pub(super) const PERIODS_IN_DAY: i64 = DAY / PERIOD;

/// The time after which no entry of a day is likely to be queued still.
const SETTLED_AFTER: Duration = Duration::from_mins(5);
/// Days further back are not counted, or a wrong clock would leave many.
const FURTHEST_BACK: i64 = 400;

/// Counts one day that has ended and is not counted. Blocks.
///
/// # Errors
/// Storage errors; the next call counts the day.
pub(super) fn count_one(log: &NetworkLog) -> Result<()> {
    let today = log.core.clock.now().minus(SETTLED_AFTER).0.div_euclid(DAY);
    match log.read(|tx| next_in(tx, today))? {
        Some(day) => log.store().write(move |tx| count_in(tx, day)).wait(),
        None => Ok(()),
    }
}

/// Returns the counted days in a range of days, in order.
pub(super) fn list_in(tx: &Read<'_>, first: i64, end: i64) -> Result<Vec<i64>> {
    let sql = "select day from access_log_counted_days where day >= ?1 and day < ?2 order by day";
    tx.all(sql, (first, end), |row| row.get(0))
}

fn next_in(tx: &Read<'_>, today: i64) -> Result<Option<i64>> {
    let Some(oldest) = blocks::oldest_in(tx, Key::All, 1)?.first().map(|block| day_of(*block)) else { return Ok(None) };
    let first = oldest.max(today - FURTHEST_BACK);
    let sql = "with recursive days (day) as (select cast(?1 as bigint) where ?1 < ?2 union all select day + 1 from days where day + 1 < ?2) \
               select day from days where day not in (select day from access_log_counted_days) limit 1";
    tx.first(sql, (first, today), |row| row.get(0))
}

fn count_in(tx: &Write<'_>, day: i64) -> Result<()> {
    tx.execute("delete from access_log_days where day = ?1", [day])?;
    let (first, end) = (day * PERIODS_IN_DAY, (day + 1) * PERIODS_IN_DAY);
    tx.execute(
        "insert into access_log_days (day, client_id, requests, failed, failed_sign_ins, users, busiest_minute) \
         select ?1, client_id, sum(requests), sum(failed), sum(failed_sign_ins), 0, max(busiest_minute) \
         from access_log_clients where period >= ?2 and period < ?3 group by client_id",
        (day, first, end),
    )?;
    tx.execute(
        "insert into access_log_day_users (client_id, day, user_id) \
         select distinct users.client_id, days.day, users.user_id from access_log_days as days \
         join access_log_users as users on users.client_id = days.client_id \
         where days.day = ?1 and users.period >= ?2 and users.period < ?3",
        (day, first, end),
    )?;
    tx.execute("insert into access_log_counted_days (day) values (?1)", [day])?;
    // Days whose entries have been deleted.
    let oldest = blocks::oldest_in(tx, Key::All, 1)?.first().map(|block| day_of(*block));
    tx.execute("delete from access_log_counted_days where day < ?1", [oldest]).map(drop)
}

fn day_of(block: i64) -> i64 {
    blocks::period_of(block).div_euclid(PERIODS_IN_DAY)
}
