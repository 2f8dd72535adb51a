//! `yarrow import`: users, balances and history of a former backend.

use std::{fmt::Write as _, fs, path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::support::{Server, Setup, kill_after};

const USERS: &str = "\u{feff}id,phoneNumber,email,nickname,gender,birthday,signature,createdAt\n\
    a1,13800138001,,青山,female,1990-05-17,\"心静,则明\",2024-03-01 08:30:00\n\
    a2,+8613800138002,Li@Example.com,\\N,,NULL,,1709251200000\n\
    a3,,wang@example.com,Wang,,,,\n";

fn write(server: &Server, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = server.directory().join(name);
    fs::write(&path, content).unwrap();
    path
}

fn import(server: &Server, kind: &str, name: &str, content: impl AsRef<[u8]>, code: i32) -> Value {
    let path = write(server, name, content);
    server.command(&["import", kind, path.to_str().unwrap(), "--source", "legacy"]).expect(code).json()
}

/// Returns the rows, added, linked, known and invalid rows of a report.
fn counts(report: &Value) -> [i64; 5] {
    ["rows", "added", "linked", "known", "invalid"].map(|name| report[name].as_i64().unwrap())
}

/// Returns the faults of a report as `line column: message`.
fn faults(report: &Value) -> Vec<String> {
    let faults = report["faults"].as_array().unwrap().iter();
    let text = |fault: &Value, name: &str| fault[name].as_str().unwrap().to_owned();
    faults.map(|fault| format!("{} {}: {}", fault["line"], text(fault, "column"), text(fault, "message"))).collect()
}

#[test]
fn imported_users_sign_in_and_find_their_coins_and_history() {
    let server = Setup::default().start();
    assert_eq!(counts(&import(&server, "users", "users.csv", USERS, 0)), [3, 3, 0, 0, 0]);
    let balances = "id,coins,points\na1,30,5\na2,0,\n";
    assert_eq!(counts(&import(&server, "balances", "balances.csv", balances, 0)), [2, 1, 0, 1, 0]);
    let history = "{\"userId\":\"a1\",\"localRecordId\":\"r1\",\"question\":\"换工作？\",\"jsonData\":{\"lines\": [7, 8]},\
        \"timestamp\":1709251200000,\"createdAt\":\"2024-03-02T10:00:00+08:00\"}\n\n\
        {\"userId\":\"a1\",\"localRecordId\":\"r2\",\"aiResult\":\"否极泰来\",\"questionType\":null}\n";
    assert_eq!(counts(&import(&server, "history", "history.ndjson", history, 0)), [2, 2, 0, 0, 0]);

    let user = server.sign_in("13800138001");
    let profile = server.get("/user/profile").by(&user).send().expect(200).json();
    assert_eq!(
        [&profile["nickname"], &profile["gender"], &profile["birthday"], &profile["signature"]],
        ["青山", "female", "1990-05-17", "心静,则明"]
    );
    let balance = server.get("/coin/balance").by(&user).send().expect(200).json();
    assert_eq!(balance["balance"], 30);
    let records = server.post("/divination-history/get").by(&user).json(&json!({})).send().expect(200).json();
    assert_eq!(records["items"][0]["localRecordId"], "r2");
    let record = &records["items"][1];
    assert_eq!(record["jsonData"], json!({ "lines": [7, 8] }));
    assert_eq!(
        [&record["timestamp"], &record["createdAt"]],
        [&json!(1_709_251_200_000_i64), &json!("2024-03-02T02:00:00.000Z")]
    );
    let registered: i64 = server.value("select created_at from users where nickname = '青山'");
    assert_eq!(registered, 1_709_253_000_000);
    assert_eq!(server.value::<i64>("select count(*) from users where email = 'li@example.com'"), 1);
    let export = server.get("/api/v1/account/export").by(&user).send().expect(200).json();
    assert_eq!(export["importedFrom"], json!([{ "source": "legacy", "id": "a1" }]));
    server.command(&["ledger", "verify"]).expect(0);

    // Once more, nothing changes.
    assert_eq!(counts(&import(&server, "users", "users.csv", USERS, 0)), [3, 0, 0, 3, 0]);
    assert_eq!(counts(&import(&server, "balances", "balances.csv", balances, 0)), [2, 0, 0, 2, 0]);
    assert_eq!(counts(&import(&server, "history", "history.ndjson", history, 0)), [2, 0, 0, 2, 0]);
    assert_eq!(server.get("/coin/balance").by(&user).send().expect(200).json()["balance"], 30);
}

#[test]
fn existing_accounts_keep_their_profile_and_are_linked() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138001");
    let other = server.sign_in_by_email("li@example.com");
    let users = "id,phoneNumber,email,nickname\n\
        a1,13800138001,new@example.com,Other\n\
        a2,13800138001,,Twice\n\
        a3,13800138003,li@example.com,\n";
    let report = import(&server, "users", "users.csv", users, 5);
    assert_eq!(counts(&report), [3, 0, 2, 0, 1]);
    assert_eq!(faults(&report), ["3 phoneNumber: belongs to the user who was imported with the id a1"]);
    let profile = server.get("/user/profile").by(&user).send().expect(200).json();
    assert_ne!(profile["nickname"], "Other");
    import(&server, "balances", "balances.csv", "id,points\na3,7\n", 0);
    let points = server.get("/api/v1/points").by(&other).send().expect(200).json();
    assert_eq!(points["balance"], server.value::<i64>("select balance from balances where asset = 'point'"));
    let two = "id,phoneNumber,email\na4,13800138001,li@example.com\n";
    let report =
        server.command(&["import", "users", write(&server, "two.csv", two).to_str().unwrap(), "--source", "second"]);
    assert_eq!(faults(&report.expect(5).json()), ["2 email: belongs to another user than the phone number"]);
}

#[test]
fn every_fault_is_reported_with_its_line() {
    let server = Setup::default().start();
    let mut users = b"id,phoneNumber,email,gender,birthday,createdAt\n\
        ,123,not an address,both,2030-01-01,2090-01-01\n\
        b1,,,,,\n\
        b2,13800138001\n"
        .to_vec();
    users
        .extend_from_slice(b"b3,13800138002,\xff\xfe,,,\nb4,13800138003,,,,\nb5,13800138003,,,,\nb4,13800138004,,,,\n");
    let path = write(&server, "users.csv", &users);
    let dry = ["import", "users", path.to_str().unwrap(), "--dry-run"];
    let report = server.command(&dry).expect(5).json();
    assert_eq!(counts(&report), [7, 1, 0, 0, 6]);
    let found = faults(&report);
    let expected = [
        "2 id: is required",
        "2 phoneNumber: ",
        "2 email: ",
        "2 gender: must be unknown, male, female or other",
        "2 birthday: ",
        "2 createdAt: must be between 1970 and now",
        "3 : needs a phone number or an email address",
        "4 : has 2 fields, and the header has 6",
        "5 email: is not valid UTF-8",
        "7 phoneNumber: is the same as in line 6",
        "8 id: is the same as in line 6",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
    assert_eq!(server.value::<i64>("select count(*) from users"), 0);
    let report = server.command(&["import", "users", path.to_str().unwrap()]).expect(5).json();
    assert_eq!(counts(&report), [7, 1, 0, 1, 5]);

    let long =
        format!("{{\"id\":\"c1\",\"nickname\":\"{}\"}}\n[]\n{{\"id\":\"c2\",\"name\":\"x\"}}\n", "x".repeat(1 << 20));
    let found = faults(&import(&server, "users", "users.ndjson", long, 5));
    let expected =
        ["1 : is longer than 1 MiB", "2 : is not a JSON object", "3 : has an unknown member `name`; the columns"];
    assert!(found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected)), "{found:?}");

    let balances = "id,coins\nb4,-1\nb4,1.5\nb4,9007199254740992\nnobody,3\n";
    let path = write(&server, "balances.csv", balances);
    let report = server.command(&["import", "balances", path.to_str().unwrap()]).expect(5).json();
    assert_eq!(report["invalid"], 4);
    assert_eq!(faults(&report)[3], "5 id: no user with this id was imported from `import`; import users first");
}

#[test]
fn lines_are_counted_with_any_line_end() {
    let server = Setup::default().start();
    let rows = "id,phoneNumber,nickname\n\na1,123,x\na2,13800138000,\"two\n\nlines\"\n\na3,124,y\n\"a\"\"4\",13800138001,z\na5,125,";
    for (name, end) in [("lf", "\n"), ("crlf", "\r\n"), ("cr", "\r")] {
        let path = write(&server, &format!("{name}.csv"), rows.replace('\n', end));
        let report = server.command(&["import", "users", path.to_str().unwrap(), "--dry-run"]).expect(5).json();
        let lines: Vec<_> = faults(&report).iter().map(|fault| fault.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(lines, ["3", "4", "8", "10"], "{name}: {report}");
    }
}

#[test]
fn an_unclosed_quotation_mark_is_found_at_its_row() {
    let server = Setup::default().start();
    let rest = "b2,13800138002,x\n".repeat(1 << 18);
    let file = format!("id,phoneNumber,nickname\nb0,13800138000,x\nb1,13800138001,\"x\n{rest}");
    let report = import(&server, "users", "long.csv", file, 5);
    assert_eq!(counts(&report)[..2], [2, 1]);
    assert!(
        faults(&report)[0].starts_with("3 : is longer than 1 MiB; is a quotation mark not closed? The rows"),
        "{report}"
    );
    let short = "id,phoneNumber,nickname\nb3,13800138003,x\nb4,\"13800138004,x\nb5,13800138005,x\n";
    let report = import(&server, "users", "short.csv", short, 5);
    assert_eq!(faults(&report), ["3 : has 2 fields, and the header has 3; is a quotation mark not closed?"]);
}

#[test]
fn numbers_and_dates_are_read_as_databases_write_them() {
    let server = Setup::default().start();
    let users = "{\"id\":41,\"phoneNumber\":\"13800138000\",\"birthday\":\"0000-00-00\",\"createdAt\":\"0000-00-00 00:00:00\"}\n\
                 {\"id\":42.0,\"phoneNumber\":\"13800138001\"}\n";
    import(&server, "users", "users.ndjson", users, 0);
    let balances = "{\"id\":41,\"coins\":60.0,\"points\":\"7.00\"}\n{\"id\":\"42\",\"coins\":6e1}\n";
    import(&server, "balances", "balances.ndjson", balances, 0);
    for phone in ["13800138000", "13800138001"] {
        assert_eq!(server.coins(&server.sign_in(phone)), 60);
    }
    let history = "{\"userId\":41,\"localRecordId\":\"a\",\"timestamp\":1767225600000.0}\n\
                   {\"userId\":41,\"localRecordId\":\"b\",\"timestamp\":\"1767225600000.000000\"}\n\
                   {\"userId\":41,\"localRecordId\":\"c\\u0000\"}\n";
    assert_eq!(
        faults(&import(&server, "history", "history.ndjson", history, 5)),
        ["3 localRecordId: must not contain NUL"]
    );
    let csv = "id,phoneNumber,birthday\n50,13800138002.0,1990-05-17\n";
    assert!(faults(&import(&server, "users", "users.csv", csv, 5))[0].starts_with("2 phoneNumber: "));
}

#[test]
fn unusable_files_are_refused() {
    let server = Setup::default().start();
    let refused = |name: &str, content: &str, options: &[&str], code: i32| {
        let path = write(&server, name, content);
        let arguments = [&["import", "users", path.to_str().unwrap()], options].concat();
        server.command(&arguments).expect(code).problem()["detail"].as_str().unwrap().to_owned()
    };
    let unknown = refused("users.csv", "id,phone\n1,13800138001\n", &[], 2);
    assert!(
        unknown.starts_with("The header has an unknown column `phone`; the columns of users are id, "),
        "{unknown}"
    );
    assert!(refused("users.csv", "id,id\n", &[], 2).contains("twice"));
    assert!(refused("users.txt", "id\n", &[], 2).contains("--format"));
    assert!(refused("users.csv", "id\n", &["--source", "Old App"], 2).contains("name of the source"));
    server.command(&["import", "users", "/nowhere.csv"]).expect(4);
    assert_eq!(counts(&import(&server, "users", "empty.csv", "", 0)), [0; 5]);
}

#[test]
fn a_killed_import_is_resumed() {
    const ROWS: usize = 30_000;
    let server = Setup::default().start();
    let mut users = "id,phoneNumber,nickname\n".to_owned();
    let mut balances = "id,coins\n".to_owned();
    for row in 0..ROWS {
        writeln!(users, "u{row},139{row:08},n{row}").unwrap();
        writeln!(balances, "u{row},3").unwrap();
    }
    let (users, balances) = (write(&server, "users.csv", users), write(&server, "balances.csv", balances));
    let directory = server.directory().to_owned();
    let (mut partial, mut wait) = (0, Duration::from_millis(300));
    for (kind, path, count) in [
        ("users", &users, "select count(*) from users"),
        ("balances", &balances, "select count(*) from ledger_entries where kind = 'import'"),
    ] {
        let arguments = ["import", kind, path.to_str().unwrap()];
        while kill_after(&directory, &arguments, wait) {
            let done: usize = server.value::<i64>(count).try_into().unwrap();
            partial += u32::from(done > 0 && done < ROWS);
            wait += Duration::from_millis(150);
        }
        server.command(&arguments).expect(0);
        assert_eq!(server.value::<i64>(count), 30_000);
    }
    assert!(partial > 0, "no kill hit an import");
    assert_eq!(server.value::<i64>("select sum(balance) from balances where asset = 'coin'"), 90_000);
    server.command(&["ledger", "verify"]).expect(0);
}
