//! `yarrow sync`: putting right what is kept of all users.

use clap::{Args, Subcommand};

use super::{Common, authority, check, progress_bar, record, row, table};
use yarrow::{
    app::App,
    domain::identity::{user_data, users},
    error::Result,
    http::answers::UserDataSynchronised,
    types::counted,
};

/// Validate what is kept of all users, and repair what can be repaired.
#[derive(Debug, Args)]
pub struct SyncArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make the coin accounts that users lack, and take wrong balances from the ledger again; exit 5 if something is
    /// left.
    Coins,
    /// Validate and repair everything that is kept of each user; exit 5 if something is left for a person.
    Users,
}

pub fn run(common: &Common, args: &SyncArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Coins => super::coins::synchronise(common, &app, "sync coins"),
        Action::Users => synchronise_users(common, &app),
    }
}

fn synchronise_users(common: &Common, app: &App) -> Result<()> {
    let by = authority(None);
    let total = u64::try_from(app.store.read(users::count_in)?).unwrap_or(0);
    let bar = progress_bar(common, total, "{bar:40} {pos}/{len} users, {eta} left");
    let done = user_data::synchronise(app, &by, &mut |checked| bar.set_position(checked))?;
    bar.finish_and_clear();
    record(app, "sync users", None, by)?;
    common.answer(&UserDataSynchronised::from(done.clone()), || {
        let counts = [
            row!["checked", done.checked],
            row!["repaired", done.fixed],
            row!["castings of nobody, deleted", done.orphans_deleted],
            row!["left for a person", done.inconsistent],
        ];
        let left = done.issues.iter().map(|(user, issue)| row![user, issue.code, issue.detail]);
        format!("{}\n{}", table(["users", ""], counts), table(["user", "issue", ""], left))
    })?;
    let left = done.inconsistent;
    let users = counted(left, "user has", "users have");
    check(left == 0, format!("{users} issues that are left for a person."))
}
