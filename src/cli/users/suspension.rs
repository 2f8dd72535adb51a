//! `yarrow users suspend`, `unsuspend` and `suspensions`.

use clap::Args;
use serde_json::json;

use crate::cli::{Common, choice::choice, cli_authority, find_user, or_empty, parse_time, record_audit, row, table};
use crate::{
    app::App,
    domain::{
        identity::suspensions::{self, Suspension},
        operations::idempotency::IdempotentRequest,
    },
    error::Result,
    types::{SuspensionScope, UserId},
};

/// A user, and the reason and end of the suspension.
#[derive(Debug, Args)]
pub struct SuspendArgs {
    /// User: id, phone number or email address
    who: String,
    /// Reason, for the user and the audit
    #[arg(long, value_parser = crate::cli::parse_reason)]
    reason: String,
    /// End of the suspension; without it, the suspension holds until it is lifted
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Part of the service: the account, changes of the nickname, or only a review of every text
    #[arg(long, value_parser = choice!(SuspensionScope), default_value = SuspensionScope::Account.name())]
    scope: SuspensionScope,
}

/// A user, and the scope and reason of the end of a suspension.
#[derive(Debug, Args)]
pub struct UnsuspendArgs {
    /// User: id, phone number or email address
    who: String,
    /// Reason, for the audit
    #[arg(long, value_parser = crate::cli::parse_reason)]
    reason: Option<String>,
    /// Scope of the suspension
    #[arg(long, value_parser = choice!(SuspensionScope), default_value = SuspensionScope::Account.name())]
    scope: SuspensionScope,
}

pub fn suspend(common: &Common, app: &App, args: SuspendArgs) -> Result<()> {
    let (user, by) = (find_user(app, &args.who)?.id, cli_authority(Some(args.reason)));
    let ends_at = args.until.map(|until| parse_time(app, "until", &until)).transpose()?;
    let once = IdempotentRequest::without_key(None);
    let suspension = suspensions::suspend(&app.core, user, args.scope, ends_at, by.clone(), once).wait()?.fresh()?;
    record_audit(app, "users suspend", Some(user), by)?;
    print(common, &[suspension])
}

pub fn lift(common: &Common, app: &App, args: UnsuspendArgs) -> Result<()> {
    let (user, by) = (find_user(app, &args.who)?.id, cli_authority(args.reason));
    let lifted = suspensions::lift(&app.core, user, args.scope, by.clone()).wait()?;
    record_audit(app, "users unsuspend", Some(user), by)?;
    print(common, &[lifted])
}

pub fn list(common: &Common, app: &App, user: UserId) -> Result<()> {
    let found = suspensions::list(&app.core, user)?;
    record_audit(app, "users suspensions", Some(user), cli_authority(None))?;
    print(common, &found)
}

fn print(common: &Common, suspensions: &[Suspension]) -> Result<()> {
    common.output(&json!({ "items": suspensions }), || {
        let rows = suspensions.iter().map(|suspension| {
            row![
                suspension.created_at,
                or_empty(suspension.ends_at),
                or_empty(suspension.lifted_at),
                suspension.scope.name(),
                suspension.source.name(),
                suspension.actor,
                suspension.reason
            ]
        });
        table(["since", "until", "lifted", "scope", "source", "actor", "reason"], rows)
    })
}
