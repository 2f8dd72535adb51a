//! `yarrow ledger`: proving the ledger, and reading it.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    Common, PageArgs, authority, blank, check, choice::choice, find_user, progress_bar, record, row, shown, table,
};
use yarrow::{
    app::App,
    domain::money::ledger::{self, Asset, Entry, Report},
    error::{Code, Result},
    http::answers::LedgerIssue,
    types::{UserId, counted},
};

/// Verify the ledger, or show an account. WHO is a user's id, phone number or email address.
#[derive(Debug, Args)]
pub struct LedgerArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Prove that entries, balances and the audit chain agree; exit 5 and a report if they do not. Accounts that are
    /// found wrong are closed until `yarrow coins sync` or `yarrow points repair` repairs them.
    Verify,
    /// Print an account's entries, newest first.
    Show {
        /// The user: id, phone number or email address.
        who: String,
        /// Of coins or of points.
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
    let report = ledger::verify(app, &mut |done, total| {
        bar.set_length(total.unsigned_abs());
        bar.set_position(done.unsigned_abs());
    })?;
    bar.finish_and_clear();
    if report.suspended > 0 {
        let closed = format!("{} closed", counted(report.suspended, "account", "accounts"));
        record(app, "ledger verify", None, authority(Some(closed)))?;
    }
    show_report(common, &report)?;
    let discrepancies = counted(report.discrepancies_found, "discrepancy", "discrepancies");
    check(report.is_consistent(), format!("The ledger has {discrepancies}."))
}

fn show_report(common: &Common, report: &Report) -> Result<()> {
    let json = json!({
        "consistent": report.is_consistent(),
        "entries": report.entries,
        "accounts": report.accounts,
        "auditRows": report.changes,
        "suspended": report.suspended,
        "discrepancies": shown::<_, LedgerIssue>(&report.discrepancies),
        "discrepanciesFound": report.discrepancies_found,
    });
    common.answer(&json, || {
        let read = [
            counted(report.entries, "entry", "entries"),
            counted(report.accounts, "account", "accounts"),
            counted(report.changes, "audit row", "audit rows"),
        ]
        .join(", ");
        if report.is_consistent() {
            return format!("consistent: {read}");
        }
        let rows = report.discrepancies.iter().map(|found| {
            let account = found.account.map(|(user, asset)| format!("{user} {}", asset.name()));
            row![found.code, blank(account), found.detail]
        });
        let listed = table(["discrepancy", "account", "detail"], rows);
        let closed = counted(report.suspended, "account was closed", "accounts were closed");
        format!("{listed}\n{read}; {closed}")
    })
}

/// Prints an account's entries for a command, which is written down by its name.
pub(super) fn show(common: &Common, app: &App, command: &str, who: &str, asset: Asset, page: &PageArgs) -> Result<()> {
    let user = match (find_user(app, who), who.parse().map(UserId)) {
        (Ok(user), _) => user.id,
        // Entries outlive their user.
        (Err(error), Ok(id)) if error.code == Code::NotFound => {
            let account = app.store.read(|tx| ledger::account_in(tx, id, asset))?;
            if account.last_sequence == 0 { Err(error)? } else { id }
        }
        (Err(error), _) => return Err(error),
    };
    let account = app.store.read(|tx| ledger::account_in(tx, user, asset))?;
    let found = ledger::entries(app, user, asset, page.page())?;
    record(app, command, Some(user), authority(None))?;
    let entries = found.items.iter().map(|entry| {
        json!({
            "seq": entry.seq, "sequence": entry.sequence, "delta": entry.delta, "balanceAfter": entry.balance_after,
            "kind": entry.kind.name(), "ref": entry.reference, "createdAt": entry.created_at,
        })
    });
    let json = json!({
        "userId": user, "asset": asset.name(), "balance": account.balance, "suspendedAt": account.suspended_at,
        "items": entries.collect::<Vec<_>>(), "page": page.page, "size": page.size, "total": found.total,
    });
    common.answer(&json, || {
        let rows = found.items.iter().map(|entry| {
            let Entry { seq, sequence, created_at, kind, delta, balance_after, reference, .. } = entry;
            row![seq, sequence, created_at, kind.name(), delta, balance_after, blank(reference.as_ref())]
        });
        let listed = table(["seq", "number", "at", "kind", "delta", "balance", "ref"], rows);
        let closed = account.suspended_at.map_or_else(String::new, |since| format!(", closed since {since}"));
        format!("{listed}\nuser {user}: {} {}s{closed}", account.balance, asset.name())
    })
}
