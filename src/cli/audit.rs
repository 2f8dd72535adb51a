//! `yarrow audit`: what administrators saw and changed.

use clap::Args;
use serde_json::json;

use super::{Common, PageArgs, find_user, table};
use crate::{
    error::Result,
    ops::audit::{self, Filter},
};

/// List what administrators saw and changed, newest first.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only what was about this user (id or phone number).
    #[arg(long, value_name = "WHO", conflicts_with = "actor")]
    user: Option<String>,
    /// Only what this actor did: `admin:NAME`, `key:LABEL` or `cli`.
    #[arg(long)]
    actor: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

pub fn run(common: &Common, args: AuditArgs) -> Result<()> {
    let app = common.open()?;
    let filter = match (&args.user, args.actor) {
        (Some(who), _) => Filter::About(find_user(&app, who)?.id),
        (None, Some(actor)) => Filter::By(actor),
        (None, None) => Filter::All,
    };
    let found = audit::list(&app, &filter, args.page.page())?;
    let items = found.items.iter().map(|row| {
        json!({
            "id": row.id, "at": row.at, "actor": row.act.actor, "action": row.act.action, "userId": row.act.user,
            "reason": row.act.reason, "outcome": row.act.outcome, "clientIp": row.act.client_ip,
            "requestId": row.act.request_id,
        })
    });
    let json = json!({ "items": items.collect::<Vec<_>>(), "total": found.total });
    common.answer(&json, || {
        let rows = found.items.iter().map(|row| {
            [
                row.at.to_string(),
                row.act.actor.clone(),
                row.act.action.clone(),
                row.act.user.map_or_else(String::new, |user| user.to_string()),
                row.act.outcome.to_string(),
                row.act.reason.clone().unwrap_or_default(),
                row.act.request_id.clone(),
            ]
        });
        table(["at", "actor", "action", "user", "outcome", "reason", "request"], rows)
    })
}
