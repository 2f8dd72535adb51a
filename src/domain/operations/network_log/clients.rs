//! Reports on client addresses: request counts and suspicious activity.
//!
//! A report adds up counts of whole periods of ten minutes, which the database keeps for each address. It reads entries
//! only where its time range begins or ends inside a period. Nothing is stored, because an operator judges each
//! suspicion.

use std::{cmp::Ordering, collections::HashMap, time::Duration};

use super::NetworkLog;
use crate::{
    config::SuspicionConfig,
    error::{Error, Fault, FieldCode, Result},
    store::Read,
    types::{PageRequest, Paginated, Timestamp, ensure_ordered},
};

/// The default periods of the two reports.
pub const COUNTED: Duration = DAY;
pub const SUSPECTED: Duration = Duration::from_hours(1);

/// The longest period of a report.
const LONGEST_DAYS: u32 = 31;
const DAY: Duration = Duration::from_hours(24);

/// The length of a counted period, as in `network-log.sql`.
const PERIOD: i64 = 10 * 60 * 1000;
/// The score of a reason at its threshold. It doubles at twice the threshold.
const POINTS: u64 = 25;
const HIGHEST_SCORE: u64 = 100;

/// The activity of a client address.
#[derive(Clone, Debug)]
pub struct Tally {
    pub client_ip: String,
    pub requests: u64,
    pub failed: u64,
    /// Refused sign-ins of users and administrators.
    pub failed_sign_ins: u64,
    /// Different users. A report counts them exactly only for the addresses that it returns.
    pub users: u64,
    /// Requests in the busiest minute.
    pub busiest_minute: u64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
}

/// A suspicious client address.
#[derive(Clone, Debug)]
pub struct Suspect {
    pub tally: Tally,
    /// 25 for one reason at its threshold, up to 100.
    pub score: u64,
    pub reasons: Vec<Reason>,
}

/// A measurement above its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// `failed_sign_ins`, `failure_share` (in percent), `distinct_users` or `request_rate` (in a minute).
    pub code: &'static str,
    pub value: u64,
    pub threshold: u64,
}

/// Returns the period of a report from two optional parameters, given with their names.
///
/// # Errors
/// `invalid_parameters` if the period ends before its start or is too long.
pub fn window(
    start: (&str, Option<Timestamp>),
    end: (&str, Option<Timestamp>),
    usual: Duration,
    now: Timestamp,
) -> Result<(Timestamp, Timestamp)> {
    let to = end.1.unwrap_or(now);
    let from = start.1.unwrap_or_else(|| to.minus(usual));
    ensure_ordered((start.0, from), (end.0, to))?;
    if to.since(from) > DAY * LONGEST_DAYS {
        let message = format!("must be at most {LONGEST_DAYS} days after `{}`", start.0);
        return Err(Error::field(end.0, Fault::new(FieldCode::OutOfRange, message)));
    }
    Ok((from, to))
}

/// Returns the client addresses of the period, or one of them, busiest first. Blocks.
///
/// # Errors
/// Storage errors.
pub fn count(
    log: &NetworkLog,
    from: Timestamp,
    to: Timestamp,
    client_ip: Option<&str>,
    page: PageRequest,
) -> Result<Paginated<Tally>> {
    log.read(|tx| {
        let range = CountedRange::find_in(tx, from, to)?;
        let busiest = |one: &Tally, other: &Tally| {
            other.requests.cmp(&one.requests).then_with(|| one.client_ip.cmp(&other.client_ip))
        };
        let mut tallies = tallies_in(tx, &range)?;
        tallies.retain(|tally| client_ip.is_none_or(|wanted| tally.client_ip == wanted));
        let mut found = page_of(tallies, page, busiest);
        found.items.iter_mut().try_for_each(|tally| complete_in(tx, &range, tally))?;
        Ok(found)
    })
}

/// Returns the suspicious client addresses of the period, highest score first. Blocks.
///
/// # Errors
/// Storage errors.
pub fn suspicious(log: &NetworkLog, from: Timestamp, to: Timestamp, page: PageRequest) -> Result<Paginated<Suspect>> {
    let thresholds = &log.core.config.suspicion;
    log.read(|tx| {
        let range = CountedRange::find_in(tx, from, to)?;
        let mut suspects = Vec::new();
        for mut tally in tallies_in(tx, &range)? {
            // The sum over all periods may count a user several times.
            if thresholds.distinct_users > 0 && tally.users >= u64::from(thresholds.distinct_users) {
                tally.users = users_in(tx, &range, &tally.client_ip)?;
            }
            suspects.extend(suspect(tally, thresholds));
        }
        let worst = |one: &Suspect, other: &Suspect| {
            other.score.cmp(&one.score).then_with(|| other.tally.requests.cmp(&one.tally.requests))
        };
        let mut found = page_of(suspects, page, worst);
        found.items.iter_mut().try_for_each(|suspect| complete_in(tx, &range, &mut suspect.tally))?;
        Ok(found)
    })
}

/// Sorts only as far as the page needs.
fn page_of<T>(mut all: Vec<T>, page: PageRequest, order: impl Fn(&T, &T) -> Ordering) -> Paginated<T> {
    let total = all.len();
    let start = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let end = start.saturating_add(page.size as usize);
    if end < total {
        all.select_nth_unstable_by(end, &order);
        all.truncate(end);
    }
    all.sort_unstable_by(&order);
    Paginated { items: all.into_iter().skip(start).collect(), total: i64::try_from(total).unwrap_or(i64::MAX) }
}

fn suspect(tally: Tally, thresholds: &SuspicionConfig) -> Option<Suspect> {
    let is_enough = tally.requests >= u64::from(thresholds.requests);
    let share = if is_enough { 100 * tally.failed / tally.requests.max(1) } else { 0 };
    let measured = [
        ("failed_sign_ins", tally.failed_sign_ins, thresholds.failed_sign_ins),
        ("failure_share", share, thresholds.failure_share),
        ("distinct_users", tally.users, thresholds.distinct_users),
        ("request_rate", tally.busiest_minute, thresholds.request_rate),
    ];
    let reasons: Vec<_> = measured
        .into_iter()
        .map(|(code, value, threshold)| Reason { code, value, threshold: u64::from(threshold) })
        .filter(|reason| reason.threshold > 0 && reason.value >= reason.threshold)
        .collect();
    let points = |reason: &Reason| (POINTS * reason.value / reason.threshold).min(2 * POINTS);
    let score = reasons.iter().map(points).sum::<u64>().min(HIGHEST_SCORE);
    (!reasons.is_empty()).then_some(Suspect { tally, score, reasons })
}

/// A time range as whole periods and the rest before and after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CountedRange {
    from: i64,
    to: i64,
    /// The whole periods: a half-open range.
    periods: (i64, i64),
    /// The half-open ranges of time before and after the whole periods.
    rest: [(i64, i64); 2],
}

impl CountedRange {
    fn find_in(tx: &Read<'_>, from: Timestamp, to: Timestamp) -> Result<Self> {
        let sql = "select exists (select 1 from access_log where at >= ?1 and at < ?2)";
        Self::of(from.0, to.0, |start, end| tx.one(sql, (start, end), |row| row.get(0)))
    }

    /// A period at an end of the range counts as whole if it has no entries outside the range.
    fn of(from: i64, to: i64, mut has_entries: impl FnMut(i64, i64) -> Result<bool>) -> Result<Self> {
        let (mut first, mut end) = (from.div_euclid(PERIOD), to.saturating_add(PERIOD - 1).div_euclid(PERIOD));
        first += i64::from(has_entries(first * PERIOD, from)?);
        end -= i64::from(has_entries(to, end * PERIOD)?);
        Ok(if first < end {
            let rest = [(from, from.max(first * PERIOD)), (to.min(end * PERIOD), to)];
            Self { from, to, periods: (first, end), rest }
        } else {
            Self { from, to, periods: (0, 0), rest: [(from, to), (to, to)] }
        })
    }
}

/// Adds up the counts of each address. `users` counts a user once for each period.
fn tallies_in(tx: &Read<'_>, range: &CountedRange) -> Result<Vec<Tally>> {
    let counted = "select client_ip, requests, failed, failed_sign_ins, users, busiest_minute from access_log_clients \
                   where period >= ?1 and period < ?2";
    let entries = "select client_ip, count(*), sum(case when status >= 400 then 1 else 0 end), sum(is_failed_sign_in), \
                   count(distinct user_id), count(*) from access_log where at >= ?1 and at < ?2 \
                   group by client_ip, at / 60000";
    let mut tallies: HashMap<String, Tally> = HashMap::new();
    for (sql, bounds) in [(counted, range.periods), (entries, range.rest[0]), (entries, range.rest[1])] {
        tx.each(sql, bounds, |row| {
            let client_ip = row.get_ref(0)?.as_str().map_err(Error::internal)?;
            let tally = match tallies.get_mut(client_ip) {
                Some(tally) => tally,
                None => tallies.entry(client_ip.to_owned()).or_insert_with(|| Tally::new(client_ip, range)),
            };
            tally.requests += u64::from(row.get::<u32>(1)?);
            tally.failed += u64::from(row.get::<u32>(2)?);
            tally.failed_sign_ins += u64::from(row.get::<u32>(3)?);
            tally.users += u64::from(row.get::<u32>(4)?);
            tally.busiest_minute = tally.busiest_minute.max(row.get::<u32>(5)?.into());
            Ok(())
        })?;
    }
    Ok(tallies.into_values().collect())
}

/// Counts the users of an address exactly, and sets the times of its first and last request.
fn complete_in(tx: &Read<'_>, range: &CountedRange, tally: &mut Tally) -> Result<()> {
    tally.users = users_in(tx, range, &tally.client_ip)?;
    let at = |order: &str| {
        let sql = format!(
            "select at from access_log where client_ip = ?1 and at >= ?2 and at < ?3 order by at {order} limit 1"
        );
        tx.first(&sql, (&tally.client_ip, range.from, range.to), |row| row.get(0))
    };
    let (first, last) = (at("asc")?, at("desc")?);
    (tally.first_at, tally.last_at) = (first.map_or(tally.first_at, Timestamp), last.map_or(tally.last_at, Timestamp));
    Ok(())
}

fn users_in(tx: &Read<'_>, range: &CountedRange, client_ip: &str) -> Result<u64> {
    let [before, after] = range.rest;
    tx.one(
        "select count(*) from ( \
         select user_id from access_log_users where client_ip = ?1 and period >= ?2 and period < ?3 \
         union select user_id from access_log \
         where client_ip = ?1 and at >= ?4 and at < ?5 and user_id is not null \
         union select user_id from access_log \
         where client_ip = ?1 and at >= ?6 and at < ?7 and user_id is not null) as seen",
        (client_ip, range.periods.0, range.periods.1, before.0, before.1, after.0, after.1),
        |row| row.get::<u32>(0).map(u64::from),
    )
}

/// Returns true if a client was refused where codes or passwords are sent or accepted. Token refreshes do not count:
/// several apps behind one address that refresh expired tokens are not an attack.
pub(super) fn is_failed_sign_in(route: Option<&str>, status: u16) -> bool {
    const SIGN_IN: [&str; 5] =
        ["/auth/send-code", "/auth/login", "/api/v1/auth/send-code", "/api/v1/auth/login", "/admin/login"];
    matches!(status, 401 | 403 | 429) && route.is_some_and(|route| SIGN_IN.contains(&route))
}

impl Tally {
    fn new(client_ip: &str, range: &CountedRange) -> Self {
        Self {
            client_ip: client_ip.to_owned(),
            requests: 0,
            failed: 0,
            failed_sign_ins: 0,
            users: 0,
            busiest_minute: 0,
            first_at: Timestamp(range.from),
            last_at: Timestamp(range.to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thresholds() -> SuspicionConfig {
        SuspicionConfig { failed_sign_ins: 10, failure_share: 50, distinct_users: 20, request_rate: 300, requests: 20 }
    }

    fn tally(requests: u64, failed: u64, failed_sign_ins: u64, users: u64, busiest_minute: u64) -> Tally {
        let mut tally = Tally::new("203.0.113.9", &CountedRange::of(0, 1, |_, _| Ok(false)).unwrap());
        (tally.requests, tally.failed, tally.failed_sign_ins) = (requests, failed, failed_sign_ins);
        (tally.users, tally.busiest_minute) = (users, busiest_minute);
        tally
    }

    #[test]
    fn a_reason_counts_from_its_threshold_and_twice_at_the_double() {
        let judge = |tally| suspect(tally, &thresholds()).map(|suspect| (suspect.score, suspect.reasons.len()));
        assert_eq!(judge(tally(100, 49, 9, 19, 299)), None);
        assert_eq!(judge(tally(100, 49, 10, 0, 1)), Some((25, 1)));
        assert_eq!(judge(tally(100, 49, 15, 0, 1)), Some((37, 1)));
        assert_eq!(judge(tally(100, 49, 500, 0, 1)), Some((50, 1)));
        assert_eq!(judge(tally(1000, 1000, 500, 100, 1000)), Some((100, 4)));
    }

    #[test]
    fn a_few_failures_are_no_share() {
        assert!(suspect(tally(19, 19, 0, 0, 19), &thresholds()).is_none());
        assert!(suspect(tally(20, 10, 0, 0, 20), &thresholds()).is_some());
    }

    #[test]
    fn a_threshold_of_zero_is_none() {
        let off =
            SuspicionConfig { failed_sign_ins: 0, failure_share: 0, distinct_users: 0, request_rate: 0, requests: 0 };
        assert!(suspect(tally(1000, 1000, 500, 100, 1000), &off).is_none());
    }

    #[test]
    fn failed_sign_ins_are_known_by_route_and_status() {
        for route in ["/auth/login", "/auth/send-code", "/api/v1/auth/login", "/admin/login"] {
            assert!(is_failed_sign_in(Some(route), 401), "{route}");
            assert!(!is_failed_sign_in(Some(route), 200) && !is_failed_sign_in(Some(route), 422), "{route}");
        }
        for route in ["/coin/balance", "/admin/payments", "/auth/refresh-token", "/api/v1/auth/refresh"] {
            assert!(!is_failed_sign_in(Some(route), 401), "{route}");
        }
        assert!(!is_failed_sign_in(None, 401));
    }

    #[test]
    fn a_range_is_whole_periods_and_the_rest() {
        let of = |from: i64, to: i64, entry: i64| {
            let range = CountedRange::of(from, to, |start, end| Ok((start..end).contains(&entry))).unwrap();
            (range.periods, range.rest)
        };
        let (start, end) = (PERIOD - 5, 3 * PERIOD + 5);
        assert_eq!(of(PERIOD, 3 * PERIOD, 7), ((1, 3), [(PERIOD, PERIOD), (3 * PERIOD, 3 * PERIOD)]));
        // Periods without entries outside the range are whole.
        assert_eq!(of(start, end, PERIOD), ((0, 4), [(start, start), (end, end)]));
        assert_eq!(of(start, end, 3), ((1, 4), [(start, PERIOD), (end, end)]));
        assert_eq!(of(start, end, end), ((0, 3), [(start, start), (3 * PERIOD, end)]));
        // A range inside one period.
        assert_eq!(of(7, 9, 8), ((0, 1), [(7, 7), (9, 9)]));
        assert_eq!(of(7, 9, 6), ((0, 0), [(7, 9), (9, 9)]));
        assert_eq!(of(7, 9, 9), ((0, 0), [(7, 9), (9, 9)]));
    }

    #[test]
    fn a_page_is_sorted_like_the_whole() {
        let all: Vec<u32> = (0..100).map(|number| number * 37 % 101).collect();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        for number in 1..=12 {
            let page = page_of(all.clone(), PageRequest { first: 1, number, size: 10 }, Ord::cmp);
            let expected: Vec<_> = sorted.chunks(10).nth(number as usize - 1).unwrap_or_default().to_vec();
            assert_eq!((page.items, page.total), (expected, 100));
        }
    }
}
