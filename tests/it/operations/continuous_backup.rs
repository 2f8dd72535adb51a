//! Continuous backup: shipping, restoring byte for byte, fencing, and faults of the bucket.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use flate2::read::GzDecoder;
use rusqlite::Connection;
use tempfile::TempDir;
use yarrow::{
    app::App,
    clock::Clock,
    config::{Config, Sources, load},
    domain::{
        money::ledger::{self, Asset, EntryKind, Posting},
        operations::{
            alerts,
            backups::{
                self, Occasion,
                follow::{self, LatestRestore, Shipper},
                offsite,
                origin::Origin,
            },
            free_space_scrub,
            health::HealthSnapshot,
        },
    },
    error::{Code, Result},
    types::{Timestamp, UserId},
};

use super::console::Browser;
use crate::support::{
    CommandOutput, Request, Setup, assert_sound, copy_directory, eventually,
    fake_provider::{FakeProvider, ReceivedRequest, Reply},
    fake_s3::{FakeS3, Fault, KEY, KEY_ID, REGION},
    filler_statement, kill_after, kill_at_intervals, open_app, soon,
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
        ("AUTH_SECRET_KEY", SERVER_KEY.to_owned()),
    ]
}

/// The server key of all machines of the installation.
const SERVER_KEY: &str = "0123456789abcdef0123456789abcdef";

fn open(bucket: &FakeS3) -> (TempDir, App) {
    open_as(bucket, SERVER_KEY)
}

/// Opens a data directory of the installation with this server key.
fn open_as(bucket: &FakeS3, server_key: &str) -> (TempDir, App) {
    let mut settings = settings(bucket);
    settings.retain(|(name, _)| *name != "AUTH_SECRET_KEY");
    settings.push(("AUTH_SECRET_KEY", server_key.to_owned()));
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
    let connection = Connection::open(app.core.store.require_file().unwrap().path()).unwrap();
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
    let restored = follow::restore_latest(
        &config,
        (until.map(Timestamp), &Origin::at_hand(&config).unwrap()),
        &Clock::default(),
        "operator".into(),
        &mut |_, _, _| (),
    );
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

fn other_process(app: &App) -> Connection {
    let connection = Connection::open(app.core.store.require_file().unwrap().path()).unwrap();
    connection.busy_timeout(Duration::from_secs(10)).unwrap();
    connection
}

fn post_coins(app: &App, user: UserId) {
    let posting = Posting { user, asset: Asset::Coin, delta: 5, kind: EntryKind::Topup, reference: None };
    app.core.store.write(move |tx| ledger::post_in(tx, posting)).wait().unwrap();
}

/// Ships the states of a random workload, and restores each of them.
fn restore_random_states(seed: u64, states: usize) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let bucket = FakeS3::new();
    let (directory, app) = open(&bucket);
    upload(&app);
    let mut machine = Machine::start(&app);
    while machine.states.len() < states {
        for _ in 0..=random.below(3) {
            match random.below(12) {
                0..=2 => machine.store(&format!("test.{}", random.below(40)), 50 + random.below(60_000) as usize),
                3 => post_coins(&app, UserId(i64::from(1 + random.below(4)))),
                // An erasure, with the rows of which the free space and the log still hold copies.
                4 | 5 => {
                    let removed = app.core.store.write(|tx| {
                        tx.truncate_wal_after_commit();
                        let erase = "delete from settings where name like 'test.%' and length(name) = 6";
                        free_space_scrub::request_if_deleted_in(tx, tx.execute(erase, ())?)
                    });
                    removed.wait().unwrap();
                    free_space_scrub::run_if_due(&app.core).unwrap();
                }
                // Other processes write.
                6 => {
                    let value = random.below(u32::MAX).to_string();
                    let insert = "insert into settings (name, value, updated_at) values (?1, 'y', 1)";
                    other_process(&app).execute(insert, [value]).unwrap();
                }
                7 if random.below(4) == 0 => {
                    let name = format!("key-{}", random.below(u32::MAX));
                    let key = [("YARROW_AUTH_SECRET_KEY", SERVER_KEY)];
                    let create = ["admin", "key", "create", &name];
                    CommandOutput::run_with(directory.path(), &key, &create, "").expect(0);
                }
                // The schema changes, as in a migration.
                7 => {
                    let sql = "create index test_migration on settings (value); drop index test_migration";
                    other_process(&app).execute_batch(sql).unwrap();
                }
                8 => other_process(&app).query_row("pragma wal_checkpoint(restart)", [], |_| Ok(())).unwrap(),
                9 if random.below(3) == 0 => app.core.store.require_file().unwrap().vacuum().wait().unwrap(),
                9 => machine.pass_interval(),
                10 => upload(&app),
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
fn a_long_lag_raises_an_alert() {
    let bucket = FakeS3::new();
    let (_directory, app) = open(&bucket);
    upload(&app);
    let mut machine = Machine::start(&app);
    machine.now = Instant::now().checked_sub(Duration::from_mins(10)).unwrap();
    machine.ship();
    let behind = || {
        let findings = alerts::evaluate(&app.health, &HealthSnapshot::collect(&app.health).unwrap());
        findings.into_iter().find(|finding| finding.rule == "backup_behind").unwrap()
    };
    assert!(!behind().is_firing);
    machine.store("test.behind", 10);
    bucket.inject_fault(Fault::Refuses(507, "InsufficientStorage"));
    machine.pass_interval();
    let finding = behind();
    assert!(finding.is_firing && finding.fact.detail().contains("InsufficientStorage"), "{finding:?}");
    bucket.inject_fault(Fault::None);
    machine.ship();
    assert!(!behind().is_firing);
}

#[test]
fn half_stored_changes_are_a_gap_until_the_next_backup() {
    let bucket = FakeS3::new();
    let (_directory, app) = open(&bucket);
    upload(&app);
    let mut machine = Machine::start(&app);
    machine.ship();
    let whole = pages(&app);
    bucket.inject_fault(Fault::StoresHalf);
    machine.store("test.half", 100);
    machine.pass_interval();
    bucket.inject_fault(Fault::None);
    machine.store("test.after", 100);
    machine.pass_interval();
    let (restored, database) = restore(&bucket, None);
    let gap = restored.unwrap().test.state.gap.unwrap();
    assert!(gap.contains("is damaged") && database == Some(whole), "{gap}");
    upload(&app);
    machine.store("test.rebased", 100);
    machine.ship();
    assert_restores(&bucket, None, &pages(&app));
}

/// Returns the unpacked pages of an object of changes.
fn unpacked(object: &[u8]) -> Vec<u8> {
    let lines = object.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index);
    let start = lines.take(2).last().unwrap() + 1;
    let mut pages = Vec::new();
    GzDecoder::new(&object[start..object.len() - 32]).read_to_end(&mut pages).unwrap();
    pages
}

#[test]
fn erased_texts_leave_the_changes_after_their_retention() {
    const TEXT: &str = "a question that its author erased";
    let bucket = FakeS3::new();
    let (_directory, app) = open(&bucket);
    let clock = app.core.clock.clone();
    clock.set_back(Duration::from_hours(100));
    upload(&app);
    let mut machine = Machine::start(&app);
    let stored = app.core.store.write(|tx| {
        tx.execute("insert into settings (name, value, updated_at) values ('test.erased', ?1, 1)", [TEXT.repeat(300)])
    });
    stored.wait().unwrap();
    machine.ship();
    let objects_with_text = || {
        let holds = |bytes: &[u8]| crate::support::holds(bytes, TEXT.as_bytes());
        let objects = bucket.objects().into_iter().filter(|(key, _)| key.contains("/changes/"));
        objects.filter(|(_, object)| holds(&unpacked(object))).count()
    };
    assert_eq!(objects_with_text(), 1);
    let erased = app.core.store.write(|tx| {
        tx.truncate_wal_after_commit();
        tx.execute("delete from settings where name = 'test.erased'", ())
    });
    erased.wait().unwrap();
    app.core.store.require_file().unwrap().vacuum().wait().unwrap();
    // Chains begin anew several times within the retention of changes.
    for hours in [90, 75, 60, 53] {
        clock.set_back(Duration::from_hours(hours));
        machine.now += Duration::from_mins(10);
        machine.store("test.other", usize::try_from(hours).unwrap());
        machine.ship();
        assert_eq!(objects_with_text(), 1, "{hours} hours ago the changes were still kept");
    }
    clock.set_back(Duration::from_hours(51));
    machine.now += Duration::from_mins(10);
    machine.store("test.other", 51);
    machine.ship();
    assert_eq!((objects_with_text(), changes(&bucket).len()), (0, 5));
    assert_restores(&bucket, None, &pages(&app));
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
        // These machines have the key in a file.
        all.retain(|(name, _)| !["BACKUP_EVERY", "BACKUP_FOLLOW", "AUTH_SECRET_KEY"].contains(name));
        all.push(("BACKUP_EVERY", "1 hour".to_owned()));
        all.push(("BACKUP_FOLLOW", "200 ms".to_owned()));
        all
    }

    fn setup(&self, name: &str) -> Setup {
        let setup = Setup::default().on(&self.directory(name)).with_fast_jobs();
        self.settings().into_iter().fold(setup, |setup, (name, value)| setup.with(name, value))
    }

    /// Returns verdict and detail of the doctor's check.
    fn continuous_check(&self, name: &str, exit_code: i32) -> (String, String) {
        let found = self.run(name, &["doctor", "--listen", "127.0.0.1:0"]).expect(exit_code).json();
        let check = found["checks"].as_array().unwrap().iter().find(|check| check["name"] == "continuous");
        let text = |field: &str| check.unwrap()[field].as_str().unwrap_or_default().to_owned();
        (text("verdict"), text("detail"))
    }

    fn run(&self, name: &str, arguments: &[&str]) -> CommandOutput {
        let settings: Vec<_> =
            self.settings().into_iter().map(|(name, value)| (format!("YARROW_{name}"), value)).collect();
        let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // Other machines are other processes.
        CommandOutput::run_in_own_process(&self.directory(name), &settings, arguments, "")
    }
}

/// Waits until everything that was stored before is in the bucket.
fn wait_until_shipped(metrics: &str) {
    // The server looks for changes several times a second.
    std::thread::sleep(Duration::from_secs(1));
    eventually("everything shipped", || {
        let page = Request::new("GET", metrics).send().expect(200).text();
        let lag = page.lines().find_map(|line| line.strip_prefix("yarrow_follow_lag_seconds "));
        lag.unwrap().parse::<f64>().unwrap() <= 0.0
    });
}

#[test]
fn a_machine_that_dies_is_replaced_and_takes_no_writes_when_it_returns() {
    let machines = Machines::new();
    let mut first = machines.setup("first").with_metrics().in_own_process().start();
    let metrics = first.metrics();
    eventually("the first changes", || !changes(&machines.bucket).is_empty());
    first.sign_in("13800138000");
    wait_until_shipped(&metrics);
    drop(first.kill());

    let verified = machines.run("second", &["backup", "verify", "--latest"]).expect(0).json();
    assert_eq!((verified["sound"].as_bool(), verified["gap"].is_null()), (Some(true), true), "{verified}");
    let too_early = ["restore", "--latest", "--at", "2020-01-02T03:04:05Z", "--yes", "--unproven"];
    let refused = machines.run("second", &too_early).expect(4).stderr();
    assert!(
        refused.contains("no backup until 2020-01-02T03:04:05") && refused.contains("the first is of 20"),
        "{refused}"
    );
    let restored = machines.run("second", &["restore", "--latest", "--yes", "--unproven"]).expect(0).json();
    assert!(restored["changes"].as_u64().unwrap() >= 1, "{restored}");
    let mut second = machines.setup("second").in_own_process().start();
    let user = second.sign_in_again("13800138000");
    assert_eq!(second.value::<i64>("select count(*) from users"), 1);

    let webhook = FakeProvider::with_handler(|_| Reply::status(204));
    let mut returned = machines
        .setup("first")
        .with("ALERTS_WEBHOOK_URL", webhook.url())
        .with("ALERTS_WEBHOOK_SECRET", "secret")
        .in_own_process()
        .start();
    returned.wait_for_line("another machine has taken over");
    let write = || returned.post("/auth/send-code").json(&serde_json::json!({ "phoneNumber": "13800138001" })).send();
    write().expect_problem(503, "superseded");
    returned.get("/readyz").send().expect(503);
    let before = stored_backups(&machines.bucket);
    machines.run("first", &["backup", "upload"]).expect(1);
    assert_eq!(stored_backups(&machines.bucket), before);
    eventually("the alert", || {
        let is_told = |request: &ReceivedRequest| String::from_utf8_lossy(&request.body).contains("backup_superseded");
        webhook.requests().iter().any(is_told)
    });
    let (verdict, detail) = machines.continuous_check("first", 5);
    assert!(verdict == "fail" && detail.contains("backup take-over"), "{detail}");
    let (verdict, detail) = machines.continuous_check("second", 0);
    assert!(verdict == "pass" && detail.starts_with("term 2, "), "{verdict}: {detail}");
    let of_second = second.value::<String>("select reason from audit where action = 'yarrow backup take-over'");
    assert!(of_second.starts_with("term 2, after term 1 of machine "), "{of_second}");
    machines.run("first", &["backup", "take-over", "--yes"]).expect(0);
    soon("taking over", Duration::from_secs(20), || write().status == 200);
    eventually("the audit event", || {
        let events = "select count(*) from audit where action = 'yarrow backup take-over' and actor = 'cli' \
                      and system_user is not null and reason like 'term 3, after term 2 %'";
        returned.value::<i64>(events) == 1
    });
    let page = Browser::new(&returned, "olivia", "read-only").get("health").send().expect(200).text();
    assert!(page.contains("<dt>持续备份</dt>"), "{page}");
    // The second machine has nothing to ship, and learns it all the same.
    second.wait_for_line("another machine has taken over");
    let write = second.post("/auth/send-code").json(&serde_json::json!({ "phoneNumber": "13800138002" })).send();
    write.expect_problem(503, "superseded");
    second.get("/api/v1/account").by(&user).send().expect(200);
}

#[test]
fn a_stop_ships_the_last_writes() {
    let machines = Machines::new();
    let mut server = machines.setup("first").with("BACKUP_FOLLOW", "1 hour").start();
    eventually("an upload", || !stored_backups(&machines.bucket).is_empty());
    eventually("the claim", || machines.bucket.objects().keys().any(|key| key.contains("/terms/")));
    server.sign_in("13800138000");
    assert_eq!(server.terminate(), Some(0));
    let restored = machines.run("second", &["restore", "--latest", "--yes", "--unproven"]).expect(0).json();
    assert_eq!(restored["gap"], serde_json::Value::Null, "{restored}");
    let database = Connection::open(machines.directory("second").join("yarrow.db")).unwrap();
    assert_eq!(database.query_row("select count(*) from users", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
}

#[test]
fn commands_report_a_gap_with_exit_code_five() {
    let machines = Machines::new();
    let server = machines.setup("first").in_own_process().start();
    eventually("changes", || !changes(&machines.bucket).is_empty());
    server.sign_in("13800138000");
    eventually("more changes", || changes(&machines.bucket).len() >= 2);
    drop(server.kill());
    let last = changes(&machines.bucket).pop().unwrap();
    machines.bucket.put(&last, b"half");
    machines.run("second", &["backup", "verify", "--latest"]).expect(5);
    machines.run("second", &["restore", "--latest", "--yes", "--unproven"]).expect(5);
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
    machines.run("standby", &["restore", "--latest", "--yes", "--unproven"]).expect(0);
    assert_eq!(downloads(), before, "the restore downloaded what the standby had pulled");
    let database = Connection::open(standby.join("yarrow.db")).unwrap();
    assert_eq!(database.query_row("select count(*) from users", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
}

/// Returns the time of the newest state that the names in the bucket promise.
fn newest_state(bucket: &FakeS3) -> Timestamp {
    let times =
        changes(bucket).into_iter().map(|key| key.rsplit('/').next().unwrap().split('-').nth(1).unwrap().to_owned());
    let newest = times.max().unwrap();
    let (date, time) = newest.split_once('T').unwrap();
    let (year, month, day) = (&date[..4], &date[4..6], &date[6..]);
    let (hour, minute, second) = (&time[..2], &time[2..4], &time[4..]);
    Timestamp::from_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}")).unwrap()
}

/// Returns the ids of the saved records.
fn saved(database: &Path) -> BTreeSet<String> {
    let connection = Connection::open(database).unwrap();
    assert_sound(&connection);
    let mut statement = connection.prepare("select local_record_id from history").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(|id| id.unwrap()).collect()
}

#[test]
fn machines_killed_while_they_ship_or_rebase_lose_nothing_older_than_the_newest_state() {
    const ROUNDS: u64 = 6;
    let machines = Machines::new();
    let clock = Clock::default();
    let mut acknowledged: Vec<(Timestamp, String)> = Vec::new();
    let mut random = Random(11);
    for round in 0..ROUNDS {
        let server = machines.setup("first").with("LIMITS_HISTORY_RECORDS", 1_000_000).in_own_process().start();
        let user = if round == 0 { server.sign_in("13800138000") } else { server.sign_in_again("13800138000") };
        let terms = format!("changes/{:08}/", round + 1);
        eventually("changes of this term", || changes(&machines.bucket).iter().any(|key| key.contains(&terms)));
        let deadline = Instant::now() + Duration::from_millis(300 + u64::from(random.below(1_500)));
        let mut count = 0;
        std::thread::scope(|scope| {
            let rebasing = scope.spawn(|| {
                while round % 2 == 1 && Instant::now() < deadline {
                    machines.run("first", &["backup", "create"]).expect(0);
                }
            });
            while Instant::now() < deadline {
                let id = format!("{round}-{count}");
                let record = serde_json::json!({ "localRecordId": id, "question": "How will it go?" });
                server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
                acknowledged.push((clock.now(), id));
                count += 1;
            }
            rebasing.join().unwrap();
        });
        let killed_at = clock.now();
        drop(server.kill());
        let newest = newest_state(&machines.bucket);
        let lag = killed_at.0 - newest.0;
        assert!(lag < 15_000, "the newest state was {lag} ms old");
        let copy = format!("copy-{round}");
        machines.run(&copy, &["restore", "--latest", "--yes", "--unproven"]).expect(0);
        let found = saved(&machines.directory(&copy).join("yarrow.db"));
        let lost: Vec<_> = acknowledged.iter().filter(|(at, id)| *at < newest && !found.contains(id)).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?} of {} before {newest}", acknowledged.len());
    }
    assert!(acknowledged.len() > 20);
}

#[test]
fn killed_restores_leave_the_old_database_or_the_newest_state() {
    let machines = Machines::new();
    let mut server = machines.setup("first").with_metrics().start();
    let metrics = server.metrics();
    eventually("changes", || !changes(&machines.bucket).is_empty());
    let user = server.sign_in("13800138000");
    server.edit(&filler_statement(4_000));
    let record = serde_json::json!({ "localRecordId": "new", "question": "How will it go?" });
    server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    wait_until_shipped(&metrics);
    assert_eq!(server.terminate(), Some(0));
    let (pristine, directory) = (machines.directory("pristine"), machines.directory("killed"));
    let mut other = Setup::default().on(&pristine).with("BACKUP_EVERY", "0 s").start();
    assert_eq!(other.terminate(), Some(0));
    let config = machines.directory("yarrow.toml");
    std::fs::write(&config, machines.bucket.settings()).unwrap();
    let arguments = ["restore", "--latest", "--yes", "--unproven", "--config", config.to_str().unwrap()];
    let restore_all = || CommandOutput::run(&directory, &arguments, "").expect(0);
    copy_directory(&pristine, &directory);
    let started = Instant::now();
    restore_all();
    let whole = started.elapsed();
    std::fs::remove_dir_all(&directory).unwrap();
    kill_at_intervals(10, whole, |wait| {
        copy_directory(&pristine, &directory);
        let is_cut_off = kill_after(&directory, &arguments, wait);
        // The next open finishes or discards the restore.
        CommandOutput::run_in_own_process(&directory, &[], &["ledger", "verify"], "").expect(0);
        let is_new = !saved(&directory.join("yarrow.db")).is_empty();
        assert!(is_new || !directory.join("take-over").exists(), "an old database may take over");
        restore_all();
        assert_eq!(saved(&directory.join("yarrow.db")).len(), 1);
        let left =
            std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<_> = left.filter(|name| name.starts_with(".changes-") || name.contains(".restored")).collect();
        assert!(left.is_empty(), "{left:?}");
        std::fs::remove_dir_all(&directory).unwrap();
        is_cut_off
    });
}

#[test]
fn what_strangers_store_in_the_bucket_is_not_believed() {
    let bucket = FakeS3::new();
    let (_directory, app) = open(&bucket);
    upload(&app);
    let mut machine = Machine::start(&app);
    // A term of somebody else: the last possible one, and one that looks right.
    let term_key = bucket.objects().into_keys().find(|key| key.contains("/terms/")).unwrap();
    let claim = r#"{"machine":"m","at":1,"version":"0.1.0","from":1,"nonce":"n"}"#;
    for term in ["00000002", "18446744073709551615"] {
        let key = term_key.replace("00000001", term);
        bucket.put(&key, claim.as_bytes());
        machine.store(&format!("test.{term}"), 900);
        machine.pass_interval();
        let failure = app.health.follow.status().failure.unwrap_or_default();
        assert!(!app.core.store.is_superseded() && (term != "00000002" || failure.contains("not sealed")), "{failure}");
        let mut again = Shipper::open(&app.backups).unwrap();
        again.claim(Instant::now());
        assert!(app.health.follow.status().failure.unwrap_or_default().contains("not sealed"));
        bucket.remove(&key);
    }
    machine.store("test.own", 900);
    machine.ship();
    let own = machine.states.values().last().unwrap().clone();
    // Another installation's backup and changes under this one's names.
    let other_bucket = FakeS3::new();
    let (_other_directory, other) = open_as(&other_bucket, "another key of sixteen bytes or more");
    upload(&other);
    let mut other_machine = Machine::start(&other);
    other_machine.store("test.planted", 900);
    other_machine.ship();
    let objects = other_bucket.objects();
    for (key, bytes) in objects.iter().filter(|(key, _)| !key.contains("/terms/")) {
        bucket.put(key, bytes);
    }
    let (restored, database) = restore(&bucket, None);
    let restored = restored.unwrap();
    assert!(restored.test.state.gap.unwrap().contains("not sealed"), "the planted objects are named");
    assert!(database.as_ref() == Some(&own), "the newest own state is restored");
    assert!(!String::from_utf8_lossy(&database.unwrap()).contains("test.planted"));
}
