//! `yarrow users suspend`, `unsuspend` and `suspensions`.

use clap::Args;
use serde_json::json;

use crate::cli::{Common, cli_authority, find_user, or_empty, parse_time, record_audit, row, table};
use yarrow::{
    app::App,
    domain::{
        identity::suspensions::{self, Suspension},
        operations::idempotency::IdempotentRequest,
    },
    error::Result,
    http::responses::ShownSuspension,
    types::UserId,
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
}

pub fn suspend(common: &Common, app: &App, args: SuspendArgs) -> Result<()> {
    let (user, by) = (find_user(app, &args.who)?.id, cli_authority(Some(args.reason)));
    let ends_at = args.until.map(|until| parse_time(app, "until", &until)).transpose()?;
    let once = IdempotentRequest::without_key(None);
    let suspension = suspensions::suspend(&app.core, user, ends_at, by.clone(), once).wait()?.fresh()?;
    record_audit(app, "users suspend", Some(user), by)?;
    print(common, &[suspension])
}

pub fn lift(common: &Common, app: &App, user: UserId, reason: Option<String>) -> Result<()> {
    let by = cli_authority(reason);
    let lifted = suspensions::lift(&app.core, user, by.clone()).wait()?;
    record_audit(app, "users unsuspend", Some(user), by)?;
    print(common, &[lifted])
}

pub fn list(common: &Common, app: &App, user: UserId) -> Result<()> {
    let found = suspensions::list(&app.core, user)?;
    record_audit(app, "users suspensions", Some(user), cli_authority(None))?;
    print(common, &found)
}

fn print(common: &Common, suspensions: &[Suspension]) -> Result<()> {
    let items: Vec<_> = suspensions.iter().map(ShownSuspension::from).collect();
    common.output(&json!({ "items": items }), || {
        let rows = suspensions.iter().map(|suspension| {
            row![
                suspension.created_at,
                or_empty(suspension.ends_at),
                or_empty(suspension.lifted_at),
                suspension.source.name(),
                suspension.actor,
                suspension.reason
            ]
        });
        table(["since", "until", "lifted", "source", "actor", "reason"], rows)
    })
}
