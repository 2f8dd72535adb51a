//! Measures the service under load, beside servers that do less: `cargo bench --bench load`.
//!
//! The references are a bare axum handler that returns a constant (the cost of the HTTP stack), the service with one
//! commit per request (durable writes without group commit), and a small server that only commits every request. All
//! use the same build profile and run with one worker on one core. Another core loads them in turn, in rounds of
//! alternating order, and each start gets a fresh copy of one seeded directory. The service runs as in production:
//! tokens, limits, request ids and the network log are on, and the log must have a row for every request.
//!
//! Quote ratios and CPU time per request. Requests per second change with the machine and its other load. A measurement
//! during which other processes used a fifth of a core is repeated, and marked if the repetition was no better.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its table")]

#[path = "../support/mod.rs"]
mod support;

mod bare;
mod counts;
mod disk;
mod distance;
mod options;
mod peers;
mod pocketbase;
mod postgresql;
mod report;
mod seed;
mod start;
mod workload;

use std::{
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Parser;

use crate::{
    options::{Options, Role},
    peers::Peers,
    postgresql::SeededServer,
    report::{Contestant, Report, Round},
    seed::{Seed, Size},
    support::{
        Failure,
        client::{self, Answered, Plan},
        in_turn,
        measurement::Measurement,
        process::{Machine, Server},
    },
    workload::Workload,
};

/// Cores that other processes may use before a measurement is repeated.
const DISTURBED_ABOVE: f64 = 0.2;
const REPEATS: usize = 2;

/// The measured cases, in the order of the report.
const CASES: [Workload; 15] = [
    Workload::Profile,
    Workload::Balance,
    Workload::UnreadCount,
    Workload::Crowd,
    Workload::Save,
    Workload::SaveAlone,
    Workload::Consume,
    Workload::KeyedConsume,
    Workload::KeyedAtRandom,
    Workload::Order,
    Workload::Mix,
    Workload::List,
    Workload::CompressedList,
    Workload::SignIn,
    Workload::FirstSignIn,
];

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match options.role {
        Some(Role::Bare) => bare::serve(None),
        Some(Role::EachCommits) => bare::serve(Some(&options.database())),
        Some(Role::Distance) => keep_distance(&options),
        None if options.count => counts::measure(&options),
        None => measure(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("load: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Serves as the distance from a PostgreSQL server until it is killed.
fn keep_distance(options: &Options) -> Result<(), Failure> {
    distance::start(&options.directory(), options.postgresql.as_deref().unwrap_or_default())?;
    loop {
        std::thread::park();
    }
}

fn measure(options: &Options) -> Result<(), Failure> {
    let machine = Machine::prepare()?;
    let temporary = tempfile::tempdir_in(options.directory())?;
    println!("{}", machine.description());
    let size = Size::LARGE;
    println!("seeding {} users", size.users);
    let seed = Seed::make(&temporary.path().join("seed"), size)?;
    let peers = Peers::prepare(options.peers.as_deref(), temporary.path())?;
    let fill = |address: &String| SeededServer::prepare(address, &seed, temporary.path());
    let postgresql = options.postgresql.as_ref().map(fill).transpose()?;
    let (postgresql, directory) = (postgresql.as_ref(), temporary.path());
    let bench = Bench { options, machine: &machine, seed: &seed, peers: &peers, postgresql, directory };
    if options.arrivals {
        return bench.print_arrivals();
    }
    let mut report = Report::new(options.rounds());
    for round in 0..options.rounds() {
        for case in in_turn(&options.cases(&CASES), round) {
            println!("round {} of {}: {}", round + 1, options.rounds(), case.name());
            report.add(*case, bench.measure_round(*case, round)?);
        }
    }
    report.print();
    if options.beside.is_some() {
        report.print_comparison();
        return Ok(());
    }
    report.print_targets();
    if let Some(path) = &options.svg {
        std::fs::write(path, report.picture())?;
    }
    if !options.only_load() {
        start::print(&seed, temporary.path())?;
        disk::print(&seed, temporary.path(), options.measured())?;
    }
    report.verdict(options.check)
}

/// The shared inputs of all measurements.
struct Bench<'run> {
    options: &'run Options,
    machine: &'run Machine,
    seed: &'run Seed,
    peers: &'run Peers,
    postgresql: Option<&'run SeededServer>,
    directory: &'run Path,
}

impl Bench<'_> {
    /// Measures one case on all of its servers.
    fn measure_round(&self, case: Workload, round: usize) -> Result<Round, Failure> {
        let mut measurements = Round::new();
        for contestant in in_turn(&self.contestants(case), round) {
            let mut measurement = self.measure_once(case, *contestant, None)?;
            for _ in 0..REPEATS {
                let is_alone = measurement.others <= DISTURBED_ABOVE || contestant.is_on_postgres();
                if is_alone || self.options.quick {
                    break;
                }
                let again = self.measure_once(case, *contestant, None)?;
                if again.others < measurement.others {
                    measurement = again;
                }
            }
            measurements.insert(*contestant, measurement);
        }
        Ok(measurements)
    }

    /// Prints latencies of reads and saves that arrive at fixed times, at half of what each server can answer.
    fn print_arrivals(&self) -> Result<(), Failure> {
        println!("\n{:<22} {:<21} {:>9} {:>8} {:>8} {:>8}", "case", "server", "req/s", "p50 ms", "p99 ms", "p99.9 ms");
        for case in [Workload::Profile, Workload::Save] {
            let servers = [Contestant::Bare, Contestant::Yarrow, Contestant::Fastify, Contestant::PocketBase];
            for contestant in servers.into_iter().filter(|contestant| self.peers.has(*contestant)) {
                let most = self.measure_once(case, contestant, None)?.requests_per_second;
                let at_half = self.measure_once(case, contestant, Some(Duration::from_secs_f64(2.0 / most)))?;
                println!(
                    "{:<22} {:<21} {:>9.0} {:>8.2} {:>8.2} {:>8.2}",
                    case.name(),
                    contestant.name(),
                    at_half.requests_per_second,
                    at_half.median,
                    at_half.percentile_99,
                    at_half.percentile_999
                );
            }
        }
        Ok(())
    }

    fn contestants(&self, case: Workload) -> Vec<Contestant> {
        match self.options {
            Options { beside: Some(_), .. } => vec![Contestant::Bare, Contestant::Yarrow, Contestant::AnotherBuild],
            Options { postgresql: Some(_), .. } => {
                vec![Contestant::Bare, Contestant::Yarrow, Contestant::OnPostgres, Contestant::OnDistantPostgres]
            }
            _ => case.contestants().iter().copied().filter(|contestant| self.peers.has(*contestant)).collect(),
        }
    }

    /// Measures one case on one server, with a request each `interval` or as fast as the server answers.
    fn measure_once(
        &self,
        case: Workload,
        contestant: Contestant,
        interval: Option<Duration>,
    ) -> Result<Measurement, Failure> {
        let data = self.directory.join("data");
        if contestant != Contestant::PocketBase {
            self.seed.copy_to(&data)?;
        }
        // Otherwise the first syncs would wait for earlier writes.
        rustix::fs::sync();
        let server = self.start(contestant, case, &data)?;
        let requests = match (contestant, &self.peers.pocketbase) {
            (Contestant::Bare, _) => workload::hello(),
            (Contestant::PocketBase, Some(peer)) => peer.requests(case).ok_or("PocketBase does not know this")?,
            _ => case.requests(self.seed),
        };
        let plan = Plan {
            connections: case.connections().unwrap_or(self.options.connections),
            warm_up: self.options.warm_up(),
            measured: self.options.measured(),
            sleeps: contestant.is_on_postgres(),
            interval,
        };
        let (measurement, answered) =
            client::load(&server, requests, &plan).map_err(|failure| format!("{contestant:?}: {failure}"))?;
        server.stop()?;
        self.check_stored(contestant, &data, &answered)?;
        std::fs::remove_dir_all(&data)?;
        Ok(measurement)
    }

    fn start(&self, contestant: Contestant, case: Workload, data: &Path) -> Result<Server, Failure> {
        let (peers, machine) = (self.peers, self.machine);
        let itself_as = |arguments: &[&str]| -> Result<Command, Failure> {
            let mut command = machine.command(&std::env::current_exe()?);
            command.arg("--role").args(arguments);
            Ok(command)
        };
        match contestant {
            Contestant::Bare => Server::spawn(itself_as(&["bare"])?),
            Contestant::EachCommits => {
                let mut command = itself_as(&["each-commits", "--database"])?;
                command.arg(data.join("yarrow.db"));
                Server::spawn(command)
            }
            Contestant::Yarrow => Server::start(data, machine, case.settings()),
            Contestant::AnotherBuild => {
                let program = self.options.beside.as_ref().ok_or("no other build")?;
                Server::start_program(program, data, machine, case.settings())
            }
            Contestant::OnPostgres | Contestant::OnDistantPostgres => {
                let is_distant = contestant == Contestant::OnDistantPostgres;
                let url = self.postgresql.ok_or("no PostgreSQL")?.fresh(is_distant)?;
                let settings = [case.settings(), &[("YARROW_DATABASE_URL", &url)]].concat();
                Server::start(data, &machine.with_server_anywhere(), &settings)
            }
            Contestant::YarrowEachCommits => Server::start(data, machine, &[("YARROW_DATABASE_COMMIT_SIZE", "1")]),
            Contestant::Fastify => peers.start_fastify(data, "full", machine),
            Contestant::FastifyNormal => peers.start_fastify(data, "normal", machine),
            Contestant::FastApi => peers.start_fastapi(data, "full", machine),
            Contestant::FastApiNormal => peers.start_fastapi(data, "normal", machine),
            Contestant::PocketBase => peers.pocketbase.as_ref().ok_or("no PocketBase")?.start(data, machine),
        }
    }

    /// Checks that everything acknowledged is stored, and that the network log has a row for each request.
    fn check_stored(&self, contestant: Contestant, data: &Path, answered: &Answered) -> Result<(), Failure> {
        if contestant == Contestant::Bare {
            return Ok(());
        }
        let expected = answered.saves + self.seed.size.records();
        if contestant == Contestant::PocketBase {
            return at_least("castings", pocketbase::count_saved(data)?, expected);
        }
        let count = |table: &str| match (contestant, self.postgresql) {
            (on_server, Some(server)) if on_server.is_on_postgres() => server.count(table),
            _ => disk::count(&data.join("yarrow.db"), table),
        };
        at_least("castings", count("history")?, expected)?;
        at_least("ledger entries", count("ledger_entries")?, answered.consumes + 2 * u64::from(self.seed.size.users))?;
        at_least("orders", count("payment_orders")?, answered.orders)?;
        let is_on_file =
            [Contestant::Yarrow, Contestant::AnotherBuild, Contestant::YarrowEachCommits].contains(&contestant);
        if is_on_file || contestant.is_on_postgres() {
            let logged = disk::logged(&data.join("network-log.db"))?;
            at_least("entries of the network log", logged, answered.requests)?;
        }
        Ok(())
    }
}

fn at_least(what: &str, stored: u64, expected: u64) -> Result<(), Failure> {
    if stored < expected { Err(format!("{stored} {what} are stored of {expected}").into()) } else { Ok(()) }
}
