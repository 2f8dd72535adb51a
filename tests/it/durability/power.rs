//! Power failures at and between syncs, with any loss of unsynced data. No response leaves before the sync that covers
//! it.
//!
//! These need `strace`; `.ci/run` installs it and runs the short form.

use std::{collections::BTreeMap, path::Path, thread::scope};

use rusqlite::Connection;

use super::{
    disk::{Disk, Event, Random, Survival, events},
    oracle::{Effect, Oracle},
    workload::{Client, Fixture},
};
use crate::support::{Binary, CommandOutput, Server, Setup};

const CLIENTS: usize = 3;
const CALLS: &str = "trace=pwrite64,write,writev,sendto,sendmsg,ftruncate,fsync,fdatasync,openat,rename,renameat,\
     renameat2,link,linkat,unlink,unlinkat";

/// A recorded run: events, acknowledgements, the files before, and the key of the directory.
struct Recording {
    before: BTreeMap<String, Vec<u8>>,
    events: Vec<Event>,
    oracle: Oracle,
    key: Vec<u8>,
}

/// Records the first start on a new directory, with this many requests of each client.
fn record_first_start(steps: usize) -> Recording {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    record(&directory, steps, |server| Fixture::without_balances(server, CLIENTS), |_| {})
}

/// Records clients with coins and points that save large records first and then do other things.
fn record_load(large: usize, steps: usize) -> Recording {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    // Commands beside the server have ended before, so they are not recorded.
    let mut server = Fixture::setup(CLIENTS).on(&directory).start();
    let fixture = Fixture::of(&server, CLIENTS);
    assert_eq!(server.terminate(), Some(0));
    drop(server);
    let save_large = |client: &mut Client<'_>| (0..large).for_each(|_| assert!(client.save_large().is_ok()));
    record(&directory, steps, |_| fixture, save_large)
}

fn record(
    directory: &Path,
    steps: usize,
    fixture: impl FnOnce(&Server) -> Fixture,
    first: impl Fn(&mut Client<'_>) + Sync,
) -> Recording {
    let before = files(directory);
    let trace = directory.with_file_name("trace");
    let mut server = Fixture::setup(CLIENTS).on(directory).after(&strace_into(&trace)).in_own_process().start();
    let oracle = Oracle::default();
    let fixture = fixture(&server);
    scope(|scope| {
        for user in &fixture.users {
            let (server, oracle, key, first) = (&server, &oracle, fixture.key.as_str(), &first);
            scope.spawn(move || {
                let mut client = Client { server, oracle, user, key, unanswered: &mut None };
                first(&mut client);
                (0..steps).for_each(|_| assert!(client.step().is_ok()));
            });
        }
    });
    server.kill_traced();
    let key = std::fs::read(directory.join("secret.key")).unwrap();
    let trace = std::fs::read_to_string(&trace).unwrap();
    Recording { before, events: events(&trace, directory), oracle, key }
}

/// Returns the shell command that runs the program under `strace`, which writes its calls to this file.
fn strace_into(trace: &Path) -> String {
    let strace = format!("exec strace -f -qq -y -xx -s 2000000 -e {CALLS} -o '{}'", trace.display());
    format!("{strace} \"$0\" \"$@\"; true")
}

/// Returns the files of a directory, if it exists.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())).collect()
}

/// Returns the request ids in these response bytes.
fn answered(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let ids = text.split("work-").skip(1).filter_map(|rest| rest.split_once('-'));
    ids.map(|(number, _)| format!("work-{number}-")).collect()
}

/// A power failure and the check of the remaining files.
struct Failure<'a> {
    recording: &'a Recording,
    number: usize,
    luck: Survival,
}

impl Failure<'_> {
    fn check(&self, disk: &Disk, acknowledged: &BTreeMap<String, Effect>, is_thorough: bool) {
        let temp_dir = tempfile::tempdir().unwrap();
        let directory = temp_dir.path();
        for (path, content) in disk.after_power_failure(self.luck) {
            let Some(name) = Path::new(&path).file_name() else { continue };
            if path.contains("/backups/") || path.ends_with("-shm") {
                continue;
            }
            std::fs::write(directory.join(name), content).unwrap();
        }
        // Shared memory is lost or arbitrary after a power failure.
        std::fs::write(directory.join("yarrow.db-shm"), vec![0xa5; 32_768]).unwrap();
        let whole =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.assert_whole(directory, acknowledged)));
        assert!(whole.is_ok(), "after event {} with {:?}", self.number, self.luck);
        if is_thorough && !acknowledged.is_empty() {
            CommandOutput::run(directory, &["ledger", "verify"], "").expect(0);
            let server = Setup::default().on(directory).start();
            server.get("/readyz").send().expect(200);
        }
    }

    fn assert_whole(&self, directory: &Path, acknowledged: &BTreeMap<String, Effect>) {
        if acknowledged.is_empty() {
            return;
        }
        let key = std::fs::read(directory.join("secret.key")).expect("the server key is missing");
        assert!(key == self.recording.key, "the server key differs");
        let database = Connection::open(directory.join("yarrow.db")).unwrap();
        self.recording.oracle.check(&database, acknowledged.values());
    }
}

/// Fails at every sync and as many other moments, up to `most`.
fn fail_at_every_sync(recording: &Recording, at_most: usize) {
    let effects = recording.oracle.acknowledged();
    let is_point = |event: &&Event| matches!(event, Event::SyncBegins { .. } | Event::SyncEnds { .. } | Event::Sent(_));
    let points = recording.events.iter().filter(is_point).count();
    let (mut random, mut seeds) = (Random(0x9e37_79b9_7f4a_7c15), Random(20_260_101));
    let (mut disk, mut acknowledged, mut failures, mut lossy) = (Disk::with(&recording.before), BTreeMap::new(), 0, 0);
    for (number, event) in recording.events.iter().enumerate() {
        disk.apply(event);
        if let Event::Sent(bytes) = event {
            let known = answered(bytes).into_iter().filter_map(|id| Some((id.clone(), effects.get(&id)?.clone())));
            acknowledged.extend(known);
        }
        let is_chosen = if is_point(&event) {
            random.below(points) < at_most / 2
        } else {
            random.below(recording.events.len()) < at_most.min(2_000) / 4
        };
        if !is_chosen {
            continue;
        }
        for luck in [
            Survival::None,
            Survival::Some(seeds.below(usize::MAX) as u64),
            Survival::Some(seeds.below(usize::MAX) as u64),
        ] {
            failures += 1;
            Failure { recording, number, luck }.check(&disk, &acknowledged, failures % 40 == 0);
        }
        lossy += usize::from(!disk.is_all_synced());
    }
    println!(
        "{failures} power failures over {} events, {points} syncs and answers, {lossy} moments with something unsynced, \
         {} effects acknowledged",
        recording.events.len(),
        acknowledged.len()
    );
    assert_eq!(acknowledged.len(), effects.len(), "acknowledgements are missing in the trace");
    assert!(lossy > 10, "no unsynced data existed");
    Failure { recording, number: recording.events.len(), luck: Survival::All }.check(&disk, &acknowledged, true);
}

/// Fails when each response leaves, with maximum loss. The acknowledged effect must survive.
fn fail_at_every_answer(recording: &Recording) {
    let effects = recording.oracle.acknowledged();
    let (mut disk, mut acknowledged) = (Disk::with(&recording.before), BTreeMap::new());
    for (number, event) in recording.events.iter().enumerate() {
        disk.apply(event);
        let Event::Sent(bytes) = event else { continue };
        let known: Vec<_> = answered(bytes).into_iter().filter(|id| effects.contains_key(id)).collect();
        if known.is_empty() {
            continue;
        }
        acknowledged.extend(known.into_iter().map(|id| (id.clone(), effects[&id].clone())));
        Failure { recording, number, luck: Survival::None }.check(&disk, &acknowledged, false);
    }
    assert_eq!(acknowledged.len(), effects.len(), "acknowledgements are missing in the trace");
    println!("{} answers, each of them true at the moment that it left", acknowledged.len());
}

/// Needs `strace`.
#[test]
#[ignore = "needs strace; run with `cargo test --test it -- --ignored traced_`"]
fn traced_no_response_precedes_its_sync() {
    fail_at_every_answer(&record_first_start(6));
    fail_at_every_answer(&record_load(0, 12));
}

/// A server that does not sync its WAL must fail the check.
#[test]
#[ignore = "needs strace; run with `cargo test --test it -- --ignored traced_`"]
fn traced_detects_a_missing_sync() {
    let mut recording = record_load(0, 12);
    let is_of_log = |event: &Event| matches!(event, Event::SyncEnds { path, .. } if path.ends_with("-wal"));
    recording.events.retain(|event| !is_of_log(event));
    let proof = std::panic::AssertUnwindSafe(|| fail_at_every_answer(&recording));
    assert!(std::panic::catch_unwind(proof).is_err(), "an unsynced WAL passed the check");
}

/// Needs `strace`.
#[test]
#[ignore = "needs strace; run with `cargo test --test it -- --ignored traced_`"]
fn traced_acknowledged_writes_survive_power_failures() {
    fail_at_every_sync(&record_first_start(6), 60);
    fail_at_every_sync(&record_load(0, 25), 80);
    // Enough for a checkpoint and a WAL restart.
    fail_at_every_sync(&record_load(40, 10), 30);
}

/// Part of the long group.
#[test]
#[ignore = "takes minutes; run with `cargo test --test it -- --ignored long_`"]
fn long_acknowledged_writes_survive_a_power_failure_at_every_sync() {
    fail_at_every_sync(&record_first_start(20), usize::MAX);
    let load = record_load(0, 100);
    fail_at_every_answer(&load);
    fail_at_every_sync(&load, usize::MAX);
    fail_at_every_sync(&record_load(60, 60), 1_500);
}

/// Panics unless every published file is complete from the moment its name can survive a power failure, and is durable
/// at the end.
fn assert_published_durably(events: &[Event], published: &BTreeMap<String, Vec<u8>>) {
    let mut disk = Disk::with(&BTreeMap::new());
    for (number, event) in events.iter().enumerate() {
        disk.apply(event);
        if !matches!(event, Event::Rename { .. } | Event::Link { .. } | Event::SyncEnds { .. }) {
            continue;
        }
        for luck in [Survival::None, Survival::All, Survival::Some(1 + u64::try_from(number).unwrap())] {
            for (path, content) in disk.after_power_failure(luck) {
                let whole = published.get(&path).is_none_or(|expected| *expected == content);
                assert!(whole, "{path} is incomplete after event {number} with {luck:?}");
            }
        }
    }
    let durable = disk.after_power_failure(Survival::None);
    for (path, content) in published {
        assert!(durable.get(path) == Some(content), "{path} is not durable");
    }
}

#[test]
#[ignore = "needs strace; run with `cargo test --test it -- --ignored traced_`"]
fn traced_a_backup_is_durable_before_it_has_its_name() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut server = Setup::default().on(&directory).start();
    server.sign_in("13800138000");
    assert_eq!(server.terminate(), Some(0));
    drop(server);
    let trace = directory.with_file_name("trace");
    let mut command = Binary::command_after(&strace_into(&trace));
    let output = command.arg("--data-dir").arg(&directory).args(["backup", "create"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let backups = directory.join("backups");
    let published = files(&backups);
    assert!(published.keys().any(|path| path.contains("-manual.db")) && published.len() > 1, "{:?}", published.keys());
    let trace = std::fs::read_to_string(&trace).unwrap();
    let mut events = events(&trace, &backups);
    assert_published_durably(&events, &published);
    // The check detects a missing sync of the files and of their directory.
    for unsynced in [".unfinished", "/backups"] {
        let is_of_unsynced = |event: &Event| matches!(event, Event::SyncEnds { path, .. } if path.ends_with(unsynced));
        let (skipped, kept): (Vec<_>, Vec<_>) = events.into_iter().partition(is_of_unsynced);
        assert!(!skipped.is_empty(), "nothing syncs {unsynced}");
        let proof = std::panic::AssertUnwindSafe(|| assert_published_durably(&kept, &published));
        assert!(std::panic::catch_unwind(proof).is_err(), "an unsynced {unsynced} passed the check");
        events = super::disk::events(&trace, &backups);
    }
}
