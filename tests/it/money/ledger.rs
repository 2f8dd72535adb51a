//! The ledger against an independent model, tampering and its own triggers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Caller, Database, Server, Setup, drop_trigger, eventually, open_app};

const PHONES: [&str; 3] = ["13800138000", "13900139000", "13700137000"];

/// A small generator, so that a failed run can be repeated from its seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// The expected ledger: each account's entries as kind and delta.
#[derive(Default)]
struct FakeModel(BTreeMap<usize, Vec<(&'static str, i64)>>);

impl FakeModel {
    fn balance(&self, user: usize) -> i64 {
        self.0.get(&user).map_or(0, |entries| entries.iter().map(|(_, delta)| delta).sum())
    }

    fn post(&mut self, user: usize, kind: &'static str, delta: i64) {
        self.0.entry(user).or_default().push((kind, delta));
    }

    fn by_kind(&self) -> BTreeMap<String, i64> {
        let mut sums = BTreeMap::new();
        for (kind, delta) in self.0.values().flatten() {
            *sums.entry((*kind).to_owned()).or_default() += delta;
        }
        sums
    }
}

/// Returns the contents of the ledger as text.
fn dump(database: &Database) -> String {
    let mut all = Vec::new();
    for sql in [
        "select user_id || ':' || asset || ':' || balance || ':' || last_sequence || ':' || \
         coalesce(cast(suspended_at as text), '') from balances order by user_id, asset",
        "select seq || ':' || user_id || ':' || asset || ':' || sequence || ':' || delta || ':' || balance_after || \
         ':' || kind || ':' || coalesce(ref, '') || ':' || created_at from ledger_entries order by seq",
        "select id || ':' || hex(hash) from ledger_audit order by id",
    ] {
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
        all.extend(rows.map(Result::unwrap));
    }
    all.join("\n")
}

/// Compares everything derivable from the model with the stored rows.
fn compare(database: &Database, model: &FakeModel, users: &[Caller], seed: u64) {
    for (index, user) in users.iter().enumerate() {
        let stored: (i64, i64) = database
            .query_row(
                "select balance, last_sequence from balances where user_id = ?1 and asset = 'coin'",
                [&user.user_id],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        let entries = model.0.get(&index).map_or(0, Vec::len);
        assert_eq!(stored, (model.balance(index), i64::try_from(entries).unwrap()), "seed {seed}");
        assert!(stored.0 >= 0, "seed {seed}");
        let mut statement = database
            .prepare("select sequence, kind, delta, balance_after from ledger_entries where user_id = ?1 order by seq")
            .unwrap();
        let rows = statement.query_map([&user.user_id], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
        });
        let mut running = 0;
        for (position, row) in rows.unwrap().enumerate() {
            let (kind, delta) = model.0[&index][position];
            running += delta;
            let sequence = i64::try_from(position + 1).unwrap();
            assert_eq!(row.unwrap(), (sequence, kind.to_owned(), delta, running), "seed {seed}");
        }
    }
    let mut statement = database.prepare("select kind, sum(delta) from ledger_entries group by kind").unwrap();
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(rows.map(Result::unwrap).collect::<BTreeMap<String, i64>>(), model.by_kind(), "seed {seed}");
}

#[test]
fn long_sequences_of_operations_match_the_model() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("LEDGER_SEED").map_or(u64::from(now.subsec_nanos()), |seed| seed.parse().unwrap()) | 1;
    println!("LEDGER_SEED={seed}");
    let mut random = Random(seed);
    let server = Setup::default().with("COINS_CONSUME", 3).start();
    let users: Vec<_> = PHONES.iter().map(|phone| server.sign_in(phone)).collect();
    let operator = server.api_key("model");
    let database = server.database();
    let mut model = FakeModel::default();
    let mut keys: Vec<(usize, String, u16, Vec<u8>)> = Vec::new();
    for step in 0..300 {
        let index = usize::try_from(random.below(3)).unwrap();
        let user = &users[index];
        let before = dump(&database);
        match random.below(10) {
            0..3 => {
                let count = i64::try_from(random.below(8) + 1).unwrap();
                let body = json!({ "phoneNumber": user.phone_number, "coinCount": count });
                let response = server.post("/coin/increase/phone").token(&operator).json(&body).send().expect(200);
                model.post(index, "adjust", count);
                assert_eq!(response.json()["balance"], model.balance(index), "seed {seed}");
            }
            3..6 => {
                let key = format!("step-{step}");
                let response = server.post("/coin/consume").by(user).header("idempotency-key", &key).send();
                let pays = model.balance(index) >= 3;
                assert_eq!(response.status, if pays { 200 } else { 402 }, "seed {seed}");
                if pays {
                    model.post(index, "consume", -3);
                } else {
                    assert_eq!(dump(&database), before, "a rejected operation left a trace, seed {seed}");
                }
                keys.push((index, key, response.status, response.bytes));
            }
            6 if !keys.is_empty() => {
                let chosen = usize::try_from(random.below(keys.len() as u64)).unwrap();
                let (owner, key, status, bytes) = &keys[chosen];
                let repeated = server.post("/coin/consume").by(&users[*owner]).header("idempotency-key", key).send();
                assert_eq!((repeated.status, &repeated.bytes), (*status, bytes), "seed {seed}");
                assert_eq!(dump(&database), before, "a repeated operation left a trace, seed {seed}");
            }
            7 => {
                server.post("/coin/reset").by(user).send().expect(200);
                let balance = model.balance(index);
                if balance > 0 {
                    model.post(index, "reset", -balance);
                }
            }
            8 => {
                let body = json!({ "phoneNumber": user.phone_number, "coinCount": random.below(2) * 2_000_000 });
                server.post("/coin/increase/phone").token(&operator).json(&body).send().expect(422);
                assert_eq!(dump(&database), before, "a rejected operation left a trace, seed {seed}");
            }
            _ => {
                let other = &users[(index + 1) % 3];
                let foreign = [("userId", other.user_id.as_str())];
                server.post("/coin/consume").by(user).form(&foreign).send().expect(403);
                server.post("/coin/increase/phone").by(user).form(&[("coinCount", "1")]).send().expect(403);
                assert_eq!(dump(&database), before, "a rejected operation left a trace, seed {seed}");
            }
        }
        compare(&database, &model, &users, seed);
    }
    let report = server.command(&["ledger", "verify"]).expect(0).json();
    assert_eq!(report["entries"], model.0.values().map(Vec::len).sum::<usize>(), "seed {seed}");
}

/// Starts a server whose first user has four entries: 10, then three uses.
fn with_history() -> (Server, Caller, Caller, String) {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(PHONES[0]), server.sign_in(PHONES[1]));
    let key = server.api_key("shop");
    server.grant(&key, PHONES[0], 10);
    server.grant(&key, PHONES[1], 10);
    for _ in 0..3 {
        server.post("/coin/consume").by(&user).send().expect(200);
    }
    server.command(&["ledger", "verify"]).expect(0);
    (server, user, other, key)
}

/// Changes stored rows as somebody with access to the file could.
fn tamper(server: &Server, sql: &str) {
    let drop = |table| {
        [format!("{table}_forbids_update"), format!("{table}_forbids_delete")].map(|name| drop_trigger(&name, table))
    };
    let triggers = ["ledger_entries", "ledger_audit", "audit"].map(drop).as_flattened().join("; ");
    server.database().execute_batch(&format!("begin immediate; {triggers}; {sql}; commit;")).unwrap();
}

fn codes(report: &Value) -> Vec<String> {
    let found = report["discrepancies"].as_array().unwrap();
    let mut codes: Vec<_> = found.iter().map(|found| found["code"].as_str().unwrap().to_owned()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn detects_every_kind_of_tampering() {
    let cases: [(&str, &[&str]); 9] = [
        (
            "update ledger_entries set delta = 100 where seq = 1",
            &["balance_after_wrong", "balance_wrong", "entry_not_audited"],
        ),
        ("update ledger_entries set balance_after = 99 where seq = 3", &["balance_after_wrong"]),
        ("update ledger_entries set sequence = 9 where seq = 5", &["last_sequence_wrong", "sequence_gap"]),
        (
            "delete from ledger_entries where seq = 4",
            &["balance_after_wrong", "balance_wrong", "entries_missing", "sequence_gap"],
        ),
        ("delete from ledger_entries where seq = 5", &["balance_wrong", "last_sequence_wrong"]),
        ("update balances set balance = balance + 1 where user_id = 1", &["balance_wrong"]),
        ("update balances set last_sequence = 5 where user_id = 1", &["last_sequence_wrong"]),
        ("delete from balances where user_id = 1", &["account_missing"]),
        ("update ledger_audit set reason = 'gift' where id = 1", &["audit_chain_broken"]),
    ];
    for (sql, expected) in cases {
        let (server, user, ..) = with_history();
        assert_eq!(user.user_id, "1");
        tamper(&server, sql);
        let report = server.command(&["ledger", "verify"]).expect(5).json();
        assert_eq!(codes(&report), *expected, "{sql}");
        assert_eq!(report["consistent"], false);
        assert_eq!(report["suspended"], i32::from(!expected.contains(&"audit_chain_broken")), "{sql}");
    }
}

#[test]
fn detects_rows_removed_from_the_audit_chain() {
    for (sql, expected) in [
        ("delete from ledger_audit where id = 1", ["audit_chain_broken", "entry_not_audited"].as_slice()),
        ("delete from ledger_audit where id = 2", &["audit_chain_broken", "entry_not_audited"]),
        ("update ledger_audit set balance_after = 11 where id = 2", &["audit_chain_broken", "entry_not_audited"]),
        ("update ledger_audit set hash = zeroblob(32) where id = 1", &["audit_chain_broken"]),
    ] {
        let (server, ..) = with_history();
        tamper(&server, sql);
        assert_eq!(codes(&server.command(&["ledger", "verify"]).expect(5).json()), expected, "{sql}");
    }
}

#[test]
fn a_manual_entry_without_an_audit_event_is_reported_as_forged() {
    let (server, user, ..) = with_history();
    tamper(
        &server,
        "insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, created_at) \
         select user_id, asset, last_sequence + 1, 1000, balance + 1000, 'adjust', 1 from balances where user_id = 1; \
         update balances set balance = balance + 1000, last_sequence = last_sequence + 1 where user_id = 1",
    );
    let report = server.command(&["ledger", "verify"]).expect(5).json();
    assert_eq!(codes(&report), ["entry_not_audited", "entry_not_genuine"], "{report}");
    assert_eq!(report["discrepancies"][0]["userId"], user.user_id, "{report}");
}

/// Appends an entry to the account of user 1 and adjusts its balance.
fn forged(delta: i64, kind: &str, reference: &str) -> String {
    format!(
        "insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, ref, created_at) \
         select user_id, asset, last_sequence + 1, {delta}, balance + {delta}, '{kind}', {reference}, 1 \
         from balances where user_id = 1; \
         update balances set balance = balance + {delta}, last_sequence = last_sequence + 1 where user_id = 1"
    )
}

/// Every edit leaves sums, sequences and references consistent.
#[test]
fn detects_consistent_forgeries() {
    let swap =
        |table: &str| format!("update {table} set user_id = user_id + 100; update {table} set user_id = 103 - user_id");
    for (sql, expected) in [
        (forged(5, "consume", "null"), "sign_wrong"),
        (forged(-1, "topup", "'order:1'"), "sign_wrong"),
        (forged(5, "invite_bonus", "null"), "reference_missing"),
        (forged(5, "signup_bonus", "'address:forged'"), "entry_not_genuine"),
        (forged(5, "topup", "'order:forged'"), "entry_not_genuine"),
        (format!("{}; {}", swap("ledger_entries"), swap("balances")), "entry_not_genuine"),
        ("update ledger_entries set created_at = created_at - 1 where kind = 'consume'".into(), "entry_not_genuine"),
        (
            "update ledger_entries set delta = -2, balance_after = balance_after - 1 where seq = 5; \
             update balances set balance = balance - 1 where user_id = 1"
                .into(),
            "entry_not_genuine",
        ),
        (
            "delete from ledger_entries where seq = 5; \
             update balances set balance = balance + 1, last_sequence = last_sequence - 1 where user_id = 1"
                .into(),
            "account_not_genuine",
        ),
        ("update ledger_audit set reason = 'gift', hash = randomblob(32) where id = 2".into(), "audit_chain_broken"),
        (
            "delete from ledger_audit where id = 2; update settings set value = '1:' where name = 'ledger.audit_last'"
                .into(),
            "audit_chain_broken",
        ),
        ("update audit set actor = 'admin:root' where id = 1".into(), "audit_not_genuine"),
        ("delete from audit where id = 1".into(), "audit_not_genuine"),
        ("delete from audit where id = (select max(id) from audit)".into(), "audit_not_genuine"),
        (
            "delete from audit where id = (select max(id) from audit); \
             update settings set value = (select max(id) from audit) || ':' where name = 'audit.last'"
                .into(),
            "audit_not_genuine",
        ),
        ("update settings set value = '0000000000000000' where name = 'auth.key_fingerprint'".into(), "key_unknown"),
    ] {
        let (server, user, ..) = with_history();
        tamper(&server, &sql);
        let report = server.command(&["ledger", "verify"]).expect(5).json();
        assert!(codes(&report).iter().any(|code| code == expected), "{sql}: {report}");
        // A later posting or audit event does not hide it.
        let _ = server.post("/coin/consume").by(&user).send();
        let report = server.command(&["ledger", "verify"]).expect(5).json();
        assert!(codes(&report).iter().any(|code| code == expected), "{sql}: {report}");
    }
}

#[test]
fn accepting_another_key_seals_the_ledger_again() {
    let (server, ..) = with_history();
    let key = [("YARROW_AUTH_SECRET_KEY", "another key of at least thirty-two bytes")];
    server.command_with(&key, &["ledger", "verify"]).expect(5);
    server.command_with(&key, &["doctor", "--listen", "127.0.0.1:0", "--accept-key"]).expect_sound();
    server.command_with(&key, &["ledger", "verify"]).expect(0);
    server.command(&["ledger", "verify"]).expect(5);
}

#[test]
fn the_payment_report_is_made_daily() {
    let mut server = Setup::default().with_fast_jobs().in_own_process().start();
    let user = server.sign_in(PHONES[0]);
    server.edit(&forged(5, "topup", "'order:invented'").replace("user_id = 1", &format!("user_id = {}", user.user_id)));
    let made = || server.database().execute("delete from settings where name = 'payments.report'", ()).unwrap();
    eventually("a first report", || made() > 0);
    server.wait_for_line("payments and ledger disagree");
    eventually("the alert", || server.command(&["alerts", "list"]).text().contains("payment_mismatch"));
}

#[test]
fn locks_an_inconsistent_account_until_repair() {
    let (server, user, other, key) = with_history();
    assert_eq!(server.get("/readyz").send().expect(200).json()["ledger"], "consistent");
    tamper(&server, "update balances set balance = 1000 where user_id = 1");
    server.command(&["ledger", "verify"]).expect(5);
    std::thread::sleep(std::time::Duration::from_millis(100));
    let ready = server.get("/readyz").send().expect(200).json();
    assert_eq!((&ready["ledger"], &ready["accountsSuspended"]), (&json!("inconsistent"), &json!(1)));
    let refused = server.post("/coin/consume").by(&user).send().expect_problem(503, "account_inconsistent");
    assert!(refused.header("retry-after").is_some());
    server.post("/coin/reset").by(&user).send().expect_problem(503, "account_inconsistent");
    let more = json!({ "phoneNumber": PHONES[0], "coinCount": 1 });
    let more = server.post("/coin/increase/phone").token(&key).json(&more);
    more.send().expect_problem(503, "account_inconsistent");
    // Other accounts are not affected.
    server.post("/coin/consume").by(&other).send().expect(200);

    let done = server.post("/coin/sync").token(&key).send().expect(200).json();
    assert_eq!((&done["repaired"], &done["issues"]), (&json!(1), &json!([])));
    let paid = server.post("/coin/consume").by(&user).send().expect(200).json();
    assert_eq!(paid["balance"], 6);
    assert_eq!(server.get("/readyz").send().expect(200).json()["ledger"], "consistent");
    server.command(&["ledger", "verify"]).expect(0);
}

/// Sends every kind of posting to an account. Each is rejected, and money that arrives waits for a person.
fn expect_no_posting(server: &Server, user: &Caller, key: &str, [asset, order_no, paid, invite, case]: [&str; 5]) {
    let post = |path: &str, body: Value| server.post(path).by(user).json(&body).send();
    let refused = |response: crate::support::Response| {
        assert_eq!((response.status, &response.json()["code"]), (503, &json!("account_inconsistent")), "{case}");
    };
    if asset == "coin" {
        server.post(&format!("/admin/payments/{order_no}/sandbox-pay")).token(key).send().expect(200);
        assert_eq!(server.order_state(order_no).0, "review", "{case}");
        refused(post("/coin/consume", json!({})));
        refused(post("/coin/consume/phone", json!({ "phoneNumber": PHONES[0] })));
        refused(post("/coin/reset", json!({})));
        let grant = json!({ "phoneNumber": PHONES[0], "coinCount": 1 });
        refused(server.post("/coin/increase/phone").token(key).json(&grant).send());
        let refund = json!({ "amount": "6.00", "reason": "test" });
        server.post(&format!("/admin/payments/{paid}/refund")).token(key).json(&refund).send().expect(200);
        assert_eq!(server.order_state(paid).0, "review", "{case}");
    } else {
        server.command(&["points", "adjust", PHONES[0], "1", "--reason", "test"]).expect(1);
        refused(post("/api/v1/sessions", json!({ "question": "x", "method": "three_coins" })));
        refused(post("/api/v1/invite/redeem", json!({ "code": invite })));
    }
    refused(post("/api/v1/points/exchange", json!({ "coins": 1 })));
}

#[test]
fn no_posting_uses_an_account_that_was_changed_in_the_file() {
    let setup = Setup::default().with("POINTS_PER_COIN", 1).with("COINS_INITIAL", 100).with("POINTS_SIGNUP_BONUS", 100);
    let server = setup.start();
    let ready = || server.get("/readyz").send().expect(200).json();
    // The daily one is not due then, so that the postings find the changes.
    server.command(&["ledger", "verify"]).expect(0);
    let (user, key) = (server.sign_in(PHONES[0]), server.api_key("shop"));
    let invite = server.get("/api/v1/invite").by(&server.sign_in(PHONES[1])).send().expect(200).json();
    let id = &user.user_id;
    server.edit(&drop_trigger("ledger_entries_forbids_update", "ledger_entries"));
    server.command(&["points", "adjust", PHONES[0], "300", "--reason", "test"]).expect(0);
    let fix = || {
        let fixed = server.post(&format!("/admin/user-data/fix/{}", PHONES[0])).token(&key).json(&json!({}));
        fixed.send().expect(200).json()["consistent"].clone()
    };
    for (asset, other) in [("coin", "point"), ("point", "coin")] {
        let account = format!("from balances where user_id = {id} and asset = '{asset}'");
        let change = |set: &str| format!("update balances set {set} where user_id = {id} and asset = '{asset}'");
        // A changed account is repaired from its entries. A changed entry is not, so the test restores it.
        let mut cases = vec![
            format!("delete {account}"),
            change("user_id = user_id + 1000"),
            change(&format!("asset = '{other}', user_id = user_id + 2000")),
            change("balance = balance + 1"),
            change("last_sequence = last_sequence - 1"),
            change("last_sequence = last_sequence + 1"),
            change("seal = null"),
        ];
        let entry_changes = [
            "user_id = user_id + 1000".to_owned(),
            format!("asset = '{other}', sequence = sequence + 1000"),
            "sequence = sequence + 1".to_owned(),
            "delta = delta - 1".to_owned(),
            "balance_after = balance_after + 1".to_owned(),
            "kind = 'refund_reversal'".to_owned(),
            "ref = 'session:forged'".to_owned(),
            "created_at = created_at + 1".to_owned(),
            "seal = null".to_owned(),
        ];
        cases.extend(entry_changes.map(|set| format!("update ledger_entries set {set} where seq = LAST")));
        for case in &cases {
            let package = json!({ "amount": "6.00", "coinCount": 60 });
            let order = || {
                let order = server.post("/payment/gateway/order").by(&user).json(&package).send().expect(200).json();
                order["orderNo"].as_str().unwrap().to_owned()
            };
            let paid = order();
            server.post(&format!("/admin/payments/{paid}/sandbox-pay")).token(&key).send().expect(200);
            let unpaid = order();
            let last = format!("select max(seq) from ledger_entries where user_id = {id} and asset = '{asset}'");
            let last: i64 = server.value(&last);
            let sql = case.replace("LAST", &last.to_string());
            let entries = || server.value::<i64>("select count(*) from ledger_entries");
            let before = entries();
            server.edit(&format!("create table copied as select * from ledger_entries where seq = {last}; {sql}"));
            let facts = [asset, &unpaid, &paid, invite["code"].as_str().unwrap(), &sql];
            expect_no_posting(&server, &user, &key, facts);
            assert_eq!(entries(), before, "{sql}");
            // The alert `ledger_mismatch` fires for this state.
            assert_eq!(ready()["ledger"], "inconsistent", "{sql}");
            let columns =
                ["user_id", "asset", "sequence", "delta", "balance_after", "kind", "ref", "created_at", "seal"];
            let restored = columns.map(|name| format!("{name} = (select {name} from copied)")).join(", ");
            let undo = format!("update ledger_entries set {restored} where seq = {last}; drop table copied");
            server.edit(&format!("{undo}; delete from balances where user_id > 1000"));
            assert_eq!(fix(), true, "{sql}");
            let (path, body, status) = match asset {
                "coin" => ("/coin/consume", json!({}), 200),
                _ => ("/api/v1/sessions", json!({ "question": "x", "method": "three_coins" }), 201),
            };
            server.post(path).by(&user).json(&body).send().expect(status);
        }
    }
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_purged_ledger_is_consistent() {
    let (server, ..) = with_history();
    tamper(&server, "update balances set balance = 1000 where user_id = 1");
    server.command(&["ledger", "verify"]).expect(5);
    server.command(&["cleanup", "all", "--yes"]).expect(0);
    let reported = || server.get("/readyz").send().expect(200).json();
    eventually("the new ledger", || reported()["ledger"] == "consistent" && reported()["accountsSuspended"] == 0);
}

#[test]
fn reports_broken_entries_and_never_repairs_them() {
    let (server, user, _, key) = with_history();
    tamper(&server, "update ledger_entries set delta = 100 where seq = 1");
    let entries = dump(&server.database()).lines().filter(|line| line.contains("adjust")).count();
    let done = server.post("/coin/sync").token(&key).send().expect(200).json();
    assert_eq!(done["repaired"], 0);
    assert!(done["issues"].as_array().unwrap().iter().any(|issue| issue["userId"] == "1"), "{done}");
    server.post("/coin/consume").by(&user).send().expect_problem(503, "account_inconsistent");
    assert_eq!(dump(&server.database()).lines().filter(|line| line.contains("adjust")).count(), entries);
    server.command(&["ledger", "verify"]).expect(5);
}

#[test]
fn entries_and_audit_rows_cannot_be_changed_or_deleted() {
    let (server, _, _, key) = with_history();
    server.get("/coin/balance").query(&[("userId", "1")]).token(&key).send().expect(200);
    let database = server.database();
    for table in ["ledger_entries", "ledger_audit", "audit"] {
        let rows: i64 = database.query_row(&format!("select count(*) from {table}"), (), |row| row.get(0)).unwrap();
        assert!(rows > 0, "{table}");
        let key = if table == "ledger_entries" { "seq" } else { "id" };
        for sql in [
            format!("delete from {table}"),
            format!("update {table} set {key} = {key} + 1000"),
            format!("delete from {table} where {key} = 1"),
        ] {
            let error = database.execute(&sql, ()).unwrap_err();
            let verb = if sql.starts_with("update") { "changed" } else { "deleted" };
            assert!(
                error.contains("rows cannot be changed") || error.contains(&format!("cannot be {verb}")),
                "{sql}: {error}"
            );
        }
    }
    let negative = database.execute("update balances set balance = -1", ()).unwrap_err();
    assert!(negative.to_lowercase().contains("check constraint"), "{negative}");
}

#[test]
fn large_and_negative_grants_need_a_reason() {
    let (server, ..) = with_history();
    let grant = |arguments: &[&str]| server.command(&[&["coins", "grant", "1"], arguments].concat());
    assert_eq!(grant(&["10000"]).expect(0).json()["balance"], 10_007);
    for arguments in [["10001"].as_slice(), &["10001", "--yes"], &["-5"], &["-5", "--yes"]] {
        assert!(grant(arguments).expect(2).stderr().contains("--reason"), "{arguments:?}");
    }
    // Without a terminal, nobody can confirm.
    assert!(grant(&["10001", "--reason", "lost order"]).expect(2).stderr().contains("--yes"));
    assert_eq!(grant(&["10001", "--reason", "lost order", "--yes"]).expect(0).json()["balance"], 20_008);
    assert_eq!(grant(&["-5", "--reason", "granted twice"]).expect(0).json()["balance"], 20_003);
    assert!(grant(&["-20004", "--reason", "too many", "--yes"]).expect(1).stderr().contains("enough coins"));
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn commands_work_beside_the_server() {
    let (server, user, ..) = with_history();
    let balance = server.command(&["coins", "balance", PHONES[0]]).expect(0).json();
    assert_eq!(balance, json!({ "userId": "1", "phoneNumber": PHONES[0], "balance": 7 }));
    assert_eq!(server.command(&["coins", "grant", "1", "5", "--reason", "gift"]).expect(0).json()["balance"], 12);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(server.get("/coin/balance").by(&user).send().expect(200).json()["balance"], 12);
    server.command(&["coins", "reset", "1", "--reason", "test"]).expect(2);
    assert_eq!(server.command(&["coins", "reset", "1", "--reason", "test", "--yes"]).expect(0).json()["balance"], 0);
    assert_eq!(server.command(&["coins", "repair"]).expect(0).json()["checked"], 2);
    let shown = server.command(&["ledger", "show", PHONES[0], "--size", "2"]).expect(0).json();
    assert_eq!((&shown["total"], &shown["items"][0]["kind"]), (&json!(6), &json!("reset")));
    assert_eq!(shown["items"].as_array().unwrap().len(), 2);
    assert_eq!(shown["items"][1]["delta"], 5);
    for arguments in [["coins", "balance", "999"], ["ledger", "show", "13600136000"], ["coins", "balance", "nobody"]] {
        server.command(&arguments).expect(4);
    }
    server.command(&["coins", "grant", "1", "0"]).expect(2);
    let audited = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    let actions: Vec<_> = audited["items"].as_array().unwrap().iter().map(|row| row["action"].clone()).collect();
    let expected = ["ledger show", "coins repair", "coins reset", "coins grant", "coins balance"];
    assert_eq!(actions[..expected.len()], expected.map(|action| json!(format!("yarrow {action}"))));
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn every_list_has_an_index() {
    let server = Setup::default().start();
    server.sign_in(PHONES[0]);
    let database = server.database_file();
    let queries = [
        "select seq from ledger_entries where user_id = ?1 and asset = ?2 order by sequence desc limit ?3 offset ?4",
        "select seq from ledger_entries where user_id = ?1 and asset = ?2 and sequence < ?3 order by sequence desc limit ?4",
        "select seq from ledger_entries where asset = ?1 and kind = ?2 and ref = ?3",
        "select seq, delta from ledger_entries where seq > ?1 order by seq limit ?2",
        "select user_id from balances where (user_id, asset) > (?1, ?2) order by user_id, asset limit ?3",
        "select user_id from balances where suspended_at is not null and asset = ?1",
        "select count(*) from balances where suspended_at is not null",
        "select id from ledger_audit where user_id = ?1 order by id desc limit ?2 offset ?3",
        "select id from idempotency_keys where caller = ?1 and route = ?2 and key = ?3",
        "delete from idempotency_keys where id >= ?1 and caller = ?2",
        "select tried_at from admin_attempts where name = ?1 order by tried_at desc limit 1 offset ?2",
        "select tried_at from admin_attempts where client_network = ?1 order by tried_at desc limit 1 offset ?2",
        "select tried_at from admin_attempts where wide_network = ?1 order by tried_at desc limit 1 offset ?2",
        "select tried_at from admin_attempts where widest_network = ?1 order by tried_at desc limit 1 offset ?2",
        "select id from admin_attempts where tried_at <= ?1 order by tried_at limit ?2",
        "select token_sha256 from admin_tokens where expires_at <= ?1 order by expires_at limit ?2",
        "select id from audit where user_id = ?1 order by id desc limit ?2 offset ?3",
        "select id from audit where actor = ?1 order by id desc limit ?2 offset ?3",
        "select expires_at from tokens where token_sha256 = ?1",
        "delete from tokens where id in (select id from tokens where expires_at <= ?1 order by expires_at limit ?2)",
    ];
    for sql in queries {
        let mut statement = database.prepare(&format!("explain query plan {sql}")).unwrap();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let step: String = row.get(3).unwrap();
            let scans = step.starts_with("SCAN") && !step.contains("balances_suspended");
            assert!(!scans && !step.contains("TEMP B-TREE"), "{sql}: {step}");
        }
    }
}

#[test]
fn a_ledger_that_grows_during_verification_is_consistent() {
    let server = Setup::default().with("COINS_INITIAL", 1_000_000).start();
    let user = server.sign_in(PHONES[0]);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            let mut count = 0;
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                server.post("/coin/consume").by(&user).send().expect(200);
                count += 1;
            }
            count
        });
        let entries: Vec<_> = (0..5)
            .map(|_| server.command(&["ledger", "verify"]).expect(0).json()["entries"].as_i64().unwrap())
            .collect();
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(entries.is_sorted() && entries[4] <= consumer.join().unwrap() + 1, "{entries:?}");
    });
}

/// The job cannot be triggered from outside, so the test calls it directly.
#[test]
fn verifies_the_ledger_once_a_day() {
    use yarrow::{
        domain::money::ledger::{Asset, EntryKind, Posting, post_in, post_once_in, verify_if_due},
        types::UserId,
    };

    let (directory, app) = open_app(&[]);
    let posting = |delta, reference: Option<&str>| Posting {
        user: UserId(1),
        asset: Asset::Point,
        delta,
        kind: EntryKind::Topup,
        reference: reference.map(ToOwned::to_owned),
    };
    let post = |posting: Posting| app.core.store.write(move |tx| post_in(tx, posting)).wait();
    let code = |posting: Posting| post(posting).unwrap_err().code.name();
    assert_eq!(post(posting(5, Some("order:1"))).unwrap(), 5);
    assert_eq!(code(posting(5, Some("order:1"))), "already_posted");
    let again = posting(7, Some("order:1"));
    assert!(!app.core.store.write(move |tx| post_once_in(tx, again)).wait().unwrap());
    assert_eq!(code(posting(-6, None)), "insufficient_points");
    assert_eq!(code(posting((1 << 53) - 5, None)), "balance_too_large");
    assert_eq!(code(posting(i64::MAX, None)), "balance_too_large");
    assert_eq!(code(posting(i64::MIN, None)), "insufficient_points");
    assert_eq!(code(posting(0, None)), "internal");
    assert_eq!(post(posting((1 << 53) - 6, None)).unwrap(), (1 << 53) - 1);

    assert!(verify_if_due(&app.core, &mut |_, _| ()).unwrap());
    assert!(!verify_if_due(&app.core, &mut |_, _| ()).unwrap());
    let database = Database::open(directory.path());
    database.execute("update balances set balance = 1", ()).unwrap();
    let yesterday = "update settings set value = json_set(value, '$.at', json_extract(value, '$.at') - 86400000) \
                     where name = 'ledger.verification'";
    database.execute(yesterday, ()).unwrap();
    assert!(verify_if_due(&app.core, &mut |_, _| ()).unwrap());
    assert_eq!(code(posting(1, None)), "account_inconsistent");
}

#[test]
fn the_daily_verification_repairs_what_it_may() {
    let server = Setup::default().with("LEDGER_DAILY_REPAIR", "true").with_fast_jobs().start();
    let (user, other) = (server.sign_in(PHONES[0]), server.sign_in(PHONES[1]));
    let key = server.api_key("shop");
    for phone in &PHONES[..2] {
        server.grant(&key, phone, 10);
    }
    server.command(&["ledger", "verify"]).expect(0);
    tamper(
        &server,
        &format!(
            "update balances set balance = 1000 where user_id = {}; \
             update ledger_entries set delta = 100 where user_id = {}; \
             delete from settings where name = 'ledger.verification'",
            user.user_id, other.user_id
        ),
    );
    eventually("the balance is repaired", || server.coins(&user) == 10);
    server.post("/coin/consume").by(&user).send().expect(200);
    // Contradicting entries are not repaired.
    server.post("/coin/consume").by(&other).send().expect_problem(503, "account_inconsistent");
    let changes = "select count(*) from ledger_audit where actor = 'ledger_verification' and action = 'repair'";
    assert_eq!(server.value::<i64>(changes), 1);
    let alerts = || server.command(&["alerts", "list"]).text();
    eventually("both alerts", || {
        ["balance of 1 account from", "ledger_mismatch"].iter().all(|text| alerts().contains(text))
    });
}

#[test]
fn a_final_failure_rolls_back_and_keeps_its_response() {
    use yarrow::{
        domain::{
            money::ledger::{self, Asset, EntryKind, Posting},
            operations::idempotency::{Claim, IdempotentOutcome, IdempotentRequest, StoredResponse},
        },
        error::{Error, Result},
        types::UserId,
    };

    let (_directory, app) = open_app(&[]);
    let claim = Claim {
        caller: "user:1".into(),
        route: "/test".into(),
        key: "a".into(),
        request_sha256: [1; 32],
        free_responses: 1,
        kept_for: std::time::Duration::from_mins(1),
    };
    let posting =
        |delta| Posting { user: UserId(1), asset: Asset::Coin, delta, kind: EntryKind::Adjust, reference: None };
    let try_once = || {
        let render = |outcome: Result<&(), &Error>| {
            Ok(StoredResponse { status: 402, body: outcome.unwrap_err().code.name().as_bytes().to_vec() })
        };
        let once = IdempotentRequest::with_key(None, claim.clone(), render);
        let effect = move |tx: &yarrow::store::Write<'_>| {
            once.run_in(tx, |tx| {
                ledger::post_in(tx, posting(5))?;
                ledger::post_in(tx, posting(-6)).map(drop)
            })
        };
        app.core.store.write(effect).wait()
    };
    assert_eq!(try_once().unwrap_err().code.name(), "insufficient_coins");
    assert_eq!(ledger::balance(&app.core, UserId(1), Asset::Coin).unwrap(), 0);
    let IdempotentOutcome::Replayed(kept) = try_once().unwrap() else { panic!("the failure was not stored") };
    assert_eq!(kept, StoredResponse { status: 402, body: b"insufficient_coins".to_vec() });
    assert!(ledger::verify(&app.core, &mut |_, _| ()).unwrap().is_consistent());
}

#[test]
fn a_purge_during_verification_is_consistent() {
    use yarrow::{
        domain::{
            money::ledger::{self, Asset, EntryKind, Posting},
            operations::purge::{self, PurgeTarget},
        },
        types::UserId,
    };

    let (directory, app) = open_app(&[]);
    let fill = || {
        // More than one read batch.
        let fill = "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 60000) \
                    insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, created_at) \
                    select 7, 'coin', n, 1, n, 'topup', 1 from counter; \
                    insert into balances (user_id, asset, balance, last_sequence) values (7, 'coin', 60000, 60000)";
        Database::open(directory.path()).execute_batch(fill).unwrap();
    };
    let post = |user| {
        let posting =
            Posting { user: UserId(user), asset: Asset::Coin, delta: 5, kind: EntryKind::Topup, reference: None };
        app.core.store.write(move |tx| ledger::post_in(tx, posting)).wait().unwrap();
    };
    // With a new account, with the same one again, and with none.
    for posted in [Some(1), Some(7), None] {
        fill();
        let mut is_cleared = false;
        let report = ledger::verify(&app.core, &mut |_, _| {
            if !is_cleared {
                purge::run(&app.backups, &app.network_log, PurgeTarget::All, &mut |_, _, _| ()).unwrap();
                posted.into_iter().for_each(post);
            }
            is_cleared = true;
        });
        let report = report.unwrap();
        assert!(is_cleared && report.is_consistent(), "{report:?}");
        let expected = i64::from(posted.is_some());
        assert_eq!((report.entries, report.accounts), (expected, expected));
        purge::run(&app.backups, &app.network_log, PurgeTarget::All, &mut |_, _, _| ()).unwrap();
    }
}
