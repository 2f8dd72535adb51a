//! `yarrow sync`: checks and repairs the data of all users.

use clap::{Args, Subcommand};

use super::{Common, check, cli_authority, progress_bar, record_audit};
use crate::{
    app::App,
    domain::identity::{user_data, users},
    error::Result,
    http::responses::UserDataSynchronised,
    types::pluralize,
};

/// Check and repair the data of all users
#[derive(Debug, Args)]
pub struct SyncArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create missing coin accounts and recompute wrong balances from the ledger; exit 5 if issues remain
    Coins,
    /// Check and repair every user's data; exit 5 if issues remain that need a decision
    Users,
}

pub fn run(common: &Common, args: &SyncArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Coins => super::coins::repair(common, &app, "sync coins"),
        Action::Users => sync_users(common, &app),
    }
}

fn sync_users(common: &Common, app: &App) -> Result<()> {
    let by = cli_authority(None);
    let total = u64::try_from(app.core.store.read(users::count_in)?).unwrap_or(0);
    let bar = progress_bar(common, total, "{bar:40} {pos}/{len} users, {eta} left");
    let report = user_data::synchronise(&app.core, &by, &mut |checked| bar.set_position(checked))?;
    bar.finish_and_clear();
    record_audit(app, "sync users", None, by)?;
    common.show(&UserDataSynchronised::from(report.clone()))?;
    let users = pluralize(report.inconsistent, "user has", "users have");
    check(report.inconsistent == 0, format!("{users} issues that need a decision."))
}
