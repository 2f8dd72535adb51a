//! Every command, on a filled data directory, beside a busy server.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    process::{Command, Output, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};

use crate::support::{Binary, Caller, Server, Setup};

/// Long-running commands, which have their own tests.
const ELSEWHERE: [&str; 2] = ["serve", "demo"];

/// Commands without an audit event: they neither show user data nor change anything, or have no data directory.
const UNRECORDED: [&str; 19] = [
    "figures castings",
    "config show",
    "config sample",
    "admin sessions list",
    "admin networks list",
    "ai prompt",
    "ai usage",
    "ledger verify",
    "words export",
    "words test",
    "doctor",
    "backup list",
    "backup verify",
    "alerts list",
    "healthcheck",
    "openapi",
    "completions",
    "man",
    "version",
];

#[test]
fn escapes_terminal_sequences_in_user_texts() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let text = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}hello\nand more";
    server.post("/feedback").json(&json!({ "content": "hello" })).send().expect(200);
    server.put("/user/nickname").by(&user).json(&json!({ "nickname": "hello" })).send().expect(200);
    let record = json!({ "question": "hello", "divinationData": { "lines": [7, 8, 9, 6, 7, 8] } });
    let response = server.post("/divination/enhanced").by(&user).json(&record).send().expect(200).json();
    let trace = response["traceId"].as_str().unwrap();
    // As stored before such characters were rejected.
    for stored in ["feedback set content", "users set nickname", "interpretations set question"] {
        server.database().execute(&format!("update {stored} = ?1"), [text]).unwrap();
    }
    for arguments in [["feedback", "list", ""], ["records", "show", trace], ["users", "show", "13800138000"]] {
        for flag in ["", "--json"] {
            let given = [&arguments[..], &[flag]].concat().into_iter().filter(|argument| !argument.is_empty());
            let output = Binary::command().arg("--data-dir").arg(server.directory()).args(given).output().unwrap();
            let shown = String::from_utf8(output.stdout).unwrap();
            let events = |character: char| character != '\n' && (character.is_control() || character == '\u{202e}');
            assert!(!shown.contains(events), "{arguments:?}: {shown:?}");
            assert!(shown.contains("hello"), "{arguments:?}: {shown:?}");
        }
    }
}

/// Values for arguments.
struct Fixture {
    server: Server,
    user: Caller,
    other: String,
    paid: String,
    open: String,
    callback: String,
    trace: String,
    violation: String,
    feedback: String,
}

fn fixture() -> Fixture {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let other = server.sign_in("13800138001");
    server.grant(&server.api_key("seed"), "13800138000", 100);
    server.put("/user/profile").by(&user).json(&json!({ "nickname": "青山" })).send().expect(200);
    server.post("/divination/enhanced").by(&user).json(&json!({ "question": "何时启程？" })).send().expect(200);
    server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": "r-1" })).send().expect(200);
    let order = |who: &Caller| {
        let order = server.get("/payment/gateway/order").by(who).query(&[("amount", "6.00"), ("coinCount", "60")]);
        order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned()
    };
    let (paid, open) = (order(&user), order(&user));
    server.command(&["payments", "sandbox-pay", &paid]).expect(0);
    let open = if open == paid { order(&user) } else { open };
    let callback = server.value::<i64>("select max(id) from payment_callbacks").to_string();
    let trace = server.value("select trace_id from interpretations");
    // Over HTTP, because a running server notices words of a command with a delay.
    let word = server.post("/admin/sensitive-words/add").token(&server.api_key("words"));
    word.json(&json!({ "word": "赌球", "type": "gambling" })).send().expect(201);
    let refused = server.post("/divination/enhanced").by(&user).json(&json!({ "question": "赌球能赢吗？" }));
    refused.send().expect_problem(422, "content_rejected");
    let violation = server.value::<i64>("select max(id) from violations").to_string();
    let feedback = server.post("/feedback").by(&user).json(&json!({ "content": "很好" })).send().expect(200).json();
    let feedback = feedback["id"].as_str().unwrap().to_owned();
    std::fs::write(server.directory().join("users.csv"), "id,email\n1,lin@example.com\n").unwrap();
    server.sign_in_by_email("ada@example.com");
    Fixture { feedback, server, user, other: other.user_id, paid, open, callback, trace, violation }
}

impl Fixture {
    /// Returns every command with its exit code. `{}` placeholders refer to the fixture.
    fn lines(&self) -> Vec<(String, i32)> {
        let fill = |line: &str| {
            let file = |name: &str| self.server.directory().join(name).display().to_string();
            let (export, import, folder) = (file("export.json"), file("users.csv"), file(""));
            let words = [
                ("USER", &self.user.user_id),
                ("OTHER", &self.other),
                ("PAID", &self.paid),
                ("OPEN", &self.open),
                ("CALLBACK", &self.callback),
                ("TRACE", &self.trace),
                ("VIOLATION", &self.violation),
                ("FEEDBACK", &self.feedback),
                ("ADDRESS", &self.server.address().to_string()),
                ("EXPORT", &export),
                ("IMPORT", &import),
                ("FOLDER", &folder),
            ];
            words.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value))
        };
        LINES.iter().map(|(line, code)| (fill(line), *code)).collect()
    }
}

/// In an order in which each finds its prerequisites. Some fail on purpose.
const LINES: &[(&str, i32)] = &[
    ("config show", 0),
    ("config sample", 0),
    ("openapi", 0),
    ("completions bash", 0),
    ("man", 0),
    ("version", 0),
    ("healthcheck --listen ADDRESS", 0),
    ("healthcheck --listen 127.0.0.1:1", 1),
    ("admin list", 0),
    ("admin create second --password-stdin", 0),
    ("admin create second --password-stdin", 1),
    ("admin password second --password-stdin", 0),
    ("admin password nobody --password-stdin", 4),
    ("admin totp enrol second", 0),
    ("admin totp confirm second", 1),
    ("admin totp remove second --yes", 0),
    ("admin sessions list", 0),
    ("admin sessions end second", 2),
    ("admin sessions end second --yes", 4),
    ("admin networks list", 0),
    ("admin networks allow 203.0.113.0/24", 0),
    ("admin networks allow nonsense", 2),
    ("admin networks disallow 198.51.100.0/24", 4),
    ("admin networks disallow 203.0.113.0/24", 0),
    ("admin networks clear", 0),
    ("admin remove second", 2),
    ("admin remove second --yes", 0),
    ("admin remove second --yes", 4),
    ("admin key create press", 0),
    ("admin key create press", 1),
    ("admin key list", 0),
    ("admin key change press --role read-only --expires 2099-01-01", 0),
    ("admin key change press --expires 2001-01-01", 2),
    ("admin key change nobody --suspended", 4),
    ("admin role second support", 4),
    ("admin key revoke press --yes", 0),
    ("ai usage", 0),
    ("ai usage --days 0", 2),
    ("ai test", 0),
    ("ai test --casting 788976 --prompt-only", 0),
    ("ai prompt --show", 0),
    ("ai ratings", 0),
    ("audit", 0),
    ("audit --user USER --actor cli --from 2026-01-01", 0),
    ("audit --from yesterday", 2),
    ("coins balance USER", 0),
    ("coins balance +8613800138000", 0),
    ("coins balance 13999999999", 4),
    ("coins grant USER 5 --reason tests", 0),
    ("coins grant USER -2 --reason tests", 0),
    ("coins grant USER -2", 2),
    ("coins grant USER -9999 --reason tests", 1),
    ("coins grant USER 20000 --reason tests", 2),
    ("coins grant USER 20000 --yes", 2),
    ("coins grant USER 0 --reason tests", 2),
    ("coins grant 13999999999 5", 4),
    ("coins reset USER --reason tests", 2),
    ("coins reset USER --reason tests --yes", 0),
    ("coins repair", 0),
    ("points show USER", 0),
    ("points show 13999999999", 4),
    ("points adjust USER 5 --reason tests", 0),
    ("points adjust USER -1000 --reason tests", 1),
    ("points repair USER --reason tests", 0),
    ("ledger verify", 0),
    ("ledger show USER", 0),
    ("ledger show nobody@example.com", 4),
    ("products list", 0),
    ("products show coins_60", 0),
    ("products show nothing", 4),
    ("products set points_1 --asset point --count 1 --price 0.10", 0),
    ("products set points_1 --asset gold --count 1 --price 0.10", 2),
    ("products set points_2 --asset point --count 1", 2),
    ("products set points_1 --bonus 1", 0),
    ("products withdraw points_1", 0),
    ("products offer points_1", 0),
    ("products offer nothing", 4),
    ("purchases list", 0),
    ("purchases list --user USER --state credited", 0),
    ("purchases list --state lost", 2),
    ("purchases show 1", 4),
    ("purchases history 1", 4),
    ("purchases query 1", 4),
    ("payments list", 0),
    ("payments list --user USER --state credited", 0),
    ("payments list --state lost", 2),
    ("payments show PAID", 0),
    ("payments show nowhere", 4),
    ("payments callbacks", 0),
    ("payments query OPEN", 0),
    ("payments sandbox-pay OPEN", 0),
    ("payments settle OPEN write-off --reason tests --yes", 1),
    ("payments refund OPEN --reason tests", 2),
    ("payments refund OPEN --reason tests --yes", 0),
    ("payments replay CALLBACK", 0),
    ("payments replay 999999", 4),
    ("figures show", 0),
    ("health", 0),
    ("logs server --level warn --target http --search failed", 0),
    ("figures show --names new_users,revenue --from 2026-01-01 --to 2026-03-31 --by month", 0),
    ("figures show --from 2026-02-01 --to 2026-01-01", 2),
    ("figures castings", 0),
    ("figures rebuild", 0),
    ("payments bill --day 2026-01-02", 0),
    ("payments bill --day 2026-13-02", 2),
    ("payments bills", 0),
    ("payments bill --day 2026-01-02 --channel stripe", 2),
    ("payments report --from 2020-01-01 --to 2100-01-01", 0),
    ("payments report --from 2026-02-01 --to 2026-01-01", 2),
    ("records user USER", 0),
    ("records user USER --from 2026-02-01 --to 2026-01-01", 2),
    ("records show TRACE", 0),
    ("records show 00000000000000000000000000000000", 4),
    ("records failed", 0),
    ("records slow --duration-ms 1", 0),
    ("records count", 0),
    ("records count --user USER", 0),
    ("logs user USER", 0),
    ("logs ip 127.0.0.1", 0),
    ("logs ip here", 2),
    ("logs range --from 2026-01-01", 0),
    ("logs failed", 0),
    ("logs count", 0),
    ("logs suspicious", 0),
    ("logs cleanup", 2),
    ("logs cleanup --days-to-keep 3 --yes", 0),
    ("words add 代练上分 --type fraud", 0),
    ("words add x", 2),
    ("words list", 0),
    ("words list --type fraud --search 代练", 0),
    ("import users IMPORT --dry-run", 0),
    ("import users IMPORT", 0),
    ("import users - --format csv", 2),
    ("import users /nowhere.csv", 4),
    ("words import - --type ads", 0),
    ("words import /nowhere", 4),
    ("words export", 0),
    ("words test 代练上分 --content-type question", 0),
    ("words stats", 0),
    ("words allow 反代练", 0),
    ("words allowed", 0),
    ("words allow 反代练 --remove", 0),
    ("words remove 代练上分", 0),
    ("words remove 代练上分", 4),
    ("violations list", 0),
    ("violations list --user USER", 0),
    ("violations show VIOLATION", 0),
    ("violations show 999999", 4),
    ("violations stats", 0),
    ("violations frequent --days 30 --threshold 1", 0),
    ("violations stats --user USER", 0),
    ("violations review list", 0),
    ("violations review decide 999999 --decision acquit", 2),
    ("violations review decide 999999 --decision acquit --reason tests", 5),
    ("violations review undo 999999", 5),
    ("violations acquit VIOLATION --reason tests", 0),
    ("violations acquit VIOLATION --undo", 0),
    ("violations acquit 999999 --reason tests", 4),
    ("violations cleanup", 2),
    ("violations cleanup --days-to-keep 1 --yes", 0),
    ("moderation status", 0),
    ("moderation switch external", 1),
    ("moderation switch local", 0),
    ("moderation fallback off", 0),
    ("moderation fallback on", 0),
    ("moderation compare 启程", 0),
    ("moderation disagreements", 0),
    ("moderation health", 0),
    ("notify send 维护 今晚暂停 --all --kind system", 0),
    ("notify send 补偿 已补发 --to USER", 0),
    ("notify send 补偿 已补发 --to 13999999999", 4),
    ("notify send 补偿 已补发", 2),
    ("notify send 打开 看看 --all --payload nonsense", 2),
    ("notify list", 0),
    ("notify delete 1", 2),
    ("notify delete 1 --yes", 0),
    ("notify delete 1 --yes", 4),
    ("release publish 2.3.1 --code 231 --platform android", 0),
    ("release publish 2.3.1 --code 231 --platform android", 1),
    ("release publish nonsense --code 232", 2),
    ("release list", 0),
    ("release withdraw 1 --reason tests", 0),
    ("release withdraw 1", 4),
    ("feedback list", 0),
    ("feedback list --user USER", 0),
    ("feedback list --state open --assignee alice", 0),
    ("feedback list --state lost", 2),
    ("feedback change FEEDBACK", 0),
    ("feedback change FEEDBACK --state in_progress", 0),
    ("feedback change FEEDBACK --assignee nobody", 2),
    ("feedback change FEEDBACK --assignee= --state closed", 0),
    ("feedback change 999999 --state open", 4),
    ("feedback reply FEEDBACK 谢谢", 0),
    ("feedback reply 999999 谢谢", 4),
    ("users show USER", 0),
    ("users show 13800138000", 0),
    ("users show ada@example.com", 0),
    ("users show 13999999999", 4),
    ("users validate USER", 0),
    ("users repair USER --reason tests", 0),
    ("users restore-history USER --reason tests", 0),
    ("users code-messages 13800138000", 0),
    ("users code-messages 13999999999", 0),
    ("users code-messages 0", 4),
    ("users list", 0),
    ("users list --state suspended --from 2026-01-01", 0),
    ("users list --cursor nonsense", 2),
    ("users search 青", 0),
    ("users search 13800138000 --limit 1", 0),
    ("users suspend OTHER", 2),
    ("users suspend OTHER --reason tests --until 2001-01-01", 2),
    ("users suspend OTHER --reason tests --until 2099-01-01", 0),
    ("users suspend OTHER --reason tests", 1),
    ("users suspensions OTHER", 0),
    ("users unsuspend OTHER", 0),
    ("users unsuspend OTHER", 4),
    ("users notes add USER 已核实", 0),
    ("users notes list USER", 0),
    ("users notes remove USER 1", 0),
    ("users notes remove USER 1", 4),
    ("users reset-nickname USER --reason tests", 0),
    ("users devices USER", 0),
    ("users sign-out USER --device 0000000000000000", 4),
    ("users sign-out OTHER", 0),
    ("users move-phone OTHER 13800138009 --reason tests", 2),
    ("users move-phone OTHER 13800138000 --reason tests --yes", 1),
    ("users move-phone OTHER 13800138009 --reason tests --yes", 0),
    ("users attachment USER", 0),
    ("users attachment 0", 4),
    ("users export USER", 0),
    ("users export USER --output EXPORT", 0),
    ("users export USER --output EXPORT", 1),
    ("users export 13999999999", 4),
    ("users erase OTHER", 2),
    ("users erase OTHER --yes --reason tests", 0),
    ("users erase OTHER --yes", 4),
    ("users show OTHER", 4),
    ("audit --user OTHER", 0),
    ("sync coins", 0),
    ("sync users", 0),
    ("doctor --listen ADDRESS", 0),
    ("alerts list", 0),
    ("alerts test", 1),
    ("webhooks list", 0),
    ("webhooks list --state failed", 0),
    ("webhooks replay", 0),
    ("webhooks replay 999", 4),
    ("webhooks test", 1),
    ("cleanup verification-codes --dry-run", 0),
    ("cleanup verification-codes", 2),
    ("cleanup verification-codes --yes", 0),
    ("cleanup payment-records --yes", 0),
    ("cleanup feedback --yes", 0),
    ("cleanup expired", 2),
    ("cleanup expired --dry-run", 2),
    ("cleanup expired --yes", 0),
    ("backup create", 0),
    ("backup list", 0),
    ("backup list --remote", 3),
    ("backup verify", 0),
    ("backup verify nothing.db", 4),
    ("backup verify --latest", 3),
    ("backup follow standby --once", 3),
    ("backup take-over --yes", 3),
    ("backup upload", 3),
    ("backup fetch nothing.db", 3),
    ("backup prune", 0),
    ("restore nothing.db --yes", 4),
    ("database copy --from FOLDER --to FOLDER", 2),
    ("database unmark --from FOLDER/nowhere", 4),
    ("restore --latest --yes", 6),
    ("cleanup all", 2),
    ("cleanup all --yes", 0),
];

/// The headings of `yarrow help`, in order.
const AREAS: [&str; 6] = ["Identity", "Divination", "Money", "Moderation", "Messaging", "Operations"];

/// Returns the help of each command, and of those that have subcommands.
pub fn helps() -> &'static BTreeMap<String, String> {
    static HELPS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let mut helps = BTreeMap::new();
        collect_helps("", &mut helps);
        helps
    });
    &HELPS
}

fn collect_helps(command: &str, helps: &mut BTreeMap<String, String>) {
    let output = Binary::command().args(command.split_whitespace()).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for name in subcommands(command, &help) {
        collect_helps(format!("{command} {name}").trim_start(), helps);
    }
    helps.insert(command.to_owned(), help);
}

/// Returns the subcommands that the help of a command lists.
fn subcommands<'help>(command: &str, help: &'help str) -> Vec<&'help str> {
    let headings: &[&str] = if command.is_empty() { &AREAS } else { &["Commands"] };
    let lists = headings.iter().filter_map(|heading| help.split(&format!("\n{heading}:\n")).nth(1));
    let lines = lists.flat_map(|list| list.lines().take_while(|line| !line.is_empty()));
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

/// Returns the commands without subcommands.
pub fn all() -> impl Iterator<Item = &'static String> {
    helps().iter().filter(|(command, help)| subcommands(command, help).is_empty()).map(|(command, _)| command)
}

fn run(fixture: &Fixture, line: &str) -> Output {
    let mut command = Binary::command();
    command.args(line.split(' ')).arg("--json").arg("--data-dir").arg(fixture.server.directory());
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = pipes.spawn().unwrap();
    // Most commands do not read it.
    let _ = process.stdin.take().unwrap().write_all(b"correct horse battery staple\n");
    process.wait_with_output().unwrap()
}

fn is_unrecorded(line: &str) -> bool {
    UNRECORDED.iter().any(|command| line == *command || line.starts_with(&format!("{command} ")))
        || [" --dry-run", " --prompt-only"].iter().any(|option| line.contains(option))
}

/// Returns the newest audit event of a command.
fn newest_row(fixture: &Fixture) -> i64 {
    fixture.server.value("select coalesce(max(id), 0) from audit where actor = 'cli'")
}

/// Runs a command in a terminal with a hundred columns.
fn shown(fixture: &Fixture, line: &str) -> String {
    let binary = Binary::command();
    let program = binary.get_program().to_str().unwrap();
    let directory = fixture.server.directory().to_str().unwrap();
    let shell = format!("stty cols 100 rows 50 && {program} {line} --data-dir {directory}");
    let mut command = Command::new("script");
    command.env_remove("YARROW_TEST_DATABASE").env_remove("YARROW_TEST_COPIES");
    command.envs(binary.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.args(["-qec", &shell, "/dev/null"]).stdin(Stdio::null()).output();
    let output = output.expect("this test needs `script` of util-linux");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{line}: {text}");
    text
}

#[test]
fn every_command_works_beside_a_busy_server() {
    let fixture = fixture();
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (fixture, stop, answered) = (&fixture, &stop, &answered);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let record = json!({ "localRecordId": format!("load-{number}"), "question": "何时？" });
                    let save = fixture.server.post("/divination-history/save").by(&fixture.user).json(&record).send();
                    // In the end all users are deleted, and with them this caller's token. That may exceed the write
                    // timeout.
                    assert!([200, 401, 503].contains(&save.status), "{}", save.text());
                    answered.fetch_add(1, Ordering::Relaxed);
                    // Busy, but not with two cores: the commands are what is tested.
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            });
        }
        let mut failures = Vec::new();
        for (line, code) in fixture.lines() {
            let before = newest_row(&fixture);
            let output = run(&fixture, &line);
            let message =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            if output.status.code() != Some(code) {
                failures.push(format!("{line}: {:?} and not {code}: {message}", output.status.code()));
            } else if code == 0 && is_unrecorded(&line) == (newest_row(&fixture) > before) {
                failures.push(format!("{line}: the audit says the opposite of what was promised"));
            } else if code == 0 && serde_json::from_slice::<Value>(&output.stdout).is_err() {
                failures.push(format!("{line}: no JSON: {message}"));
            } else if code != 0 && !is_json_problem(&output) {
                failures.push(format!("{line}: fails without a sentence: {message}"));
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    });
    assert!(answered.load(Ordering::Relaxed) > 50, "there was no load");
    fixture.server.get("/readyz").send().expect(200);
}

/// Returns true if the last line of standard error is a problem with code and detail.
fn is_json_problem(output: &Output) -> bool {
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let problem: Option<Value> = complaint.lines().last().and_then(|line| serde_json::from_str(line).ok());
    let is_text = |problem: &Value, name: &str| problem[name].as_str().is_some_and(|text| !text.is_empty());
    problem.is_some_and(|problem| is_text(&problem, "code") && is_text(&problem, "detail"))
}

#[test]
fn covers_every_command() {
    let all: BTreeSet<_> = all().collect();
    assert!(all.len() > 30, "{all:?}");
    let is_tried = |command: &str| {
        let is_it = |line: &str| line == command || line.starts_with(&format!("{command} "));
        LINES.iter().any(|(line, _)| is_it(line)) || ELSEWHERE.contains(&command)
    };
    let left_out: Vec<_> = all.iter().filter(|command| !is_tried(command)).collect();
    assert!(left_out.is_empty(), "commands without a line in this test: {left_out:?}");
}

#[test]
fn tables_fit_the_terminal_and_are_plain_lines_elsewhere() {
    let fixture = fixture();
    let lines = ["audit", "payments list", "users show 13800138000", "logs range", "ledger show 13800138000"];
    for line in lines {
        // First, before the network log grows.
        let piped = Binary::command().args(line.split(' ')).arg("--data-dir").arg(fixture.server.directory()).output();
        let piped = String::from_utf8(piped.unwrap().stdout).unwrap();
        let text = shown(&fixture, line);
        assert!(text.lines().count() > 3, "{line}: {text}");
        for row in text.lines() {
            let width = row.trim_end_matches('\r').chars().count();
            assert!(width <= 100, "{line}: {width} characters: {row}");
        }
        // Without a terminal, a row is a line.
        assert!(piped.lines().count() <= text.lines().count(), "{line}: {piped}");
    }
}

#[test]
fn rejects_blank_reasons_and_empty_periods() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    for reason in ["", "  "] {
        for command in [
            ["coins", "grant", "13800138000", "5", "--reason", reason].as_slice(),
            &["coins", "reset", "13800138000", "--yes", "--reason", reason],
            &["points", "adjust", "13800138000", "5", "--reason", reason],
            &["users", "erase", "13800138000", "--yes", "--reason", reason],
            &["payments", "refund", "1", "--yes", "--reason", reason],
        ] {
            server.command(command).expect(2);
        }
    }
    assert_eq!(server.coins(&user), 0);
    for command in [["audit"].as_slice(), &["logs", "range"], &["records", "count"], &["violations", "list"]] {
        let period = ["--from", "2026-02-01", "--to", "2026-01-01"];
        let refused = server.command(&[command, &period].concat()).expect(2);
        assert!(refused.stderr().contains("must not be before `from`"), "{command:?}: {}", refused.stderr());
    }
}

#[test]
fn names_missing_items() {
    let server = Setup::default().start();
    for (line, named) in [
        ("payments show 12345", "Order `12345`"),
        ("payments query 12345", "Order `12345`"),
        ("payments settle 12345 credit --reason tests --yes", "Order `12345`"),
        ("payments refund 12345 --reason tests --yes", "Order `12345`"),
        ("payments sandbox-pay 12345", "Order `12345`"),
        ("payments replay 12345", "Callback `12345`"),
        ("violations show 12345", "Violation `12345`"),
        ("notify delete 12345 --yes", "Notification `12345`"),
    ] {
        let arguments: Vec<_> = line.split(' ').collect();
        let problem = server.command(&arguments).expect(4).problem();
        assert_eq!(problem["detail"], format!("{named} not found."), "{line}");
    }
    let publish = ["release", "publish", "2.3.1", "--code", "231", "--platform", "android"];
    server.command(&publish).expect(0);
    let problem = server.command(&publish).expect(1).problem();
    assert_eq!(problem["detail"], "A release with version code 231 for android already exists.");
}

#[test]
fn uses_the_singular_for_one_item() {
    let server = Setup::default().start();
    server.sign_in("13800138000");
    server.command(&["coins", "grant", "13800138000", "5"]).expect(0);
    let directory = server.directory().to_str().unwrap();
    let text = |line: &str| {
        let output = Binary::command().args(line.split(' ')).args(["--data-dir", directory]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(text("ledger verify").trim(), "consistent: 1 entry, 1 account, 1 audit row");
    let created = text("backup create");
    assert!(created.ends_with("0 dangling references; ledger: 1 entry, 1 account, 0 discrepancies\n"), "{created}");
    let words = server.directory().join("words.csv");
    std::fs::write(&words, "摇号软件\nx\n").unwrap();
    let imported = text(&format!("words import {}", words.display()));
    assert!(imported.starts_with("1 word added, 0 already listed, 1 line skipped\n"), "{imported}");
    server.edit("insert into balances (user_id, asset, balance, last_sequence) values (77, 'coin', 5, 0)");
    let problem = server.command(&["ledger", "verify"]).expect(5).problem();
    assert_eq!(problem["detail"], "The ledger has 1 discrepancy.");
}

/// Returns arguments and options whose help is missing or only lists the values.
fn bare_arguments(help: &str) -> Vec<&str> {
    let lines: Vec<_> = help.lines().collect();
    let is_argument = |line: &str| {
        let name = line.trim_start();
        (1..7).contains(&(line.len() - name.len())) && name.starts_with(['<', '[', '-'])
    };
    let is_bare = |place: usize| {
        let beside = lines[place].trim_start().split_once("  ").map(|(_, message)| message);
        let message = beside.or_else(|| lines.get(place + 1).copied()).unwrap_or_default().trim_start();
        message.is_empty() || message.starts_with('[')
    };
    (0..lines.len()).filter(|place| is_argument(lines[*place]) && is_bare(*place)).map(|place| lines[place]).collect()
}

#[test]
fn every_argument_has_help() {
    for command in all() {
        assert_eq!(bare_arguments(&helps()[command]), [""; 0], "{command}");
    }
    let bare =
        "Arguments:\n  <TO>  [possible values: on, off]\n  [WHO]\n\n      --asset <ASSET>\n          [default: coin]\n";
    assert_eq!(bare_arguments(bare).len(), 3);
}
