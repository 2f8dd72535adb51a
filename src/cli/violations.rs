//! `yarrow violations`: texts rejected by moderation.

mod review;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    Common, PageArgs, RangeArgs, choice::choice, cli_authority, find_user_id, key_values, list_of, name_missing,
    or_empty, record_audit, record_audit_start, row, table,
};
use crate::{
    app::App,
    domain::moderation::{
        engine::ContentType,
        violations::{
            self, DAYS_TO_KEEP, FREQUENT_DAYS, FREQUENT_THRESHOLD, NameCount, ViolationQuery, ViolationRecord,
        },
    },
    error::Result,
    http::{
        console::views::pages::moderation::{FREQUENT, VIOLATION},
        responses::{ShownViolation, UserViolations},
    },
    types::{PageRequest, pluralize},
};

/// List and count texts rejected by moderation; delete old records
#[derive(Debug, Args)]
pub struct ViolationsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print violations with masked texts, newest first
    List {
        /// Only of this user: id, phone number or email address
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Only texts of this content type
        #[arg(long, value_parser = choice!(ContentType))]
        content_type: Option<ContentType>,
        /// Only violations of this type, such as `gambling`
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print one violation
    Show {
        /// Violation id, from `yarrow violations list`
        id: i64,
    },
    /// Count violations by type and list frequent violators
    Stats {
        /// Only of this user: id, phone number or email address
        #[arg(long, value_name = "WHO", conflicts_with_all = ["days", "threshold"])]
        user: Option<String>,
        /// Number of days in which frequent violations are counted
        #[arg(long, default_value_t = FREQUENT_DAYS, value_parser = clap::value_parser!(u32).range(1..))]
        days: u32,
        /// Number of violations that make a frequent violator
        #[arg(long, default_value_t = FREQUENT_THRESHOLD, value_parser = clap::value_parser!(u32).range(1..))]
        threshold: u32,
    },
    /// List, decide and undo reviews of texts that passed
    Review {
        #[command(subcommand)]
        action: review::ReviewAction,
    },
    /// Acquit a rejected text: suspension rules no longer count it
    Acquit(review::AcquitArgs),
    /// Delete old violations
    Cleanup {
        /// Age in days from which violations are deleted
        #[arg(long, default_value_t = DAYS_TO_KEEP, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days_to_keep: u32,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(common: &Common, args: ViolationsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::List { user, content_type, kind, range, page } => {
            let (from, to) = range.bounds(&app)?;
            let filter = ViolationQuery {
                user: user.map(|who| find_user_id(&app, &who)).transpose()?,
                content_type: content_type.map(|kind| kind.name().to_owned()),
                violation_type: kind,
                from,
                to,
            };
            list(common, &app, &filter, page.page())
        }
        Action::Review { action } => review::run(common, &app, action),
        Action::Acquit(args) => review::acquit(common, &app, args),
        Action::Show { id } => show(common, &app, id),
        Action::Stats { user: Some(who), .. } => of_user(common, &app, &who),
        Action::Stats { user: None, days, threshold } => statistics(common, &app, days, threshold),
        Action::Cleanup { days_to_keep, yes } => clean_up(common, &app, days_to_keep, yes),
    }
}

fn list(common: &Common, app: &App, filter: &ViolationQuery, page: PageRequest) -> Result<()> {
    let listing = violations::list(&app.core, filter, page)?;
    record_audit(app, "violations list", filter.user, cli_authority(None))?;
    common.output_list::<_, ShownViolation>(page, listing, VIOLATION)
}

fn show(common: &Common, app: &App, id: i64) -> Result<()> {
    let violation = violations::find(&app.core, id).map_err(name_missing("Violation", id))?;
    record_audit(app, "violations show", Some(violation.user), cli_authority(None))?;
    common.output(&ShownViolation::from(violation.clone()), || {
        let ViolationRecord {
            id,
            user,
            content_type,
            violation_type,
            words,
            masked_text,
            provider,
            at,
            acquitted_at,
            ..
        } = violation;
        key_values(
            "",
            [
                ("violation", id.to_string()),
                ("at", at.to_string()),
                ("user", user.to_string()),
                ("content type", content_type),
                ("type", violation_type),
                ("words", words.join(", ")),
                ("masked text", masked_text),
                ("detected by", provider),
                ("acquitted", or_empty(acquitted_at)),
            ],
        )
    })
}

fn of_user(common: &Common, app: &App, who: &str) -> Result<()> {
    let user = find_user_id(app, who)?;
    let counts = violations::of_user(&app.core, user).map_err(name_missing("User", who))?;
    record_audit(app, "violations stats", Some(user), cli_authority(None))?;
    common.output(&UserViolations::of(user, counts.clone()), || {
        let rows = counts.types.iter().chain(&counts.content_types);
        table(["violations", ""], rows.map(|NameCount { name, count }| row![name, count]))
    })
}

fn statistics(common: &Common, app: &App, days: u32, threshold: u32) -> Result<()> {
    let types = violations::types(&app.core)?;
    let frequent = violations::frequent(&app.core, days, threshold, PageRequest::of_newest(50))?;
    record_audit(app, "violations stats", None, cli_authority(None))?;
    let json = json!({
        "types": types, "days": days, "threshold": threshold,
        "frequentViolators": frequent.items,
    });
    common.output(&json, || {
        let kinds = table(["type", "violations"], types.iter().map(|NameCount { name, count }| row![name, count]));
        format!("{kinds}\n{}", list_of(FREQUENT, &frequent.items))
    })
}

fn clean_up(common: &Common, app: &App, days_to_keep: u32, yes: bool) -> Result<()> {
    let old = violations::older_than(&app.core, days_to_keep)?;
    let (records, days) = (pluralize(old, "record", "records"), pluralize(days_to_keep, "day", "days"));
    common.confirm(yes, &format!("Delete {records} older than {days}?"))?;
    record_audit_start(app, "violations cleanup", None, cli_authority(None))?;
    let deleted = violations::clean_up(&app.core, days_to_keep)?;
    record_audit(app, "violations cleanup", None, cli_authority(Some(format!("older than {days}: {deleted}"))))?;
    common.output(&json!({ "deleted": deleted, "daysToKeep": days_to_keep }), || {
        format!("{} deleted", pluralize(deleted, "record", "records"))
    })
}
