//! `yarrow audit`: audit events of administrators and commands.

use clap::Args;

use super::{Common, PageArgs, RangeArgs, find_user_id};
use crate::{
    domain::operations::audit::{self, AuditFilter},
    error::Result,
    http::{console::views::pages::rows, responses::AuditRow},
};

/// List what administrators and commands read and changed, newest first
///
/// Example: yarrow audit --user 13800138000 --from 2026-01-01
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only events about this user: id, phone number or email address
    #[arg(long, value_name = "WHO")]
    user: Option<String>,
    /// Only events of this actor: `admin:NAME`, `key:LABEL`, `cli`, or `unknown` for sign-ins with an unknown name
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
    let filter = AuditFilter { user, actor: args.actor, ..AuditFilter::default() };
    let (from, to) = args.range.bounds(&app)?;
    let (from, to) = (from.unwrap_or(filter.from), to.unwrap_or(filter.to));
    let listing = audit::list(&app.core, &AuditFilter { from, to, ..filter }, args.page.page())?;
    common.output_list::<_, AuditRow>(args.page.page(), listing, rows::AUDIT)
}
