//! `yarrow audit`: audit events of administrators and commands.

use clap::Args;

use super::{Common, PageArgs, RangeArgs, find_user_id, or_empty, row, table};
use yarrow::{
    domain::operations::audit::{self, Filter, Recorded},
    error::Result,
    http::responses::AuditRow,
};

/// List what administrators and commands read and changed, newest first
///
/// Example: yarrow audit --user 13800138000 --from 2026-01-01
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only events about this user: id, phone number or email address
    #[arg(long, value_name = "WHO")]
    user: Option<String>,
    /// Only events of this actor: `admin:NAME`, `key:LABEL` or `cli`
    #[arg(long)]
    actor: Option<String>,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    page: PageArgs,
}

pub fn run(common: &Common, args: AuditArgs) -> Result<()> {
    let app = common.open()?;
    let user = args.user.as_deref().map(|who| find_user_id(&app, who)).transpose()?;
    let filter = Filter { user, actor: args.actor, ..Filter::default() };
    let (from, to) = args.range.bounds(&app)?;
    let (from, to) = (from.unwrap_or(filter.from), to.unwrap_or(filter.to));
    let listing = audit::list(&app, &Filter { from, to, ..filter }, args.page.page())?;
    common.output_page::<_, AuditRow>(args.page.page(), listing, |listing| table_of(&listing.items))
}

pub fn table_of(rows: &[Recorded]) -> String {
    let rows = rows.iter().map(|Recorded { at, act, .. }| {
        let (user, reason) = (or_empty(act.user), or_empty(act.reason.as_ref()));
        row![at, act.actor, act.action, user, act.outcome, reason, act.request_id]
    });
    table(["at", "actor", "action", "user", "outcome", "reason", "request"], rows)
}
