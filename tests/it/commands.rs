//! Every command, on a data directory that has something in it, beside a server that is busy.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use serde_json::{Value, json};

use crate::kit::{Binary, Caller, Server, Setup};

/// Commands that talk to no data directory, or stay until they are told to end: they have tests of their own.
const ELSEWHERE: [&str; 9] =
    ["serve", "demo", "config show", "config sample", "healthcheck", "openapi", "restore", "completions", "man"];

/// What is known of the directory, for arguments.
struct World {
    server: Server,
    user: Caller,
    paid: String,
    open: String,
    callback: String,
}

fn world() -> World {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let other = server.sign_in("13800138001");
    server.grant(&server.api_key("seed"), "13800138000", 100);
    server.put("/user/profile").by(&user).json(&json!({ "nickname": "青山" })).send().expect(200);
    server.post("/divination/enhanced").by(&user).json(&json!({ "question": "何时启程？" })).send().expect(200);
    server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": "r-1" })).send().expect(201);
    let order = |who: &Caller| {
        let order = server.get("/payment/gateway/order").by(who).query(&[("amount", "6.00"), ("coinCount", "60")]);
        order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned()
    };
    let (paid, open) = (order(&user), order(&other));
    server.command(&["payments", "sandbox-pay", &paid]).expect(0);
    let callback = server.value::<i64>("select max(id) from payment_callbacks").to_string();
    World { server, user, paid, open, callback }
}

impl World {
    /// A line for every command and what it ends with. `{}` stands for what the world knows.
    fn lines(&self) -> Vec<(String, i32)> {
        let fill = |line: &str| {
            let words = [
                ("USER", &self.user.user_id),
                ("PAID", &self.paid),
                ("OPEN", &self.open),
                ("CALLBACK", &self.callback),
            ];
            words.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value))
        };
        LINES.iter().map(|(line, code)| (fill(line), *code)).collect()
    }
}

/// In an order in which each finds what it needs.
const LINES: &[(&str, i32)] = &[
    ("admin list", 0),
    ("admin create second --password-stdin", 0),
    ("admin remove second", 2),
    ("admin remove second --yes", 0),
    ("admin key create press", 0),
    ("admin key list", 0),
    ("admin key revoke press --yes", 0),
    ("audit", 0),
    ("audit --user USER --actor cli --from 2026-01-01", 0),
    ("coins balance USER", 0),
    ("coins balance 13999999999", 4),
    ("coins grant USER 5 --reason tests", 0),
    ("coins reset USER --reason tests --yes", 0),
    ("coins sync", 0),
    ("points show USER", 0),
    ("points adjust USER 5 --reason tests", 0),
    ("points repair USER --reason tests", 0),
    ("ledger verify", 0),
    ("ledger show USER", 0),
    ("payments list", 0),
    ("payments list --user USER --state credited", 0),
    ("payments show PAID", 0),
    ("payments show nowhere", 4),
    ("payments callbacks", 0),
    ("payments query OPEN", 0),
    ("payments sandbox-pay OPEN", 0),
    ("payments settle OPEN dismiss --reason tests --yes", 1),
    ("payments refund OPEN --reason tests --yes", 0),
    ("payments replay CALLBACK", 0),
    ("payments report --from 2020-01-01 --to 2100-01-01", 5),
    ("logs user USER", 0),
    ("logs ip 127.0.0.1", 0),
    ("logs range --from 2026-01-01", 0),
    ("logs failed", 0),
    ("logs count", 0),
    ("logs suspicious", 0),
    ("logs cleanup", 2),
    ("logs cleanup --days-to-keep 3 --yes", 0),
    ("users show USER", 0),
    ("users show 13999999999", 4),
    ("users validate USER", 0),
    ("users fix USER --reason tests", 0),
    ("sync coins", 0),
    ("sync users", 0),
    ("cleanup verification-codes --dry-run", 0),
    ("cleanup verification-codes --yes", 0),
    ("cleanup payment-records --yes", 0),
    ("cleanup feedback --yes", 0),
    ("backup create", 0),
    ("backup list", 0),
    ("backup verify", 0),
    ("backup prune", 0),
    ("cleanup all", 2),
    ("cleanup all --yes", 0),
];

/// The commands below this one, from its own help.
fn below(path: &[String]) -> Vec<Vec<String>> {
    let output = Binary::command().args(path).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let Some(list) = help.split("\nCommands:\n").nth(1) else { return vec![path.to_vec()] };
    let names = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").flat_map(|name| below(&[path, &[name]].concat())).collect()
}

fn run(world: &World, line: &str) -> Output {
    let mut command = Binary::command();
    command.args(line.split(' ')).arg("--json").arg("--data-dir").arg(world.server.directory());
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = pipes.spawn().unwrap();
    // Most commands do not read what stands there.
    let _ = process.stdin.take().unwrap().write_all(b"correct horse battery staple\n");
    process.wait_with_output().unwrap()
}

/// Runs a command on a terminal of a hundred columns.
fn shown(world: &World, line: &str) -> String {
    let program = Binary::command().get_program().to_str().unwrap().to_owned();
    let directory = world.server.directory().to_str().unwrap();
    let shell = format!("stty cols 100 rows 50 && {program} {line} --data-dir {directory}");
    let mut command = Command::new("script");
    let output = command.args(["-qec", &shell, "/dev/null"]).stdin(Stdio::null()).output();
    let output = output.expect("this test needs `script` of util-linux");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{line}: {text}");
    text
}

#[test]
fn every_command_does_what_it_says_beside_a_busy_server() {
    let world = world();
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (world, stop, answered) = (&world, &stop, &answered);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let record = json!({ "localRecordId": format!("load-{number}"), "question": "何时？" });
                    let save = world.server.post("/divination-history/save").by(&world.user).json(&record).send();
                    // At the end everybody is gone, and with them this caller's token.
                    assert!([200, 201, 401].contains(&save.status), "{}", save.text());
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut failures = Vec::new();
        for (line, code) in world.lines() {
            let output = run(&world, &line);
            let said =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            if output.status.code() != Some(code) {
                failures.push(format!("{line}: {:?} and not {code}: {said}", output.status.code()));
            } else if code == 0 && serde_json::from_slice::<Value>(&output.stdout).is_err() {
                failures.push(format!("{line}: no JSON: {said}"));
            } else if code != 0 && !String::from_utf8_lossy(&output.stderr).contains("yarrow: ") && code != 2 {
                failures.push(format!("{line}: fails without a sentence: {said}"));
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    });
    assert!(answered.load(Ordering::Relaxed) > 50, "there was no load");
    world.server.get("/readyz").send().expect(200);
}

#[test]
fn no_command_was_left_out() {
    let all: BTreeSet<_> = below(&[]).iter().map(|path| path.join(" ")).collect();
    assert!(all.len() > 30, "{all:?}");
    let is_tried = |command: &str| {
        let is_it = |line: &str| line == command || line.starts_with(&format!("{command} "));
        LINES.iter().any(|(line, _)| is_it(line)) || ELSEWHERE.contains(&command)
    };
    let left_out: Vec<_> = all.iter().filter(|command| !is_tried(command)).collect();
    assert!(left_out.is_empty(), "these commands are tried by no line of this page: {left_out:?}");
}

#[test]
fn tables_are_for_people_and_as_wide_as_the_terminal() {
    let world = world();
    let lines = ["audit", "payments list", "users show 13800138000", "logs range", "ledger show 13800138000"];
    for line in lines {
        let text = shown(&world, line);
        assert!(text.lines().count() > 3, "{line}: {text}");
        for row in text.lines() {
            let width = row.trim_end_matches('\r').chars().count();
            assert!(width <= 100, "{line}: {width} characters: {row}");
        }
        // Where no terminal watches, a row is a line.
        let piped = Binary::command().args(line.split(' ')).arg("--data-dir").arg(world.server.directory()).output();
        let piped = String::from_utf8(piped.unwrap().stdout).unwrap();
        assert!(piped.lines().count() <= text.lines().count(), "{line}: {piped}");
    }
}
