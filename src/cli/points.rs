//! `yarrow points`: point balances.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, PageArgs, check, cli_authority, find_user, http_rows, ledger, record_audit};
use crate::{
    app::App,
    domain::money::{
        ledger::{AccountRepair, Asset, Discrepancy},
        points,
    },
    error::Result,
    http::responses::LedgerIssue,
    types::pluralize,
};

/// Show and change point balances
///
/// WHO is a user's id, phone number or email address.
#[derive(Debug, Args)]
pub struct PointsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a user's balance and ledger entries, newest first
    Show {
        /// User: id, phone number or email address
        who: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Add or deduct points and print the new balance
    ///
    /// Example: yarrow points adjust 13800138000 20 --reason "lost bonus"
    ///
    /// Example: yarrow points adjust 13800138000 -20 --reason "granted twice"
    Adjust {
        /// User: id, phone number or email address
        who: String,
        /// Number of points; a negative number deducts
        #[arg(allow_negative_numbers = true, value_parser = super::parse_adjustment)]
        points: i64,
        /// Reason, for the audit
        #[arg(long, value_parser = super::parse_reason)]
        reason: String,
    },
    /// Recompute a wrong balance from the ledger and reopen the suspended account; exit 5 if entries are wrong
    Repair {
        /// User: id, phone number or email address
        who: String,
        /// Reason, for the audit
        #[arg(long, value_parser = super::parse_reason)]
        reason: Option<String>,
    },
}

pub fn run(common: &Common, args: PointsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Show { who, page } => ledger::show(common, &app, "points show", &who, Asset::Point, &page),
        Action::Adjust { who, points, reason } => {
            let (user, by) = (find_user(&app, &who)?.id, cli_authority(Some(reason)));
            let balance = points::adjust(&app.core, user, points, by.clone()).wait()?;
            record_audit(&app, "points adjust", Some(user), by)?;
            common.output(&json!({ "userId": user, "balance": balance }), || balance.to_string())
        }
        Action::Repair { who, reason } => repair(common, &app, &who, reason),
    }
}

fn repair(common: &Common, app: &App, who: &str, reason: Option<String>) -> Result<()> {
    let (user, by) = (find_user(app, who)?.id, cli_authority(reason));
    let repair = points::repair(&app.core, user, by.clone()).wait()?;
    record_audit(app, "points repair", Some(user), by)?;
    let discrepancies: &[Discrepancy] = if let AccountRepair::Broken(found) = &repair { found } else { &[] };
    let balance = points::balance(&app.core, user)?;
    let json = json!({
        "userId": user,
        "balance": balance,
        "repaired": matches!(repair, AccountRepair::Repaired { .. }),
        "discrepancies": http_rows::<_, LedgerIssue>(discrepancies),
    });
    common.output(&json, || match &repair {
        AccountRepair::Sound => format!("{balance}; nothing to repair"),
        AccountRepair::Repaired { before, after } => format!("{after}; the wrong balance was {before}"),
        AccountRepair::Broken(found) => {
            let discrepancies = pluralize(found.len(), "discrepancy", "discrepancies");
            format!("the entries have {discrepancies}; the account stays suspended")
        }
    })?;
    check(discrepancies.is_empty(), "The ledger entries of the account are wrong. Restore a backup.")
}
