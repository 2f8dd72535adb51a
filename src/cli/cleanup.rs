//! `yarrow cleanup`: purges data after a backup.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, cli_authority, record_audit, record_audit_start, row, table};
use crate::{
    app::App,
    domain::operations::{
        purge::{self, PurgeTarget},
        retention,
    },
    error::{Code, Error, Result},
    http::responses::DataCleared,
    types::pluralize,
};

/// Delete whole categories of data, after a backup
///
/// Without `--yes`, prints the number of rows and asks for confirmation.
#[derive(Debug, Args)]
pub struct CleanupArgs {
    #[command(subcommand)]
    target: CleanupTarget,
    /// Skip the confirmation
    #[arg(long, global = true)]
    yes: bool,
    /// Count the rows to delete and to keep, and delete nothing
    #[arg(long, global = true, conflicts_with = "yes")]
    dry_run: bool,
}

#[derive(Debug, Subcommand)]
enum CleanupTarget {
    /// Delete everything, including users and ledger; keeps administrators, audit, words, releases and settings
    ///
    /// It is one transaction, with its backup: until it ends, other changes wait or fail with 503.
    All,
    /// Delete active verification codes; sending budgets stay
    VerificationCodes,
    /// Delete finished orders older than `retention.payment_records`, with their callbacks
    PaymentRecords,
    /// Delete all feedback
    Feedback,
    /// Delete data past its retention, like the hourly job of the server; makes no backup
    Expired,
}

pub fn run(common: &Common, args: &CleanupArgs) -> Result<()> {
    let app = common.open()?;
    let (target, command) = match args.target {
        CleanupTarget::Expired => return delete_expired(common, &app, args),
        CleanupTarget::All => (PurgeTarget::All, "cleanup all"),
        CleanupTarget::VerificationCodes => (PurgeTarget::VerificationCodes, "cleanup verification-codes"),
        CleanupTarget::PaymentRecords => (PurgeTarget::PaymentRecords, "cleanup payment-records"),
        CleanupTarget::Feedback => (PurgeTarget::Feedback, "cleanup feedback"),
    };
    let preview = purge::dry_run(&app.core, &app.network_log, target)?;
    if args.dry_run {
        let json = json!({ "wouldDelete": object(&preview.delete), "wouldKeep": object(&preview.keep) });
        return common.output(&json, || tables(["would delete", "would keep"], &preview.delete, &preview.keep));
    }
    let total: i64 = preview.delete.iter().map(|(_, rows)| rows).sum();
    let total = pluralize(total, "row", "rows");
    common.confirm(args.yes, &format!("{}\nMake a backup and delete {total}?", rows(&preview.delete)))?;
    record_audit_start(&app, command, None, cli_authority(None))?;
    let cleared = purge::run(&app.backups, &app.network_log, target, &mut |_, _, _| ())?;
    record_audit(&app, command, None, cli_authority(None))?;
    common.output(&DataCleared::from(cleared.clone()), || {
        let counts = tables(["deleted", "kept"], &cleared.deleted, &cleared.kept);
        format!("{counts}\nBackup: {}", cleared.backup)
    })
}

fn delete_expired(common: &Common, app: &App, args: &CleanupArgs) -> Result<()> {
    if args.dry_run {
        return Err(Error::new(Code::InvalidRequest).english_detail("`cleanup expired` does not support --dry-run."));
    }
    common.confirm(args.yes, "Delete all data past its configured retention?")?;
    record_audit_start(app, "cleanup expired", None, cli_authority(None))?;
    let deleted = retention::sweep(&app.core, &app.network_log)?;
    record_audit(app, "cleanup expired", None, cli_authority(None))?;
    common.output(&json!({ "deleted": deleted }), || format!("{} deleted", pluralize(deleted, "row", "rows")))
}

fn object(counts: &[(String, i64)]) -> Value {
    Value::Object(counts.iter().map(|(table, rows)| (table.clone(), json!(rows))).collect())
}

fn tables([first, second]: [&str; 2], deleted: &[(String, i64)], kept: &[(String, i64)]) -> String {
    let section = |title: &str, counts: &[(String, i64)]| format!("{title}:\n{}", rows(counts));
    if kept.is_empty() {
        section(first, deleted)
    } else {
        format!("{}\n{}", section(first, deleted), section(second, kept))
    }
}

fn rows(counts: &[(String, i64)]) -> String {
    table(["table", "rows"], counts.iter().map(|(table, rows)| row![table, rows]))
}
