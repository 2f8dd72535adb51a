//! Kills at random moments under every kind of load.

use std::{
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::{
    oracle::Oracle,
    workload::{Client, Fixture},
};
use crate::support::kill;

const CLIENTS: usize = 6;

#[test]
fn acknowledged_writes_survive_kills_under_load() {
    survive(10);
}

/// Part of the long group.
#[test]
#[ignore = "takes minutes; run with `cargo test --test it -- --ignored long_`"]
fn long_acknowledged_writes_survive_two_hundred_kills() {
    survive(200);
}

fn survive(rounds: u64) {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let setup = || Fixture::setup(CLIENTS).on(&directory);
    let server = setup().in_own_process().start();
    let fixture = Fixture::of(&server, CLIENTS);
    drop(server);
    let (oracle, mut unanswered, mut repeated) = (Oracle::default(), vec![None; CLIENTS], 0);
    for round in 0..rounds {
        let server = setup().in_own_process().start();
        let lifetime = lifetime(round);
        scope(|scope| {
            for (user, unanswered) in fixture.users.iter().zip(&mut unanswered) {
                let (server, oracle, key) = (&server, &oracle, fixture.key.as_str());
                scope.spawn(move || Client { server, oracle, user, key, unanswered }.work_until_gone());
            }
            scope.spawn(|| {
                // A quarter is killed during the start, the others under load.
                let (before, patience) = (oracle.count(), Instant::now() + Duration::from_secs(10));
                while round % 4 != 0 && oracle.count() == before && Instant::now() < patience {
                    sleep(Duration::from_millis(1));
                }
                sleep(lifetime);
                kill(server.process_id());
            });
        });
        drop(server);
        repeated += unanswered.iter().flatten().count();
        {
            let database = Connection::open(directory.join("yarrow.db")).unwrap();
            oracle.check(&database, oracle.acknowledged().values());
        }
        crate::support::CommandOutput::run(&directory, &["ledger", "verify"], "").expect(0);
    }
    finish(&setup().in_own_process().start(), &fixture, &oracle, &mut unanswered);
    let count = oracle.acknowledged().len();
    println!("{rounds} kills, {count} effects acknowledged, {repeated} requests cut off and asked for again");
    assert!(count as u64 > rounds * 3, "only {count} effects: the load was too small to prove anything");
    assert!(repeated > 0, "no request with a key was interrupted");
}

/// Returns a varying lifetime, from before the first commits to after a checkpoint.
fn lifetime(round: u64) -> Duration {
    let mut random = [0; 2];
    getrandom::fill(&mut random).unwrap();
    Duration::from_micros(40_000 + 100_000 * (round % 7) + u64::from(u16::from_ne_bytes(random)))
}

/// Repeats the interrupted requests. Afterwards every effect exists exactly once.
fn finish(
    server: &crate::support::Server,
    fixture: &Fixture,
    oracle: &Oracle,
    unanswered: &mut [Option<(&'static str, String)>],
) {
    for (user, unanswered) in fixture.users.iter().zip(unanswered) {
        assert!(Client { server, oracle, user, key: &fixture.key, unanswered }.repeat().is_ok());
    }
    oracle.check(&server.database_file(), oracle.acknowledged().values());
    let uses =
        oracle.acknowledged().values().filter(|effect| matches!(effect, super::oracle::Effect::Used { .. })).count();
    assert_eq!(
        server.value::<i64>("select count(*) from ledger_entries where kind = 'consume'"),
        i64::try_from(uses).unwrap()
    );
    assert_eq!(server.value::<i64>("select count(*) from interpretations where status = 'running'"), 0);
    server.command(&["ledger", "verify"]).expect(0);
}
