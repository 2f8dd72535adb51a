//! `yarrow records`: the records of interpretations by the language model.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, PageArgs, RangeArgs, cli_authority, find_user, list_of, page_json, record_audit};
use crate::{
    app::App,
    domain::divination::interpretation::{self, CallRecord},
    error::Result,
    http::console::views::pages::rows,
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// Show the records of interpretations by the language model
#[derive(Debug, Args)]
pub struct RecordsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the records of a user, newest first
    User {
        /// User: id, phone number or email address
        who: String,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Count interpretations, of all users or of one
    Count {
        /// Only of this user, over all time: id, phone number or email address
        #[arg(long, value_name = "WHO", conflicts_with_all = ["from", "to"])]
        user: Option<String>,
        #[command(flatten)]
        range: RangeArgs,
    },
}

pub fn run(common: &Common, args: RecordsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::User { who, range, page } => {
            let (user, (from, to)) = (find_user(&app, &who)?.id, bounds(&app, &range)?);
            let listing = interpretation::list_of_user_between(&app.core, user, from, to, page.page())?;
            print_page(common, &app, ("records user", Some(user)), page.page(), &listing)
        }
        Action::Count { user, range } => count(common, &app, user.as_deref(), &range),
    }
}

fn bounds(app: &App, range: &RangeArgs) -> Result<(Timestamp, Timestamp)> {
    let (from, to) = range.bounds(app)?;
    Ok((from.unwrap_or(Timestamp(i64::MIN)), to.unwrap_or(Timestamp(i64::MAX))))
}

fn print_page(
    common: &Common,
    app: &App,
    (command, user): (&str, Option<UserId>),
    page: PageRequest,
    listing: &Paginated<CallRecord>,
) -> Result<()> {
    record_audit(app, command, user, cli_authority(None))?;
    let items: Vec<_> = listing.items.iter().map(json_of).collect();
    common.output(&page_json(page, &items, listing.total), || {
        let table = list_of(rows::CALL, &listing.items);
        format!("{table}\n{} of {}", listing.items.len(), listing.total)
    })
}

fn count(common: &Common, app: &App, user: Option<&str>, range: &RangeArgs) -> Result<()> {
    let user = user.map(|who| find_user(app, who)).transpose()?.map(|user| user.id);
    let count = if let Some(user) = user {
        interpretation::count_of_user(&app.core, user)?
    } else {
        let (from, to) = bounds(app, range)?;
        interpretation::count_between(&app.core, from, to)?
    };
    record_audit(app, "records count", user, cli_authority(None))?;
    common.output(&json!({ "count": count }), || count.to_string())
}

/// Formats a record without the question and the interpretation, which are personal data.
fn json_of(record: &CallRecord) -> Value {
    json!({
        "traceId": record.trace_id, "userId": record.user, "questionType": record.question_type,
        "status": record.status.name(), "provider": record.provider, "model": record.model,
        "promptVersion": record.prompt_version, "promptTokens": record.prompt_tokens,
        "completionTokens": record.completion_tokens, "firstTokenMs": record.first_token_ms,
        "durationMs": record.duration_ms, "cost": record.cost.map(|cost| cost.to_string()),
        "failover": record.failover, "errorClass": record.error_class, "finishReason": record.finish_reason,
        "createdAt": record.created_at, "finishedAt": record.finished_at,
    })
}
