//! The writer of the network log: blocks of entries, a full queue, and a log of the first version of its schema.

use std::net::IpAddr;

use rusqlite::Connection;
use serde_json::{Value, json};
use yarrow::{
    domain::operations::network_log::{Entry, QUEUE_BYTES},
    types::{Timestamp, UserId},
};

use crate::support::{Request, Server, Setup, eventually};

const START: i64 = 1_767_225_600_000;

fn entry(at: i64, number: i64) -> Entry {
    let host = u8::try_from(number * number % 11).unwrap();
    Entry {
        at: Timestamp(at),
        user: (number % 3 == 0).then_some(UserId(10_000 + number % 7)),
        client: IpAddr::from([198, 51, 100, host]),
        method: "GET",
        route: Some(if number % 4 == 0 { "/coin/balance" } else { "/user/profile" }),
        status: if number % 5 == 0 { 404 } else { 200 },
        duration_us: 1500,
        request_id: format!("r-{number}").as_str().into(),
    }
}

fn record(server: &Server, entry: Entry) {
    server.app().unwrap().network_log.record(entry);
}

fn stored(server: &Server, condition: &str) -> i64 {
    let sql = "select coalesce(sum(entries), 0) from access_log_blocks";
    if condition.is_empty() {
        server.value(sql)
    } else {
        server.value(&format!("select count(*) from access_log where {condition}"))
    }
}

#[test]
fn searches_find_the_entries_of_full_blocks_page_by_page() {
    const ENTRIES: i64 = 9000;
    let server = Setup::default().with("RETENTION_ACCESS_LOG", "36500 days").start();
    let key = server.api_key("tests");
    // Several blocks of one period, and some of the next ones.
    (1..=ENTRIES).for_each(|number| record(&server, entry(START + 100 * number, number)));
    let end = START + 100 * (ENTRIES + 1);
    eventually("the entries are stored", || stored(&server, "request_id = 'r-9000'") == 1);
    assert_eq!(stored(&server, &format!("at < {end}")), ENTRIES);
    let database = server.network_log();
    let blocks: i64 = database.query_row("select count(*) from access_log_blocks", (), |row| row.get(0)).unwrap();
    assert!(blocks < 12, "{blocks}");
    let (early, late) = (START + 100_050, START + 700_000);
    for (path, condition) in [
        ("user/10003", "user_id = 10003"),
        ("user/10006?route=/coin/balance", "user_id = 10006 and route = '/coin/balance'"),
        ("ip/198.51.100.4", "client_ip = '198.51.100.4'"),
        ("ip/198.51.100.200", "client_ip = '198.51.100.200'"),
        ("failed", "status >= 400"),
        ("failed?route=/coin/balance", "status >= 400 and route = '/coin/balance'"),
        ("time-range", "1"),
        ("time-range?route=/coin/balance", "route = '/coin/balance'"),
        ("time-range?status=404", "status = 404"),
        ("time-range?status=200", "status = 200"),
        ("time-range?requestId=r-77", "request_id = 'r-77'"),
    ] {
        for (from, to) in [(0, end), (early, late), (late, end), (early, early + 5000), (late, late)] {
            for (page, size) in [(1, 20), (3, 100), (45, 100), (1000, 1)] {
                let separator = if path.contains('?') { '&' } else { '?' };
                let path = format!("{path}{separator}startTime={from}&endTime={to}&page={page}&size={size}");
                let found = server.get(&format!("/admin/network-logs/{path}")).token(&key).send().expect(200).json();
                let offset = (page - 1) * size;
                let sql = format!("from access_log where {condition} and at >= {from} and at < {to}");
                let ids = format!(
                    "select json_group_array(cast(id as text)) from \
                                   (select id {sql} order by at desc, id desc limit {size} offset {offset})"
                );
                let ids: String = database.query_row(&ids, (), |row| row.get(0)).unwrap();
                let total: i64 = database.query_row(&format!("select count(*) {sql}"), (), |row| row.get(0)).unwrap();
                let items: Vec<_> = found["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
                assert_eq!((json!(items), &found["total"]), (ids.parse().unwrap(), &json!(total)), "{path}");
                assert_eq!(found["unlisted"], json!([]));
            }
        }
    }
}

#[test]
fn few_requests_at_a_time_share_a_block_and_a_deletion_keeps_the_ids_of_others() {
    let server = Setup::default().with("RETENTION_ACCESS_LOG", "36500 days").start();
    for number in 1..=6 {
        record(&server, entry(START + number, number));
        eventually("the entry is stored", || stored(&server, &format!("request_id = 'r-{number}'")) == 1);
    }
    let of_period = "select count(*) || ' ' || sum(entries) || ' ' || sum(failed) from access_log_blocks \
                     where id / 1048576 = 1767225600000 / 600000";
    assert_eq!(server.value::<String>(of_period), "1 6 1");
    let ids = "select group_concat(id % 16384) from access_log where at < 1767225700000";
    assert_eq!(server.value::<String>(ids), "0,1,2,3,4,5");
    let keys = "select group_concat(key || ' ' || entries) from access_log_keys \
                where block / 1048576 = 1767225600000 / 600000 and substr(key, 1, 1) in ('u', 's')";
    assert_eq!(server.value::<String>(keys), "s404 1,u10003 1,u10006 1");
    // The user of two entries is deleted.
    let app = server.app().unwrap();
    app.core
        .store
        .write(|tx| yarrow::domain::operations::network_log::erasure::request_in(tx, UserId(10_003)))
        .wait()
        .unwrap();
    eventually("the user is erased", || stored(&server, "user_id = 10003") == 0);
    assert_eq!(server.value::<String>(ids), "0,1,3,4,5");
    assert_eq!(server.value::<String>(of_period), "1 5 1");
    assert_eq!(server.value::<String>(keys), "s404 1,u10006 1");
    assert_eq!(server.value::<i64>("select count(*) from access_log_users where user_id = 10003"), 0);
    record(&server, entry(START + 7, 7));
    eventually("the entry is stored", || stored(&server, "request_id = 'r-7'") == 1);
    assert_eq!(server.value::<String>(ids), "0,1,3,4,5,6");
}

#[test]
fn a_stuck_disk_delays_no_request_and_further_requests_are_counted_by_route() {
    let mut server = Setup::default().with_metrics().start();
    let (metrics, key, user) = (server.metrics(), server.api_key("tests"), server.sign_in("13800138000"));
    let from = server.app().unwrap().core.clock.now().0;
    let stuck = server.network_log();
    stuck.execute_batch("begin immediate").unwrap();
    let more = i64::try_from(QUEUE_BYTES / size_of::<Entry>()).unwrap();
    (0..more).for_each(|number| record(&server, entry(from, number)));
    // The disk is released only after all of them.
    for _ in 0..30 {
        server.get("/coin/balance").by(&user).send().expect(200);
    }
    server.get("/nowhere").send().expect(404);
    let told = Request::new("GET", &metrics).send().expect(200).text();
    let mut lines = told.lines();
    let dropped = lines.find_map(|line| line.strip_prefix("yarrow_network_log_dropped_total ")).unwrap();
    assert!((31..40).contains(&dropped.parse::<i64>().unwrap()), "{dropped}");
    stuck.execute_batch("rollback").unwrap();
    let range = format!("startTime={from}&endTime={}", from + 3_600_000);
    let listed = |path: &str| -> Value {
        server.get(&format!("/admin/network-logs/{path}?{range}")).token(&key).send().expect(200).json()
    };
    eventually("the counts are stored", || listed("time-range")["unlisted"] != json!([]));
    let unlisted = listed("time-range")["unlisted"].clone();
    // The queue had some entries before, so that the last of the test's found no space.
    let count = |route: Value| {
        let of_route = unlisted.as_array().unwrap().iter().find(|unlisted| unlisted["route"] == route);
        of_route.map_or(0, |unlisted| unlisted["count"].as_i64().unwrap())
    };
    let balances = count(json!("/coin/balance"));
    assert!((30..40).contains(&balances) && count(Value::Null) == 1, "{unlisted}");
    eventually("all that were queued are stored", || {
        let left_out = balances - 30 + count(json!("/user/profile"));
        stored(&server, "request_id like 'r-%'") == more - left_out
    });
    let unlisted = listed("count/ip")["unlisted"].clone();
    let printed = server.command(&["logs", "range", "--from", &from.to_string(), "--size", "1"]);
    assert_eq!(printed.expect(0).json()["unlisted"], unlisted);
    // What came too late has no entry, and requests are stored again.
    assert_eq!(stored(&server, "route = '/coin/balance' and request_id not like 'r-%'"), 0);
    server.get("/coin/balance").by(&user).send().expect(200);
    eventually("the next request is stored", || {
        stored(&server, "route = '/coin/balance' and request_id not like 'r-%'") == 1
    });
}

#[test]
fn nothing_is_lost_while_reports_read_the_log() {
    const ENTRIES: i64 = 40_000;
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let from = server.app().unwrap().core.clock.now().0;
    let range = format!("startTime={from}&endTime={}", from + 3_600_000);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..ENTRIES).for_each(|number| record(&server, entry(from + number / 40, number))));
        let mut reports = 0;
        while stored(&server, "") < ENTRIES {
            for report in ["count/ip", "suspicious", "time-range", "failed"] {
                server.get(&format!("/admin/network-logs/{report}?{range}")).token(&key).send().expect(200);
                reports += 1;
            }
        }
        assert!(reports > 0);
    });
    assert_eq!(server.app().unwrap().network_log.metrics.dropped.get(), 0);
    assert_eq!(stored(&server, "request_id like 'r-%'"), ENTRIES);
    let counted = "select sum(requests) || ' ' || sum(failed) from access_log_clients join access_log_addresses \
                   on access_log_addresses.id = client_id where client_ip like '198.%'";
    assert_eq!(server.value::<String>(counted), format!("{ENTRIES} {}", ENTRIES / 5));
}

#[test]
fn a_log_of_the_first_version_is_moved_into_blocks() {
    const ENTRIES: i64 = 5000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("network-log.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../../../network-log.sql")).unwrap();
    old.execute_batch("pragma application_id = 1497453132; pragma user_version = 1; pragma journal_mode = wal")
        .unwrap();
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    old.execute(
        "insert into access_log (at, user_id, client_ip, method, route, status, duration_us, request_id, is_failed_sign_in) \
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?2) \
         select ?1 + 1000 * n, case when n % 3 = 0 then 10000 + n % 7 end, '192.0.2.' || (n % 5), 'GET', '/user/profile', \
         case when n % 5 = 0 then 404 else 200 end, 7, 'old-' || n, 0 from numbers",
        (now.0 - 86_400_000, ENTRIES),
    )
    .unwrap();
    drop(old);
    let server = Setup::default().on(directory.path()).start();
    let key = server.api_key("tests");
    eventually("the entries are moved", || server.value::<i64>("select count(*) from access_log_unpacked") == 0);
    assert_eq!(stored(&server, "request_id like 'old-%'"), ENTRIES);
    let found = server.get("/admin/network-logs/user/10003?size=1").token(&key).send().expect(200).json();
    let expected = stored(&server, "user_id = 10003");
    assert!(expected > 200 && found["total"] == expected, "{found}");
    let found = server.get("/admin/network-logs/time-range?startTime=0&endTime=9999-01-01&requestId=old-77");
    assert_eq!(found.token(&key).send().expect(200).json()["items"][0]["clientIp"], "192.0.2.2");
}
