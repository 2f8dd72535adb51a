//! `yarrow database`: moves the database between a data directory and PostgreSQL.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, backup::show_progress, cli_authority, row, system_user::system_user, table};
use crate::{
    domain::operations::{
        audit::AuditEvent,
        backups,
        database_copy::{self, DatabaseMove, DatabasePlace},
    },
    error::Result,
    types::{milliseconds, pluralize},
};

/// Move the database between a data directory and PostgreSQL
#[derive(Debug, Args)]
pub struct DatabaseArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Copy the database to an empty one and verify it; exit 5 if it differs or its ledger is inconsistent
    ///
    /// All servers on both must be stopped. A failed copy leaves the target empty. Afterwards the source is marked as
    /// moved: servers refuse it. The network log is not copied.
    Copy {
        /// Source: data directory, or URL of a PostgreSQL database
        #[arg(long, value_name = "DIR|URL")]
        from: String,
        /// Empty target: data directory, or URL of a PostgreSQL database
        #[arg(long, value_name = "DIR|URL")]
        to: String,
    },
    /// Let servers use a database again that was marked as moved
    Unmark {
        /// Data directory, or URL of a PostgreSQL database
        #[arg(long, value_name = "DIR|URL")]
        from: String,
    },
}

pub fn run(common: &Common, args: &DatabaseArgs) -> Result<()> {
    match &args.action {
        Action::Copy { from, to } => copy(common, &DatabasePlace::parse(from), &DatabasePlace::parse(to)),
        Action::Unmark { from } => unmark(common, &DatabasePlace::parse(from)),
    }
}

fn copy(common: &Common, from: &DatabasePlace, to: &DatabasePlace) -> Result<()> {
    let config = common.load()?.config;
    common.start_logging(&config.log)?;
    let event = event("database copy", format!("{} to {}", from.describe(), to.describe()));
    let moved = database_copy::copy(&config, (from, to), &event, backups::forget_in, &mut show_progress(common))?;
    let DatabaseMove { tables, ledger_entries, keys, took } = moved;
    let rows: u64 = tables.iter().map(|table| table.rows).sum();
    let listed: Vec<_> =
        tables.iter().map(|table| json!({ "name": table.name, "rows": table.rows, "sha256": table.sha256 })).collect();
    let json = json!({
        "from": from.describe(), "to": to.describe(), "tables": listed, "rows": rows, "ledgerEntries": ledger_entries,
        "keys": keys, "tookMs": milliseconds(took),
    });
    common.output(&json, || {
        let filled = tables.iter().filter(|table| table.rows > 0);
        let listed = table(["table", "rows", "sha256"], filled.map(|table| row![table.name, table.rows, table.sha256]));
        let rows = pluralize(rows, "row", "rows");
        let entries = pluralize(ledger_entries, "ledger entry", "ledger entries");
        format!(
            "{listed}\ncopied {rows} from {} to {} in {took:.1?}; all tables are equal, {entries} verified",
            from.describe(),
            to.describe()
        )
    })
}

fn unmark(common: &Common, from: &DatabasePlace) -> Result<()> {
    let config = common.load()?.config;
    common.start_logging(&config.log)?;
    database_copy::unmark(&config, from, &event("database unmark", from.describe()))?;
    let json = json!({ "unmarked": from.describe() });
    common.output(&json, || format!("servers can use the database in {} again", from.describe()))
}

/// Returns the audit event of a command that opens no application.
pub(super) fn event(command: &str, reason: String) -> AuditEvent {
    let by = cli_authority(Some(reason));
    AuditEvent {
        actor: by.actor,
        action: format!("yarrow {command}"),
        user: None,
        reason: Some(by.reason),
        outcome: 200,
        client_ip: None,
        request_id: by.request_id,
        system_user: Some(system_user()),
    }
}
