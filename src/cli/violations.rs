//! `yarrow violations`: texts that were refused.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    Common, PageArgs, RangeArgs, authority, choice::choice, confirm, facts, find_user_id, record, record_beginning,
    row, shown, table, unknown,
};
use yarrow::{
    app::App,
    domain::moderation::{
        engine::ContentType,
        violations::{self, Count, DAYS_TO_KEEP, FREQUENT_DAYS, FREQUENT_THRESHOLD, Filter, Recorded, Violator},
    },
    error::Result,
    http::answers::{FrequentViolator, ShownViolation, UserViolations, ViolationCount},
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
        #[command(flatten)]
        range: RangeArgs,
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
        Action::List { user, content_type, kind, range, page } => {
            let (from, to) = range.bounds(&app)?;
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
    common.answer_page::<_, ShownViolation>(page, found, |found| {
        let rows = found.items.iter().map(|row| {
            let Recorded { at, user, content_type, violation_type, words, masked_text, provider, .. } = row;
            row![at, user, content_type, violation_type, words.join(", "), masked_text, provider]
        });
        table(["at", "user", "text", "type", "words", "masked", "by"], rows)
    })
}

fn show(common: &Common, app: &App, id: i64) -> Result<()> {
    let found = violations::find(app, id).map_err(unknown("refusal", id))?;
    record(app, "violations show", Some(found.user), authority(None))?;
    common.answer(&ShownViolation::from(found.clone()), || {
        let Recorded { id, user, content_type, violation_type, words, masked_text, provider, at } = found;
        facts(
            "",
            [
                ("violation", id.to_string()),
                ("at", at.to_string()),
                ("user", user.to_string()),
                ("text", content_type),
                ("type", violation_type),
                ("words", words.join(", ")),
                ("masked", masked_text),
                ("by", provider),
            ],
        )
    })
}

fn of_user(common: &Common, app: &App, who: &str) -> Result<()> {
    let user = find_user_id(app, who)?;
    let found = violations::of_user(app, user).map_err(unknown("user", who))?;
    record(app, "violations stats", Some(user), authority(None))?;
    common.answer(&UserViolations::of(user, found.clone()), || {
        let rows = found.types.iter().chain(&found.content_types);
        table(["refused", ""], rows.map(|Count { name, count }| row![name, count]))
    })
}

fn statistics(common: &Common, app: &App, days: u32, threshold: u32) -> Result<()> {
    let types = violations::types(app)?;
    let frequent = violations::frequent(app, days, threshold, Page { number: 1, size: 50 })?;
    record(app, "violations stats", None, authority(None))?;
    let json = json!({
        "types": shown::<_, ViolationCount>(&types), "days": days, "threshold": threshold,
        "frequentViolators": shown::<_, FrequentViolator>(&frequent.items),
    });
    common.answer(&json, || {
        let kinds = table(["type", "refused"], types.iter().map(|Count { name, count }| row![name, count]));
        let rows = frequent.items.iter().map(|Violator { user, count, last_at }| row![user, count, last_at]);
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
