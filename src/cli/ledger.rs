//! `yarrow ledger`: verifies and prints the ledger.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    Common, PageArgs, check, choice::choice, cli_authority, find_user, http_rows, or_empty, progress_bar, record_audit,
    row, table,
};
use crate::{
    app::App,
    domain::money::ledger::{self, Asset, LedgerEntry, VerificationReport},
    error::{Code, Result},
    http::responses::LedgerIssue,
    types::{UserId, pluralize},
};

/// Verify the ledger of coins and points, or print an account
///
/// WHO is a user's id, phone number or email address.
#[derive(Debug, Args)]
pub struct LedgerArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check that entries, balances and the audit chain agree; exit 5 if they do not
    ///
    /// Inconsistent accounts are suspended until `yarrow coins repair` or `yarrow points repair` has repaired them.
    Verify,
    /// Print an account's entries, newest first
    Show {
        /// User: id, phone number or email address
        who: String,
        /// Account of coins or of points
        #[arg(long, value_parser = choice!(Asset), default_value = Asset::Coin.name())]
        asset: Asset,
        #[command(flatten)]
        page: PageArgs,
    },
}

pub fn run(common: &Common, args: LedgerArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Verify => verify(common, &app),
        Action::Show { who, asset, page } => show(common, &app, "ledger show", &who, asset, &page),
    }
}

fn verify(common: &Common, app: &App) -> Result<()> {
    let bar = progress_bar(common, 0, "{bar:40} {pos}/{len} entries, {eta} left");
    let report = ledger::verify(&app.core, &mut |position, total| {
        bar.set_length(total.unsigned_abs());
        bar.set_position(position.unsigned_abs());
    })?;
    bar.finish_and_clear();
    if report.suspended > 0 {
        let suspended = format!("{} suspended", pluralize(report.suspended, "account", "accounts"));
        record_audit(app, "ledger verify", None, cli_authority(Some(suspended)))?;
    }
    show_report(common, &report)?;
    let discrepancies = pluralize(report.discrepancies_found, "discrepancy", "discrepancies");
    check(report.is_consistent(), format!("The ledger has {discrepancies}."))
}

fn show_report(common: &Common, report: &VerificationReport) -> Result<()> {
    let json = json!({
        "consistent": report.is_consistent(),
        "entries": report.entries,
        "accounts": report.accounts,
        "auditRows": report.changes,
        "suspended": report.suspended,
        "discrepancies": http_rows::<_, LedgerIssue>(&report.discrepancies),
        "discrepanciesFound": report.discrepancies_found,
    });
    common.output(&json, || {
        let totals = [
            pluralize(report.entries, "entry", "entries"),
            pluralize(report.accounts, "account", "accounts"),
            pluralize(report.changes, "audit row", "audit rows"),
        ]
        .join(", ");
        if report.is_consistent() {
            return format!("consistent: {totals}");
        }
        let rows = report.discrepancies.iter().map(|discrepancy| {
            let account = discrepancy.account.map(|(user, asset)| format!("{user} {}", asset.name()));
            row![discrepancy.code, or_empty(account), discrepancy.detail]
        });
        let listed = table(["discrepancy", "account", "detail"], rows);
        let suspended = pluralize(report.suspended, "account was suspended", "accounts were suspended");
        format!("{listed}\n{totals}; {suspended}")
    })
}

/// Prints an account's entries. The audit event names the command.
pub(super) fn show(common: &Common, app: &App, command: &str, who: &str, asset: Asset, page: &PageArgs) -> Result<()> {
    let user = match (find_user(app, who), who.parse().map(UserId)) {
        (Ok(user), _) => user.id,
        // Entries of deleted users remain.
        (Err(error), Ok(id)) if error.code == Code::NotFound => {
            let account = app.core.store.read(|tx| ledger::account_in(tx, id, asset))?;
            if account.last_sequence == 0 { Err(error)? } else { id }
        }
        (Err(error), _) => return Err(error),
    };
    let account = app.core.store.read(|tx| ledger::account_in(tx, user, asset))?;
    let listing = ledger::entries(&app.core, user, asset, page.page())?;
    record_audit(app, command, Some(user), cli_authority(None))?;
    let entries = listing.items.iter().map(|entry| {
        json!({
            "seq": entry.seq, "sequence": entry.sequence, "delta": entry.delta, "balanceAfter": entry.balance_after,
            "kind": entry.kind.name(), "ref": entry.reference, "createdAt": entry.created_at,
        })
    });
    let json = json!({
        "userId": user, "asset": asset.name(), "balance": account.balance, "suspendedAt": account.suspended_at,
        "items": entries.collect::<Vec<_>>(), "page": page.page, "size": page.size, "total": listing.total,
    });
    common.output(&json, || {
        let rows = listing.items.iter().map(|entry| {
            let LedgerEntry { seq, sequence, created_at, kind, delta, balance_after, reference, .. } = entry;
            row![seq, sequence, created_at, kind.name(), delta, balance_after, or_empty(reference.as_ref())]
        });
        let listed = table(["seq", "number", "at", "kind", "delta", "balance", "ref"], rows);
        let suspended = account.suspended_at.map_or_else(String::new, |since| format!(", suspended since {since}"));
        format!("{listed}\nuser {user}: {} {}s{suspended}", account.balance, asset.name())
    })
}
