//! `yarrow sync`: putting right what is kept of all users.

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{Common, authority, record, table};
use yarrow::{
    app::App,
    error::{Code, Error, Result},
    ops::{user_data, users},
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
    let bar = progress_bar(app.store.read(users::count_in)?);
    let done = user_data::synchronise(app, &by, &mut |checked| bar.set_position(checked))?;
    bar.finish_and_clear();
    record(app, "sync users", None, by)?;
    let issues = done.issues.iter().map(
        |(user, issue)| json!({ "userId": user, "code": issue.code, "detail": issue.detail, "fixable": issue.fixable }),
    );
    let json = json!({
        "checked": done.checked, "fixed": done.fixed, "orphansDeleted": done.orphans_deleted,
        "inconsistent": done.inconsistent, "issues": issues.collect::<Vec<_>>(),
    });
    common.answer(&json, || {
        let rows = [
            ["checked".to_owned(), done.checked.to_string()],
            ["repaired".to_owned(), done.fixed.to_string()],
            ["castings of nobody, deleted".to_owned(), done.orphans_deleted.to_string()],
            ["left for a person".to_owned(), done.inconsistent.to_string()],
        ];
        let left =
            done.issues.iter().map(|(user, issue)| [user.to_string(), issue.code.to_owned(), issue.detail.clone()]);
        format!("{}\n{}", table(["users", ""], rows), table(["user", "issue", ""], left))
    })?;
    match done.inconsistent {
        0 => Ok(()),
        left => {
            let users = counted(left, "user has", "users have");
            Err(Error::new(Code::ChecksFailed).detail(format!("{users} issues that are left for a person.")))
        }
    }
}

/// A bar on standard error; nothing where no terminal watches.
fn progress_bar(total: i64) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(total).unwrap_or(0));
    match ProgressStyle::with_template("{bar:40} {pos}/{len} users, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
