//! `yarrow violations`: texts that were refused.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    Common, PageArgs, authority, choice::choice, confirm, find_user_id, paged, period, record, record_beginning, table,
    unknown,
};
use yarrow::{
    app::App,
    error::Result,
    ops::{
        moderation::engine::ContentType,
        violations::{self, Count, DAYS_TO_KEEP, FREQUENT_DAYS, FREQUENT_THRESHOLD, Filter, Recorded},
    },
    types::{Page, counted},
};

/// List and count texts that were refused, masked; delete old records of them.
#[derive(Debug, Args)]
pub struct ViolationsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print refusals, newest first.
    List {
        /// Only texts of this user: an id, a phone number or an email address.
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Only texts of this kind.
        #[arg(long, value_parser = choice!(ContentType))]
        content_type: Option<ContentType>,
        /// Only refusals of this type, such as `gambling`.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// Only refusals at this time or later, such as 2026-01-01.
        #[arg(long)]
        from: Option<String>,
        /// Only refusals before this time.
        #[arg(long)]
        to: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print one refusal.
    Show {
        /// The refusal's number, as `violations list` shows it.
        id: i64,
    },
    /// Print refusals by type and the users with most of them, or one user's refusals in figures.
    Stats {
        /// Only those of this user: an id, a phone number or an email address.
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Days to look back for frequent violators.
        #[arg(long, default_value_t = FREQUENT_DAYS, value_parser = clap::value_parser!(u32).range(1..))]
        days: u32,
        /// Refusals from which a user counts as one.
        #[arg(long, default_value_t = FREQUENT_THRESHOLD, value_parser = clap::value_parser!(u32).range(1..))]
        threshold: u32,
    },
    /// Delete old records.
    Cleanup {
        /// Days whose records stay.
        #[arg(long, default_value_t = DAYS_TO_KEEP, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days_to_keep: u32,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(common: &Common, args: ViolationsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::List { user, content_type, kind, from, to, page } => {
            let (from, to) = period(&app, from.as_deref(), to.as_deref())?;
            let filter = Filter {
                user: user.map(|who| find_user_id(&app, &who)).transpose()?,
                content_type: content_type.map(|kind| kind.name().to_owned()),
                violation_type: kind,
                from,
                to,
            };
            list(common, &app, &filter, page.page())
        }
        Action::Show { id } => show(common, &app, id),
        Action::Stats { user: Some(who), .. } => of_user(common, &app, &who),
        Action::Stats { user: None, days, threshold } => statistics(common, &app, days, threshold),
        Action::Cleanup { days_to_keep, yes } => clean_up(common, &app, days_to_keep, yes),
    }
}

fn list(common: &Common, app: &App, filter: &Filter, page: Page) -> Result<()> {
    let found = violations::list(app, filter, page)?;
    record(app, "violations list", filter.user, authority(None))?;
    let items = found.items.iter().map(json_of);
    let json = paged(page, &items.collect::<Vec<_>>(), found.total);
    common.answer(&json, || {
        let rows = found.items.iter().map(|row| {
            [
                row.at.to_string(),
                row.user.to_string(),
                row.content_type.clone(),
                row.violation_type.clone(),
                row.words.join(", "),
                row.masked_text.clone(),
                row.provider.clone(),
            ]
        });
        table(["at", "user", "text", "type", "words", "masked", "by"], rows)
    })
}

fn show(common: &Common, app: &App, id: i64) -> Result<()> {
    let found = violations::find(app, id).map_err(unknown("refusal", id))?;
    record(app, "violations show", Some(found.user), authority(None))?;
    common.answer(&json_of(&found), || {
        let rows = [
            ["violation", &found.id.to_string()],
            ["at", &found.at.to_string()],
            ["user", &found.user.to_string()],
            ["text", &found.content_type],
            ["type", &found.violation_type],
            ["words", &found.words.join(", ")],
            ["masked", &found.masked_text],
            ["by", &found.provider],
        ];
        table(["", ""], rows.map(|row| row.map(ToOwned::to_owned)))
    })
}

fn json_of(row: &Recorded) -> Value {
    json!({
        "id": row.id.to_string(), "userId": row.user, "contentType": row.content_type,
        "violationType": row.violation_type, "matchedWords": row.words, "maskedText": row.masked_text,
        "provider": row.provider, "createdAt": row.at,
    })
}

fn counts(counts: &[Count]) -> Vec<Value> {
    counts.iter().map(|count| json!({ "type": count.name, "count": count.count })).collect()
}

fn of_user(common: &Common, app: &App, who: &str) -> Result<()> {
    let user = find_user_id(app, who)?;
    let found = violations::of_user(app, user).map_err(unknown("user", who))?;
    record(app, "violations stats", Some(user), authority(None))?;
    let json = json!({
        "userId": user, "total": found.total, "types": counts(&found.types),
        "contentTypes": counts(&found.content_types), "firstAt": found.first_at, "lastAt": found.last_at,
    });
    common.answer(&json, || {
        let rows = found.types.iter().chain(&found.content_types);
        table(["refused", ""], rows.map(|count| [count.name.clone(), count.count.to_string()]))
    })
}

fn statistics(common: &Common, app: &App, days: u32, threshold: u32) -> Result<()> {
    let types = violations::types(app)?;
    let frequent = violations::frequent(app, days, threshold, Page { number: 1, size: 50 })?;
    record(app, "violations stats", None, authority(None))?;
    let users = frequent
        .items
        .iter()
        .map(|violator| json!({ "userId": violator.user, "count": violator.count, "lastAt": violator.last_at }));
    let json = json!({
        "types": counts(&types), "days": days, "threshold": threshold, "frequentViolators": users.collect::<Vec<_>>(),
    });
    common.answer(&json, || {
        let kinds = table(["type", "refused"], types.iter().map(|kind| [kind.name.clone(), kind.count.to_string()]));
        let rows = frequent
            .items
            .iter()
            .map(|violator| [violator.user.to_string(), violator.count.to_string(), violator.last_at.to_string()]);
        format!("{kinds}\n{}", table(["user", "refused", "last at"], rows))
    })
}

fn clean_up(common: &Common, app: &App, days_to_keep: u32, yes: bool) -> Result<()> {
    let old = violations::older_than(app, days_to_keep)?;
    let (records, days) = (counted(old, "record", "records"), counted(days_to_keep, "day", "days"));
    confirm(yes, &format!("Delete {records} older than {days}?"))?;
    record_beginning(app, "violations cleanup", None, authority(None))?;
    let deleted = violations::clean_up(app, days_to_keep)?;
    record(app, "violations cleanup", None, authority(Some(format!("older than {days}: {deleted}"))))?;
    common.answer(&json!({ "deleted": deleted, "daysToKeep": days_to_keep }), || {
        format!("{} deleted", counted(deleted, "record", "records"))
    })
}
