//! `yarrow cleanup`: clearing tables, after a backup.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, authority, confirm, record, record_beginning, row, table};
use yarrow::{
    app::App,
    domain::operations::{
        purge::{self, Target},
        retention,
    },
    error::{Code, Error, Result},
    http::answers::DataCleared,
    types::counted,
};

/// Delete what is in whole tables, after a backup. Without `--yes` it is asked first, with what would go.
#[derive(Debug, Args)]
pub struct CleanupArgs {
    #[command(subcommand)]
    target: What,
    /// Do not ask.
    #[arg(long, global = true)]
    yes: bool,
    /// Count what would go and what would stay, and delete nothing.
    #[arg(long, global = true, conflicts_with = "yes")]
    dry_run: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Everything but administrators, their audit, words, releases and settings; users and the ledger go.
    All,
    /// Verification codes that are live. Budgets for sending stay.
    VerificationCodes,
    /// Finished orders older than `retention.payment_records`, with what came in about them.
    PaymentRecords,
    /// Everything that users wrote as feedback.
    Feedback,
    /// What is past its retention, as a running server does every hour; without a backup.
    Expired,
}

pub fn run(common: &Common, args: &CleanupArgs) -> Result<()> {
    let app = common.open()?;
    let (target, command) = match args.target {
        What::Expired => return delete_expired(common, &app, args),
        What::All => (Target::All, "cleanup all"),
        What::VerificationCodes => (Target::VerificationCodes, "cleanup verification-codes"),
        What::PaymentRecords => (Target::PaymentRecords, "cleanup payment-records"),
        What::Feedback => (Target::Feedback, "cleanup feedback"),
    };
    let census = purge::dry_run(&app, target)?;
    if args.dry_run {
        let json = json!({ "wouldDelete": object(&census.delete), "wouldKeep": object(&census.keep) });
        return common.answer(&json, || tables(["would go", "would stay"], &census.delete, &census.keep));
    }
    let going: i64 = census.delete.iter().map(|(_, rows)| rows).sum();
    let going = counted(going, "row", "rows");
    confirm(args.yes, &format!("{}\nDelete {going}, after a backup?", rows(&census.delete)))?;
    record_beginning(&app, command, None, authority(None))?;
    let cleared = purge::clear(&app, target, &mut |_, _, _| ())?;
    record(&app, command, None, authority(None))?;
    common.answer(&DataCleared::from(cleared.clone()), || {
        let counts = tables(["deleted", "kept"], &cleared.deleted, &cleared.kept);
        format!("{counts}\nThe backup before it is {}.", cleared.backup)
    })
}

fn delete_expired(common: &Common, app: &App, args: &CleanupArgs) -> Result<()> {
    if args.dry_run {
        return Err(Error::new(Code::InvalidRequest).detail("What is past its retention is not counted beforehand."));
    }
    confirm(args.yes, "Delete what is past the retention that is configured?")?;
    record_beginning(app, "cleanup expired", None, authority(None))?;
    let deleted = retention::sweep(app)?;
    record(app, "cleanup expired", None, authority(None))?;
    common.answer(&json!({ "deleted": deleted }), || format!("{} deleted", counted(deleted, "row", "rows")))
}

fn object(counts: &[(String, i64)]) -> Value {
    Value::Object(counts.iter().map(|(table, rows)| (table.clone(), json!(rows))).collect())
}

fn tables([first, second]: [&str; 2], gone: &[(String, i64)], kept: &[(String, i64)]) -> String {
    let line = |title: &str, counts: &[(String, i64)]| format!("{title}:\n{}", rows(counts));
    if kept.is_empty() { line(first, gone) } else { format!("{}\n{}", line(first, gone), line(second, kept)) }
}

fn rows(counts: &[(String, i64)]) -> String {
    table(["table", "rows"], counts.iter().map(|(table, rows)| row![table, rows]))
}
