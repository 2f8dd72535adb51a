//! `/api/v1/points` and `yarrow points`: the balance that pays for castings.

use serde_json::{Value, json};

use crate::support::{Caller, Server, Setup};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";

fn adjust(server: &Server, who: &str, points: &str) -> Value {
    server.command(&["points", "adjust", who, points, "--reason", "goodwill"]).expect(0).json()
}

fn balance(server: &Server, user: &Caller) -> Value {
    server.get("/api/v1/points").by(user).send().expect(200).json()
}

fn ledger(server: &Server, user: &Caller, query: &[(&str, &str)]) -> Value {
    server.get("/api/v1/points/ledger").by(user).query(query).send().expect(200).json()
}

fn deltas(page: &Value) -> Vec<i64> {
    page["items"].as_array().unwrap().iter().map(|entry| entry["delta"].as_i64().unwrap()).collect()
}

#[test]
fn a_balance_is_the_sum_of_its_entries() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(OWN), server.sign_in(OTHER));
    assert_eq!(balance(&server, &user), json!({ "balance": 0 }));
    assert_eq!(ledger(&server, &user, &[]), json!({ "items": [], "nextCursor": null }));
    assert_eq!(adjust(&server, OWN, "30"), json!({ "userId": user.user_id, "balance": 30 }));
    assert_eq!(adjust(&server, &user.user_id, "-12")["balance"], 18);
    assert_eq!(balance(&server, &user), json!({ "balance": 18 }));
    assert_eq!(balance(&server, &other), json!({ "balance": 0 }));
    let page = ledger(&server, &user, &[]);
    let newest = &page["items"][0];
    assert_eq!(deltas(&page), [-12, 30]);
    assert_eq!(
        (&newest["sequence"], &newest["balanceAfter"], &newest["kind"]),
        (&json!(2), &json!(18), &json!("adjust"))
    );
    assert_eq!((&newest["seq"], &newest["asset"]), (&json!(2), &json!("point")));
    assert!(newest["ref"].is_null() && newest["createdAt"].is_string(), "{newest}");
    // Coins are another asset.
    assert_eq!(server.get("/coin/balance").by(&user).send().expect(200).json()["balance"], 0);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn pages_entries_while_others_arrive() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(OWN), server.sign_in(OTHER));
    for points in 1..=5 {
        adjust(&server, OWN, &points.to_string());
    }
    let first = ledger(&server, &user, &[("limit", "2")]);
    assert_eq!(deltas(&first), [5, 4]);
    adjust(&server, OWN, "6");
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = ledger(&server, &user, &[("limit", "2"), ("cursor", cursor)]);
    assert_eq!(deltas(&second), [3, 2]);
    let last = ledger(&server, &user, &[("cursor", second["nextCursor"].as_str().unwrap())]);
    assert_eq!((deltas(&last), &last["nextCursor"]), (vec![1], &Value::Null));
    // A cursor belongs to its user.
    let path = "/api/v1/points/ledger";
    server.get(path).by(&other).query(&[("cursor", cursor)]).send().expect_fields(&[("cursor", "invalid_format")]);
    for (name, value, code) in
        [("cursor", "x", "invalid_format"), ("limit", "0", "out_of_range"), ("limit", "101", "out_of_range")]
    {
        server.get(path).by(&user).query(&[(name, value)]).send().expect_fields(&[(name, code)]);
    }
}

#[test]
fn a_correction_is_in_ledger_and_audit() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    adjust(&server, OWN, "30");
    let database = server.database();
    let row: (String, String, String, String, i64, i64) = database
        .query_row("select actor, action, asset, reason, balance_before, balance_after from ledger_audit", (), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
        })
        .unwrap();
    assert_eq!(row, ("cli".into(), "adjust".into(), "point".into(), "goodwill".into(), 0, 30));
    let shown = server.command(&["points", "show", OWN]).expect(0).json();
    assert_eq!(
        (&shown["userId"], &shown["asset"], &shown["balance"]),
        (&json!(user.user_id), &json!("point"), &json!(30))
    );
    assert_eq!(shown["items"][0]["kind"], "adjust");
    let audited = server.command(&["audit"]).expect(0).json();
    let actions: Vec<_> = audited["items"].as_array().unwrap().iter().map(|row| row["action"].clone()).collect();
    assert_eq!(actions, ["yarrow points show", "yarrow points adjust"]);
}

#[test]
fn corrections_have_a_range_and_never_overdraw() {
    let server = Setup::default().start();
    server.sign_in(OWN);
    for points in ["0", "1000001", "-1000001", "1.5", "ten", "-9223372036854775808"] {
        server.command(&["points", "adjust", OWN, points, "--reason", "x"]).expect(2);
    }
    server.command(&["points", "adjust", OWN, "5"]).expect(2);
    server.command(&["points", "adjust", OTHER, "5", "--reason", "x"]).expect(4);
    let refused = server.command(&["points", "adjust", OWN, "-1", "--reason", "x"]).expect(1);
    assert!(refused.stderr().contains("points"), "{}", refused.stderr());
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries"), 0);
}

#[test]
fn repairs_a_locked_account_from_its_entries() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    adjust(&server, OWN, "30");
    assert_eq!(server.command(&["points", "repair", OWN]).expect(0).json()["repaired"], false);
    server.edit("update balances set balance = 500 where asset = 'point'");
    server.command(&["ledger", "verify"]).expect(5);
    server.command(&["points", "adjust", OWN, "5", "--reason", "x"]).expect(1);
    let repaired = server.command(&["points", "repair", OWN, "--reason", "as verified"]).expect(0).json();
    let expected = json!({ "userId": user.user_id, "balance": 30, "repaired": true, "discrepancies": [] });
    assert_eq!(repaired, expected);
    assert_eq!(adjust(&server, OWN, "5")["balance"], 35);
    server.command(&["ledger", "verify"]).expect(0);
}
