//! Figures: daily sums that equal a scan of all rows, also after kills.

use std::{collections::BTreeMap, thread::sleep, time::Duration};

use serde_json::json;

use super::console::Browser;
use crate::support::{
    Server, Setup,
    app_store::{FakeAppStore, revocation, sign_jws, store_notification, store_transaction, with_app_store},
    channels::{Shop, seconds},
    eventually,
};

/// Ledger entries of a test: many slices of the job.
const ENTRIES: u32 = 30_000;

/// The sums of all ledger entries, by asset, kind and day in the default zone, from the figures and from a scan.
fn both_sums(server: &Server) -> [Vec<String>; 2] {
    let database = server.database();
    let rows = |sql: &str| {
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    let counted = rows(
        "select case when name like 'coins_%' then 'coin' else 'point' end || ' ' || key || ' ' || day || ' ' || sum(value) \
         from figures where name like 'coins_%' or name like 'points_%' group by case when name like 'coins_%' then 'coin' else 'point' end, key, day \
         union all select 'castings ' || coalesce(sum(value), 0) from figures where name = 'castings' \
         union all select 'users ' || coalesce(sum(value), 0) from figures where name = 'new_users' order by 1",
    );
    let scanned = rows(
        "select asset || ' ' || kind || ' ' || date(created_at / 1000 + 28800, 'unixepoch') || ' ' || sum(abs(delta)) \
         from ledger_entries group by asset, kind, date(created_at / 1000 + 28800, 'unixepoch') \
         union all select 'castings ' || count(*) from ledger_entries where kind in ('cast', 'consume') \
         union all select 'users ' || count(*) from users order by 1",
    );
    [counted, scanned]
}

/// Inserts entries of all signs over two months, past every operation.
fn insert_entries(server: &Server, first: u32, count: u32) {
    server.edit(&format!(
        "insert into ledger_entries (seq, user_id, asset, sequence, delta, balance_after, kind, created_at) \
         with recursive n (i) as (select cast({first} as bigint) union all select i + 1 from n where i < {first} + {count} - 1), \
         top (seq) as materialized (select coalesce(max(seq), 0) from ledger_entries) \
         select top.seq + i - {first} + 1, 900000 + i % 50, case i % 2 when 0 then 'coin' else 'point' end, i, \
         case when i % 3 = 0 then 5 else -2 end, 100, \
         case i % 3 when 0 then 'topup' when 1 then 'consume' else 'adjust' end, 1760000000000 + i * 90000 \
         from n, top"
    ));
}

#[test]
fn sums_equal_a_scan_after_kills_at_any_moment() {
    let mut server = Setup::default().with_fast_jobs().in_own_process().start();
    insert_entries(&server, 1, ENTRIES);
    let through = |server: &Server| -> i64 {
        server.value("select coalesce(max(through), 0) from figure_marks where source = 'ledger'")
    };
    let mut partial = 0;
    for round in 0..8_u32 {
        let before = through(&server);
        eventually("the job counts", || through(&server) > before);
        sleep(Duration::from_millis(u64::from(3 * round)));
        server = server.crash_and_restart(Setup::default().with_fast_jobs());
        let last: i64 = server.value("select max(seq) from ledger_entries");
        partial += u32::from(through(&server) < last);
        server.sign_in(&format!("1380013800{round}"));
        insert_entries(&server, ENTRIES * (round + 1) + 1, ENTRIES);
    }
    assert!(partial > 0, "no kill hit a count");
    let is_equal = || {
        let [counted, scanned] = both_sums(&server);
        counted == scanned
    };
    eventually("the figures equal a scan", is_equal);
    server.command(&["figures", "rebuild"]).expect(0);
    let [counted, scanned] = both_sums(&server);
    assert_eq!(counted, scanned);
}

#[test]
fn figures_are_listed_by_name_and_period() {
    let server = Setup::default().with_fast_jobs().start();
    let user = server.sign_in("13800138000");
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order]).expect(0);
    server.post("/coin/consume").by(&user).send().expect(200);
    let key = server.api_key("reader");
    let listed = |query: &[(&str, &str)]| server.get("/admin/figures").token(&key).query(query).send();
    let value = |name: &str, grouping: &str| {
        let found = listed(&[("names", name), ("grouping", grouping)]).expect(200).json();
        found["items"].as_array().unwrap().iter().map(|item| item["value"].as_i64().unwrap()).sum::<i64>()
    };
    eventually("the purchase is counted", || value("revenue", "day") == 600);
    eventually("the casting is counted", || value("castings", "month") == 1);
    for (name, expected) in [("new_users", 1), ("coins_used", 1)] {
        for grouping in ["day", "week", "month"] {
            eventually(&format!("{name} by {grouping}"), || value(name, grouping) == expected);
        }
    }
    let printed = server.command(&["figures", "show", "--names", "revenue"]).expect(0).json();
    assert_eq!(printed, listed(&[("names", "revenue")]).expect(200).json());
    listed(&[("names", "fame")]).expect_problem(422, "invalid_parameters");
    listed(&[("from", "2026-02-30")]).expect_problem(422, "invalid_parameters");
    listed(&[("from", "2026-02-02"), ("to", "2026-02-01")]).expect_problem(422, "invalid_parameters");
    listed(&[("from", "1900-01-01")]).expect_problem(422, "invalid_parameters");
}

/// Runs the jobs until a figure has this sum.
fn expect_sum(server: &Server, query: &str, expected: i64) {
    eventually(query, || {
        server.value::<i64>(&format!("select coalesce(sum(value), 0) from figures where {query}")) == expected
    });
}

#[test]
fn active_users_are_counted_once_a_period_and_cleared_with_the_account() {
    let mut server = Setup::default().with_fast_jobs().in_own_process().start();
    let users: Vec<_> = (0..5).map(|number| server.sign_in(&format!("1380013800{number}"))).collect();
    for user in &users {
        for _ in 0..3 {
            server.get("/user/profile").by(user).send().expect(200);
        }
    }
    for key in ["day", "week", "month"] {
        expect_sum(&server, &format!("name = 'active_users' and key = '{key}'"), 5);
    }
    // A kill and a log that is read again count nobody twice.
    server = server.restart(Setup::default().with_fast_jobs());
    server.edit("delete from figure_marks where source like 'active_users%'");
    server.get("/user/profile").by(&users[0]).send().expect(200);
    eventually("the log is read again", || {
        let read = "select cast(coalesce(sum(through), 0) as bigint) from figure_marks \
                    where source like 'active_users%'";
        server.value::<i64>(read) > 15
    });
    expect_sum(&server, "name = 'active_users' and key = 'day'", 5);
    let bits = |server: &Server| server.value::<Vec<u8>>("select bits from active_users limit 1");
    let set = |bits: &[u8]| bits.iter().map(|byte| byte.count_ones()).sum::<u32>();
    assert_eq!((set(&bits(&server)), bits(&server).len()), (5, 512));
    let exported = server.get("/api/v1/account/export").by(&users[1]).send().expect(200).json();
    assert_eq!(exported["activeDays"].as_array().unwrap().len(), 1);
    server.command(&["users", "erase", &users[1].user_id, "--yes", "--reason", "asked by mail"]).expect(0);
    assert_eq!(set(&bits(&server)), 4);
    expect_sum(&server, "name = 'active_users' and key = 'day'", 5);
}

#[test]
fn users_of_a_month_are_counted_once_although_the_network_log_is_shorter() {
    let server = Setup::default().with_fast_jobs().with("RETENTION_ACCESS_LOG", "1 day").start();
    let user = server.sign_in("13800138000");
    server.get("/user/profile").by(&user).send().expect(200);
    expect_sum(&server, "name = 'active_users' and key = 'month'", 1);
    // The user was active on the first of the month, and somebody in the last months.
    let today: String = server.value("select max(day) from active_users");
    let first = format!("{}-01", &today[..7]);
    server.edit(&format!(
        "insert into active_users (block, day, bits) select block, '{first}', bits from active_users where true \
         on conflict (block, day) do nothing"
    ));
    server
        .edit("insert into active_users (block, day, bits) select block, '2020-01-01', bits from active_users limit 1");
    server.edit(&format!("delete from active_users where day = '{today}' and day <> '{first}'"));
    eventually("old days are deleted", || {
        server.value::<i64>("select count(*) from active_users where day = '2020-01-01'") == 0
    });
    server.get("/user/profile").by(&user).send().expect(200);
    eventually("today is recorded again", || {
        server.value::<i64>(&format!("select count(*) from active_users where day in ('{today}', '{first}')"))
            == if today == first { 1 } else { 2 }
    });
    expect_sum(&server, "name = 'active_users' and key = 'month'", 1);
}

#[test]
fn retention_is_the_share_of_a_week_of_registrations_that_came_back() {
    let server = Setup::default().with_fast_jobs().start();
    let users: Vec<_> = (0..4).map(|number| server.sign_in(&format!("1380013800{number}"))).collect();
    expect_sum(&server, "name = 'new_users'", 4);
    // They registered three weeks ago; two came back in the first week after, one in the second.
    let week = 7 * 86_400_000_i64;
    server.edit(&format!("update users set created_at = created_at - {}", 3 * week));
    server.edit("update figures set day = date(day, '-21 days') where name = 'new_users'");
    server.edit("delete from active_users");
    let now: i64 = server.value("select max(created_at) from users");
    let now = now + 3 * week;
    for (user, weeks) in [(0, 2), (0, 2), (1, 2), (1, 1)] {
        server.edit(&format!(
            "insert into network_log.access_log (at, user_id, client_ip, method, status, duration_us, request_id) \
             values ({}, {}, '127.0.0.1', 'GET', 200, 1, 'x')",
            now - weeks * week,
            users[user].user_id
        ));
    }
    // The log is in the order of time, and these entries came late.
    server.edit("delete from figure_marks where source like 'active_users%'");
    let key = server.api_key("reader");
    let found = || {
        let listed =
            server.get("/admin/figures").token(&key).query(&[("names", "retention")]).send().expect(200).json();
        let items = listed["items"].as_array().unwrap().iter();
        let shown = |item: &serde_json::Value| format!("{}={}", item["key"].as_str().unwrap(), item["value"]);
        items.map(shown).collect::<Vec<_>>().join(" ")
    };
    eventually("the retention is counted", || found().starts_with("01=2 02=1"));
    let printed = server.command(&["figures", "show", "--names", "retention"]).expect(0).json();
    assert_eq!(printed["items"].as_array().unwrap().len(), 2);
}

#[test]
fn codes_requests_and_refunds_are_tallied() {
    let server = Setup::default().with_fast_jobs().start();
    let user = server.sign_in("13800138000");
    for name in ["codes_asked", "codes_sent", "codes_verified"] {
        expect_sum(&server, &format!("name = '{name}'"), 1);
    }
    server.get("/nowhere").send().expect(404);
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order]).expect(0);
    server.command(&["payments", "refund", &order, "--amount", "2.00", "--reason", "asked by mail", "--yes"]).expect(0);
    let shown = |names: &str| server.command(&["figures", "show", "--names", names]).expect(0).json()["items"].clone();
    assert_eq!((&shown("refunds")[0]["value"], &shown("refunds")[0]["key"]), (&200.into(), &"sandbox/CNY/coin".into()));
    eventually("requests are tallied", || shown("requests")[0]["value"].as_i64() >= Some(3));
    assert_eq!(shown("request_errors")[0]["value"], 0);
    let durations = shown("request_duration");
    let keys: Vec<_> = durations.as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["50", "95", "99"]);
    assert_eq!(server.value::<i64>("select length(buckets) from request_hours"), 128);
}

#[test]
fn money_is_counted_by_channel_and_currency_and_never_added() {
    let store = FakeAppStore::start_at(seconds);
    let setup = |setup: Setup| with_app_store(setup, &store.url()).with_fast_jobs();
    let shop = Shop::start(setup);
    let terms = json!({ "asset": "coin", "count": 60, "appleId": "com.example.yarrow.coins60", "reason": "test" });
    shop.server.put("/admin/products/gold60").token(&shop.key).json(&terms).send().expect(200);
    let account = shop.server.get("/api/v1/payment/account-token").by(&shop.user).send().expect(200).json();
    let now = seconds() * 1000;
    let transaction = |changes: &[_]| {
        let euros = [("price", json!(12_340)), ("currency", json!("EUR"))];
        store_transaction("1", account["accountToken"].as_str(), now, &[&euros, changes].concat())
    };
    let [wechat, stripe] = ["wechat", "stripe"].map(|channel| shop.order_no(channel));
    shop.wechat_request(&shop.pay_by_wechat(&wechat)).send().expect(204);
    shop.stripe_request(&shop.pay_by_stripe(&stripe)).send().expect(204);
    let signed = json!({ "signedTransaction": sign_jws(&transaction(&[])) });
    shop.server.post("/api/v1/purchases/apple").by(&shop.user).json(&signed).send().expect(200);
    let restarted = setup(shop.setup());
    let shop = shop.restarted(restarted);
    let sums = |name: &str| {
        let listed = shop.server.get("/admin/figures").token(&shop.key).query(&[("names", name)]).send();
        let items = listed.expect(200).json()["items"].as_array().unwrap().clone();
        let sum =
            |item: &serde_json::Value| (item["key"].as_str().unwrap().to_owned(), item["value"].as_i64().unwrap());
        items.iter().map(sum).collect::<BTreeMap<_, _>>()
    };
    let expected = |sums: [(&str, i64); 3]| BTreeMap::from(sums.map(|(key, value)| (key.to_owned(), value)));
    let revenue = expected([("wechat/CNY/coin", 600), ("stripe/USD/coin", 99), ("apple/EUR/coin", 1234)]);
    eventually("the revenue", || sums("revenue") == revenue);

    shop.refund(&stripe, "0.33", "R1").expect(200);
    let refund = store_notification("REFUND", "u-1", Some(&transaction(&revocation(50_000, now))), now);
    shop.server.post("/payment/notify/apple").bytes(Some("application/json"), refund.into_bytes()).send().expect(200);
    let refunds = sums("refunds");
    assert_eq!((refunds.len(), refunds["stripe/USD/coin"], refunds["apple/EUR/coin"]), (2, 33, 617));
    shop.server.command(&["figures", "rebuild"]).expect(0);
    assert_eq!(sums("revenue"), revenue);

    let owner = Browser::new(&shop.server, "olga", "owner");
    let shown = owner.get("revenue").send().expect(200).text();
    for part in ["¥6.00", "0.99 USD", "12.34 EUR", "6.17 EUR", "id=\"revenue-by-day-usd\"", "id=\"money-by-channel\""]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(owner.get("").send().expect(200).text().contains("12.34 EUR"));
    assert!(owner.get("orders").send().expect(200).text().contains("0.99 USD"));
    assert!(owner.get("purchases").send().expect(200).text().contains("12.34 EUR"));
    store.add_transaction(transaction(&revocation(50_000, now)));
    let asked = owner.post("purchases", "purchases/1/history", &[]).expect(303);
    let list = format!("/admin/console/purchases?userId={}", shop.user.user_id);
    assert_eq!(asked.header("location"), Some(list.as_str()));
}

#[test]
fn deleted_castings_are_counted_never_below_ten() {
    let server = Setup::default().with("POINTS_CAST", 0).start();
    let user = server.sign_in_by_email("ada@example.com");
    let key = server.api_key("tests");
    let cast = |lines: [u8; 6], question_type: &str| {
        let cast = json!({ "question": "x", "questionType": question_type, "method": "manual", "lines": lines });
        server.post("/api/v1/sessions").by(&user).json(&cast).send().expect(201).json()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let delete = |id: &str| server.delete(&format!("/api/v1/sessions/{id}")).by(&user).send().expect(204);
    let counts = || server.get("/admin/figures/castings").token(&key).send().expect(200).json();
    let many: Vec<_> = (0..11).map(|_| cast([9, 8, 8, 6, 7, 8], "career")).collect();
    let few: Vec<_> = (0..9).map(|_| cast([7, 7, 7, 7, 7, 7], "love")).collect();
    for id in &many[..9] {
        delete(id);
    }
    assert_eq!(counts(), json!({ "leastCount": 10, "items": [] }));
    for id in many[9..].iter().chain(&few) {
        delete(id);
    }
    let month: String = server.value("select min(substr(day, 1, 7)) from session_snapshots");
    let hexagram: i64 = server.value("select primary_hexagram from session_snapshots where question_type = 'career'");
    let item = |property: &str, value: &str, count: i64| json!({ "month": month, "property": property, "value": value, "count": count });
    let expected = [
        item("month", "", 20),
        item("question_type", "career", 11),
        item("method", "manual", 20),
        item("primary_hexagram", &format!("{hexagram:02}"), 11),
        item("changing_lines", "1,4", 11),
    ];
    assert_eq!(counts()["items"], json!(expected));
    assert_eq!(server.command(&["figures", "castings", "--json"]).expect(0).json(), counts());
    let file = server.command(&["figures", "castings", "--csv"]).expect(0).text();
    let line = format!("{month},changing_lines,\"1,4\",11");
    assert!(file.starts_with("month,property,value,count\n") && file.contains(&line), "{file}");
}
