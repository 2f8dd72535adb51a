//! Reports on client addresses: request counts and suspicious activity.
//!
//! A report reads the entries of its period once, in batches, so that no snapshot blocks checkpoints for long. Nothing
//! is stored, because an operator judges each suspicion.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use super::{
    blocks::{Kept, each_in},
    pieces::spans_in,
    search::Filter,
};
use crate::{
    config::Suspicion,
    core::Core,
    error::{Error, Fault, FieldCode, Result},
    types::{PageRequest, Timestamp, ensure_ordered},
};

/// The default periods of the two reports.
pub const COUNTED: Duration = DAY;
pub const SUSPECTED: Duration = Duration::from_hours(1);

/// The longest period of a report.
const LONGEST_DAYS: u32 = 31;
const DAY: Duration = Duration::from_hours(24);

/// Entries read in one snapshot.
const PIECE: i64 = 20_000;
const MINUTE: i64 = 60_000;
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

/// Returns the items of a page.
pub fn on_page<T>(all: Vec<T>, page: PageRequest) -> impl Iterator<Item = T> {
    all.into_iter().skip(usize::try_from(page.offset()).unwrap_or(usize::MAX)).take(page.size as usize)
}

/// Returns all client addresses of the period, busiest first. Blocks.
///
/// # Errors
/// Storage errors.
pub fn count(core: &Core, from: Timestamp, to: Timestamp) -> Result<Vec<Tally>> {
    let mut tallies = tally(core, from, to)?;
    tallies.sort_by(|one, other| other.requests.cmp(&one.requests).then_with(|| one.client_ip.cmp(&other.client_ip)));
    Ok(tallies)
}

/// Returns the suspicious client addresses of the period, highest score first. Blocks.
///
/// # Errors
/// Storage errors.
pub fn suspicious(core: &Core, from: Timestamp, to: Timestamp) -> Result<Vec<Suspect>> {
    let thresholds = &core.config.suspicion;
    let mut suspects: Vec<_> =
        tally(core, from, to)?.into_iter().filter_map(|tally| suspect(tally, thresholds)).collect();
    suspects
        .sort_by(|one, other| other.score.cmp(&one.score).then_with(|| other.tally.requests.cmp(&one.tally.requests)));
    Ok(suspects)
}

fn suspect(tally: Tally, thresholds: &Suspicion) -> Option<Suspect> {
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

/// The running counts of a client address.
struct Counting {
    tally: Tally,
    users: HashSet<i64>,
    minute: i64,
    in_minute: u64,
}

fn tally(core: &Core, from: Timestamp, to: Timestamp) -> Result<Vec<Tally>> {
    let filter = Filter { from, to, ..Filter::default() };
    let mut spans = core.store.read(|tx| spans_in(tx, &filter))?;
    // Oldest first, so that minutes come in order.
    spans.reverse();
    let mut counted: HashMap<String, Counting> = HashMap::new();
    for span in spans {
        let mut first = span.first;
        loop {
            let last = span.last.min(first.saturating_add(PIECE - 1));
            let seen = core.store.read(|tx| {
                each_in(tx, first, last, |_, entry| {
                    if filter.has_time(entry.at) {
                        take(&mut counted, entry);
                    }
                    Ok(())
                })
            })?;
            if seen == 0 || last == span.last {
                break;
            }
            first = last + 1;
        }
    }
    Ok(counted.into_values().map(Counting::finish).collect())
}

/// Returns true if the route sends or accepts codes or passwords. Token refreshes do not count: several apps behind one
/// address that refresh expired tokens are not an attack.
fn is_sign_in(route: &str) -> bool {
    const SIGN_IN: [&str; 5] =
        ["/auth/send-code", "/auth/login", "/api/v1/auth/send-code", "/api/v1/auth/login", "/admin/login"];
    SIGN_IN.contains(&route)
}

fn take(counted: &mut HashMap<String, Counting>, entry: &Kept<'_>) {
    let (at, status) = (entry.at, entry.status);
    let client_ip = entry.client_ip;
    let counting = match counted.get_mut(client_ip) {
        Some(counting) => counting,
        None => counted.entry(client_ip.to_owned()).or_insert_with(|| Counting::new(client_ip.to_owned(), at)),
    };
    let tally = &mut counting.tally;
    tally.requests += 1;
    tally.failed += u64::from(status >= 400);
    tally.failed_sign_ins += u64::from(entry.route.is_some_and(is_sign_in) && matches!(status, 401 | 403 | 429));
    tally.first_at = tally.first_at.min(at);
    tally.last_at = tally.last_at.max(at);
    counting.users.extend(entry.user);
    let minute = at.0.div_euclid(MINUTE);
    counting.in_minute = if minute == counting.minute { counting.in_minute + 1 } else { 1 };
    counting.minute = minute;
    tally.busiest_minute = tally.busiest_minute.max(counting.in_minute);
}

impl Counting {
    fn new(client_ip: String, at: Timestamp) -> Self {
        let tally = Tally {
            client_ip,
            requests: 0,
            failed: 0,
            failed_sign_ins: 0,
            users: 0,
            busiest_minute: 0,
            first_at: at,
            last_at: at,
        };
        Self { tally, users: HashSet::new(), minute: i64::MIN, in_minute: 0 }
    }

    fn finish(self) -> Tally {
        Tally { users: self.users.len() as u64, ..self.tally }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thresholds() -> Suspicion {
        Suspicion { failed_sign_ins: 10, failure_share: 50, distinct_users: 20, request_rate: 300, requests: 20 }
    }

    fn tally(requests: u64, failed: u64, failed_sign_ins: u64, users: u64, busiest_minute: u64) -> Tally {
        let mut tally = Counting::new("203.0.113.9".into(), Timestamp(0)).finish();
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
        let off = Suspicion { failed_sign_ins: 0, failure_share: 0, distinct_users: 0, request_rate: 0, requests: 0 };
        assert!(suspect(tally(1000, 1000, 500, 100, 1000), &off).is_none());
    }

    #[test]
    fn sign_ins_are_known_by_their_routes() {
        for route in ["/auth/login", "/auth/send-code", "/api/v1/auth/login", "/admin/login"] {
            assert!(is_sign_in(route), "{route}");
        }
        for route in ["/coin/balance", "/admin/payments", "/auth/refresh-token", "/api/v1/auth/refresh"] {
            assert!(!is_sign_in(route), "{route}");
        }
    }
}
