//! Continuous backup: shipping, restoring byte for byte, fencing, and faults of the bucket.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tempfile::TempDir;
use yarrow::{
    app::App,
    clock::Clock,
    config::{Config, Sources, load},
    domain::operations::backups::{
        self, Occasion,
        follow::{self, LatestRestore, Shipper},
        offsite,
    },
    error::{Code, Result},
    types::Timestamp,
};

use crate::support::{
    CommandOutput, Request, Setup, eventually,
    fake_s3::{FakeS3, Fault, KEY, KEY_ID, REGION},
    open_app, soon,
};

const INTERVAL: Duration = Duration::from_secs(10);

fn settings(bucket: &FakeS3) -> Vec<(&'static str, String)> {
    vec![
        ("BACKUP_EVERY", "0 s".to_owned()),
        ("BACKUP_FOLLOW", "10 s".to_owned()),
        ("BACKUP_S3_ENDPOINT", bucket.provider.url()),
        ("BACKUP_S3_BUCKET", "backups".to_owned()),
        ("BACKUP_S3_REGION", REGION.to_owned()),
        ("BACKUP_S3_ACCESS_KEY_ID", KEY_ID.to_owned()),
        ("BACKUP_S3_SECRET_ACCESS_KEY", KEY.to_owned()),
    ]
}

fn open(bucket: &FakeS3) -> (TempDir, App) {
    let settings = settings(bucket);
    open_app(&settings.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>())
}

/// Returns the configuration of another machine.
fn elsewhere(bucket: &FakeS3, directory: &Path) -> Config {
    let flags = [("data_dir".to_owned(), directory.to_string_lossy().into_owned())].into();
    let environment = settings(bucket).into_iter().map(|(name, value)| (format!("YARROW_{name}"), value)).collect();
    load(Sources { flags, environment, ..Sources::default() }).unwrap().config
}

fn upload(app: &App) {
    backups::create(&app.backups, Occasion::Manual, &mut |_, _, _| ()).unwrap();
    offsite::upload(&app.backups, &mut |_, _, _| ()).unwrap();
}

/// Returns all pages of the current database.
fn pages(app: &App) -> Vec<u8> {
    let connection = Connection::open(app.core.store.path()).unwrap();
    let mut statement = connection.prepare("select data from sqlite_dbpage").unwrap();
    let pages = statement.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    pages.flat_map(|page| page.unwrap()).collect()
}

/// A machine that ships to a bucket, with a clock of its own for intervals.
struct Machine<'app> {
    app: &'app App,
    shipper: Shipper<'app>,
    now: Instant,
    /// The shipped states by time.
    states: BTreeMap<i64, Vec<u8>>,
}

impl<'app> Machine<'app> {
    fn start(app: &'app App) -> Self {
        let mut machine =
            Self { app, shipper: Shipper::open(&app.backups).unwrap(), now: Instant::now(), states: BTreeMap::new() };
        machine.shipper.claim(machine.now);
        machine
    }

    /// Lets an interval pass, and ships what changed.
    fn pass_interval(&mut self) {
        // Times of states have milliseconds.
        std::thread::sleep(Duration::from_millis(3));
        // The first look notices the change, the second one ships it.
        self.shipper.tick(self.now);
        self.now += INTERVAL + Duration::from_mins(1);
        self.shipper.tick(self.now);
    }

    fn ship(&mut self) {
        self.pass_interval();
        let status = self.app.health.follow.status();
        assert_eq!((&status.failure, status.lag(self.now)), (&None, Duration::ZERO));
        self.states.insert(status.shipped_at.unwrap().0, pages(self.app));
    }

    fn store(&self, name: &str, bytes: usize) {
        let (name, value) = (name.to_owned(), "x".repeat(bytes) + &name.repeat(3));
        let stored = self.app.core.store.write(move |tx| {
            tx.execute(
                "insert into settings (name, value, updated_at) values (?1, ?2, 1) \
                 on conflict (name) do update set value = excluded.value",
                (&name, &value),
            )
        });
        stored.wait().unwrap();
    }
}

/// Restores the newest state into a new directory. Returns the database as it was before anything opened it.
fn restore(bucket: &FakeS3, until: Option<i64>) -> (Result<LatestRestore>, Option<Vec<u8>>) {
    let directory = tempfile::tempdir().unwrap();
    let config = elsewhere(bucket, directory.path());
    let restored = follow::restore_latest(&config, until.map(Timestamp), &Clock::default(), &mut |_, _, _| ());
    (restored, std::fs::read(directory.path().join("yarrow.db")).ok())
}

#[track_caller]
fn assert_restores(bucket: &FakeS3, until: Option<i64>, expected: &[u8]) {
    let (restored, database) = restore(bucket, until);
    let restored = restored.unwrap();
    assert_eq!(restored.test.state.gap, None);
    assert!(database.as_deref() == Some(expected), "the restored database differs: {:?}", restored.test.state);
}

fn changes(bucket: &FakeS3) -> Vec<String> {
    bucket.objects().into_keys().filter(|key| key.contains("/changes/")).collect()
}

/// Returns the keys of the backups, oldest first.
fn stored_backups(bucket: &FakeS3) -> Vec<String> {
    let is_backup = |key: &String| Path::new(key).extension().is_some_and(|extension| extension == "db");
    bucket.objects().into_keys().filter(is_backup).collect()
}

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 % u64::from(bound)).unwrap()
    }
}

#[test]
fn restores_random_states_byte_for_byte() {
    restore_random_states(7, 30);
}

/// Part of the long group.
#[test]
#[ignore = "takes minutes; run with `cargo test --test it -- --ignored long_`"]
fn long_restores_a_thousand_random_states() {
    for seed in 1..=20 {
        restore_random_states(seed, 50);
    }
}

/// Ships the states of a random workload, and restores each of them.
fn restore_random_states(seed: u64, states: usize) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let bucket = FakeS3::new();
    let (_directory, app) = open(&bucket);
    upload(&app);
    let mut machine = Machine::start(&app);
    while machine.states.len() < states {
        for _ in 0..=random.below(3) {
            match random.below(8) {
                0..=2 => machine.store(&format!("test.{}", random.below(40)), 50 + random.below(60_000) as usize),
                3 => {
                    let removed = app.core.store.write(|tx| {
                        tx.truncate_wal_after_commit();
                        tx.execute("delete from settings where name like 'test.%' and length(name) = 6", ())
                    });
                    removed.wait().unwrap();
                }
                // Another process writes.
                4 => {
                    let connection = Connection::open(app.core.store.path()).unwrap();
                    let value = random.below(u32::MAX);
                    connection
                        .execute(
                            "insert into settings (name, value, updated_at) values (?1, 'y', 1)",
                            [value.to_string()],
                        )
                        .unwrap();
                }
                5 => {
                    let connection = Connection::open(app.core.store.path()).unwrap();
                    connection.query_row("pragma wal_checkpoint(restart)", [], |_| Ok(())).unwrap();
                }
                6 if random.below(3) == 0 => app.core.store.vacuum().wait().unwrap(),
                6 => upload(&app),
                // Another start of the server.
                _ => {
                    let Machine { now, states, .. } = machine;
                    machine = Machine { now, states, ..Machine::start(&app) };
                }
            }
        }
        machine.store("test.marker", random.below(9) as usize);
        machine.ship();
    }
    for (at, state) in &machine.states {
        assert_restores(&bucket, Some(*at), state);
    }
    assert_restores(&bucket, None, machine.states.values().last().unwrap());
}

#[test]
fn restores_up_to_a_gap_and_says_so() {
    let bucket = FakeS3::new();
    let (_directory, app) = open(&bucket);
    upload(&app);
    let mut machine = Machine::start(&app);
    for number in 0..3 {
        machine.store(&format!("test.{number}"), 900);
        machine.ship();
    }
    let states: Vec<_> = machine.states.values().cloned().collect();
    let keys = changes(&bucket);
    assert_eq!(keys.len(), 3);
    let assert_state = |expected: Option<usize>, what: &str| {
        let (restored, database) = restore(&bucket, None);
        let restored = restored.unwrap();
        assert!(restored.test.state.gap.is_some(), "{what}");
        match expected {
            Some(index) => assert!(database.as_ref() == Some(&states[index]), "{what}"),
            None => assert_eq!(restored.test.state.changes, 0, "{what}"),
        }
    };
    // An object that is cut, or in which a byte differs.
    let whole = bucket.objects()[&keys[2]].clone();
    let step = whole.len() / 12 + 1;
    for length in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
        bucket.put(&keys[2], &whole[..length]);
        assert_state(Some(1), &format!("cut at {length} of {}", whole.len()));
        let mut other = whole.clone();
        other[length] ^= 1;
        bucket.put(&keys[2], &other);
        assert_state(Some(1), &format!("byte {length} differs"));
    }
    bucket.put(&keys[2], &whole);
    let (middle, first) = (bucket.objects()[&keys[1]].clone(), bucket.objects()[&keys[0]].clone());
    bucket.remove(&keys[1]);
    assert_state(Some(0), "the second is missing");
    bucket.put(&keys[1], &middle);
    bucket.remove(&keys[0]);
    assert_state(None, "the first is missing");
    bucket.put(&keys[0], &first);
    assert_restores(&bucket, None, &states[2]);
    // A backup that is damaged, with an older one before it.
    machine.pass_interval();
    upload(&app);
    machine.store("test.9", 10);
    machine.ship();
    let newest = stored_backups(&bucket).pop().unwrap();
    bucket.put(&newest, &bucket.objects()[&newest][..8192]);
    assert_state(Some(2), "the newest backup is cut");
}

#[test]
fn faults_of_the_bucket_change_nothing() {
    let bucket = FakeS3::new();
    let (_directory, app) = open(&bucket);
    upload(&app);
    let mut machine = Machine::start(&app);
    machine.ship();
    let state = machine.states.values().last().unwrap();
    bucket.inject_fault(Fault::CutsLists);
    let (restored, database) = restore(&bucket, None);
    assert_eq!((restored.unwrap_err().code, database), (Code::ProviderFailed, None));
    bucket.inject_fault(Fault::None);
    bucket.fail(2);
    assert_restores(&bucket, None, state);
    let empty = FakeS3::new();
    assert_eq!(restore(&empty, None).0.unwrap_err().code, Code::NotFound);
}

#[test]
fn repeats_shipments_whose_response_was_lost() {
    let bucket = FakeS3::new();
    let (_directory, app) = open(&bucket);
    upload(&app);
    let mut machine = Machine::start(&app);
    machine.ship();
    machine.store("test.lost", 100);
    bucket.inject_fault(Fault::LosesResponses);
    machine.pass_interval();
    assert_eq!(changes(&bucket).len(), 2);
    machine.store("test.later", 100);
    bucket.inject_fault(Fault::None);
    machine.pass_interval();
    machine.ship();
    let keys = changes(&bucket);
    assert_eq!(keys.len(), 3, "{keys:?}");
    assert_restores(&bucket, None, &machine.states.values().last().unwrap().clone());
}

#[test]
fn an_outage_of_six_hours_costs_one_file_and_ends_within_two_intervals() {
    let bucket = FakeS3::new();
    let (directory, app) = open(&bucket);
    upload(&app);
    let mut machine = Machine::start(&app);
    machine.ship();
    bucket.inject_fault(Fault::Refuses(507, "InsufficientStorage"));
    let waiting = || {
        let files = std::fs::read_dir(directory.path().join("backups")).unwrap().map(|entry| entry.unwrap());
        files.filter(|file| file.file_name().to_string_lossy().starts_with(".follow-")).count()
    };
    let (began, mut round) = (machine.now, 0);
    while machine.now < began + Duration::from_hours(6) {
        machine.store(&format!("test.outage{round}"), 2_000);
        round += 1;
        machine.pass_interval();
        machine.now += Duration::from_mins(4);
        assert_eq!(waiting(), 1);
    }
    assert!(app.health.follow.status().lag(machine.now) > Duration::from_hours(6));
    bucket.inject_fault(Fault::None);
    machine.pass_interval();
    machine.pass_interval();
    assert_eq!(app.health.follow.status().lag(machine.now), Duration::ZERO);
    assert_eq!((waiting(), changes(&bucket).len()), (0, 3));
    assert_restores(&bucket, None, &pages(&app));
}

#[test]
fn of_twenty_simultaneous_claims_one_wins() {
    let bucket = FakeS3::new();
    let apps: Vec<_> = (0..20).map(|_| open(&bucket)).collect();
    let winners: Vec<bool> = std::thread::scope(|scope| {
        let claims: Vec<_> = apps
            .iter()
            .map(|(_, app)| {
                scope.spawn(|| {
                    Shipper::open(&app.backups).unwrap().claim(Instant::now());
                    app.health.follow.status().term == Some(1)
                })
            })
            .collect();
        claims.into_iter().map(|claim| claim.join().unwrap()).collect()
    });
    assert_eq!(winners.iter().filter(|winner| **winner).count(), 1, "{winners:?}");
    for ((_, app), is_winner) in apps.iter().zip(winners) {
        let stored = app.core.store.write(|tx| tx.execute("update settings set updated_at = 1", ()));
        assert_eq!(stored.wait().map_err(|error| error.code).is_ok(), is_winner);
    }
}

#[test]
fn ships_to_a_server_that_does_not_know_conditions() {
    for status in [501, 200] {
        let bucket = FakeS3::new();
        bucket.inject_fault(Fault::Unconditional(status));
        let (_directory, app) = open(&bucket);
        upload(&app);
        let mut machine = Machine::start(&app);
        assert_eq!(app.health.follow.status().is_exclusive, Some(false), "{status}");
        machine.ship();
        assert_restores(&bucket, None, machine.states.values().last().unwrap());
    }
}

#[test]
fn deletes_changes_that_are_older_than_configured() {
    let bucket = FakeS3::new();
    let (_directory, app) = open(&bucket);
    upload(&app);
    let base = "20260102T030405.678Z-scheduled";
    let name = |hours: u64, seq: u32| {
        let at = Clock::default().now().minus(Duration::from_hours(hours)).to_string().replace(['-', ':'], "");
        format!("yarrow/changes/00000000/{seq:08}-{at}-{base}")
    };
    let (old, recent) = (name(49, 1), name(47, 2));
    for key in [&old, &recent] {
        bucket.put(key, b"changes");
    }
    let mut machine = Machine::start(&app);
    machine.ship();
    let keys: BTreeSet<String> = changes(&bucket).into_iter().collect();
    assert!(!keys.contains(&old) && keys.contains(&recent), "{keys:?}");
    assert_eq!(keys.len(), 2);
}

/// Machines that are real servers.
struct Machines {
    temp_dir: TempDir,
    bucket: FakeS3,
}

impl Machines {
    fn new() -> Self {
        Self { temp_dir: tempfile::tempdir().unwrap(), bucket: FakeS3::new() }
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.temp_dir.path().join(name)
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut all = settings(&self.bucket);
        all.retain(|(name, _)| !["BACKUP_EVERY", "BACKUP_FOLLOW"].contains(name));
        all.push(("BACKUP_EVERY", "1 hour".to_owned()));
        all.push(("BACKUP_FOLLOW", "200 ms".to_owned()));
        all
    }

    fn setup(&self, name: &str) -> Setup {
        let setup = Setup::default().on(&self.directory(name)).with_fast_jobs();
        self.settings().into_iter().fold(setup, |setup, (name, value)| setup.with(name, value))
    }

    fn run(&self, name: &str, arguments: &[&str]) -> CommandOutput {
        let settings: Vec<_> =
            self.settings().into_iter().map(|(name, value)| (format!("YARROW_{name}"), value)).collect();
        let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        CommandOutput::run_with(&self.directory(name), &settings, arguments, "")
    }
}

#[test]
fn a_machine_that_dies_is_replaced_and_takes_no_writes_when_it_returns() {
    let machines = Machines::new();
    let mut first = machines.setup("first").with_metrics().start();
    let metrics = first.metrics();
    eventually("the first changes", || !changes(&machines.bucket).is_empty());
    first.sign_in("13800138000");
    // The server looks for changes several times a second.
    std::thread::sleep(Duration::from_millis(500));
    let lag = || {
        let page = Request::new("GET", &metrics).send().expect(200).text();
        let lag = page.lines().find_map(|line| line.strip_prefix("yarrow_follow_lag_seconds "));
        lag.unwrap().parse::<f64>().unwrap()
    };
    eventually("everything shipped", || lag() <= 0.0);
    drop(first.kill());

    let verified = machines.run("second", &["backup", "verify", "--latest"]).expect(0).json();
    assert_eq!((verified["sound"].as_bool(), verified["gap"].is_null()), (Some(true), true), "{verified}");
    let restored = machines.run("second", &["restore", "--latest", "--yes"]).expect(0).json();
    assert!(restored["changes"].as_u64().unwrap() >= 1, "{restored}");
    let second = machines.setup("second").start();
    let user = second.sign_in_again("13800138000");
    assert_eq!(second.value::<i64>("select count(*) from users"), 1);

    let mut returned = machines.setup("first").start();
    returned.wait_for_line("another machine has taken over");
    let write = || returned.post("/auth/send-code").json(&serde_json::json!({ "phoneNumber": "13800138001" })).send();
    write().expect_problem(503, "superseded");
    returned.get("/readyz").send().expect(503);
    let before = stored_backups(&machines.bucket);
    machines.run("first", &["backup", "upload"]).expect(1);
    assert_eq!(stored_backups(&machines.bucket), before);
    machines.run("first", &["backup", "take-over", "--yes"]).expect(0);
    soon("taking over", Duration::from_secs(20), || write().status == 200);
    soon("the second machine stops", Duration::from_secs(20), || {
        second.post("/auth/send-code").json(&serde_json::json!({ "phoneNumber": "13800138002" })).send().status == 503
    });
    drop(user);
}

#[test]
fn a_stop_ships_the_last_writes() {
    let machines = Machines::new();
    let mut server = machines.setup("first").with("BACKUP_FOLLOW", "1 hour").start();
    eventually("an upload", || !stored_backups(&machines.bucket).is_empty());
    eventually("the claim", || machines.bucket.objects().keys().any(|key| key.contains("/terms/")));
    server.sign_in("13800138000");
    assert_eq!(server.terminate(), Some(0));
    let restored = machines.run("second", &["restore", "--latest", "--yes"]).expect(0).json();
    assert_eq!(restored["gap"], serde_json::Value::Null, "{restored}");
    let database = Connection::open(machines.directory("second").join("yarrow.db")).unwrap();
    assert_eq!(database.query_row("select count(*) from users", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
}

#[test]
fn commands_report_a_gap_with_exit_code_five() {
    let machines = Machines::new();
    let server = machines.setup("first").start();
    eventually("changes", || !changes(&machines.bucket).is_empty());
    server.sign_in("13800138000");
    eventually("more changes", || changes(&machines.bucket).len() >= 2);
    drop(server.kill());
    let last = changes(&machines.bucket).pop().unwrap();
    machines.bucket.put(&last, b"half");
    machines.run("second", &["backup", "verify", "--latest"]).expect(5);
    machines.run("second", &["restore", "--latest", "--yes"]).expect(5);
    assert!(machines.directory("second").join("yarrow.db").exists());
}

#[test]
fn a_standby_has_pulled_what_a_restore_needs() {
    let machines = Machines::new();
    let mut server = machines.setup("first").start();
    eventually("changes", || !changes(&machines.bucket).is_empty());
    server.sign_in("13800138000");
    assert_eq!(server.terminate(), Some(0));
    let standby = machines.directory("standby");
    let pull =
        || machines.run("elsewhere", &["backup", "follow", standby.to_str().unwrap(), "--once"]).expect(0).json();
    assert!(pull()["objects"].as_u64().unwrap() >= 1);
    let downloads = || {
        let requests = machines.bucket.provider.requests();
        let is_data = |target: &str| target.contains(".db?") || target.contains("/changes/0");
        requests.iter().filter(|request| request.method == "GET" && is_data(&request.target)).count()
    };
    let before = downloads();
    machines.run("standby", &["restore", "--latest", "--yes"]).expect(0);
    assert_eq!(downloads(), before, "the restore downloaded what the standby had pulled");
    let database = Connection::open(standby.join("yarrow.db")).unwrap();
    assert_eq!(database.query_row("select count(*) from users", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
}
