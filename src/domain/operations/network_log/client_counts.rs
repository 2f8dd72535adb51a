//! Counts of requests by client address in ten minutes, which reports add up instead of reading the entries.
//!
//! A batch of entries is added up in memory and then added to the stored counts. Triggers subtract deleted entries.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
};

use super::{
    Entry, clients,
    counted_days::{PERIOD, PERIODS_IN_DAY},
};
use crate::{error::Result, store::Write, types::UserId};

const MINUTE: i64 = 60 * 1000;
const MINUTES_IN_PERIOD: i64 = PERIOD / MINUTE;

/// The requests of a client address in a minute.
#[derive(Default)]
struct Counts {
    requests: i64,
    failed: i64,
    failed_sign_ins: i64,
}

/// Adds entries to the counts. A day that was counted as a whole is counted again.
pub(super) fn add_in(tx: &Write<'_>, entries: &[&Entry]) -> Result<()> {
    let mut minutes = BTreeMap::<(i64, IpAddr), Counts>::new();
    let mut users = BTreeSet::<(IpAddr, i64, UserId)>::new();
    for entry in entries {
        let minute = entry.at.0.div_euclid(MINUTE);
        let counts = minutes.entry((minute, entry.client)).or_default();
        counts.requests += 1;
        counts.failed += i64::from(entry.status >= 400);
        counts.failed_sign_ins += i64::from(clients::is_failed_sign_in(entry.route, entry.status));
        users.extend(entry.user.map(|user| (entry.client, minute / MINUTES_IN_PERIOD, user)));
    }
    let ids = client_ids_in(tx, minutes.keys().map(|(_, client)| *client))?;
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
            let period = minute / MINUTES_IN_PERIOD;
            (period, ids.get(client), counts.requests, counts.failed, counts.failed_sign_ins, *minute)
        }),
    )?;
    tx.execute_each(
        "insert into access_log_users (client_id, period, user_id) values (?1, ?2, ?3) \
         on conflict (client_id, period, user_id) do nothing",
        users.iter().map(|(client, period, user)| (ids.get(client), *period, user.0)),
    )?;
    let days: BTreeSet<_> = minutes.keys().map(|(minute, _)| minute / MINUTES_IN_PERIOD / PERIODS_IN_DAY).collect();
    tx.execute_each("delete from access_log_counted_days where day = ?1", days.iter().map(|day| [*day])).map(drop)
}

/// Returns the numbers of client addresses, and numbers new ones.
fn client_ids_in(tx: &Write<'_>, clients: impl Iterator<Item = IpAddr>) -> Result<HashMap<IpAddr, i64>> {
    let mut ids = HashMap::new();
    for client in clients {
        if ids.contains_key(&client) {
            continue;
        }
        let address = client.to_string();
        let find = "select id from access_log_addresses where client_ip = ?1";
        let id = match tx.first(find, [&address], |row| row.get(0))? {
            Some(id) => id,
            None => tx.insert("insert into access_log_addresses (client_ip) values (?1)", [&address])?,
        };
        ids.insert(client, id);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::insert_in, *};
    use crate::{
        clock::Clock,
        store::{SchemaPolicy, Store, Tuning},
        types::Timestamp,
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
            self.store.write(move |tx| insert_in(tx, &entries)).wait().unwrap();
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
            duration: Duration::from_millis(1),
            request_id: "request".to_owned(),
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
        let expected = "select at / 600000, length(client_ip), count(*), sum(status >= 400), sum(is_failed_sign_in), \
                        count(distinct user_id) from access_log group by at / 600000, client_ip \
                        order by at / 600000, client_ip";
        assert_eq!(fixture.rows::<6>(expected).len(), 3 * 4);
        assert_eq!(fixture.rows::<6>(stored), fixture.rows::<6>(expected));
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
