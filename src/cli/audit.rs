//! `yarrow audit`: what administrators and commands saw and changed.

use clap::Args;
use serde_json::{Value, json};

use super::{Common, PageArgs, find_user_id, paged, period, table};
use yarrow::{
    error::Result,
    ops::audit::{self, Filter, Recorded},
};

/// List what administrators and commands saw and changed, newest first.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only what was about this user (id, phone number or email address).
    #[arg(long, value_name = "WHO")]
    user: Option<String>,
    /// Only what this actor did: `admin:NAME`, `key:LABEL` or `cli`.
    #[arg(long)]
    actor: Option<String>,
    /// Only rows of this time or later, such as 2026-01-31.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only rows before this time.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

pub fn run(common: &Common, args: AuditArgs) -> Result<()> {
    let app = common.open()?;
    let user = args.user.as_deref().map(|who| find_user_id(&app, who)).transpose()?;
    let everything = Filter { user, actor: args.actor, ..Filter::default() };
    let (from, to) = period(&app, args.from.as_deref(), args.to.as_deref())?;
    let (from, to) = (from.unwrap_or(everything.from), to.unwrap_or(everything.to));
    let found = audit::list(&app, &Filter { from, to, ..everything }, args.page.page())?;
    let json = paged(args.page.page(), &found.items.iter().map(json_of).collect::<Vec<_>>(), found.total);
    common.answer(&json, || table_of(&found.items))
}

pub fn json_of(row: &Recorded) -> Value {
    json!({
        "id": row.id.to_string(), "at": row.at, "actor": row.act.actor, "action": row.act.action, "userId": row.act.user,
        "reason": row.act.reason, "outcome": row.act.outcome, "clientIp": row.act.client_ip,
        "requestId": row.act.request_id,
    })
}

pub fn table_of(rows: &[Recorded]) -> String {
    let rows = rows.iter().map(|row| {
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
}
