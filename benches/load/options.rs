//! The command line: `cargo bench --bench load -- --quick`.

use std::{path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};

use crate::{report::GUARDED, workload::Workload};

/// Measures the service under load, against a bare server and against one commit a request.
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct Options {
    /// Times that everything is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each measurement, after a second of warm-up.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Connections that are kept busy.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// One short round, to see that all of it works.
    #[arg(long)]
    pub quick: bool,
    /// Only the cases whose names contain this.
    #[arg(long)]
    only: Option<String>,
    /// Fail if a target is missed by more than 15%.
    #[arg(long)]
    pub check: bool,
    /// Only the cases of the guard, on the bare server and the service, and fail if one takes far more processor time
    /// than it did: for the development build, on any machine, beside anything.
    #[arg(long)]
    pub guard: bool,
    /// Another build of the service, to be measured by turns with this one and beside the bare server alone: what a
    /// change to the service gave.
    #[arg(long)]
    pub beside: Option<PathBuf>,
    /// Where `benches/load/run` installed the servers of others; without it they are not measured.
    #[arg(long)]
    pub peers: Option<PathBuf>,
    /// Writes the ratios as a picture.
    #[arg(long)]
    pub svg: Option<PathBuf>,
    /// Where data directories are made; the disk that is there is the one that is measured.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// What this process is to be, when the measurement starts it again as one of the reference servers.
    #[arg(long, hide = true)]
    pub role: Option<Role>,
    #[arg(long, hide = true)]
    database: Option<PathBuf>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Role {
    Bare,
    EachCommits,
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
        let is_wanted = |case: &Workload| {
            let is_guarded = !self.guard || GUARDED.iter().any(|(guarded, _)| guarded == case);
            is_guarded && self.only.as_ref().is_none_or(|text| case.name().contains(text.as_str()))
        };
        all.iter().copied().filter(is_wanted).collect()
    }

    /// Some cases were picked: what is measured without load is left out.
    pub fn only_load(&self) -> bool {
        self.guard || self.only.is_some()
    }

    pub fn directory(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into())
    }

    pub fn database(&self) -> PathBuf {
        self.database.clone().unwrap_or_default()
    }
}
