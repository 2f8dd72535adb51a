//! `yarrow records`: the records of interpretations by the language model.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    Common, PageArgs, RangeArgs, cli_authority, find_user, key_values, list_of, name_missing, page_json, record_audit,
};
use crate::{
    app::App,
    domain::divination::{
        budget::SLOW_CALL_MS,
        interpretation::{self, CallRecord, Rating},
    },
    error::Result,
    http::{console::views::pages::rows, responses::RatingResponse},
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
    /// Print one record with its question and interpretation
    Show {
        /// Trace id from the response, 32 hexadecimal digits
        trace: String,
    },
    /// Print failed and interrupted interpretations, newest first
    Failed {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print slow interpretations, newest first
    Slow {
        /// Shortest duration in milliseconds
        #[arg(long, default_value_t = SLOW_CALL_MS)]
        duration_ms: u32,
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
        Action::Show { trace } => show(common, &app, &trace),
        Action::Failed { page } => {
            let listing = interpretation::list_failed(&app.core, page.page())?;
            print_page(common, &app, ("records failed", None), page.page(), &listing)
        }
        Action::Slow { duration_ms, page } => {
            let slow = Duration::from_millis(duration_ms.into());
            let listing = interpretation::list_slow(&app.core, slow, page.page())?;
            print_page(common, &app, ("records slow", None), page.page(), &listing)
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

fn show(common: &Common, app: &App, trace: &str) -> Result<()> {
    let record = interpretation::find_by_trace(&app.core, None, trace).map_err(name_missing("Record", trace))?;
    record_audit(app, "records show", Some(record.user), cli_authority(None))?;
    let mut json = json_of(&record);
    json["question"] = json!(record.question);
    json["divinationData"] = json!(record.divination_data);
    json["result"] = json!(record.result);
    json["rating"] = json!(record.rating.clone().map(RatingResponse::from));
    common.output(&json, || {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".into());
        let number = |number: Option<i64>| or_none(number.map(|number| number.to_string()));
        let head = [
            ("trace", record.trace_id.clone()),
            ("user", record.user.to_string()),
            ("at", record.created_at.to_string()),
            ("status", record.status.name().to_owned()),
            ("model", format!("{} ({})", record.model, record.provider)),
            ("prompt version", record.prompt_version.clone()),
            ("ms", number(record.duration_ms)),
            ("ms to first token", number(record.first_token_ms)),
            ("tokens in", number(record.prompt_tokens)),
            ("tokens out", number(record.completion_tokens)),
            ("cost", or_none(record.cost.map(|cost| cost.to_string()))),
            ("finish reason", or_none(record.finish_reason.clone())),
            ("error", or_none(record.error_class.clone())),
            ("failover reason", or_none(record.failover.clone())),
            ("rating", or_none(record.rating.as_ref().map(described_rating))),
            ("question type", or_none(record.question_type.clone())),
            ("question", record.question.clone()),
        ];
        let head = key_values("", head);
        format!("{head}\n\n{}", record.result.as_deref().unwrap_or("No interpretation."))
    })
}

fn described_rating(rating: &Rating) -> String {
    let verdict = if rating.is_helpful { "helpful" } else { "not helpful" };
    let note = rating.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    format!("{verdict}{note} ({})", rating.rated_at)
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
