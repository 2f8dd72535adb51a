//! `/api/v1/sessions`: casting, listing, deleting and interpreting.

use std::time::Duration;

use serde_json::{Value, json};
use yarrow::store::OwnedSqlValue;

use crate::support::{Caller, FakeModel, ModelBehaviour, Request, Response, Server, Setup, send_concurrently};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";
/// A word on the default word list.
const LISTED: &str = "赌博";
const QUESTION: &str = "今年换工作合适吗？";

fn give(server: &Server, who: &str, points: i64) {
    server.command(&["points", "adjust", who, &points.to_string(), "--reason", "test"]).expect(0);
}

/// Starts a server with a user who has points.
fn fixture(points: i64) -> (Server, Caller) {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    give(&server, OWN, points);
    (server, user)
}

fn points(server: &Server, user: &Caller) -> i64 {
    server.get("/api/v1/points").by(user).send().expect(200).json()["balance"].as_i64().unwrap()
}

fn cast(server: &Server, user: &Caller, body: &Value) -> Request {
    server.post("/api/v1/sessions").by(user).json(body)
}

fn simple() -> Value {
    json!({ "question": QUESTION, "questionType": "career", "method": "three_coins" })
}

fn manual(lines: &str) -> Value {
    let lines: Vec<_> = lines.bytes().map(|digit| digit - b'0').collect();
    json!({ "question": QUESTION, "questionType": "career", "method": "manual", "lines": lines })
}

fn created(server: &Server, user: &Caller, body: &Value) -> Value {
    cast(server, user, body).send().expect(201).json()
}

fn path(session: &Value) -> String {
    format!("/api/v1/sessions/{}", session["id"].as_str().unwrap())
}

fn delete(server: &Server, user: &Caller, session: &Value) -> Response {
    server.request("DELETE", &path(session)).by(user).send()
}

fn interpret(server: &Server, user: &Caller, session: &Value) -> Request {
    server.post(&format!("{}/interpretation", path(session))).by(user)
}

fn list(server: &Server, user: &Caller, query: &[(&str, &str)]) -> Value {
    server.get("/api/v1/sessions").by(user).query(query).send().expect(200).json()
}

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

// Casting.

#[test]
fn known_lines_produce_known_hexagrams() {
    let (server, user) = fixture(100);
    let session = created(&server, &user, &manual("788976"));
    assert_eq!(session["lines"], json!([7, 8, 8, 9, 7, 6]));
    let hexagram = &session["hexagram"];
    let lake_over_thunder = json!({
        "number": 17, "sign": "䷐", "chineseName": "随", "chineseFullName": "泽雷随", "pinyin": "suí",
        "englishName": "Following",
        "upper": { "sign": "☱", "chineseName": "兑", "pinyin": "duì", "englishName": "The Joyous" },
        "lower": { "sign": "☳", "chineseName": "震", "pinyin": "zhèn", "englishName": "The Arousing" },
    });
    assert_eq!(hexagram["primary"], lake_over_thunder);
    assert_eq!(hexagram["changing"], json!([4, 6]));
    assert_eq!(
        (&hexagram["relating"]["number"], &hexagram["relating"]["chineseFullName"]),
        (&json!(42), &json!("风雷益"))
    );
    assert_eq!(
        (&hexagram["nuclear"]["number"], &hexagram["nuclear"]["chineseFullName"]),
        (&json!(53), &json!("风山渐"))
    );

    let at_rest = created(&server, &user, &manual("788878"));
    assert_eq!(at_rest["hexagram"]["primary"]["number"], 3);
    assert_eq!(at_rest["hexagram"]["changing"], json!([]));
    assert!(at_rest["hexagram"].get("relating").is_none(), "{at_rest}");

    let turning = created(&server, &user, &manual("999999"));
    assert_eq!(
        (&turning["hexagram"]["primary"]["number"], &turning["hexagram"]["relating"]["number"]),
        (&json!(1), &json!(2))
    );
}

#[test]
fn stores_the_location_of_a_session() {
    let (server, user) = fixture(10);
    let elsewhere = json!({ "timeZone": "America/New_York" });
    server.patch("/api/v1/preferences").by(&user).json(&elsewhere).send().expect(200);
    let there =
        created(&server, &user, &json!({ "question": "x", "method": "three_coins", "castAt": "2026-01-02 00:00:00" }));
    let read = (&there["timeZone"], &there["castAt"]);
    assert_eq!(read, (&json!("America/New_York"), &json!("2026-01-02T05:00:00.000Z")));
}

#[test]
fn stores_question_and_lines_of_a_session() {
    let (server, user) = fixture(30);
    let session = created(&server, &user, &simple());
    for (name, expected) in [
        ("question", json!(QUESTION)),
        ("questionType", json!("career")),
        ("method", json!("three_coins")),
        ("timeZone", json!("Asia/Shanghai")),
        ("pointsSpent", json!(10)),
        ("balance", json!(20)),
        ("interpretedAt", Value::Null),
    ] {
        assert_eq!(session[name], expected, "{name}");
    }
    assert_eq!(session["castAt"], session["createdAt"]);
    let lines: Vec<_> = session["lines"].as_array().unwrap().iter().map(|line| line.as_i64().unwrap()).collect();
    assert!(lines.len() == 6 && lines.iter().all(|line| (6..=9).contains(line)), "{lines:?}");
    let changing: Vec<_> =
        (1..).zip(&lines).filter(|(_, line)| [6, 9].contains(*line)).map(|(place, _)| place).collect();
    assert_eq!(session["hexagram"]["changing"], json!(changing));

    let found = server.get(&path(&session)).by(&user).send().expect(200).json();
    let mut expected = session.clone();
    expected.as_object_mut().unwrap().remove("balance");
    assert_eq!(found, expected);
    assert_eq!(points(&server, &user), 20);
    let entry = server.get("/api/v1/points/ledger").by(&user).send().expect(200).json()["items"][0].clone();
    let reference = format!("session:{}", session["id"].as_str().unwrap());
    assert_eq!((&entry["kind"], &entry["delta"], &entry["ref"]), (&json!("cast"), &json!(-10), &json!(reference)));
}

#[test]
fn uses_the_clients_time() {
    let (server, user) = fixture(100);
    let with = |cast_at: &str, zone: Value| {
        let body = json!({ "question": "x", "method": "yarrow_stalks", "castAt": cast_at, "timeZone": zone });
        cast(&server, &user, &body).send()
    };
    for (cast_at, zone, expected) in [
        ("2026-01-02T03:04:05Z", json!("Europe/Berlin"), "2026-01-02T03:04:05.000Z"),
        ("2026-01-02 03:04:05", json!("Europe/Berlin"), "2026-01-02T02:04:05.000Z"),
        ("2026-01-02 03:04:05", Value::Null, "2026-01-01T19:04:05.000Z"),
        ("1767322800000", json!("America/New_York"), "2026-01-02T03:00:00.000Z"),
    ] {
        let session = with(cast_at, zone.clone()).expect(201).json();
        assert_eq!(session["castAt"], expected);
        assert_eq!(session["timeZone"], zone.as_str().unwrap_or("Asia/Shanghai"));
    }
    with("2999-01-01", Value::Null).expect_fields(&[("castAt", "out_of_range")]);
    with("-3000000000000", Value::Null).expect_fields(&[("castAt", "out_of_range")]);
    with("-1", Value::Null).expect_fields(&[("castAt", "invalid_format")]);
    with("yesterday", json!("Mars/Olympus"))
        .expect_fields(&[("castAt", "invalid_format"), ("timeZone", "unknown_value")]);
    for (zone, expected) in [("GMT+08:00", "2026-01-01T19:04:05.000Z"), ("UTC-3", "2026-01-02T06:04:05.000Z")] {
        let session = with("2026-01-02 03:04:05", json!(zone)).expect(201).json();
        assert_eq!(session["castAt"], expected, "{zone}");
        assert!(["+08:00", "-03:00"].contains(&session["timeZone"].as_str().unwrap()), "{session}");
        let read = server.get(&path(&session)).by(&user).send().expect(200).json();
        assert_eq!((&read["timeZone"], &read["chart"]), (&session["timeZone"], &session["chart"]));
    }
}

#[test]
fn accepts_six_lines_for_the_manual_method_only() {
    let (server, user) = fixture(100);
    let with = |method: &str, lines: Value| {
        cast(&server, &user, &json!({ "question": "x", "method": method, "lines": lines })).send()
    };
    for (lines, field, code) in [
        (json!([]), "lines", "required"),
        (Value::Null, "lines", "required"),
        (json!([7, 8, 8, 8, 7]), "lines", "too_short"),
        (json!([7, 8, 8, 8, 7, 6, 9]), "lines", "too_many"),
        (json!([7, 8, 8, 8, 7, 5]), "lines[5]", "out_of_range"),
        (json!([10, 8, 8, 8, 7, 6]), "lines[0]", "out_of_range"),
        (json!([7, 8, 8, 8, 7, -6]), "lines[5]", "out_of_range"),
        (json!([7, 8, 8, 8, 7, 6.5]), "lines[5]", "invalid_type"),
        (json!([7, 8, 8, 8, 7, "six"]), "lines[5]", "invalid_type"),
    ] {
        with("manual", lines).expect_fields(&[(field, code)]);
    }
    with("manual", json!([5, 8, 8, "six", 7, 6]))
        .expect_fields(&[("lines[0]", "out_of_range"), ("lines[3]", "invalid_type")]);
    for method in ["three_coins", "yarrow_stalks"] {
        with(method, json!([7, 8, 8, 8, 7, 6])).expect_fields(&[("lines", "unknown_value")]);
    }
    for method in ["", "coins", "four_coins"] {
        let code = if method.is_empty() { "required" } else { "unknown_value" };
        with(method, Value::Null).expect_fields(&[("method", code)]);
    }
    cast(&server, &user, &json!({})).send().expect_fields(&[("method", "required"), ("question", "required")]);
    let long = json!({ "question": "问".repeat(201), "method": "three_coins" });
    cast(&server, &user, &long).send().expect_fields(&[("question", "too_long")]);
    assert_eq!(with("manual", json!(["7", "8", 8, 8, 7, 6])).expect(201).json()["lines"], json!([7, 8, 8, 8, 7, 6]));
    assert_eq!(points(&server, &user), 90);
}

#[test]
fn rejects_casts_without_points() {
    let (server, user) = fixture(9);
    cast(&server, &user, &simple()).send().expect_problem(402, "insufficient_points");
    assert_eq!(list(&server, &user, &[]), json!({ "items": [], "nextCursor": null }));
    assert_eq!(points(&server, &user), 9);
    // Users who never had points are rejected too.
    let other = server.sign_in(OTHER);
    cast(&server, &other, &simple()).send().expect_problem(402, "insufficient_points");
}

#[test]
fn the_server_sets_the_price() {
    let server = Setup::default().with("POINTS_CAST", 7).in_own_process().start();
    let user = server.sign_in(OWN);
    give(&server, OWN, 20);
    let body = json!({ "question": "x", "method": "three_coins", "points": 0, "pointsSpent": 0, "price": -5, "balance": 99,
        "userId": "999", "id": "0", "createdAt": "2000-01-01", "interpretedAt": "2000-01-01" });
    let session = created(&server, &user, &body);
    assert_eq!((&session["pointsSpent"], &session["balance"]), (&json!(7), &json!(13)));
    let server = server.crash_and_restart(Setup::default().with("POINTS_CAST", 0));
    let session = created(&server, &user, &simple());
    assert_eq!((&session["pointsSpent"], &session["balance"]), (&json!(0), &json!(13)));
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_rejected_question_costs_nothing() {
    let (server, user) = fixture(30);
    let refused = json!({ "question": format!("今天{LISTED}好吗"), "method": "three_coins" });
    let response = cast(&server, &user, &refused).send().expect_problem(422, "content_rejected");
    assert_eq!(response.json()["errors"][0]["field"], "question");
    assert!(!response.text().contains(LISTED), "{}", response.text());
    assert_eq!(points(&server, &user), 30);
    assert_eq!(server.value::<i64>("select count(*) from sessions"), 0);
    assert_eq!(server.value::<i64>("select count(*) from violations where content_type = 'question'"), 1);
    let refused = json!({ "question": QUESTION, "questionType": LISTED, "method": "three_coins" });
    let response = cast(&server, &user, &refused).send().expect_problem(422, "content_rejected");
    assert_eq!(response.json()["errors"][0]["field"], "questionType");
    assert_eq!(server.value::<i64>("select count(*) from sessions"), 0);
}

/// Chance exceeds 45 once in 10^9 runs: the chi-square quantile with three degrees of freedom.
const FAR_TOO_FAR: f64 = 45.0;

#[test]
fn casts_follow_the_odds_of_their_method() {
    const CASTS: u32 = 400;
    let (server, user) = fixture(1_000_000);
    for (method, odds) in [("three_coins", [2, 6, 6, 2]), ("yarrow_stalks", [1, 5, 7, 3])] {
        let body = json!({ "question": "x", "method": method });
        let mut counts = [0_u32; 4];
        for _ in 0..CASTS / 20 {
            for response in send_concurrently((0..20).map(|_| cast(&server, &user, &body)).collect()) {
                let session = response.expect(201).json();
                for line in session["lines"].as_array().unwrap() {
                    counts[usize::try_from(line.as_u64().unwrap() - 6).unwrap()] += 1;
                }
            }
        }
        let expected = odds.map(|odd| f64::from(CASTS * 6 * odd) / 16.0);
        let distance: f64 = counts
            .iter()
            .zip(expected)
            .map(|(found, expected)| (f64::from(*found) - expected).powi(2) / expected)
            .sum();
        assert!(distance < FAR_TOO_FAR, "{method}: {counts:?} where {expected:?} were expected");
    }
}

// Exactly once, all or nothing.

#[test]
fn parallel_casts_spend_no_more_than_the_balance() {
    let (server, user) = fixture(35);
    let responses = send_concurrently((0..50).map(|_| cast(&server, &user, &simple())).collect());
    let mut balances: Vec<_> = responses
        .iter()
        .filter(|response| response.status == 201)
        .map(|response| response.json()["balance"].as_i64().unwrap())
        .collect();
    balances.sort_unstable();
    assert_eq!(balances, [5, 15, 25]);
    assert_eq!(responses.iter().filter(|response| response.status == 402).count(), 47);
    assert_eq!(points(&server, &user), 5);
    assert_eq!(ids(&list(&server, &user, &[])).len(), 3);
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'cast'"), 3);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_repeated_request_casts_once() {
    let (server, user) = fixture(35);
    let with_key = |body: &Value| cast(&server, &user, body).header("idempotency-key", "a");
    let responses = send_concurrently((0..20).map(|_| with_key(&simple())).collect());
    let first: Vec<_> = responses.iter().filter(|response| response.header("idempotency-replayed").is_none()).collect();
    assert_eq!(first.len(), 1);
    assert!(responses.iter().all(|response| response.status == 201 && response.bytes == first[0].bytes));
    assert_eq!(points(&server, &user), 25);
    with_key(&manual("788976")).send().expect_problem(422, "idempotency_key_reused");
    // Replays ignore later changes of the word list.
    server.command(&["words", "add", "换工作"]).expect(0);
    let server = server.restart(Setup::default());
    let again = cast(&server, &user, &simple()).header("idempotency-key", "a").send().expect(201);
    assert_eq!(again.bytes, first[0].bytes);
    assert_eq!(points(&server, &user), 25);
}

#[test]
fn the_key_of_a_deleted_session_does_not_reveal_it() {
    let (server, user) = fixture(35);
    let with_key = || cast(&server, &user, &simple()).header("idempotency-key", "a");
    let session = with_key().send().expect(201).json();
    delete(&server, &user, &session).expect(204);
    let again = with_key().send().expect_problem(404, "not_found");
    assert!(!again.text().contains(QUESTION));
    assert_eq!(points(&server, &user), 25);
    assert_eq!(server.value::<i64>("select length(body) from idempotency_keys"), 0);
}

#[test]
fn deleting_a_session_keeps_later_responses_under_its_key() {
    let (server, user) = fixture(100);
    let with_key = || cast(&server, &user, &simple()).header("idempotency-key", "a");
    let first = with_key().send().expect(201).json();
    server.edit("update idempotency_keys set created_at = created_at - 73 * 3600000");
    let second = with_key().send().expect(201).json();
    assert_ne!(first["id"], second["id"]);
    delete(&server, &user, &first).expect(204);
    assert_eq!(with_key().send().expect(201).json()["id"], second["id"]);
    delete(&server, &user, &second).expect(204);
    with_key().send().expect(404);
}

#[test]
fn kills_lose_and_duplicate_no_cast() {
    let mut server = Setup::default().in_own_process().start();
    let user = server.sign_in(OWN);
    give(&server, OWN, 100_000);
    let mut keys = 0_i64;
    for round in 0..6_u64 {
        let first = keys;
        let url = format!("http://{}/api/v1/sessions", server.address());
        let sender = {
            let user = user.clone();
            std::thread::spawn(move || {
                let mut sent = 0;
                loop {
                    let request = Request::new("POST", &url).by(&user).json(&simple());
                    sent += 1;
                    if request.header("idempotency-key", &(first + sent).to_string()).try_send().is_err() {
                        return sent;
                    }
                }
            })
        };
        std::thread::sleep(Duration::from_millis(25 + 19 * round));
        // Kept for the next server on the same directory.
        server = server.crash_and_restart(Setup::default());
        keys += sender.join().unwrap();
        for key in first + 1..=keys {
            cast(&server, &user, &simple()).header("idempotency-key", &key.to_string()).send().expect(201);
        }
        assert_eq!(points(&server, &user), 100_000 - 10 * keys);
        assert_eq!(server.value::<i64>("select count(*) from sessions"), keys);
        let matched = "select count(*) from sessions join ledger_entries on ref = 'session:' || id";
        assert_eq!(server.value::<i64>(matched), keys);
    }
    assert!(keys > 6, "only {keys} casts were sent");
    server.command(&["ledger", "verify"]).expect(0);
}

// Listing.

#[test]
fn lists_sessions_newest_first_in_pages() {
    let (server, user) = fixture(1_000);
    let mut cast_ids: Vec<_> =
        (0..5).map(|_| created(&server, &user, &simple())["id"].as_str().unwrap().to_owned()).collect();
    cast_ids.reverse();
    assert_eq!(ids(&list(&server, &user, &[])), cast_ids);
    let first = list(&server, &user, &[("limit", "2")]);
    assert_eq!(ids(&first), cast_ids[..2]);
    // Concurrent casts and deletions shift nothing.
    created(&server, &user, &simple());
    delete(&server, &user, &json!({ "id": cast_ids[1] })).expect(204);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = list(&server, &user, &[("limit", "2"), ("cursor", cursor)]);
    assert_eq!(ids(&second), cast_ids[2..4]);
    let third = list(&server, &user, &[("cursor", second["nextCursor"].as_str().unwrap())]);
    assert_eq!((ids(&third), &third["nextCursor"]), (cast_ids[4..].to_vec(), &Value::Null));
    for (name, value, code) in [
        ("cursor", "x", "invalid_format"),
        ("limit", "0", "out_of_range"),
        ("limit", "101", "out_of_range"),
        ("limit", "x", "invalid_type"),
    ] {
        server.get("/api/v1/sessions").by(&user).query(&[(name, value)]).send().expect_fields(&[(name, code)]);
    }
    let of_points = server.get("/api/v1/points/ledger").by(&user).query(&[("limit", "1")]).send().expect(200).json();
    let foreign = of_points["nextCursor"].as_str().unwrap();
    server
        .get("/api/v1/sessions")
        .by(&user)
        .query(&[("cursor", foreign)])
        .send()
        .expect_fields(&[("cursor", "invalid_format")]);
}

#[test]
fn hides_sessions_of_other_users() {
    let (server, user) = fixture(30);
    let other = server.sign_in(OTHER);
    let key = server.api_key("shop");
    let session = created(&server, &user, &simple());
    for target in [session, json!({ "id": "0".repeat(32) })] {
        server.get(&path(&target)).by(&other).send().expect_problem(404, "not_found");
        delete(&server, &other, &target).expect_problem(404, "not_found");
        interpret(&server, &other, &target).send().expect_problem(404, "not_found");
        server.get(&path(&target)).send().expect_problem(401, "unauthenticated");
        server.get(&path(&target)).token(&key).send().expect_problem(403, "forbidden");
    }
    assert_eq!(ids(&list(&server, &other, &[])).len(), 0);
    assert_eq!(ids(&list(&server, &user, &[])).len(), 1);
    server.get("/api/v1/sessions/xyz").by(&user).send().expect_fields(&[("id", "invalid_format")]);
}

#[test]
fn every_list_and_lookup_has_an_index() {
    let server = Setup::default().start();
    let database = server.database_file();
    for sql in [
        "select id from sessions where user_id = ?1 and sequence < ?2 order by sequence desc limit ?3",
        "select coalesce(max(sequence), 0) + 1 from sessions where user_id = ?1",
        "select id from sessions where id = ?1 and user_id = ?2",
        "select trace_id from session_calls where session_id = ?1",
        "update idempotency_keys set body = x'' where caller = ?1 and route = ?2 and key = ?3 and created_at = ?4",
        "delete from sessions where id = ?1",
    ] {
        let mut statement = database.prepare(&format!("explain query plan {sql}")).unwrap();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let step: String = row.get(3).unwrap();
            assert!(!step.starts_with("SCAN") && !step.contains("TEMP B-TREE"), "{sql}: {step}");
        }
    }
}

// Deleting.

/// Returns all column values of all tables except some, as text; blobs in hexadecimal.
fn all_values(server: &Server, except: &str) -> Vec<(String, String)> {
    let database = server.database();
    let mut values = Vec::new();
    for table in database.tables().into_iter().filter(|table| table != except) {
        let names: Vec<_> = database.columns(&table).iter().map(|name| format!("{table}.{name}")).collect();
        for row in database.contents(&table) {
            values.extend(names.iter().cloned().zip(row.iter().map(text)));
        }
    }
    values
}

fn text(value: &OwnedSqlValue) -> String {
    match value {
        OwnedSqlValue::Null => String::new(),
        OwnedSqlValue::Integer(number) => number.to_string(),
        OwnedSqlValue::Real(number) => number.to_string(),
        OwnedSqlValue::Text(text) => text.clone(),
        // A stored response is text in a blob. Dots avoid accidental numbers in hashes.
        OwnedSqlValue::Blob(bytes) => {
            let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{} {}", digits.join("."), String::from_utf8_lossy(bytes))
        }
    }
}

#[test]
fn deleting_a_session_keeps_a_snapshot_and_its_ledger_entry() {
    let (server, user) = fixture(100);
    let session = created(&server, &user, &manual("996699"));
    interpret(&server, &user, &session).send().expect(200);
    delete(&server, &user, &session).expect(204);
    delete(&server, &user, &session).expect_problem(404, "not_found");
    server.get(&path(&session)).by(&user).send().expect_problem(404, "not_found");
    interpret(&server, &user, &session).send().expect_problem(404, "not_found");
    assert_eq!(ids(&list(&server, &user, &[])).len(), 0);
    assert_eq!(points(&server, &user), 90);

    let database = server.database();
    type Snapshot = (String, String, String, i64, Option<i64>, i64, String, i64, i64, String, i64);
    let snapshot: Snapshot = database
        .query_row(
            "select question_type, method, lines, primary_hexagram, relating_hexagram, nuclear_hexagram, day, \
             is_interpreted, interpretation_tenths, model, points_spent from session_snapshots",
            (),
            |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                    row.get(6)?,
                    row.get(7)?,
                    row.get(8)?,
                    row.get(9)?,
                    row.get(10)?,
                ))
            },
        )
        .unwrap();
    let hexagram = &session["hexagram"];
    let number = |of: &str| hexagram[of]["number"].as_i64().unwrap();
    assert_eq!((snapshot.0.as_str(), snapshot.1.as_str(), snapshot.2.as_str()), ("career", "manual", "996699"));
    assert_eq!((snapshot.3, snapshot.4, snapshot.5), (number("primary"), Some(number("relating")), number("nuclear")));
    let day: String = database
        .query_row(
            "select date(created_at / 1000 + 8 * 3600, 'unixepoch') from ledger_entries where kind = 'cast'",
            (),
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!((snapshot.6, snapshot.7, snapshot.10), (day, 1, 10));
    assert!(snapshot.8 < 100 && snapshot.9.starts_with("builtin"), "{} {}", snapshot.8, snapshot.9);
    let entry = "select ref from ledger_entries where kind = 'cast'";
    assert_eq!(server.value::<String>(entry), format!("session:{}", session["id"].as_str().unwrap()));
}

#[test]
fn the_snapshot_of_an_unread_session_says_so() {
    let (server, user) = fixture(100);
    let body =
        json!({ "question": "x", "questionType": "my aunt Mei", "method": "manual", "lines": [7, 7, 7, 7, 7, 7] });
    delete(&server, &user, &created(&server, &user, &body)).expect(204);
    let row: (String, Option<i64>, i64, Option<i64>, Option<String>) = server
        .database()
        .query_row(
            "select question_type, relating_hexagram, is_interpreted, interpretation_tenths, model from session_snapshots",
            (),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)),
        )
        .unwrap();
    assert_eq!(row, ("other".into(), None, 0, None, None));
}

#[test]
fn a_snapshot_shares_no_value_with_remaining_rows() {
    let (mut server, user) = fixture(100);
    let other = server.sign_in(OTHER);
    give(&server, OTHER, 100);
    // Remaining: other sessions of this and another user, and records of the first API generation.
    let mut stays = manual("788976");
    // Interpretations name the day of their casting, which those of other days do not share.
    stays["castAt"] = json!("2026-01-03T03:04:05.678Z");
    let stays = created(&server, &user, &stays);
    interpret(&server, &user, &stays).send().expect(200);
    created(&server, &other, &manual("777888"));
    let ask = json!({ "question": "何时启程？", "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } });
    server.post("/divination/enhanced").by(&user).json(&ask).send().expect(200);
    let goes = json!({ "question": "妈妈的手术顺利吗？", "questionType": "family", "method": "manual", "lines": [9, 9, 6, 6, 9, 9],
        "castAt": "2026-01-02T03:04:05.678Z" });
    let session = cast(&server, &user, &goes).header("idempotency-key", "to-be-forgotten").send().expect(201).json();
    let interpretation = interpret(&server, &user, &session).send().expect(200).json();
    delete(&server, &user, &session).expect(204);
    // The network log is complete after the server ended.
    server.terminate();

    let values = all_values(&server, "session_snapshots");
    // The days of budgets and of figures are the same for everybody.
    let days = ["model_usage.day", "figures.day", "active_users.day"];
    let values: Vec<_> = values.into_iter().filter(|(column, _)| !days.contains(&column.as_str())).collect();
    let database = server.database();
    let names = database.columns("session_snapshots");
    let rows = database.contents("session_snapshots");
    assert_eq!(rows.len(), 1);
    // These are shared by thousands: a few kinds, and numbers below a hundred.
    let kinds = ["question_type", "method", "model"];
    let mut compared = 0;
    for (index, name) in names.iter().enumerate().filter(|(_, name)| !kinds.contains(&name.as_str())) {
        let value = &rows[0][index];
        if let OwnedSqlValue::Integer(number) = value {
            assert!((0..100).contains(number), "{name} is {number}, which identifies the session");
            continue;
        }
        let value = text(value);
        let part = value.split(' ').next().unwrap();
        let is_same = |other: &str| other.contains(part) || other.contains(&part.replace('.', ""));
        let found: Vec<_> = values.iter().filter(|(_, other)| is_same(other)).collect();
        assert!(found.is_empty(), "{name} {value} also occurs in {found:?}");
        compared += 1;
    }
    assert_eq!(compared, 3, "{names:?}");

    // Only the ledger entry's reference and, for other devices, the fact of the deletion remain of the deleted session.
    let own = |value: &Value| value.as_str().unwrap().to_owned();
    let result = own(&interpretation["result"]);
    let cast_at = 1_767_323_045_678_i64.to_string();
    for gone in [own(&goes["question"]), own(&interpretation["traceId"]), cast_at, result, "996699".into()] {
        let found: Vec<_> = values.iter().filter(|(_, value)| value.contains(&gone)).collect();
        assert!(found.is_empty(), "{gone} is still in {found:?}");
    }
    let id = own(&session["id"]);
    let mut places: Vec<_> =
        values.iter().filter(|(_, value)| value.contains(&id)).map(|(name, _)| name.as_str()).collect();
    places.sort_unstable();
    assert_eq!(places, ["deletions.subject", "ledger_entries.ref"]);
}

// Interpreting.

/// Returns the events of a stream: names and data.
fn events(text: &str) -> Vec<(String, Value)> {
    let event = |block: &str| {
        let (_, block) = block.split_once("event: ")?;
        let (name, data) = block.split_once("\ndata: ")?;
        Some((name.to_owned(), serde_json::from_str(data).unwrap()))
    };
    text.split("\n\n").filter_map(event).collect()
}

#[test]
fn stores_a_successful_interpretation_in_the_session() {
    let (server, user) = fixture(100);
    let session = created(&server, &user, &manual("788976"));
    let first = interpret(&server, &user, &session).send().expect(200).json();
    assert_eq!((&first["status"], &first["provider"]), (&json!("succeeded"), &json!("builtin")));
    assert!(first["result"].as_str().unwrap().contains("泽雷随"), "{first}");
    assert_eq!(points(&server, &user), 90);
    // Another language would need another text, but one exists already.
    for _ in 0..2 {
        let again = interpret(&server, &user, &session).header("accept-language", "en").send().expect(200).json();
        assert_eq!(again, first);
    }
    let found = server.get(&path(&session)).by(&user).send().expect(200).json();
    assert_eq!(found["interpretation"], first);
    assert!(found["interpretedAt"].is_string());
    let listed = list(&server, &user, &[]);
    assert_eq!(listed["items"][0]["interpretedAt"], found["interpretedAt"]);
    assert!(listed["items"][0].get("interpretation").is_none());
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 1);
}

#[test]
fn interprets_a_session_as_a_stream() {
    let (server, user) = fixture(100);
    let session = created(&server, &user, &manual("788976"));
    let stream = || interpret(&server, &user, &session).header("accept", "text/event-stream").send().expect(200);
    let reported = |response: &Response| {
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        let events = events(&response.text());
        let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names[0], names[names.len() - 1]), ("meta", "done"), "{names:?}");
        let pieces: String =
            events[1..events.len() - 1].iter().map(|(_, data)| data["text"].as_str().unwrap()).collect();
        let done = events[events.len() - 1].1.clone();
        assert_eq!((&done["result"], &done["traceId"]), (&json!(pieces), &events[0].1["traceId"]));
        done
    };
    let first = reported(&stream());
    assert_eq!(reported(&stream()), first);
    assert_eq!(interpret(&server, &user, &session).send().expect(200).json(), first);
    let no_one = server.post(&format!("/api/v1/sessions/{}/interpretation", "0".repeat(32)));
    no_one.by(&user).header("accept", "text/event-stream").send().expect_problem(404, "not_found");
}

#[test]
fn repeats_an_interpretation_until_it_succeeds() {
    let failing = FakeModel::start(ModelBehaviour::Status(400));
    let server = failing.setup().in_own_process().start();
    let user = server.sign_in(OWN);
    give(&server, OWN, 10);
    let session = created(&server, &user, &manual("788976"));
    for _ in 0..2 {
        let failed = interpret(&server, &user, &session).send();
        assert!(failed.status >= 500 && failed.json()["traceId"].is_string(), "{}", failed.text());
    }
    let found = server.get(&path(&session)).by(&user).send().expect(200).json();
    assert!(found["interpretedAt"].is_null() && found.get("interpretation").is_none(), "{found}");
    let working = FakeModel::start(ModelBehaviour::Pieces(vec!["泽雷", "随"]));
    let server = server.crash_and_restart(working.setup());
    let first = interpret(&server, &user, &session).send().expect(200).json();
    assert_eq!((&first["result"], &first["model"]), (&json!("泽雷随"), &json!("stub-1")));
    assert_eq!(interpret(&server, &user, &session).send().expect(200).json(), first);
    assert_eq!(working.calls().len(), 1);
    // The model received the lines and no personal data.
    let message = working.calls()[0].body.to_string();
    assert!(message.contains("泽雷随") && message.contains(QUESTION) && !message.contains(OWN), "{message}");
    // The failed calls are deleted with the session.
    delete(&server, &user, &session).expect(204);
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 0);
    assert_eq!(server.value::<i64>("select count(*) from session_calls"), 0);
}

#[test]
fn runs_one_interpretation_of_a_session_at_a_time() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["泽雷", "随"]));
    let server = model.setup().start();
    let user = server.sign_in(OWN);
    give(&server, OWN, 100);
    let (session, another) = (created(&server, &user, &manual("788976")), created(&server, &user, &manual("777777")));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| interpret(&server, &user, &session).send());
        model.wait_for_calls(1);
        let same = scope.spawn(|| interpret(&server, &user, &session).send());
        let second = scope.spawn(|| interpret(&server, &user, &another).send());
        model.wait_for_calls(2);
        model.open_gate();
        let first = first.join().unwrap().expect(200).json();
        assert_eq!(first["result"], "泽雷随");
        assert_eq!(same.join().unwrap().expect(200).json(), first);
        second.join().unwrap().expect(200);
    });
    assert_eq!(model.calls().len(), 2);
}

#[test]
fn a_call_interrupted_by_a_crash_does_not_block_the_session() {
    let silent = FakeModel::start(ModelBehaviour::Silent);
    let server = silent.setup().in_own_process().start();
    let user = server.sign_in(OWN);
    give(&server, OWN, 10);
    let session = created(&server, &user, &manual("788976"));
    let server = std::thread::scope(|scope| {
        let request = interpret(&server, &user, &session);
        let cut_off = scope.spawn(|| request.try_send().is_err());
        silent.wait_for_calls(1);
        let server = server.crash_and_restart(Setup::default());
        assert!(cut_off.join().unwrap());
        server
    });
    assert_eq!(interpret(&server, &user, &session).send().expect(200).json()["status"], "succeeded");
}

#[test]
fn deleting_a_session_during_interpretation_leaves_nothing() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["泽雷", "随"]));
    let server = model.setup().start();
    let user = server.sign_in(OWN);
    give(&server, OWN, 10);
    let session = created(&server, &user, &manual("788976"));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| interpret(&server, &user, &session).send());
        model.wait_for_calls(1);
        delete(&server, &user, &session).expect(204);
        model.open_gate();
        running.join().unwrap().expect_problem(404, "not_found");
    });
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 0);
    assert_eq!(server.value::<i64>("select is_interpreted from session_snapshots"), 0);
}

#[test]
fn a_question_listed_meanwhile_reaches_no_model() {
    let (server, user) = fixture(100);
    let session = created(&server, &user, &simple());
    server.command(&["words", "add", "换工作"]).expect(0);
    let server = server.restart(Setup::default());
    interpret(&server, &user, &session).send().expect_problem(422, "content_rejected");
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 0);
}

#[test]
fn keeps_the_newest_attempts_of_a_session() {
    let model = FakeModel::start(ModelBehaviour::Status(400));
    let server = model.setup().start();
    let user = server.sign_in(OWN);
    give(&server, OWN, 100);
    let session = created(&server, &user, &simple());
    let fill = format!(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 60) \
         insert into interpretations (trace_id, user_id, question, status, provider, model, prompt_version, created_at, \
         finished_at, of_session) select 'old-' || n, {}, 'q', 'cancelled', 'p', 'm', 'v', 1, 1, 1 from counter; \
         insert into session_calls (trace_id, session_id) select trace_id, {} from interpretations",
        user.user_id, session["id"]
    );
    server.edit(&fill.replace('"', "'"));
    let stored = || -> (i64, i64) {
        let calls = server.value("select count(*) from session_calls");
        assert_eq!(server.value::<i64>("select count(*) from interpretations"), calls);
        (calls, server.value("select count(*) from interpretations where trace_id = 'old-60'"))
    };
    // Pruning deletes a few more than arrive, and none of the newest.
    for expected in [45, 30, 21, 21] {
        interpret(&server, &user, &session).send().expect_problem(502, "provider_failed");
        assert_eq!(stored(), (expected, 1));
    }
}
