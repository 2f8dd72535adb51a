//! Counts of requests by client address in ten minutes, which reports add up instead of reading the entries.
//!
//! A batch of entries is added up in memory and then added to the stored counts, or subtracted from them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    Pace,
    blocks::{self, Map, PERIOD, Row},
    counted_days::PERIODS_IN_DAY,
};
use crate::{error::Result, store::Write};

const MINUTE: i64 = 60 * 1000;
const MINUTES_IN_PERIOD: i64 = PERIOD / MINUTE;

/// Requests of a client address.
#[derive(Clone, Copy, Default)]
struct Counts {
    requests: i64,
    failed: i64,
    failed_sign_ins: i64,
}

impl Counts {
    fn add(&mut self, row: &Row<'_>) {
        self.requests += 1;
        self.failed += i64::from(row.is_failed());
        self.failed_sign_ins += i64::from(row.is_failed_sign_in());
    }
}

/// Adds entries to the counts. A day that was counted as a whole is counted again.
pub(super) fn add_in(tx: &Write<'_>, rows: &[Row<'_>], pace: &mut Pace) -> Result<()> {
    let mut minutes = Map::<(i64, &str), Counts>::default();
    let mut users = HashSet::<_, foldhash::fast::RandomState>::default();
    for row in rows {
        let minute = row.at.div_euclid(MINUTE);
        minutes.entry((minute, row.client)).or_default().add(row);
        users.extend(row.user.map(|user| (row.client, minute.div_euclid(MINUTES_IN_PERIOD), user)));
    }
    let mut minutes: Vec<_> = minutes.into_iter().collect();
    minutes.sort_unstable_by_key(|(key, _)| *key);
    let ids = client_ids_in(tx, minutes.iter().map(|((_, client), _)| *client))?;
    tx.execute_each(
        "insert into access_log_clients (period, client_id, requests, failed, failed_sign_ins, users, busiest_minute, \
         last_minute, last_minute_requests) values (?1, ?2, ?3, ?4, ?5, 0, ?3, ?6, ?3) \
         on conflict (period, client_id) do update set \
         requests = access_log_clients.requests + excluded.requests, \
         failed = access_log_clients.failed + excluded.failed, \
         failed_sign_ins = access_log_clients.failed_sign_ins + excluded.failed_sign_ins, \
         busiest_minute = case \
         when access_log_clients.last_minute = excluded.last_minute \
         and access_log_clients.last_minute_requests + excluded.requests > access_log_clients.busiest_minute \
         then access_log_clients.last_minute_requests + excluded.requests \
         when access_log_clients.last_minute <> excluded.last_minute \
         and excluded.requests > access_log_clients.busiest_minute then excluded.requests \
         else access_log_clients.busiest_minute end, \
         last_minute_requests = case when access_log_clients.last_minute = excluded.last_minute \
         then access_log_clients.last_minute_requests + excluded.requests else excluded.requests end, \
         last_minute = excluded.last_minute",
        minutes.iter().map(|((minute, client), counts)| {
            pace.rest();
            let period = minute.div_euclid(MINUTES_IN_PERIOD);
            (period, ids.get(client), counts.requests, counts.failed, counts.failed_sign_ins, *minute)
        }),
    )?;
    tx.execute_each(
        "insert into access_log_users (client_id, period, user_id) values (?1, ?2, ?3) \
         on conflict (client_id, period, user_id) do nothing",
        users.into_iter().map(|(client, period, user)| {
            pace.rest();
            (ids.get(client), period, user)
        }),
    )?;
    let days: BTreeSet<_> =
        minutes.iter().map(|((minute, _), _)| day_of(minute.div_euclid(MINUTES_IN_PERIOD))).collect();
    tx.execute_each("delete from access_log_counted_days where day = ?1", days.iter().map(|day| [*day])).map(drop)
}

fn day_of(period: i64) -> i64 {
    period.div_euclid(PERIODS_IN_DAY)
}

/// Returns the numbers of client addresses, and numbers new ones.
fn client_ids_in<'text>(tx: &Write<'_>, clients: impl Iterator<Item = &'text str>) -> Result<HashMap<&'text str, i64>> {
    let mut ids = HashMap::new();
    for client in clients {
        if ids.contains_key(client) {
            continue;
        }
        let find = "select id from access_log_addresses where client_ip = ?1";
        let id = match tx.first(find, [client], |row| row.get(0))? {
            Some(id) => id,
            None => tx.insert("insert into access_log_addresses (client_ip) values (?1)", [client])?,
        };
        ids.insert(client, id);
    }
    Ok(ids)
}

/// Deletes the entries of a block that are not kept, with their counts, and returns their number.
pub(super) fn delete_in(tx: &Write<'_>, block: i64, is_kept: impl Fn(&Row<'_>) -> bool) -> Result<usize> {
    let subtract = |deleted: &[Row<'_>], pace: &mut Pace| subtract_in(tx, blocks::period_of(block), deleted, pace);
    blocks::delete_in(tx, block, is_kept, subtract)
}

/// Subtracts deleted entries of a period. A user still counts for an address as long as a block has entries of both.
fn subtract_in(tx: &Write<'_>, period: i64, deleted: &[Row<'_>], pace: &mut Pace) -> Result<()> {
    let mut clients = Map::<&str, Counts>::default();
    let mut users = HashSet::<_, foldhash::fast::RandomState>::default();
    for row in deleted {
        clients.entry(row.client).or_default().add(row);
        users.extend(row.user.map(|user| (row.client, user)));
    }
    let ids = client_ids_in(tx, clients.keys().copied())?;
    for (client, user) in users {
        pace.rest();
        subtract_user_in(tx, period, (client, ids.get(client).copied()), user)?;
    }
    for (client, counts) in clients {
        pace.rest();
        subtract_client_in(tx, period, ids.get(client).copied(), counts)?;
    }
    Ok(())
}

fn subtract_client_in(tx: &Write<'_>, period: i64, client: Option<i64>, counts: Counts) -> Result<()> {
    let Counts { requests, failed, failed_sign_ins } = counts;
    tx.execute(
        "update access_log_clients set requests = requests - ?3, failed = failed - ?4, \
         failed_sign_ins = failed_sign_ins - ?5 where period = ?1 and client_id = ?2",
        (period, client, requests, failed, failed_sign_ins),
    )?;
    tx.execute(
        "update access_log_days set requests = requests - ?3, failed = failed - ?4, \
         failed_sign_ins = failed_sign_ins - ?5 where day = ?1 and client_id = ?2",
        (day_of(period), client, requests, failed, failed_sign_ins),
    )?;
    let unused = "delete from access_log_clients where period = ?1 and client_id = ?2 and requests <= 0";
    tx.execute(unused, (period, client))?;
    let unused = "delete from access_log_days where day = ?1 and client_id = ?2 and requests <= 0";
    tx.execute(unused, (day_of(period), client))?;
    let unused = "delete from access_log_addresses where id = ?1 \
                  and not exists (select 1 from access_log_clients where client_id = ?1)";
    tx.execute(unused, [client]).map(drop)
}

fn subtract_user_in(tx: &Write<'_>, period: i64, (client, id): (&str, Option<i64>), user: i64) -> Result<()> {
    let day = day_of(period);
    for (is_day, periods) in [(false, (period, period + 1)), (true, (day * PERIODS_IN_DAY, (day + 1) * PERIODS_IN_DAY))]
    {
        let (is_left, is_left_here) = blocks::has_user_in(tx, user, client, periods)?;
        match (is_left, is_left_here, is_day) {
            (false, _, false) => {
                tx.execute("delete from access_log_users where user_id = ?1 and period = ?2", (user, period))?;
            }
            (false, _, true) => {
                tx.execute("delete from access_log_day_users where user_id = ?1 and day = ?2", (user, day))?;
            }
            (true, false, false) => {
                let sql = "delete from access_log_users where client_id = ?1 and period = ?2 and user_id = ?3";
                tx.execute(sql, (id, period, user))?;
            }
            (true, false, true) => {
                let sql = "delete from access_log_day_users where client_id = ?1 and day = ?2 and user_id = ?3";
                tx.execute(sql, (id, day, user))?;
            }
            (true, true, _) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::{Entry, EntryQueue, RequestId, insert_in};
    use crate::{
        clock::Clock,
        store::{SchemaPolicy, Store, Tuning},
        types::{Timestamp, UserId},
    };

    /// The beginning of a period.
    const START: i64 = 1_790_000_400_000;

    struct Fixture {
        store: Store,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("network-log.db");
            let store =
                Store::open_network_log(&path, &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
            Self { store, _directory: directory }
        }

        fn insert(&self, entries: Vec<Entry>) {
            self.store.write(move |tx| insert_in(tx, &[entries])).wait().unwrap();
        }

        fn rows<const COLUMNS: usize>(&self, sql: &str) -> Vec<[i64; COLUMNS]> {
            let row = |row: &crate::store::Row<'_>| {
                let mut columns = [0; COLUMNS];
                for (index, column) in columns.iter_mut().enumerate() {
                    *column = row.get(index)?;
                }
                Ok(columns)
            };
            self.store.read(|tx| tx.all(sql, (), row)).unwrap()
        }
    }

    fn entry(after_ms: i64, client: u8, user: Option<i64>, status: u16) -> Entry {
        Entry {
            at: Timestamp(START + after_ms),
            user: user.map(UserId),
            client: IpAddr::from([192, 0, 2, client]),
            method: "POST",
            route: Some("/auth/login"),
            status,
            duration_us: 1000,
            request_id: RequestId::from("request"),
        }
    }

    #[test]
    fn batches_add_up_to_the_entries() {
        let fixture = Fixture::new();
        let entries: Vec<_> = (0..1_000_i64)
            .map(|number| {
                let (client, user) = (u8::try_from(number % 4).unwrap(), (number % 3 > 0).then_some(number % 5));
                entry(number * 7_919 % 1_800_000, client, user, if number % 7 == 0 { 401 } else { 200 })
            })
            .collect();
        for batch in entries.chunks(170) {
            fixture.insert(batch.to_vec());
        }
        let stored = "select period, length(client_ip), requests, failed, failed_sign_ins, users from access_log_clients \
                      join access_log_addresses as addresses on addresses.id = client_id order by period, client_ip";
        let expected = "select at / 600000, length(client_ip), count(*), sum(status >= 400), sum(status >= 400), \
                        count(distinct user_id) from access_log group by at / 600000, client_ip \
                        order by at / 600000, client_ip";
        assert_eq!(fixture.rows::<6>(expected).len(), 3 * 4);
        assert_eq!(fixture.rows::<6>(stored), fixture.rows::<6>(expected));
    }

    /// The difference between two numbers of `ENTRIES`, under `valgrind --tool=callgrind`, is what entries cost.
    #[test]
    #[ignore = "measures under callgrind, with the environment variable ENTRIES"]
    fn measured_entries_are_queued_and_written() {
        let (fixture, queue) = (Fixture::new(), EntryQueue::default());
        let entries: i64 = std::env::var("ENTRIES").unwrap().parse().unwrap();
        for number in 0..entries {
            let user = 10_000 + number * 2_654_435_761 % 4_294_967_296 % 2000;
            let mut entry = entry(number / 80, 1, Some(user), 200);
            entry.request_id = RequestId::from(format!("9f86d081884c7d65{number:08x}").as_str());
            queue.push(entry);
            if number % 8192 == 8191 {
                let chunks = queue.take();
                queue.forget(8192);
                fixture.store.write_without_savepoint(move |tx| insert_in(tx, &chunks)).wait().unwrap();
            }
        }
        let stored = fixture.rows::<1>("select sum(entries) from access_log_blocks")[0][0];
        let bytes = fixture.store.require_file().unwrap().page_bytes().unwrap().used;
        assert!(stored > entries - 8192 && bytes < 150 * entries.unsigned_abs(), "{stored} entries in {bytes} bytes");
    }

    #[test]
    fn a_minute_is_counted_over_several_batches() {
        let fixture = Fixture::new();
        let busiest =
            || fixture.rows::<3>("select busiest_minute, last_minute_requests, requests from access_log_clients");
        fixture.insert(vec![entry(0, 1, None, 200), entry(1, 1, None, 200)]);
        assert_eq!(busiest(), [[2, 2, 2]]);
        fixture.insert(vec![entry(59_999, 1, None, 200), entry(60_000, 1, None, 200), entry(60_001, 1, None, 200)]);
        assert_eq!(busiest(), [[3, 2, 5]]);
        fixture.insert((0..4).map(|number| entry(119_000 + number, 1, None, 200)).collect());
        assert_eq!(busiest(), [[6, 6, 9]]);
    }

    #[test]
    fn a_late_entry_makes_its_day_uncounted() {
        let fixture = Fixture::new();
        fixture
            .store
            .write(|tx| {
                tx.execute("insert into access_log_counted_days (day) values (?1)", [START / 86_400_000]).map(drop)
            })
            .wait()
            .unwrap();
        fixture.insert(vec![entry(0, 1, None, 200)]);
        assert_eq!(fixture.rows::<1>("select count(*) from access_log_counted_days"), [[0]]);
    }
}
