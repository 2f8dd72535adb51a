//! `yarrow users list` and `search`.

use clap::Args;

use crate::cli::{Common, RangeArgs, choice::choice, cli_authority, list_of, record_audit};
use crate::{
    app::App,
    domain::identity::{
        directory::{self, COUNTED, MAX_QUERY, UserCursor, UserFilter, UserState},
        users::listing::RegistrationRange,
    },
    error::{Error, Result},
    http::{console::views::pages::users::USER, responses::AdminUserList},
    types::{clean, pluralize},
};

/// Filters and place of a list of users.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only users in this state
    #[arg(long, value_parser = choice!(UserState))]
    state: Option<UserState>,
    #[command(flatten)]
    registered: RangeArgs,
    /// Maximum users, 1 to 10000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// The cursor that the previous page ended with
    #[arg(long)]
    cursor: Option<String>,
}

/// Prints users. An empty search text matches all.
pub fn list(common: &Common, app: &App, command: &str, text: Option<String>, args: &ListArgs) -> Result<()> {
    let query = text.map(|text| clean(&text, MAX_QUERY)).transpose().map_err(|fault| Error::field("text", fault))?;
    let cursor = args.cursor.as_deref().map(UserCursor::parse).transpose();
    let cursor = cursor.map_err(|fault| Error::field("cursor", fault))?;
    let (from, to) = args.registered.bounds(app)?;
    let all = RegistrationRange::default();
    let registered = RegistrationRange { from: from.unwrap_or(all.from), to: to.unwrap_or(all.to) };
    let filter = UserFilter { query: query.filter(|query| !query.is_empty()), state: args.state, registered };
    let found = directory::list(&app.core, &filter, cursor.as_ref(), args.limit)?;
    record_audit(app, command, None, cli_authority(None))?;
    common.output(&AdminUserList::from(found.clone()), || {
        let shown = list_of(USER, &found.items);
        let total = match found.total {
            Some(total) if total > COUNTED => format!("\nmore than {COUNTED} users"),
            Some(total) => format!("\n{}", pluralize(total, "user", "users")),
            None => String::new(),
        };
        let next = found.next.as_ref().map(|cursor| format!("\nnext: --cursor {cursor}")).unwrap_or_default();
        format!("{shown}{total}{next}")
    })
}
