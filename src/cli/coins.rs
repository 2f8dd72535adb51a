//! `yarrow coins`: balances of coins.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, authority, check, confirm, find_user, record, row, table};
use yarrow::{
    app::App,
    domain::{
        identity::users::User,
        money::coins::{self, Asked, LARGEST_INCREASE, ResetBy},
        operations::idempotency::{Answered, Once},
    },
    error::{Error, Result},
    http::answers::CoinsSynchronised,
    store::Pending,
    types::{PhoneNumber, counted},
};

/// Show and change balances of coins. WHO is a user's id, phone number or email address.
#[derive(Debug, Args)]
pub struct CoinsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a balance.
    Balance {
        /// The user: id, phone number or email address.
        who: String,
    },
    /// Add coins, and print the new balance.
    Grant {
        /// The user: id, phone number or email address.
        who: String,
        /// How many: 1 or more.
        #[arg(value_parser = clap::value_parser!(i64).range(1..=LARGEST_INCREASE))]
        coins: i64,
        /// Why, for the audit.
        #[arg(long, value_parser = super::reason)]
        reason: Option<String>,
    },
    /// Set a balance to 0.
    Reset {
        /// The user: id, phone number or email address.
        who: String,
        /// Why, for the audit.
        #[arg(long, value_parser = super::reason)]
        reason: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Make the accounts that users lack, and take wrong balances from the ledger again; exit 5 if something is left.
    Sync,
}

pub fn run(common: &Common, args: CoinsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Balance { who } => {
            let user = find_user(&app, &who)?;
            let balance = coins::balance(&app, user.id)?;
            record(&app, "coins balance", Some(user.id), authority(None))?;
            show(common, &user, balance)
        }
        Action::Grant { who, coins, reason } => {
            let (user, by) = (find_user(&app, &who)?, authority(reason));
            let balance = outcome(coins::increase(&app, user.id, coins, by.clone(), Once::unkeyed(None)))?;
            record(&app, "coins grant", Some(user.id), by)?;
            show(common, &user, balance)
        }
        Action::Reset { who, reason, yes } => {
            let (user, by) = (find_user(&app, &who)?, authority(Some(reason)));
            confirm(yes, &format!("Set the balance of user {} to 0?", user.id))?;
            let reset_by = ResetBy::Admin(by.clone(), Asked::Already);
            let balance = outcome(coins::reset(&app, user.id, reset_by, Once::unkeyed(None)))?;
            record(&app, "coins reset", Some(user.id), by)?;
            show(common, &user, balance)
        }
        Action::Sync => synchronise(common, &app, "coins sync"),
    }
}

fn outcome(pending: Pending<Answered<i64>>) -> Result<i64> {
    match pending.wait()? {
        Answered::Now(balance) => Ok(balance),
        Answered::Before(_) => Err(Error::internal("a command without a key was answered by an earlier one")),
    }
}

fn show(common: &Common, user: &User, balance: i64) -> Result<()> {
    let phone_number = user.phone_number.as_ref().map(PhoneNumber::as_str);
    let json = json!({ "userId": user.id, "phoneNumber": phone_number, "balance": balance });
    common.answer(&json, || balance.to_string())
}

pub fn synchronise(common: &Common, app: &App, command: &str) -> Result<()> {
    let by = authority(None);
    let done = coins::synchronise(app, &by)?;
    record(app, command, None, by)?;
    let left = done.issues.len();
    let counts = [
        row!["checked", done.checked],
        row!["created", done.created],
        row!["repaired", done.repaired],
        row!["issues", left],
    ];
    common.answer(&CoinsSynchronised::from(done), || table(["accounts", ""], counts))?;
    check(left == 0, format!("{} left.", counted(left, "issue is", "issues are")))
}
