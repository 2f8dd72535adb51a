//! What the service does under load, beside two servers that do less: `cargo bench --bench load`.
//!
//! The references are a bare axum handler that answers a constant (what the HTTP stack costs by itself) and a server
//! that commits every request by itself (what durable writes cost without group commit). All are built with the same
//! profile, run with one worker on one core, and are loaded in turn from another core, in rounds of alternating
//! order, each start on a fresh copy of one seeded directory. The service runs as an operator would run it: tokens,
//! limits, request ids and the network log are on, and the log is checked to have a row for every request.
//!
//! Quote ratios and CPU time per request. Requests per second change with the machine and with whoever shares it;
//! a measurement during which others used a fifth of a core is repeated, and marked if that did not help.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its table")]

#[path = "../kit/mod.rs"]
mod kit;

mod bare;
mod disk;
mod options;
mod report;
mod seed;
mod start;
mod workload;

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use clap::Parser;

use crate::{
    kit::{
        Failure,
        client::{self, Answered, Plan},
        in_turn,
        measurement::Measurement,
        process::{Machine, Server},
    },
    options::{Options, Role},
    report::{Contestant, Report, Round},
    seed::Seed,
    workload::Workload,
};

/// How much of a core others may use before a measurement is repeated.
const DISTURBED_ABOVE: f64 = 0.2;
const REPEATS: usize = 2;

/// What is measured, in the order of the report.
const CASES: [Workload; 9] = [
    Workload::Profile,
    Workload::Balance,
    Workload::Save,
    Workload::Consume,
    Workload::KeyedConsume,
    Workload::Mix,
    Workload::List,
    Workload::CompressedList,
    Workload::SignIn,
];

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match options.role {
        Some(Role::Bare) => bare::serve(None),
        Some(Role::EachCommits) => bare::serve(Some(&options.database())),
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

fn measure(options: &Options) -> Result<(), Failure> {
    let machine = Machine::prepare()?;
    let temporary = tempfile::tempdir_in(options.directory())?;
    println!("{}", machine.description());
    println!("seeding {} users", seed::USERS);
    let seed = Seed::make(&temporary.path().join("seed"))?;
    let mut report = Report::new(options.rounds());
    for round in 0..options.rounds() {
        for case in in_turn(&options.cases(&CASES), round) {
            println!("round {} of {}: {}", round + 1, options.rounds(), case.name());
            report.add(*case, measure_round(*case, round, options, &machine, &seed, temporary.path())?);
        }
    }
    report.print();
    if !options.only_load() {
        start::print(&seed, temporary.path())?;
        disk::print(&seed, temporary.path(), options.measured())?;
    }
    report.verdict(options.check)
}

/// One case on all of its servers.
fn measure_round(
    case: Workload,
    round: usize,
    options: &Options,
    machine: &Machine,
    seed: &Seed,
    directory: &Path,
) -> Result<Round, Failure> {
    let mut measurements = Round::new();
    for contestant in in_turn(case.contestants(), round) {
        let mut measurement = measure_once(case, *contestant, options, machine, seed, directory)?;
        for _ in 0..REPEATS {
            if measurement.others <= DISTURBED_ABOVE || options.quick {
                break;
            }
            let again = measure_once(case, *contestant, options, machine, seed, directory)?;
            if again.others < measurement.others {
                measurement = again;
            }
        }
        measurements.insert(*contestant, measurement);
    }
    Ok(measurements)
}

fn measure_once(
    case: Workload,
    contestant: Contestant,
    options: &Options,
    machine: &Machine,
    seed: &Seed,
    directory: &Path,
) -> Result<Measurement, Failure> {
    let data = directory.join("data");
    seed.copy_to(&data)?;
    let server = start_server(contestant, &data, machine)?;
    let requests = match contestant {
        Contestant::Bare => workload::hello(),
        _ => case.requests(seed),
    };
    let plan = Plan { connections: options.connections, warm_up: options.warm_up(), measured: options.measured() };
    let (measurement, answered) = client::load(&server, requests, &plan)?;
    server.stop()?;
    if contestant == Contestant::Yarrow {
        check_log(&data, &answered)?;
    }
    std::fs::remove_dir_all(&data)?;
    Ok(measurement)
}

fn start_server(contestant: Contestant, data: &Path, machine: &Machine) -> Result<Server, Failure> {
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
        Contestant::Yarrow => Server::start(data, machine),
    }
}

/// The service was to write one row for each request, however fast they came.
fn check_log(data: &Path, answered: &Answered) -> Result<(), Failure> {
    let rows: u64 = disk::count(data, "access_log")?;
    if rows < answered.requests {
        return Err(format!("{} requests were answered, and the network log has {rows} rows", answered.requests).into());
    }
    let saved: u64 = disk::count(data, "history")?;
    if saved < answered.saves + seed::SEEDED_RECORDS {
        return Err(format!("{} castings were acknowledged, and {saved} are there", answered.saves).into());
    }
    let posted: u64 = disk::count(data, "ledger_entries")?;
    if posted < answered.consumes + u64::from(seed::USERS) {
        return Err(format!("{} uses were acknowledged, and {posted} entries are there", answered.consumes).into());
    }
    Ok(())
}
