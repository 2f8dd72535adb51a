//! Log lines that programs and operators rely on.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::Stdio,
};

use regex::Regex;
use serde_json::json;

use crate::support::{
    Binary, FakeModel, ModelBehaviour, Request, Server, Setup,
    google_play::{FakeGoogle, with_google_play},
    model_requests::ask,
};

const PHONE: &str = "13800138000";

/// Returns the expressions of the filter in `packaging/fail2ban` as fail2ban expands them.
fn failures() -> Vec<Regex> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/fail2ban/filter.d/yarrow.conf");
    let text = std::fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once("failregex = ").unwrap();
    let expressions: Vec<_> = rest
        .split("\n\n")
        .next()
        .unwrap()
        .lines()
        .map(|line| Regex::new(&line.trim_start().replace("<ADDR>", "(?P<ip>[0-9a-fA-F:.]+)")).unwrap())
        .collect();
    assert_eq!(expressions.len(), 2);
    expressions
}

/// Returns the client of a line that the filter matches. fail2ban removes the timestamp first.
fn banned(line: &str) -> Option<String> {
    let timeless = match line.split_once("Z ") {
        Some((time, rest)) if time.len() < 30 && time.contains('T') => rest,
        _ => line,
    };
    failures().iter().find_map(|failure| failure.captures(timeless).map(|found| found["ip"].to_owned()))
}

#[test]
fn an_unread_log_blocks_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Binary::command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.path().join("data"));
    command.env("YARROW_AUTH_SENDS_PER_CLIENT_HOUR", "1000");
    let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("yarrow is listening on http") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0);
    }
    let address = line.rsplit("on ").next().unwrap().trim().to_owned();
    // The pipe holds 64 KiB, and each request logs a line.
    for number in 0..1_000 {
        let login = Request::new("POST", &format!("{address}/auth/login"));
        login.form(&[("phoneNumber", &format!("1380013{number:04}")), ("code", "000000")]).send().expect(401);
    }
    let (sender, written) = std::sync::mpsc::channel();
    let login = Request::new("POST", &format!("{address}/auth/login"));
    let reader = std::thread::spawn(move || {
        let mut lines = Vec::new();
        let mut byte = [0; 4096];
        while let Ok(read @ 1..) = log.read(&mut byte) {
            lines.extend_from_slice(&byte[..read]);
            let _ = sender.send(());
        }
        String::from_utf8(lines).unwrap()
    });
    written.recv().unwrap();
    // Once there is space, the next line reports how many were dropped.
    login.form(&[("phoneNumber", PHONE), ("code", "000000")]).send().expect(401);
    rustix::process::kill_process(rustix::process::Pid::from_child(&process), rustix::process::Signal::TERM).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
    let lines = reader.join().unwrap();
    let lost = lines.split(" lost=").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let reported = lines.matches("auth_failed").count();
    assert!(reported < 1_001 && reported + lost.parse::<usize>().unwrap() >= 1_001, "{reported} and {lost}");
}

fn fail_in_both_ways(server: &Server) {
    server.post("/auth/login").form(&[("phoneNumber", PHONE), ("code", "000000")]).send().expect(401);
    let from_afar = server.post("/admin/login").header("x-forwarded-for", "2001:db8::7");
    from_afar.json(&json!({ "name": "nobody", "password": "not the password" })).send().expect(401);
    server.get("/user/profile").token("no-token-of-ours").send().expect(401);
}

#[test]
fn failed_authentication_matches_the_fail2ban_filter() {
    for format in ["text", "json"] {
        let mut server = Setup::default().with("LOG_FORMAT", format).start();
        fail_in_both_ways(&server);
        server.wait_for_line("2001:db8::7");
        let lines: Vec<_> = server.lines().into_iter().filter(|line| line.contains("auth_failed")).collect();
        let found: Vec<_> = lines.iter().map(|line| banned(line)).collect();
        let banned_clients = [Some("127.0.0.1".into()), Some("2001:db8::7".into())];
        assert_eq!(found, banned_clients, "{format}: {lines:#?}");
        let journal: Vec<_> = lines.iter().map(|line| banned(&format!("vps1 yarrow[77]: {line}"))).collect();
        assert_eq!(journal, banned_clients, "{format}, in the journal: {lines:#?}");
        for line in server.lines() {
            assert!(!line.contains(PHONE) && !line.contains("nobody"), "{line}");
        }
    }
}

#[test]
fn other_lines_ban_nobody() {
    let server = Setup::default().with("LOG_LEVEL", "debug").start();
    server.sign_in(PHONE);
    let forged = "x: auth_failed client_ip=203.0.113.9 reason=code ";
    server.get("/user/profile").header("user-agent", forged).header("x-request-id", "auth_failed").send().expect(401);
    server.get("/auth_failed%20client_ip=203.0.113.9%20reason=code%20").send().expect(404);
    let taken: Vec<_> = server.lines().into_iter().filter(|line| banned(line).is_some()).collect();
    assert!(taken.is_empty(), "{taken:#?}");
}

#[test]
fn a_response_and_its_log_line_share_an_id() {
    for format in ["text", "json"] {
        let mut server = Setup::default().with("LOG_LEVEL", "debug").with("LOG_FORMAT", format).start();
        let found = server.get("/healthz").send().expect(200);
        let refused = server.get("/user/profile").send().expect_problem(401, "unauthenticated");
        let given = server.get("/healthz").header("x-request-id", "the-callers-own").send().expect(200);
        assert_eq!(given.header("x-request-id"), Some("the-callers-own"));
        for (response, status) in [(found, "200"), (refused, "401"), (given, "200")] {
            let line = server.wait_for_line(response.header("x-request-id").unwrap());
            assert!(line.contains("request_id") && line.contains(status), "{line}");
        }
    }
}

#[test]
fn names_slow_operations() {
    let mut server =
        Setup::default().with("LIMITS_SLOW_QUERY", "0 s").with("LIMITS_SLOW_REQUEST", "0 s").in_own_process().start();
    let user = server.sign_in(PHONE);
    server.get("/user/profile").by(&user).send().expect(200);
    let request = server.wait_for_line("slow request");
    assert!(request.contains("route=") && request.contains("duration_ms="), "{request}");
    let commit = server.wait_for_line("slow commit");
    assert!(commit.contains("operations="), "{commit}");
    let query = server.wait_for_line("slow query");
    assert!(query.contains("operation=\"yarrow::"), "{query}");
    let lines = server.lines();
    assert!(
        lines.iter().any(|line| line.contains("slow query") && line.contains("identity::accounts::sign_in::sign_in")),
        "{lines:#?}"
    );
    assert!(!lines.iter().any(|line| line.contains(PHONE) && !line.starts_with("SMS")), "{lines:#?}");
}

#[test]
fn strangers_fill_no_log() {
    let google = FakeGoogle::start_at(|| 0);
    let mut server = with_google_play(Setup::default(), &google.url()).in_own_process().start();
    for junk in 0..50 {
        let request = server.post("/payment/notify/google").header("authorization", &format!("Bearer a.b.{junk}"));
        request.bytes(Some("application/json"), format!("junk {junk}").into_bytes()).send();
    }
    server.post("/admin/login").json(&json!({ "name": "nobody", "password": "a wrong password" })).send().expect(401);
    server.wait_for_line("auth_failed");
    let lines = server.lines();
    let rejected = lines.iter().filter(|line| line.contains("rejected a notification of Google Play"));
    assert_eq!(rejected.count(), 1, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("junk")), "{lines:#?}");
}

#[test]
fn finds_a_failed_model_call_by_its_trace_id() {
    let model = FakeModel::start(ModelBehaviour::Status(400));
    let mut server = model.setup().in_own_process().start();
    let user = server.sign_in(PHONE);
    let failed = ask(&server, &user).header("x-request-id", "asked-once").send().json();
    let trace = failed["traceId"].as_str().unwrap();
    let of_model = server.wait_for_line("a model call failed");
    assert!(of_model.contains(trace), "{of_model}");
    let of_request = server.wait_for_line("a request could not be served");
    assert!(of_request.contains(trace) && of_request.contains("asked-once"), "{of_request}");
}

#[test]
fn readiness_reports_ledger_backups_and_disk() {
    let server = Setup::default().with("BACKUP_EVERY", "1 hour").with("ALERTS_DISK_FREE_PERCENT", 0).start();
    let ready = server.get("/readyz").send().expect(200).json();
    assert_eq!(ready["status"], "ready");
    assert_eq!(ready["disk"], "ok", "{ready}");
    server.command(&["backup", "create"]).expect(0);
    let ready = server.get("/readyz").send().expect(200).json();
    assert_eq!(ready["backups"], "current", "{ready}");
    assert!(ready["backupAt"].is_string(), "{ready}");
    server.edit("update settings set value = json_set(value, '$.at', 0) where name = 'backup.last'");
    assert_eq!(server.get("/readyz").send().expect(200).json()["backups"], "old");
    let low = Setup::default().with("ALERTS_DISK_FREE_PERCENT", 100).with("BACKUP_EVERY", "0 s").start();
    let ready = low.get("/readyz").send().expect(200).json();
    assert_eq!((ready["disk"].as_str(), ready["backups"].as_str()), (Some("low"), Some("off")), "{ready}");
}
