//! The command line: `cargo bench --bench load -- --quick`.

use std::{path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};

use crate::{support::process::yarrow_program, workload::Workload};

/// Measures the service under load, against a bare server and against one commit per request.
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct Options {
    /// Repetitions of every measurement.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each measurement, after a second of warm-up.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Concurrent connections.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Run one short round, to check that everything works.
    #[arg(long)]
    pub quick: bool,
    /// Measure only cases whose names contain this text.
    #[arg(long)]
    only: Option<String>,
    /// Fail if a target is missed by more than 15%.
    #[arg(long)]
    pub check: bool,
    /// Measure the latencies of requests that arrive at fixed times instead, at half of what each server can answer.
    #[arg(long)]
    pub arrivals: bool,
    /// Count instructions and allocations of each kind of request instead, and fail if one needs more than its budget.
    /// Needs valgrind. For any build, on any machine.
    #[arg(long)]
    pub count: bool,
    /// Count for this program, such as `target/release/yarrow`, instead of the one that was built with the benchmark.
    #[arg(long, requires = "count")]
    program: Option<PathBuf>,
    /// Store the counts as the new budgets.
    #[arg(long, requires = "count")]
    pub accept: bool,
    /// Measure another build of the service in turn with this one, to see the effect of a change.
    #[arg(long)]
    pub beside: Option<PathBuf>,
    /// Measure the service on a PostgreSQL server in turn with a file, such as `host=/run/postgresql user=yarrow`, beside the
    /// server and at a distance of 0.25 ms. The user must be allowed to create databases.
    #[arg(long)]
    pub postgresql: Option<String>,
    /// Directory where `benches/load/run` installed the peers. Without it they are not measured.
    #[arg(long)]
    pub peers: Option<PathBuf>,
    /// Write the ratios as an SVG to this file.
    #[arg(long)]
    pub svg: Option<PathBuf>,
    /// Parent of the data directories. Its disk is the one that is measured.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Reference server to run as, when the measurement starts this program again.
    #[arg(long, hide = true)]
    pub role: Option<Role>,
    #[arg(long, hide = true)]
    database: Option<PathBuf>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Role {
    Bare,
    EachCommits,
    Distance,
}

impl Options {
    pub fn rounds(&self) -> usize {
        if self.quick { 1 } else { self.rounds.max(1) }
    }

    pub fn measured(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 1.0 } else { self.seconds })
    }

    pub fn warm_up(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 0.3 } else { 1.0 })
    }

    pub fn cases(&self, all: &[Workload]) -> Vec<Workload> {
        all.iter().copied().filter(|case| self.is_wanted(case.name())).collect()
    }

    pub fn is_wanted(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|text| name.contains(text.as_str()))
    }

    /// Returns true if cases were selected: figures without load are then left out.
    pub fn only_load(&self) -> bool {
        self.only.is_some()
    }

    pub fn program(&self) -> PathBuf {
        self.program.clone().unwrap_or_else(yarrow_program)
    }

    pub fn directory(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into())
    }

    pub fn database(&self) -> PathBuf {
        self.database.clone().unwrap_or_default()
    }
}
