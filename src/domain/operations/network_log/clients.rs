//! Reports on client addresses: request counts and suspicious activity.
//!
//! A report adds up counts of days and of ten minutes, which the database keeps for each address. It reads entries only
//! where its time range begins or ends inside ten minutes. Nothing is stored, because an operator judges each suspicion.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    time::Duration,
};

use super::{
    NetworkLog,
    blocks::{self, Key, Order},
    counted_range::{CountedRange, Span},
};
use crate::{
    config::SuspicionConfig,
    error::{Error, Fault, FieldCode, Result},
    store::{Read, Row},
    types::{PageRequest, Paginated, Timestamp, ensure_ordered},
};

/// The default periods of the two reports.
pub const COUNTED: Duration = DAY;
pub const SUSPECTED: Duration = Duration::from_hours(1);

/// The longest period of a report: a month and the day after it.
const LONGEST_DAYS: u32 = 32;
const DAY: Duration = Duration::from_hours(24);

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
    /// Different users.
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
        let start = start.0;
        let message = (
            format!("must be at most {LONGEST_DAYS} days after `{start}`"),
            format!("距 `{start}` 最多 {LONGEST_DAYS} 天"),
        );
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
        let client = match client_ip.map(|client_ip| client_in(tx, client_ip)).transpose()? {
            Some(None) => return Ok(Paginated { items: Vec::new(), total: 0 }),
            client => client.flatten(),
        };
        let range = CountedRange::find_in(tx, from, to)?;
        let busiest = |(one, of_one): &(Client, Counts), (other, of_other): &(Client, Counts)| {
            of_other.requests.cmp(&of_one.requests).then_with(|| one.cmp(other))
        };
        let found = page_of(counts_in(tx, &range, client)?, page, busiest);
        let items = found.items.into_iter().map(|(client, counts)| tally_in(tx, &range, client, counts));
        Ok(Paginated { items: items.collect::<Result<_>>()?, total: found.total })
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
        for (client, mut counts) in counts_in(tx, &range, None)? {
            // The sum over days and periods may count a user several times.
            if thresholds.distinct_users > 0 && counts.users >= u64::from(thresholds.distinct_users) {
                counts.users = users_in(tx, &range, client)?;
            }
            let reasons = reasons(&counts, thresholds);
            if !reasons.is_empty() {
                suspects.push((score(&reasons), client, counts, reasons));
            }
        }
        let found = page_of(suspects, page, |one, other| {
            other.0.cmp(&one.0).then_with(|| other.2.requests.cmp(&one.2.requests)).then_with(|| one.1.cmp(&other.1))
        });
        let items = found.items.into_iter().map(|(score, client, counts, reasons)| {
            Ok(Suspect { tally: tally_in(tx, &range, client, counts)?, score, reasons })
        });
        Ok(Paginated { items: items.collect::<Result<_>>()?, total: found.total })
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

fn reasons(counts: &Counts, thresholds: &SuspicionConfig) -> Vec<Reason> {
    let is_enough = counts.requests >= u64::from(thresholds.requests);
    let share = if is_enough { 100 * counts.failed / counts.requests.max(1) } else { 0 };
    [
        ("failed_sign_ins", counts.failed_sign_ins, thresholds.failed_sign_ins),
        ("failure_share", share, thresholds.failure_share),
        ("distinct_users", counts.users, thresholds.distinct_users),
        ("request_rate", counts.busiest_minute, thresholds.request_rate),
    ]
    .into_iter()
    .map(|(code, value, threshold)| Reason { code, value, threshold: u64::from(threshold) })
    .filter(|reason| reason.threshold > 0 && reason.value >= reason.threshold)
    .collect()
}

fn score(reasons: &[Reason]) -> u64 {
    let points = |reason: &Reason| (POINTS * reason.value / reason.threshold).min(2 * POINTS);
    reasons.iter().map(points).sum::<u64>().min(HIGHEST_SCORE)
}

/// The number of a client address in `access_log_addresses`.
type Client = i64;

/// The sums of an address over a range.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    failed: u64,
    failed_sign_ins: u64,
    /// Users, each once for every day, period and minute in which it was counted.
    users: u64,
    busiest_minute: u64,
}

fn client_in(tx: &Read<'_>, client_ip: &str) -> Result<Option<Client>> {
    tx.first("select id from access_log_addresses where client_ip = ?1", [client_ip], |row| row.get(0))
}

/// Adds up the counts of each address, or of one.
fn counts_in(tx: &Read<'_>, range: &CountedRange, client: Option<Client>) -> Result<Vec<(Client, Counts)>> {
    let counts = "requests, failed, failed_sign_ins, users, busiest_minute";
    let of_client = if client.is_some() { " and client_id = ?3" } else { "" };
    let days = format!("select client_id, {counts} from access_log_days where day >= ?1 and day < ?2{of_client}");
    let periods =
        format!("select client_id, {counts} from access_log_clients where period >= ?1 and period < ?2{of_client}");
    let mut sums = HashMap::new();
    for (sql, spans) in [(days, &range.days), (periods, &range.periods)] {
        for &(start, end) in spans {
            let add = |row: &Row<'_>| add_row(&mut sums, row);
            match client {
                Some(client) => tx.each(&sql, (start, end, client), add)?,
                None => tx.each(&sql, (start, end), add)?,
            }
        }
    }
    for &span in &range.entries {
        add_entries_in(tx, &mut sums, span, client)?;
    }
    Ok(sums.into_iter().collect())
}

/// Adds up the entries of a time range, of each address or of one.
fn add_entries_in(tx: &Read<'_>, sums: &mut HashMap<Client, Counts>, span: Span, client: Option<Client>) -> Result<()> {
    let of_client = client.map(|client| address_in(tx, client)).transpose()?;
    let mut minutes = HashMap::<(String, i64), (Counts, HashSet<i64>)>::new();
    let key = of_client.as_deref().map_or(Key::All, Key::Client);
    blocks::each_row_in(tx, key, span, Order::OldestFirst, |_, row| {
        if of_client.as_deref().is_none_or(|client| client == row.client) {
            let (counts, users) = minutes.entry((row.client.to_owned(), row.at.div_euclid(60_000))).or_default();
            counts.requests += 1;
            counts.failed += u64::from(row.is_failed());
            counts.failed_sign_ins += u64::from(row.is_failed_sign_in());
            users.extend(row.user);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for ((address, _), (counts, users)) in minutes {
        if let Some(client) = client_in(tx, &address)? {
            let (users, busiest_minute) = (users.len() as u64, counts.requests);
            sums.entry(client).or_default().add(Counts { users, busiest_minute, ..counts });
        }
    }
    Ok(())
}

fn add_row(sums: &mut HashMap<Client, Counts>, row: &Row<'_>) -> Result<()> {
    let count = |column| row.get::<u32>(column).map(u64::from);
    let (requests, failed, failed_sign_ins) = (count(1)?, count(2)?, count(3)?);
    let (users, busiest_minute) = (count(4)?, count(5)?);
    sums.entry(row.get(0)?).or_default().add(Counts { requests, failed, failed_sign_ins, users, busiest_minute });
    Ok(())
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.failed_sign_ins += other.failed_sign_ins;
        self.users += other.users;
        self.busiest_minute = self.busiest_minute.max(other.busiest_minute);
    }
}

fn address_in(tx: &Read<'_>, client: Client) -> Result<String> {
    tx.one("select client_ip from access_log_addresses where id = ?1", [client], |row| row.get(0))
}

/// Adds the address, the exact number of its users, and the times of its first and last request.
fn tally_in(tx: &Read<'_>, range: &CountedRange, client: Client, counts: Counts) -> Result<Tally> {
    let client_ip = address_in(tx, client)?;
    let at = |order| -> Result<Option<i64>> {
        let mut at = None;
        blocks::each_row_in(tx, Key::Client(&client_ip), (range.from, range.to), order, |_, row| {
            at = Some(row.at).filter(|_| row.client == client_ip);
            Ok(if at.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(at)
    };
    let (first, last) = (at(Order::OldestFirst)?, at(Order::NewestFirst)?);
    Ok(Tally {
        requests: counts.requests,
        failed: counts.failed,
        failed_sign_ins: counts.failed_sign_ins,
        users: users_in(tx, range, client)?,
        busiest_minute: counts.busiest_minute,
        first_at: Timestamp(first.unwrap_or(range.from)),
        last_at: Timestamp(last.unwrap_or(range.to)),
        client_ip,
    })
}

/// Counts the different users of an address.
fn users_in(tx: &Read<'_>, range: &CountedRange, client: Client) -> Result<u64> {
    let days = "select user_id from access_log_day_users where client_id = ?1 and day >= ?2 and day < ?3";
    let periods = "select user_id from access_log_users where client_id = ?1 and period >= ?2 and period < ?3";
    let spans: [(&str, &[Span]); 2] = [(days, &range.days), (periods, &range.periods)];
    let mut users = HashSet::new();
    for (sql, spans) in spans {
        for &(start, end) in spans {
            tx.each(sql, (client, start, end), |row| {
                users.insert(row.get::<i64>(0)?);
                Ok(())
            })?;
        }
    }
    let client_ip = address_in(tx, client)?;
    for &span in &range.entries {
        blocks::each_row_in(tx, Key::Client(&client_ip), span, Order::OldestFirst, |_, row| {
            users.extend(row.user.filter(|_| row.client == client_ip));
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(users.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thresholds() -> SuspicionConfig {
        SuspicionConfig { failed_sign_ins: 10, failure_share: 50, distinct_users: 20, request_rate: 300, requests: 20 }
    }

    fn counts(requests: u64, failed: u64, failed_sign_ins: u64, users: u64, busiest_minute: u64) -> Counts {
        Counts { requests, failed, failed_sign_ins, users, busiest_minute }
    }

    #[test]
    fn a_reason_counts_from_its_threshold_and_twice_at_the_double() {
        let judge = |counts: Counts| {
            let reasons = reasons(&counts, &thresholds());
            (score(&reasons), reasons.len())
        };
        assert_eq!(judge(counts(100, 49, 9, 19, 299)), (0, 0));
        assert_eq!(judge(counts(100, 49, 10, 0, 1)), (25, 1));
        assert_eq!(judge(counts(100, 49, 15, 0, 1)), (37, 1));
        assert_eq!(judge(counts(100, 49, 500, 0, 1)), (50, 1));
        assert_eq!(judge(counts(1000, 1000, 500, 100, 1000)), (100, 4));
    }

    #[test]
    fn a_few_failures_are_no_share() {
        assert!(reasons(&counts(19, 19, 0, 0, 19), &thresholds()).is_empty());
        assert_eq!(reasons(&counts(20, 10, 0, 0, 20), &thresholds()).len(), 1);
    }

    #[test]
    fn a_threshold_of_zero_is_none() {
        let off =
            SuspicionConfig { failed_sign_ins: 0, failure_share: 0, distinct_users: 0, request_rate: 0, requests: 0 };
        assert!(reasons(&counts(1000, 1000, 500, 100, 1000), &off).is_empty());
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
