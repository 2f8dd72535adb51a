//! `yarrow figures`: daily sums for charts.

use clap::{Args, Subcommand};

use super::{Common, choice::choice, cli_authority, record_audit, row, table};
use crate::{
    domain::{
        divination::sessions::snapshot::{self, SnapshotCount},
        operations::figures::{self, FigureGrouping, FigureName, FigureQuery, FigureRow},
    },
    error::{Error, Result},
    http::responses::{CastingCounts, FigureList},
    types::Date,
};

/// Print figures such as new users, revenue and model cost, or rebuild them
#[derive(Debug, Args)]
pub struct FiguresArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print figures by day, week or month
    ///
    /// Money is in hundredths of the currency in its part, model cost in millionths of the currency of the price list.
    ///
    /// Example: `yarrow figures show --names new_users,revenue --from 2026-01-01 --by month`
    Show {
        /// Names of figures, with commas between them [default: all]
        #[arg(long, value_delimiter = ',', value_parser = choice!(FigureName))]
        names: Option<Vec<FigureName>>,
        /// First day, such as 2026-01-31 [default: 30 days up to `--to`]
        #[arg(long, value_name = "DAY")]
        from: Option<String>,
        /// Last day [default: today]
        #[arg(long, value_name = "DAY")]
        to: Option<String>,
        /// Length of a period; weeks begin on Monday
        #[arg(long, default_value = "day", value_parser = choice!(FigureGrouping))]
        by: FigureGrouping,
    },
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

pub fn run(common: &Common, args: FiguresArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Show { names, from, to, by } => {
            let days = (day("from", from.as_deref())?, day("to", to.as_deref())?);
            let query = FigureQuery::new(&app.core, names, days, by)?;
            let rows = figures::list(&app.core, &query)?;
            common.output(&FigureList::new(&query, rows.clone()), || listing(&rows))
        }
        Action::Castings { csv } => {
            let counts = snapshot::counts(&app.core)?;
            if csv {
                return common.print(&comma_separated(&counts));
            }
            common.output(&CastingCounts::from(counts.clone()), || {
                let rows =
                    counts.iter().map(|found| row![found.month, found.property.name(), found.value, found.count]);
                table(["month", "property", "value", "count"], rows)
            })
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

fn day(option: &str, text: Option<&str>) -> Result<Option<Date>> {
    text.map(figures::parse_day).transpose().map_err(|fault| Error::field(option, fault))
}

fn listing(rows: &[FigureRow]) -> String {
    table(
        ["period", "figure", "part", "value"],
        rows.iter().map(|row| row![row.period, row.name.name(), row.key, row.value]),
    )
}
