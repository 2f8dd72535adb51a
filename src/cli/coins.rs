//! `yarrow coins`: coin balances.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, check, cli_authority, find_user, record_audit};
use crate::{
    app::App,
    domain::{
        identity::users::User,
        money::coins::{self, ResetBy, ResetConfirmation},
        operations::idempotency::IdempotentRequest,
    },
    error::{Code, Error, Result},
    http::responses::CoinsSynchronised,
    types::{PhoneNumber, pluralize},
};

/// A grant of more coins needs a reason and a confirmation.
const LARGE_GRANT: i64 = 10_000;

/// Show and change coin balances
///
/// WHO is a user's id, phone number or email address.
#[derive(Debug, Args)]
pub struct CoinsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a user's balance
    Balance {
        /// User: id, phone number or email address
        who: String,
    },
    /// Add coins to a user's balance, or take coins back, and print the new balance
    ///
    /// Example: yarrow coins grant 13800138000 60 --reason "lost order"
    ///
    /// Example: yarrow coins grant 13800138000 -60 --reason "granted twice"
    Grant {
        /// User: id, phone number or email address
        who: String,
        /// Number of coins; a negative number takes coins back
        #[arg(allow_negative_numbers = true, value_parser = super::parse_adjustment)]
        coins: i64,
        /// Reason, for the audit; required for negative numbers and above 10000
        #[arg(long, value_parser = super::parse_reason)]
        reason: Option<String>,
        /// Skip the confirmation, which numbers above 10000 need
        #[arg(long)]
        yes: bool,
    },
    /// Set a user's balance to 0
    Reset {
        /// User: id, phone number or email address
        who: String,
        /// Reason, for the audit
        #[arg(long, value_parser = super::parse_reason)]
        reason: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Create missing accounts and recompute wrong balances from the ledger; exit 5 if issues remain
    #[command(alias = "sync")]
    Repair,
}

pub fn run(common: &Common, args: CoinsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Balance { who } => {
            let user = find_user(&app, &who)?;
            let balance = coins::balance(&app.core, user.id)?;
            record_audit(&app, "coins balance", Some(user.id), cli_authority(None))?;
            show(common, &user, balance)
        }
        Action::Grant { who, coins, reason, yes } => {
            let user = find_user(&app, &who)?;
            check_grant(common, &user, coins, reason.as_deref(), yes)?;
            let by = cli_authority(reason);
            let balance =
                coins::adjust(&app.core, user.id, coins, by.clone(), None, IdempotentRequest::without_key(None))
                    .wait()?
                    .fresh()?;
            record_audit(&app, "coins grant", Some(user.id), by)?;
            show(common, &user, balance)
        }
        Action::Reset { who, reason, yes } => {
            let (user, by) = (find_user(&app, &who)?, cli_authority(Some(reason)));
            common.confirm(yes, &format!("Set the balance of user {} to 0?", user.id))?;
            let reset_by = ResetBy::Admin(by.clone(), ResetConfirmation::AtTerminal);
            let balance =
                coins::reset(&app.core, user.id, reset_by, IdempotentRequest::without_key(None)).wait()?.fresh()?;
            record_audit(&app, "coins reset", Some(user.id), by)?;
            show(common, &user, balance)
        }
        Action::Repair => repair(common, &app, "coins repair"),
    }
}

/// Requires a reason for a grant that takes coins back or is large, and a confirmation for a large one.
fn check_grant(common: &Common, user: &User, coins: i64, reason: Option<&str>, yes: bool) -> Result<()> {
    let is_large = coins > LARGE_GRANT;
    if reason.is_none() && (coins < 0 || is_large) {
        let detail = format!("Negative grants and grants above {LARGE_GRANT} coins need --reason.");
        return Err(Error::new(Code::InvalidRequest).english_detail(detail));
    }
    if is_large {
        common.confirm(yes, &format!("Grant {} to user {}?", pluralize(coins, "coin", "coins"), user.id))
    } else {
        Ok(())
    }
}

fn show(common: &Common, user: &User, balance: i64) -> Result<()> {
    let phone_number = user.phone_number.as_ref().map(PhoneNumber::as_str);
    let json = json!({ "userId": user.id, "phoneNumber": phone_number, "balance": balance });
    common.output(&json, || balance.to_string())
}

pub fn repair(common: &Common, app: &App, command: &str) -> Result<()> {
    let by = cli_authority(None);
    let report = coins::synchronise(&app.core, &by)?;
    record_audit(app, command, None, by)?;
    let remaining = report.issues.len();
    common.show(&CoinsSynchronised::from(report))?;
    check(remaining == 0, format!("{}.", pluralize(remaining, "issue remains", "issues remain")))
}
