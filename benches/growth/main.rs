//! Measures request costs as the data grow: `cargo bench --bench growth`.
//!
//! Fills a directory and starts a server for each size, and measures every endpoint on all of them in turn, in rounds
//! of alternating order. Then verifies, sweeps and backs up the largest. Ten million rows take 6 GB of disk, and twice
//! that during the backup. The page cache must hold the data that is read, because the figures are for warm caches; use
//! `--directory` on a tmpfs where it does not. With `--postgresql` the endpoints are measured on copies of the directories
//! on a server.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its table")]

#[path = "../support/mod.rs"]
mod support;

mod accumulated;
mod endpoints;
mod fill;
mod background;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Parser;

use crate::{
    endpoints::{Bound, Case},
    fill::Filled,
    support::{
        Failure, chart,
        client::{self, Plan},
        in_turn,
        measurement::{Measurement, Spread},
        postgresql::PostgresServer,
        process::{Machine, Server},
    },
};

/// Measures every endpoint at growing sizes.
#[derive(Debug, Parser)]
pub struct Options {
    /// Castings, ledger entries and network log entries to create.
    #[arg(long, value_delimiter = ',', default_value = "10000,1000000,10000000")]
    rows: Vec<i64>,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Measure only endpoints whose names contain this text.
    #[arg(long)]
    only: Option<String>,
    /// Write the curve as an SVG to this file.
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Directory for the data, kept for another run. Without it the data are deleted.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Measure the service on a PostgreSQL server, such as `host=/run/postgresql user=yarrow`, instead of files. The user
    /// must be allowed to create databases.
    #[arg(long)]
    postgresql: Option<String>,
    /// Count the instructions of requests by what one user, one address and one day have accumulated, and nothing else.
    /// Needs valgrind.
    #[arg(long)]
    accumulated: bool,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Enough connections to keep the server busy, few enough that a slow response shows.
const CONNECTIONS: usize = 16;
/// Fraction of the smallest size's throughput that point reads and writes must keep.
const KEPT: f64 = 0.55;

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("growth: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), Failure> {
    let machine = Machine::prepare()?;
    println!("{}", machine.description());
    let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let directory = options.directory.as_deref().unwrap_or(temporary.path());
    if options.accumulated {
        return accumulated::measure(directory);
    }
    let mut sizes = Vec::new();
    for rows in &options.rows {
        let size = Size::make(directory, *rows)?;
        sizes.push(match &options.postgresql {
            Some(address) => size.moved_to(&PostgresServer::new(address))?,
            None => size,
        });
    }
    // Before a server runs, which would sweep at a time of its own.
    let largest_file = sizes.last().filter(|_| options.postgresql.is_none());
    if let Some(largest) = largest_file {
        background::sweep(largest)?;
    }
    let cases = endpoints::all();
    let is_wanted = |case: &&Case| options.only.as_ref().is_none_or(|text| case.name.contains(text.as_str()));
    let cases: Vec<_> = cases.iter().filter(is_wanted).collect();
    let measured = measure_endpoints(&cases, &sizes, options, &machine)?;
    let table = Table { cases: &cases, sizes: &sizes, measured: &measured };
    table.print();
    if let Some(path) = &options.svg {
        std::fs::write(path, table.picture())?;
    }
    for size in &sizes {
        background::verify_ledger(size)?;
    }
    if let Some(largest) = largest_file {
        background::back_up(largest, &machine)?;
    }
    table.print_missed();
    Ok(())
}

pub struct Size {
    pub directory: PathBuf,
    pub filled: Filled,
    /// The URL of the database, if it is not a file of the directory.
    pub database: Option<String>,
}

impl Size {
    fn make(directory: &Path, rows: i64) -> Result<Self, Failure> {
        let directory = directory.join(format!("rows-{rows}"));
        let begun = Instant::now();
        let filled = fill::fill_or_find(&directory, rows)?;
        let size = |name| Ok::<_, Failure>(std::fs::metadata(directory.join(name))?.len() >> 20);
        let (database, log) = (size(yarrow::store::files::DATABASE)?, size(yarrow::store::files::NETWORK_LOG)?);
        println!(
            "{rows} rows: {database} MiB and a network log of {log} MiB, {} users, {:.0} s",
            filled.users,
            begun.elapsed().as_secs_f64()
        );
        Ok(Self { directory, filled, database: None })
    }

    /// Copies the rows to a server. The directory stays, for another run.
    fn moved_to(self, server: &PostgresServer) -> Result<Self, Failure> {
        let begun = Instant::now();
        let (name, directory) = (format!("yarrow_growth_{}", self.filled.rows), self.directory.with_extension("moved"));
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        std::fs::create_dir(&directory)?;
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                std::fs::copy(entry.path(), directory.join(entry.file_name()))?;
            }
        }
        server.fill(&name, &directory)?;
        server.settle(&name)?;
        std::fs::remove_file(directory.join(yarrow::store::files::DATABASE))?;
        println!("on PostgreSQL {} MiB, copied in {:.0} s", server.size(&name)? >> 20, begun.elapsed().as_secs_f64());
        Ok(Self { directory, database: Some(server.url(&name)?), ..self })
    }

    fn start(&self, machine: &Machine) -> Result<Server, Failure> {
        match &self.database {
            Some(url) => {
                Server::start(&self.directory, &machine.with_server_anywhere(), &[("YARROW_DATABASE_URL", url)])
            }
            None => Server::start(&self.directory, machine, &[]),
        }
    }

    pub fn name(&self) -> String {
        let rows = self.filled.rows;
        if rows < 1_000_000 { format!("{} thousand", rows / 1_000) } else { format!("{} million", rows / 1_000_000) }
    }
}

/// Every round, by case, then by size.
type Measured = Vec<Vec<Vec<Measurement>>>;

fn measure_endpoints(
    cases: &[&Case],
    sizes: &[Size],
    options: &Options,
    machine: &Machine,
) -> Result<Measured, Failure> {
    let servers = sizes.iter().map(|size| size.start(machine)).collect::<Result<Vec<_>, _>>()?;
    let numbers: Vec<_> = (0..sizes.len()).collect();
    let mut measured = vec![vec![Vec::new(); sizes.len()]; cases.len()];
    for round in 0..options.rounds {
        println!("round {} of {}", round + 1, options.rounds);
        for (case, results) in cases.iter().zip(&mut measured) {
            for number in in_turn(&numbers, round) {
                // The first round reads pages from disk.
                let warm_up = Duration::from_secs_f64(if round == 0 { 1.0 } else { 0.3 });
                let plan = Plan {
                    connections: CONNECTIONS,
                    warm_up,
                    measured: Duration::from_secs_f64(options.seconds),
                    sleeps: options.postgresql.is_some(),
                    interval: None,
                };
                let requests = case.requests(&sizes[*number].filled);
                let (result, _) = client::load(&servers[*number], requests, &plan)
                    .map_err(|failure| format!("{} at {}: {failure}", case.name, sizes[*number].name()))?;
                results[*number].push(result);
            }
        }
    }
    servers.into_iter().try_for_each(Server::stop)?;
    Ok(measured)
}

struct Table<'run> {
    cases: &'run [&'run Case],
    sizes: &'run [Size],
    measured: &'run Measured,
}

impl Table<'_> {
    fn print(&self) {
        println!("\nMicroseconds of processor time a request, and what is kept of the smallest size's throughput.\n");
        let names: Vec<_> = self.sizes.iter().map(Size::name).collect();
        println!("| endpoint | bounded by | {} | kept | p99 at the largest |", names.join(" | "));
        println!("|---|---|{}---|---|", "---|".repeat(names.len()));
        for (case, sizes) in self.cases.iter().zip(self.measured) {
            let cpu: Vec<_> =
                sizes.iter().map(|rounds| format!("{:.1}", median(rounds, |one| one.cpu_per_request))).collect();
            let bound = match case.bound {
                Bound::Point => "the row",
                Bound::Page => "the page",
                Bound::Tally => "tallies",
            };
            let slowest = sizes.last().map_or(0.0, |rounds| median(rounds, |one| one.percentile_99));
            println!("| {} | {bound} | {} | {:.2} | {slowest:.1} ms |", case.name, cpu.join(" | "), kept(sizes));
        }
    }

    fn picture(&self) -> String {
        let groups = self.cases.iter().zip(self.measured).map(|(case, sizes)| {
            let of_smallest = |rounds: &Vec<Measurement>| {
                median(rounds, |one| one.requests_per_second) / median(&sizes[0], |one| one.requests_per_second)
            };
            let bars = self.sizes.iter().zip(sizes).skip(1);
            (case.name.to_owned(), bars.map(|(size, rounds)| (size.name(), of_smallest(rounds))).collect())
        });
        let title = "Requests per second, as parts of what is answered with 10 thousand rows";
        chart::bars(title, &groups.collect::<Vec<_>>())
    }

    fn print_missed(&self) {
        let points = self.cases.iter().zip(self.measured).filter(|(case, _)| case.bound == Bound::Point);
        let missed: Vec<_> = points.filter(|(_, sizes)| kept(sizes) < KEPT).map(|(case, _)| case.name).collect();
        println!("\npoint reads and writes that keep less than {KEPT}: {missed:?}");
    }
}

/// Returns the fraction of the smallest size's throughput that the largest keeps: the median over the rounds.
fn kept(sizes: &[Vec<Measurement>]) -> f64 {
    let (Some(smallest), Some(largest)) = (sizes.first(), sizes.last()) else { return f64::NAN };
    let ratios =
        largest.iter().zip(smallest).map(|(large, small)| large.requests_per_second / small.requests_per_second);
    Spread::new(ratios.collect()).median
}

fn median(rounds: &[Measurement], value: fn(&Measurement) -> f64) -> f64 {
    Spread::new(rounds.iter().map(value).collect()).median
}
