//! `yarrow records`: what the language model was asked for castings, and what came of it.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, PageArgs, RangeArgs, authority, blank, facts, find_user, paged, record, row, table, unknown};
use yarrow::{
    app::App,
    domain::divination::interpretation::{self, Record},
    error::Result,
    types::{Listing, Page, Timestamp, UserId},
};

/// Look at the records of interpretations.
#[derive(Debug, Args)]
pub struct RecordsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the records of a user, newest first.
    User {
        /// An id, a phone number or an email address.
        who: String,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print everything that is known of one interpretation.
    Show {
        /// The trace id that it answered with.
        trace: String,
    },
    /// Print what failed or was cut off, newest first.
    Failed {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print what took long, newest first.
    Slow {
        /// Milliseconds from which a call is slow.
        #[arg(long, default_value_t = 10_000)]
        duration_ms: u32,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Count interpretations: a user's, or all.
    Count {
        /// Only those of this user, of all time: an id, a phone number or an email address.
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
            let found = interpretation::list_of_user_between(&app, user, from, to, page.page())?;
            answer(common, &app, ("records user", Some(user)), page.page(), &found)
        }
        Action::Show { trace } => show(common, &app, &trace),
        Action::Failed { page } => {
            let found = interpretation::list_failed(&app, page.page())?;
            answer(common, &app, ("records failed", None), page.page(), &found)
        }
        Action::Slow { duration_ms, page } => {
            let slow = Duration::from_millis(duration_ms.into());
            let found = interpretation::list_slow(&app, slow, page.page())?;
            answer(common, &app, ("records slow", None), page.page(), &found)
        }
        Action::Count { user, range } => count(common, &app, user.as_deref(), &range),
    }
}

fn bounds(app: &App, range: &RangeArgs) -> Result<(Timestamp, Timestamp)> {
    let (from, to) = range.bounds(app)?;
    Ok((from.unwrap_or(Timestamp(i64::MIN)), to.unwrap_or(Timestamp(i64::MAX))))
}

fn answer(
    common: &Common,
    app: &App,
    (command, user): (&str, Option<UserId>),
    page: Page,
    found: &Listing<Record>,
) -> Result<()> {
    record(app, command, user, authority(None))?;
    let items: Vec<_> = found.items.iter().map(json_of).collect();
    common.answer(&paged(page, &items, found.total), || {
        let rows = found.items.iter().map(|record| {
            let (ms, fault) = (blank(record.duration_ms), blank(record.error_class.as_ref()));
            row![record.created_at, record.user, record.trace_id, record.status.name(), record.model, ms, fault]
        });
        let table = table(["at", "user", "trace", "status", "model", "ms", "error"], rows);
        format!("{table}\n{} of {}", found.items.len(), found.total)
    })
}

fn show(common: &Common, app: &App, trace: &str) -> Result<()> {
    let found = interpretation::find_by_trace(app, None, trace).map_err(unknown("record", trace))?;
    record(app, "records show", Some(found.user), authority(None))?;
    let mut json = json_of(&found);
    json["question"] = json!(found.question);
    json["divinationData"] = json!(found.divination_data);
    json["result"] = json!(found.result);
    common.answer(&json, || {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".into());
        let number = |number: Option<i64>| or_none(number.map(|number| number.to_string()));
        let head = [
            ("trace", found.trace_id.clone()),
            ("user", found.user.to_string()),
            ("at", found.created_at.to_string()),
            ("status", found.status.name().to_owned()),
            ("model", format!("{} by {}", found.model, found.provider)),
            ("instructions", found.prompt_version.clone()),
            ("ms", number(found.duration_ms)),
            ("ms to the first piece", number(found.first_token_ms)),
            ("tokens in", number(found.prompt_tokens)),
            ("tokens out", number(found.completion_tokens)),
            ("cost", or_none(found.cost.map(|cost| cost.to_string()))),
            ("ended by", or_none(found.finish_reason.clone())),
            ("error", or_none(found.error_class.clone())),
            ("first model failed by", or_none(found.failover.clone())),
            ("kind of question", or_none(found.question_type.clone())),
            ("question", found.question.clone()),
        ];
        let head = facts("", head);
        format!("{head}\n\n{}", found.result.as_deref().unwrap_or("There is no answer."))
    })
}

fn count(common: &Common, app: &App, user: Option<&str>, range: &RangeArgs) -> Result<()> {
    let user = user.map(|who| find_user(app, who)).transpose()?.map(|user| user.id);
    let count = if let Some(user) = user {
        interpretation::count_of_user(app, user)?
    } else {
        let (from, to) = bounds(app, range)?;
        interpretation::count_between(app, from, to)?
    };
    record(app, "records count", user, authority(None))?;
    common.answer(&json!({ "count": count }), || count.to_string())
}

/// A record without what was asked and answered, which is a user's own.
fn json_of(record: &Record) -> Value {
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
