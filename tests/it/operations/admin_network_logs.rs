//! `/admin/network-logs`: search, reports and commands.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Response, Server, Setup, eventually, log_statement};

/// The number of test entries: more than two segments plus an incomplete one.
const ENTRIES: i64 = 20_000;
const START: i64 = 1_767_225_600_000;

fn get(server: &Server, key: &str, path: &str) -> Response {
    server.get(&format!("/admin/network-logs/{path}")).token(key).send()
}

/// Inserts entries, one a second. Users, addresses and statuses derive from their number.
fn fill(database: &Connection) {
    let fill = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?2) \
                select ?1 + 1000 * n, case when n % 3 = 0 then 10000 + n % 7 end, \
                '198.51.100.' || (n * n % 11), 'GET', '/user/profile', case when n % 5 = 0 then 404 else 200 end, \
                1500, 'r-' || n from numbers";
    database.execute_batch("begin immediate; delete from access_log_blocks").unwrap();
    database.execute(&log_statement(fill), (START, ENTRIES)).unwrap();
    database.execute_batch("commit").unwrap();
}

/// Shifts the time of all entries of these blocks.
fn shift(database: &Connection, by_ms: i64, condition: &str) {
    let sql = format!(
        "update access_log_blocks set first_at = first_at + ?1, last_at = last_at + ?1, base_at = base_at + ?1 \
         where {condition}"
    );
    database.execute(&sql, [by_ms]).unwrap();
}

#[track_caller]
fn wait_for_pieces(database: &Connection, pieces: i64) {
    let count =
        || database.query_row("select count(*) from access_log_pieces", [], |row| row.get::<_, i64>(0)).unwrap();
    eventually("segments are complete", || count() >= pieces);
}

/// Returns ids and total from plain SQL.
fn truth(database: &Connection, condition: &str, page: i64, size: i64) -> (Vec<i64>, i64) {
    let offset = (page - 1) * size;
    let sql = format!("select id from access_log where {condition} order by id desc limit {size} offset {offset}");
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
    let database = server.database();
    fill(&database);
    wait_for_pieces(&database, 2);
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
        "requestId": format!("r-{}", newest["id"].as_str().unwrap()),
    });
    assert_eq!(newest, &expected);
    // The command returns the same document.
    let user = server.command(&["logs", "user", "10003", "--to", &end.to_string(), "--size", "1"]).expect(0).json();
    assert_eq!(user, response);

    // After deleting the older half, the rest is still found, including a partially deleted segment.
    let days = 24 * 3600 * 1000;
    let cut = START + 20 * days;
    shift(&database, 4_000_000_000, "first_entry > 10000 and first_entry <= 20000");
    database.execute("update access_log_pieces set last_at = last_at + 4000000000 where id = 2", []).unwrap();
    // The maximum number of callers in a segment, and more.
    let run_clients = "insert into access_log_subjects (piece, subject, entries) select 1, 'ip:' || i, 1 from \
                 (with recursive n (i) as (select 1 union all select i + 1 from n where i < 60000) select i from n)";
    database.execute(run_clients, []).unwrap();
    let now: i64 = database.query_row("select max(at) from access_log where id > 20000", [], |row| row.get(0)).unwrap();
    let keep = (now - cut) / days;
    let deleted = server.request("DELETE", "/admin/network-logs/cleanup").token(&key);
    let deleted = deleted.form(&[("daysToKeep", &keep.to_string())]).send().expect(200).json();
    assert_eq!(deleted["deleted"], 10_000);
    let left = truth(&database, "user_id = 10003 and id <= 20000", 1, 20);
    let response = get(&server, &key, &format!("user/10003?endTime={}", end + 4_000_000_000_i64)).expect(200).json();
    assert_eq!(found(&response), left);
    let pieces: i64 = database.query_row("select count(*) from access_log_pieces", [], |row| row.get(0)).unwrap();
    let stale = "select count(*) from access_log_subjects where piece not in (select id from access_log_pieces)";
    assert_eq!(pieces, 1);
    assert_eq!(database.query_row(stale, [], |row| row.get::<_, i64>(0)), Ok(0));
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
    let database = server.database();
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
fn searches_use_indexes_and_never_scan_the_log() {
    let server = Setup::default().start();
    let database = server.database();
    let plans = [
        "select first_entry, entries, base_at, id_start, texts from access_log_blocks where first_entry between 1 and 9 and last_entry >= 5 \
         order by first_entry",
        "select first_entry from access_log_blocks order by first_entry limit 1",
        "select last_entry from access_log_blocks order by first_entry desc limit 1",
        "select p.first_entry, (select entries from access_log_subjects where piece = p.id and subject = 'user:5') \
         from access_log_pieces p order by p.id desc",
        "select id from access_log_pieces where last_entry < 5 and id = (select min(id) from access_log_pieces)",
        "delete from access_log_subjects where (piece, subject) in \
         (select piece, subject from access_log_subjects where piece = 5 limit 9)",
        "select first_entry, last_entry, last_at from access_log_blocks order by first_entry limit 64",
        "delete from access_log_blocks where first_entry <= 5",
    ];
    for sql in plans {
        let mut statement = database.prepare(&format!("explain query plan {sql}")).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let step: String = row.get(3).unwrap();
            // Segments are few: one for thousands of entries, and a search reads each.
            let is_fine = step.contains("SEARCH") || step.starts_with("SCAN p") || step.contains("SUBQUERY");
            let is_first_rows = sql.contains(" limit ") && step == "SCAN access_log_blocks";
            assert!(is_fine || is_first_rows, "{sql}: {step}");
            assert!(!step.contains("TEMP B-TREE"), "{sql}: {step}");
        }
    }
}

#[test]
fn commands_return_the_same_beside_the_server() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let database = server.database();
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
    shift(&database, -7 * 86_400_000, "true");
    let before = total(&["logs", "range"]);
    assert_eq!(server.command(&["logs", "cleanup", "--days-to-keep", "8", "--yes"]).expect(0).json()["deleted"], 0);
    let deleted = server.command(&["logs", "cleanup", "--days-to-keep", "6", "--yes"]).expect(0).json();
    assert!(deleted["deleted"].as_i64().unwrap() >= before);
    let rows = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(rows["items"][0]["action"], "yarrow logs cleanup");
    assert!(rows["items"].as_array().unwrap().iter().any(|row| row["userId"] == user.user_id.as_str()));
}
