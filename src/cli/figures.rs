//! `yarrow figures`: daily sums for charts.

use clap::{Args, Subcommand};

use super::{Common, cli_authority, record_audit};
use crate::{
    domain::{
        divination::sessions::snapshot::{self, SnapshotCount},
        operations::figures::{self},
    },
    error::Result,
    http::responses::CastingCounts,
};

/// Print figures such as new users, revenue and model cost, or rebuild them
#[derive(Debug, Args)]
pub struct FiguresArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Count deleted castings by month, type, method, primary hexagram and changing lines
    ///
    /// Reads the anonymous snapshots that deleted castings leave. Counts below ten are left out.
    Castings {
        /// Print comma-separated values
        #[arg(long)]
        csv: bool,
    },
    /// Count the figures of the ledger again
    ///
    /// Needed after a change of the time zone. The figures of users and refused texts stay as they are, because their
    /// rows are deleted over time.
    Rebuild,
}

pub fn run(common: &Common, args: &FiguresArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Castings { csv } => {
            let counts = snapshot::counts(&app.core)?;
            if csv {
                return common.print(&comma_separated(&counts));
            }
            common.show(&CastingCounts::from(counts))
        }
        Action::Rebuild => {
            figures::rebuild(&app.core)?;
            record_audit(&app, "figures rebuild", None, cli_authority(None))?;
            common.output(&serde_json::json!({ "rebuilt": true }), || "counted the ledger again".to_owned())
        }
    }
}

fn comma_separated(counts: &[SnapshotCount]) -> String {
    let line = |found: &SnapshotCount| {
        format!("{},{},\"{}\",{}", found.month, found.property.name(), found.value, found.count)
    };
    let lines = counts.iter().map(line);
    std::iter::once("month,property,value,count".to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}
