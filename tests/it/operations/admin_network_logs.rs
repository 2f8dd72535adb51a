//! `/admin/network-logs`: search, reports and commands.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{
    Binary, Caller, CommandOutput, Request, Response, Server, Setup, eventually, log_statement, soon,
};

/// The number of test entries.
const ENTRIES: i64 = 20_000;
const START: i64 = 1_767_225_600_000;

fn get(server: &Server, key: &str, path: &str) -> Response {
    server.get(&format!("/admin/network-logs/{path}")).token(key).send()
}

/// Replaces all entries by `count` ones, one a second. Users, addresses and statuses derive from their number.
fn fill(database: &Connection, start: i64, count: i64) {
    let fill = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?2) \
                select ?1 + 1000 * n, case when n % 3 = 0 then 10000 + n % 7 end, \
                '198.51.100.' || (n * n % 11), 'GET', '/user/profile', case when n % 5 = 0 then 404 else 200 end, \
                1500, 'r-' || n from numbers";
    database.execute_batch("begin immediate; delete from access_log").unwrap();
    database.execute(&log_statement(fill), (start, count)).unwrap();
    database.execute_batch("commit").unwrap();
}

/// Returns ids and total from plain SQL.
fn truth(database: &Connection, condition: &str, page: i64, size: i64) -> (Vec<i64>, i64) {
    let offset = (page - 1) * size;
    let sql =
        format!("select id from access_log where {condition} order by at desc, id desc limit {size} offset {offset}");
    let mut statement = database.prepare(&sql).unwrap();
    let ids = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let total = format!("select count(*) from access_log where {condition}");
    (ids, database.query_row(&total, [], |row| row.get(0)).unwrap())
}

fn found(response: &Value) -> (Vec<i64>, i64) {
    let ids = response["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap().parse().unwrap())
        .collect();
    (ids, response["total"].as_i64().unwrap())
}

#[test]
fn every_search_returns_the_matching_entries_page_by_page() {
    let server = Setup::default().with("RETENTION_ACCESS_LOG", "36500 days").start();
    let key = server.api_key("tests");
    let database = server.network_log();
    fill(&database, START, ENTRIES);
    // Requests of this test come later, so that all searches end before them.
    let end = START + 1000 * (ENTRIES + 1);
    let (early, late) = (START + 1_000_000, START + 17_500_500);
    let searches = [
        ("user/10003", "user_id = 10003"),
        ("user/10006", "user_id = 10006"),
        ("user/10009", "user_id = 10009"),
        ("ip/198.51.100.4", "client_ip = '198.51.100.4'"),
        ("ip/198.51.100.200", "client_ip = '198.51.100.200'"),
        ("failed", "status >= 400"),
        ("time-range", "1"),
    ];
    let mut pages = 0;
    for (path, condition) in searches {
        for (from, to) in [(0, end), (early, late), (late, end), (early, early + 5000), (late, late)] {
            let condition = format!("{condition} and at >= {from} and at < {to}");
            for (page, size) in [(1, 20), (2, 100), (40, 50), (190, 100), (1000, 1)] {
                let path = format!("{path}?startTime={from}&endTime={to}&page={page}&size={size}");
                let response = get(&server, &key, &path).expect(200).json();
                assert_eq!(found(&response), truth(&database, &condition, page, size), "{path}");
                pages += 1;
            }
        }
    }
    assert_eq!(pages, 7 * 5 * 5);
    let response = get(&server, &key, &format!("user/10003?endTime={end}&size=1")).expect(200).json();
    let newest = &response["items"][0];
    let expected = json!({
        "id": newest["id"], "time": newest["time"], "userId": "10003", "clientIp": newest["clientIp"], "method": "GET",
        "route": "/user/profile", "status": newest["status"], "success": newest["status"] == 200, "durationMs": 1.5,
        "requestId": newest["requestId"],
    });
    assert_eq!(newest, &expected);
    // The command returns the same document.
    let user = server.command(&["logs", "user", "10003", "--to", &end.to_string(), "--size", "1"]).expect(0).json();
    assert_eq!(user, response);
}

#[test]
fn a_cleanup_deletes_what_is_older_and_its_counts() {
    let server = Setup::default().with("RETENTION_ACCESS_LOG", "36500 days").start();
    let key = server.api_key("tests");
    let database = server.network_log();
    let day = 24 * 3600 * 1000;
    let now: i64 = server.value("select cast(unixepoch() * 1000 as integer)");
    // The 10 000th entry is ten days and a second old.
    let start = now - 10 * day - 1000 - 10_000_000;
    fill(&database, start, ENTRIES);
    let deleted = server.request("DELETE", "/admin/network-logs/cleanup").token(&key);
    let deleted = deleted.form(&[("daysToKeep", "10")]).send().expect(200).json();
    let expected = deleted["deleted"].as_i64().unwrap();
    assert!((10_000..10_060).contains(&expected), "{deleted}");
    let end = start + 1000 * (ENTRIES + 1);
    let left = truth(&database, &format!("user_id = 10003 and at < {end}"), 1, 20);
    assert!(left.1 > 0);
    assert_eq!(found(&get(&server, &key, &format!("user/10003?endTime={end}")).expect(200).json()), left);
    // The counts are those of the remaining entries.
    let counted = get(&server, &key, &format!("count/ip?startTime={start}&endTime={end}&size=100")).expect(200).json();
    let sum = |member: &str| -> i64 {
        counted["items"].as_array().unwrap().iter().map(|item| item[member].as_i64().unwrap()).sum()
    };
    let failed = truth(&database, &format!("status >= 400 and at < {end}"), 1, 1).1;
    assert_eq!((sum("count"), sum("failed")), (ENTRIES - expected, failed));
}

#[test]
fn counting_stops_and_pages_beyond_it_are_refused() {
    const COUNTED: i64 = 100_000;
    let server = Setup::default().with("RETENTION_ACCESS_LOG", "36500 days").start();
    let key = server.api_key("tests");
    fill(&server.network_log(), START, COUNTED + 7);
    let end = START + 1000 * (COUNTED + 8);
    let time = |more: &str| get(&server, &key, &format!("time-range?startTime=0&endTime={end}&{more}"));
    assert_eq!(time("size=1").expect(200).json()["total"], COUNTED);
    let last = time("page=1000&size=100").expect(200).json();
    assert_eq!(last["items"].as_array().unwrap().len(), 100);
    time("page=1001&size=100").expect_fields(&[("page", "out_of_range")]);
    // A shorter range is counted to its end, and has no page beyond it.
    let short = format!("time-range?startTime=0&endTime={}&page=1001&size=100", end - 8000);
    assert_eq!(get(&server, &key, &short).expect(200).json()["total"], COUNTED - 1);
    let mut command = Binary::command();
    command.args(["logs", "range", "--from", "0", "--size", "1", "--to", &end.to_string(), "--data-dir"]);
    let text = command.arg(server.directory()).output().unwrap().stdout;
    assert!(String::from_utf8(text).unwrap().contains("100000"));
}

#[test]
fn finds_the_log_of_a_request_by_user_and_address() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    for _ in 0..3 {
        let seen = server.get("/coin/balance").by(&user).header("x-forwarded-for", "203.0.113.9");
        seen.header("x-request-id", "seen-by-log").send().expect(200);
    }
    server.get("/coin/balance?userId=999999").by(&user).header("x-forwarded-for", "2001:DB8::7").send().expect(403);
    let of_user = format!("user/{}", user.user_id);
    eventually("the request is in the log", || found(&get(&server, &key, &of_user).expect(200).json()).1 == 4);
    let logged = get(&server, &key, "ip/203.0.113.9").expect(200).json();
    assert_eq!(logged["total"], 3);
    assert_eq!(logged["items"][0]["userId"], user.user_id);
    assert_eq!(logged["items"][0]["route"], "/coin/balance");
    assert_eq!(logged["items"][0]["requestId"], "seen-by-log");
    assert_eq!(logged["items"][0]["success"], true);
    // An address has many spellings.
    for spelling in ["2001:db8::7", "2001:0DB8:0:0:0:0:0:7", "2001%3Adb8%3A%3A7"] {
        let logged = get(&server, &key, &format!("ip/{spelling}")).expect(200).json();
        assert_eq!((&logged["total"], &logged["items"][0]["status"]), (&json!(1), &json!(403)), "{spelling}");
    }
    assert_eq!(get(&server, &key, "ip/::ffff:203.0.113.9").expect(200).json()["total"], 3);
    let failed = get(&server, &key, "failed").expect(200).json();
    assert_eq!(failed["items"][0]["status"], 403);
    assert!(failed["items"].as_array().unwrap().iter().all(|item| item["success"] == false));
    // The log contains no paths and thus no phone numbers.
    server.get("/divination-history/count/13800138000").by(&user).send().expect(200);
    eventually("the request is in the log", || found(&get(&server, &key, &of_user).expect(200).json()).1 == 5);
    assert!(!get(&server, &key, &of_user).expect(200).text().contains("13800138000"));

    let audited = server.command(&["audit", "--user", &user.user_id]).expect(0).json();
    assert_eq!(audited["items"][0]["action"], "GET /admin/network-logs/user/{userId}");
}

#[track_caller]
/// Inserts recent requests of one address. The newest end a whole minute, so that close ones share it.
fn requests(database: &Connection, client_ip: &str, count: i64, route: &str, status: u16, users: i64, apart_ms: i64) {
    let sql = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?1) \
               select ?6 - n * ?7, case when ?5 > 0 then n % max(?5, 1) end, ?2, 'POST', ?3, ?4, 1, 'x' \
               from numbers";
    let newest = "select coalesce(max(at), 0) from access_log";
    let now: i64 = database.query_row(newest, [], |row| row.get(0)).unwrap();
    let minute = now / 60_000 * 60_000;
    let values = rusqlite::params![count, client_ip, route, status, users, minute, apart_ms];
    database.execute(&log_statement(sql), values).unwrap();
}

#[test]
fn lists_suspicious_addresses_with_reasons_worst_first() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let database = server.network_log();
    server.get("/healthz").send().expect(200);
    eventually("the request is in the log", || {
        database.query_row("select count(*) from access_log", [], |row| row.get::<_, i64>(0)).unwrap() > 0
    });
    requests(&database, "203.0.113.1", 12, "/auth/login", 401, 0, 1000);
    requests(&database, "203.0.113.1", 13, "/user/profile", 200, 1, 1000);
    requests(&database, "203.0.113.2", 60, "/user/profile", 200, 40, 100);
    requests(&database, "203.0.113.3", 30, "/nowhere", 404, 0, 1000);
    requests(&database, "203.0.113.4", 700, "/user/profile", 200, 1, 1);
    requests(&database, "203.0.113.5", 19, "/nowhere", 404, 0, 1000);
    requests(&database, "203.0.113.6", 250, "/user/profile", 200, 19, 1000);
    requests(&database, "203.0.113.7", 40, "/api/v1/auth/login", 401, 0, 1000);
    let found = get(&server, &key, "suspicious").expect(200).json();
    let suspects: Vec<_> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let reasons: Vec<_> = item["reasons"].as_array().unwrap().iter().map(|reason| &reason["code"]).collect();
            json!([item["clientIp"], item["score"], reasons])
        })
        .collect();
    let expected = [
        json!(["203.0.113.7", 100, ["failed_sign_ins", "failure_share"]]),
        json!(["203.0.113.4", 50, ["request_rate"]]),
        json!(["203.0.113.2", 50, ["distinct_users"]]),
        json!(["203.0.113.3", 50, ["failure_share"]]),
        json!(["203.0.113.1", 30, ["failed_sign_ins"]]),
    ];
    assert_eq!(suspects, expected);
    assert_eq!(found["total"], 5);
    let second = get(&server, &key, "suspicious?page=2&size=2").expect(200).json();
    assert_eq!(second["items"][0]["clientIp"], "203.0.113.2");
    assert_eq!(second["items"][0]["reasons"][0], json!({ "code": "distinct_users", "value": 40, "threshold": 20 }));
    // Nothing happened before.
    assert_eq!(get(&server, &key, "suspicious?endTime=2026-01-01").expect(200).json()["total"], 0);

    let counted = get(&server, &key, "count/ip?size=3").expect(200).json();
    let counts: Vec<_> = counted["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| json!([item["clientIp"], item["count"], item["failed"], item["users"]]))
        .collect();
    assert_eq!(counts[..2], [json!(["203.0.113.4", 700, 0, 1]), json!(["203.0.113.6", 250, 0, 19])]);
    assert_eq!(counted["total"], 8);
    let one = get(&server, &key, "count/ip?clientIp=203.0.113.6").expect(200).json();
    assert_eq!((&one["items"], &one["total"]), (&json!([counted["items"][1]]), &json!(1)));
    assert_eq!(get(&server, &key, "count/ip?clientIp=203.0.113.99").expect(200).json()["total"], 0);
}

/// Compares the counts of all addresses in a range, and of one, with plain SQL over the entries.
#[track_caller]
fn expect_counts(server: &Server, key: &str, (from, to): (i64, i64)) {
    let time = format!("startTime={from}&endTime={to}");
    let sql = format!(
        "select client_ip, count(*), sum(status >= 400), count(distinct user_id), min(at), max(at) from access_log \
         where at >= {from} and at < {to} group by client_ip order by client_ip"
    );
    let database = server.network_log();
    let mut statement = database.prepare(&sql).unwrap();
    let expected = statement.query_map([], |row| {
        let at = |column| row.get(column).map(|at| yarrow::types::Timestamp(at).to_string());
        let count = |column| row.get::<_, i64>(column);
        Ok(json!({
            "clientIp": row.get::<_, String>(0)?, "count": count(1)?, "failed": count(2)?, "users": count(3)?,
            "firstAt": at(4)?, "lastAt": at(5)?,
        }))
    });
    let expected: Vec<_> = expected.unwrap().map(Result::unwrap).collect();
    let counted = get(server, key, &format!("count/ip?{time}&size=100")).expect(200).json();
    let mut items = counted["items"].as_array().unwrap().clone();
    assert!(items.is_sorted_by_key(|item| std::cmp::Reverse(item["count"].as_i64().unwrap())), "{counted}");
    items.sort_by_key(|item| item["clientIp"].as_str().unwrap().to_owned());
    assert_eq!(items, expected, "{time}");
    assert_eq!(counted["total"], expected.len());
    for one in [expected.first(), expected.last()].into_iter().flatten() {
        let path = format!("count/ip?{time}&clientIp={}", one["clientIp"].as_str().unwrap());
        let found = get(server, key, &path).expect(200).json();
        assert_eq!((&found["items"], &found["total"]), (&json!([one]), &json!(1)), "{path}");
    }
    let nobody = get(server, key, &format!("count/ip?{time}&clientIp=192.0.2.77")).expect(200).json();
    assert_eq!((&nobody["items"], &nobody["total"]), (&json!([]), &json!(0)));
}

/// Waits until all whole days between the first entry's and today are counted.
fn expect_counted_days(server: &Server) {
    let uncounted = "with recursive days (day) as (select (select min(at) from access_log) / 86400000 union all \
                     select day + 1 from days where day < (unixepoch() - 300) / 86400 - 1) \
                     select count(*) from days where day not in (select day from access_log_counted_days)";
    // One day in half a second.
    soon("all days are counted", Duration::from_mins(5), || server.value::<i64>(uncounted) == 0);
}

#[test]
fn counts_of_days_are_those_of_their_entries() {
    const HOURS: i64 = 3_600_000;
    const DAYS: i64 = 24 * HOURS;
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in_by_email("ada@example.com");
    let database = server.network_log();
    let now: i64 = server.value("select cast(unixepoch() * 1000 as integer)");
    let today = now / DAYS * DAYS;
    // One entry in about three minutes of forty days, of seven users. The first of them is the one who signed in.
    let first_user: i64 = user.user_id.parse().unwrap();
    let fill = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 20000) \
                select ?1 + 172800 * n, case when n % 3 = 0 then ?2 + n % 7 end, '198.51.100.' || (n * n % 11), 'GET', \
                '/user/profile', case when n % 5 = 0 then 404 else 200 end, 1500, 'r-' || n from numbers";
    database.execute(&log_statement(fill), (today - 41 * DAYS, first_user)).unwrap();
    expect_counted_days(&server);
    let ranges = [
        (today - 30 * DAYS, today),
        (today - 31 * DAYS + 5, today - 1),
        (today - 40 * DAYS - 7 * HOURS, today - 12 * DAYS + HOURS + 1),
        (today - 45 * DAYS, today - 20 * DAYS),
        (today - 3 * DAYS, today - 2 * DAYS),
        (today - 5 * HOURS, today),
        (today - 2 * DAYS + 1, today - 2 * DAYS + 2),
    ];
    let expect_all = || ranges.iter().for_each(|range| expect_counts(&server, &key, *range));
    expect_all();
    // A report over the counted days reads none of the ten minutes.
    server
        .edit(&format!("update access_log_clients set requests = requests + 1000 where period < {}", today / 600_000));
    expect_counts(&server, &key, (today - 30 * DAYS, today - DAYS));
    server
        .edit(&format!("update access_log_clients set requests = requests - 1000 where period < {}", today / 600_000));
    let clean_up = |days: &str| server.command(&["logs", "cleanup", "--days-to-keep", days, "--yes"]).expect(0).json();
    assert!(clean_up("38")["deleted"].as_i64().unwrap() > 500);
    expect_all();
    // Entries that come late, of a known and of a new address.
    for (days, client_ip) in [(9, "198.51.100.4"), (7, "203.0.113.200"), (7, "203.0.113.200"), (6, "198.51.100.1")] {
        let late =
            format!("select {}, 77, '{client_ip}', 'GET', '/healthz', 503, 1, 'late'", today - days * DAYS - 1000);
        server.edit(&log_statement(&late));
        expect_counts(&server, &key, ranges[0]);
    }
    expect_counted_days(&server);
    expect_all();
    // The user's entries are erased, with the days and the addresses that only they used.
    let own = format!("select {}, {first_user}, '203.0.113.9', 'GET', '/healthz', 200, 1, 'own'", today - 9 * DAYS);
    server.edit(&log_statement(&own));
    expect_counted_days(&server);
    let of_user = || -> i64 {
        let tables = ["access_log", "access_log_users", "access_log_day_users"];
        tables
            .map(|table| server.value::<i64>(&format!("select count(*) from {table} where user_id = {first_user}")))
            .iter()
            .sum()
    };
    assert!(of_user() > 500, "{}", of_user());
    server.delete("/api/v1/account").by(&user).send().expect(204);
    let deletion = "select count(*) from access_log where route = '/api/v1/account'";
    eventually("the user is erased", || of_user() == 0 && server.value::<i64>(deletion) == 0);
    assert_eq!(server.value::<i64>("select count(*) from access_log_addresses where client_ip = '203.0.113.9'"), 0);
    expect_all();
    // Nothing is left of deleted entries.
    clean_up("1");
    let addresses = "select count(*) from access_log_addresses where client_ip like '198.51.100.%'";
    assert_eq!(server.value::<i64>(addresses), 0);
    for table in ["clients", "users", "days", "day_users"] {
        let left = format!(
            "select count(*) from access_log_{table} as counted \
                            where client_id not in (select id from access_log_addresses)"
        );
        assert_eq!(server.value::<i64>(&left), 0, "{table}");
    }
    let keys = "select count(*) from access_log_keys where block not in (select id from access_log_blocks)";
    assert_eq!(server.value::<i64>(keys), 0);
}

#[test]
fn rejects_invalid_parameters() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    get(&server, &key, "user/nobody").expect_fields(&[("userId", "invalid_format")]);
    get(&server, &key, "ip/300.1.1.1").expect_fields(&[("clientIp", "invalid_format")]);
    get(&server, &key, "time-range").expect_fields(&[("startTime", "required"), ("endTime", "required")]);
    let bad = "time-range?startTime=soon&endTime=2026-01-01&page=0&size=101";
    let fields = [("startTime", "invalid_format"), ("page", "out_of_range"), ("size", "out_of_range")];
    get(&server, &key, bad).expect_fields(&fields);
    for path in ["time-range", "failed", "suspicious", "count/ip", "user/1", "ip/::1"] {
        let backwards = format!("{path}?startTime=2026-01-02&endTime=2026-01-01");
        get(&server, &key, &backwards).expect_fields(&[("endTime", "out_of_range")]);
    }
    for path in ["suspicious", "count/ip"] {
        let long = format!("{path}?startTime=2026-01-01&endTime=2026-02-02");
        get(&server, &key, &long).expect_fields(&[("endTime", "out_of_range")]);
    }
    for (days, code) in [
        ("0", "out_of_range"),
        ("36501", "out_of_range"),
        ("-1", "out_of_range"),
        ("99999999999", "out_of_range"),
        ("x", "invalid_type"),
    ] {
        let cleanup =
            server.request("DELETE", "/admin/network-logs/cleanup").token(&key).query(&[("daysToKeep", days)]);
        cleanup.send().expect_fields(&[("daysToKeep", code)]);
    }
    assert_eq!(get(&server, &key, "user/424242").expect(200).json()["total"], 0);
}

#[test]
fn reports_use_indexes_and_never_scan_the_log() {
    let server = Setup::default().start();
    let database = server.network_log();
    let mut plans: Vec<String> = [
        "select client_id, requests, failed, failed_sign_ins, users, busiest_minute from access_log_clients \
         where period >= 1 and period < 2",
        "select client_id, requests, failed, failed_sign_ins, users, busiest_minute from access_log_clients \
         where period >= 1 and period < 2 and client_id = 3",
        "select client_id, requests, failed, failed_sign_ins, users, busiest_minute from access_log_days \
         where day >= 1 and day < 2",
        "select client_id, requests, failed, failed_sign_ins, users, busiest_minute from access_log_days \
         where day >= 1 and day < 2 and client_id = 3",
        "select user_id from access_log_users where client_id = 3 and period >= 1 and period < 2",
        "select user_id from access_log_day_users where client_id = 3 and day >= 1 and day < 2",
        "select id from access_log_addresses where client_ip = 'x'",
        "select day from access_log_counted_days where day >= 1 and day < 2 order by day",
        "delete from access_log_counted_days where day < 1",
        "delete from access_log_days where day = 1",
        "delete from access_log_users where user_id = 1 and period = 2",
        "delete from access_log_day_users where user_id = 1 and day = 2",
        "delete from access_log_addresses where id = 1 \
         and not exists (select 1 from access_log_clients where client_id = 1)",
        "select id, last_at, entries, next_position from access_log_blocks where id >= 1 and id < 2 \
         order by id desc limit 1",
        "select id, rows from access_log_blocks where id >= 1 order by id",
        "select 1, exists (select 1 from access_log_keys as others where others.key = 'c' and others.block = mine.block) \
         from access_log_keys as mine where mine.key = 'u' and mine.block >= 1 and mine.block < 2",
        "select id, at from access_log_unpacked order by id limit 9",
    ]
    .map(Into::into)
    .into();
    for order in ["asc", "desc"] {
        plans.push(format!("select id, entries from access_log_blocks where id >= 1 and id < 2 order by id {order}"));
        plans.push(format!(
            "select block, entries from access_log_keys where key = 'u1' and block >= 1 and block < 2 order by block {order}"
        ));
    }
    for sql in plans {
        let mut statement = database.prepare(&format!("explain query plan {sql}")).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let step: String = row.get(3).unwrap();
            let is_first_rows =
                sql.contains(" limit ") && step.starts_with("SCAN access_log") && !sql.contains("where");
            let is_fine = step.contains("SEARCH") || step.contains("SUBQUERY");
            assert!(is_fine || is_first_rows, "{sql}: {step}");
            assert!(!step.contains("TEMP B-TREE"), "{sql}: {step}");
        }
    }
}

#[test]
fn commands_return_the_same_beside_the_server() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let database = server.network_log();
    let logged = || {
        let count = "select count(*) from access_log where user_id is not null";
        database.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    server.get("/coin/balance").by(&user).header("x-forwarded-for", "203.0.113.9").send().expect(200);
    server.get("/coin/balance?userId=999999").by(&user).header("x-forwarded-for", "203.0.113.9").send().expect(403);
    eventually("the request is in the log", || logged() == 2);
    let total = |arguments: &[&str]| server.command(arguments).expect(0).json()["total"].as_i64().unwrap();
    assert_eq!(total(&["logs", "user", "13800138000"]), 2);
    assert_eq!(total(&["logs", "user", &user.user_id, "--size", "1", "--page", "2"]), 2);
    assert_eq!(total(&["logs", "ip", "203.0.113.9"]), 2);
    assert_eq!(total(&["logs", "failed"]), 1);
    assert_eq!(total(&["logs", "range", "--to", "2026-01-01"]), 0);
    assert_eq!(total(&["logs", "suspicious"]), 0);
    assert_eq!(server.command(&["logs", "count"]).expect(0).json()["items"][0]["count"], 2);
    server.command(&["logs", "user", "13900139000"]).expect(4);
    server.command(&["logs", "ip", "nowhere"]).expect(2);
    server.command(&["logs", "range", "--from", "2026-01-02", "--to", "2026-01-01"]).expect(2);
    // The counted period cannot start later, by HTTP or by command.
    for tally in ["count", "suspicious"] {
        let problem = server.command(&["logs", tally, "--from", "2999-01-01"]).expect(2).problem();
        assert_eq!(problem["errors"][0]["field"], "to", "{problem}");
        server.command(&["logs", tally, "--from", "2026-01-01", "--to", "2026-03-01"]).expect(2);
    }
    server.command(&["logs", "cleanup", "--days-to-keep", "0"]).expect(2);
    server.command(&["logs", "cleanup"]).expect(2);
    // As if all had come a week ago.
    let columns = "user_id, client_ip, method, route, status, duration_us, request_id";
    database
        .execute_batch(&format!(
            "begin immediate; create temp table moved as select at - 7 * 86400000 as at, {columns} from access_log; \
             delete from access_log; {}; commit",
            log_statement(&format!("select at, {columns} from moved"))
        ))
        .unwrap();
    let before = total(&["logs", "range"]);
    assert_eq!(server.command(&["logs", "cleanup", "--days-to-keep", "8", "--yes"]).expect(0).json()["deleted"], 0);
    let deleted = server.command(&["logs", "cleanup", "--days-to-keep", "6", "--yes"]).expect(0).json();
    assert!(deleted["deleted"].as_i64().unwrap() >= before);
    let rows = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(rows["items"][0]["action"], "yarrow logs cleanup");
    assert!(rows["items"].as_array().unwrap().iter().any(|row| row["userId"] == user.user_id.as_str()));
}

/// The reports of administrators wait for each other, and nothing else waits for them.
#[test]
fn many_reports_at_once_delay_no_other_reads_and_no_jobs() {
    let server = Setup::default().with_fast_jobs().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    for first in (0..200_000).step_by(20_000) {
        server.edit(&format!(
            "with recursive numbers (n) as (select {first} union all select n + 1 from numbers where n + 1 < {first} + 20000) \
             insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
             select 1000000 + n % 1000, 'question', 'ads', '[]', '', 'local', unixepoch() * 1000 - n from numbers"
        ));
    }
    let before = server.lines().len();
    let report = || server.get("/admin/violations/frequent-violators").token(&key).send().status;
    std::thread::scope(|scope| {
        let reports: Vec<_> = (0..16).map(|_| scope.spawn(report)).collect();
        while !reports.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            server.get("/user/profile").by(&user).send().expect(200);
            server.get("/readyz").send().expect(200);
            server.get("/api/v1/account/export").by(&user).send().expect(200);
        }
        // On a slow machine some wait too long.
        let statuses: Vec<_> = reports.into_iter().map(|report| report.join().unwrap()).collect();
        assert!(statuses.contains(&200) && statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    });
    let failed: Vec<_> = server.lines().into_iter().skip(before).filter(|line| line.contains("a job failed")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_full_log_loses_its_oldest_entries() {
    let mut server = Setup::default().with("NETWORK_LOG_MAX_SIZE", "2 MiB").with_metrics().start();
    let metrics = server.metrics();
    let now: i64 = server.value("select cast(unixepoch() * 1000 as integer)");
    fill(&server.network_log(), now - 30_000_000, 30_000);
    let used = || -> i64 {
        let log = server.network_log();
        let pragma = |name: &str| log.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
    };
    assert!(used() > 3 << 20, "{}", used());
    eventually("the log is below its maximum size", || used() <= 2 << 20);
    let (first, last, left): (i64, i64, i64) = server
        .network_log()
        .query_row("select min(at), max(at), count(*) from access_log where client_ip like '198.%'", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    // The newest are left, without gaps.
    assert!(last >= now && left > 3000 && last - first == (left - 1) * 1000, "{first} {last} {left}");
    let page = || Request::new("GET", &metrics).send().expect(200).text();
    let deleted = |page: &str| -> i64 {
        let mut lines = page.lines();
        let count = lines.find_map(|line| line.strip_prefix("yarrow_network_log_deleted_for_size_total "));
        count.unwrap().parse().unwrap()
    };
    // Deletions are counted after their commit.
    eventually("all deletions are counted", || deleted(&page()) >= 30_000 - left);
    let page = page();
    assert!(
        page.contains("yarrow_network_log_bytes ") && page.contains("yarrow_network_log_dropped_total 0"),
        "{page}"
    );
    let doctor = ["doctor", "--listen", "127.0.0.1:0"];
    let text = server.command_with(&[("YARROW_NETWORK_LOG_MAX_SIZE", "2 MiB")], &doctor).text();
    assert!(text.contains("oldest entries are deleted before their retention ends"), "{text}");
}

#[test]
fn a_lost_or_damaged_log_begins_anew() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut server = Setup::default().on(&directory).in_own_process().start();
    let is_logged = |server: &Server, id: &str| {
        // Read-only, because it would create a missing file.
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let found = Connection::open_with_flags(server.directory().join("network-log.db"), flags).and_then(|log| {
            log.query_row("select count(*) from access_log where request_id = ?1", [id], |row| row.get::<_, i64>(0))
        });
        found.is_ok_and(|found| found == 1)
    };
    let logged = |server: &Server, id: &str| {
        server.get("/healthz").header("x-request-id", id).send().expect(200);
        eventually("the request is in the log", || is_logged(server, id));
    };
    logged(&server, "first");
    // Deleted while it is open.
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(directory.join(format!("network-log.db{suffix}"))).unwrap();
    }
    server.get("/healthz").header("x-request-id", "second").send().expect(200);
    server.wait_for_line("the network log is damaged or deleted");
    logged(&server, "third");
    assert!(is_logged(&server, "second"));
    assert_eq!(server.terminate(), Some(0));
    // Damaged while nothing runs.
    std::fs::write(directory.join("network-log.db"), vec![7; 20_000]).unwrap();
    let mut server = Setup::default().on(&directory).in_own_process().start();
    server.wait_for_line("the network log is damaged");
    logged(&server, "fourth");
    assert_eq!(std::fs::read(directory.join("network-log.db.damaged")).unwrap(), vec![7; 20_000]);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(directory.join("network-log.db")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(server.terminate(), Some(0));
    // Missing at a start.
    std::fs::remove_file(directory.join("network-log.db")).unwrap();
    let mut server = Setup::default().on(&directory).in_own_process().start();
    server.wait_for_line("the network log is missing");
    logged(&server, "fifth");
}

#[test]
fn a_deleted_user_is_erased_from_the_log() {
    let server = Setup::default().in_own_process().start();
    let user = server.sign_in_by_email("ada@example.com");
    let other = server.sign_in("13800138000");
    for caller in [&user, &other] {
        server.get("/coin/balance").by(caller).send().expect(200);
    }
    let count = |caller: &Caller| {
        let tables = ["access_log", "access_log_users", "access_log_day_users"];
        let count = |table| format!("(select count(*) from {table} where user_id = {})", caller.user_id);
        server.value::<i64>(&format!("select {}", tables.map(count).join(" + ")))
    };
    eventually("the requests are in the log", || count(&user) >= 2 && count(&other) >= 2);
    server.delete("/api/v1/account").by(&user).send().expect(204);
    // Once the request for the deletion itself has been written, too.
    let deletion = "select count(*) from access_log where route = '/api/v1/account'";
    eventually("the user's entries are gone", || count(&user) == 0 && server.value::<i64>(deletion) == 0);
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!((count(&user), server.value::<i64>(deletion)), (0, 0));
    assert!(count(&other) >= 2);
    // Without a server, the command erases at once.
    let directory = server.kill();
    let erased = CommandOutput::run(&directory, &["users", "erase", &other.user_id, "--yes"], "");
    erased.expect(0);
    let log = Connection::open(directory.join("network-log.db")).unwrap();
    let left = format!("select count(*) from access_log where user_id = {}", other.user_id);
    assert_eq!(log.query_row(&left, [], |row| row.get::<_, i64>(0)), Ok(0));
    std::fs::remove_dir_all(directory).unwrap();
}

/// Takes minutes and 3 GB of disk.
#[test]
#[ignore = "fills ten million entries; run with `cargo test --release --test it -- --ignored measured_ --nocapture`"]
fn measured_every_report_answers_a_page_within_50_ms() {
    const ROWS: i64 = 10_000_000;
    let server = Setup::default().with("NETWORK_LOG_MAX_SIZE", "16 GiB").start();
    let key = server.api_key("tests");
    let log = server.network_log();
    let now: i64 = server.value("select cast(unixepoch() * 1000 as integer)");
    // Ninety days of 100 000 users, each in bursts of requests from an address of their own.
    log.execute_batch("pragma synchronous = off; pragma cache_size = -500000").unwrap();
    let rows = "with recursive numbers (n) as (select ?1 union all select n + 1 from numbers where n + 1 < ?2) \
                select ?3 + cast(n * 777.6 as integer), n / 32 % 100000 + 1, \
                '10.' || (n / 32 % 100000 / 65536) || '.' || (n / 32 % 100000 / 256 % 256) || '.' || (n / 32 % 256), \
                'GET', '/coin/balance', case when n % 50 = 0 then 404 else 200 end, 100, printf('%024x', n) \
                from numbers";
    for first in (0..ROWS).step_by(500_000) {
        log.execute(&log_statement(rows), (first, first + 500_000, now - 90 * 86_400_000)).unwrap();
    }
    expect_counted_days(&server);
    let days = |count: i64| format!("startTime={}", now - count * 86_400_000);
    let end = format!("endTime={now}");
    let paths = [
        "user/5000".into(),
        "user/5000?page=5&size=20".into(),
        "ip/10.0.19.135".into(),
        format!("time-range?{}&{end}", days(90)),
        format!("time-range?{}&{end}&page=1000&size=100", days(90)),
        "failed".into(),
        "failed?page=1000&size=100".into(),
        "suspicious".into(),
        format!("suspicious?{}&{end}", days(1)),
        format!("suspicious?{}&{end}", days(31)),
        "count/ip".into(),
        format!("count/ip?{}&{end}&size=100", days(1)),
        format!("count/ip?{}&{end}", days(31)),
        format!("count/ip?{}&{end}&clientIp=10.0.19.135", days(31)),
    ];
    let mut slow = Vec::new();
    for path in paths {
        let time = || {
            let begun = std::time::Instant::now();
            get(&server, &key, &path).expect(200);
            begun.elapsed()
        };
        let first = time();
        let mut times: Vec<_> = (0..9).map(|_| time()).collect();
        times.sort_unstable();
        println!("{path}: first {first:.1?}, median {:.1?}, longest {:.1?}", times[4], times[8]);
        if times[4].as_millis() > 50 {
            slow.push(path);
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}
