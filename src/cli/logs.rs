//! `yarrow logs`: the network log and suspicious clients.

use std::{net::IpAddr, time::Duration};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::{
    Common, PageArgs, RangeArgs, cli_authority, confirm, find_user_id, or_empty, page_json, print, record_audit,
    record_audit_start, row, table,
};
use yarrow::{
    app::App,
    domain::operations::network_log::{
        self,
        search::{self, Filter, Logged},
        tallies::{self, Suspect},
    },
    error::Result,
    http::responses::{ClientCount, LoggedRequest, SuspiciousClient},
    types::{PageRequest, Timestamp, UserId, pluralize},
};

/// Search the network log, find suspicious addresses, delete old entries
#[derive(Debug, Args)]
pub struct LogsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the requests of a user, newest first
    User {
        /// User: id, phone number or email address
        who: String,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print the requests from a client address, newest first
    Ip {
        /// Client address
        address: IpAddr,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print all requests of a time range, newest first
    Range {
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print failed requests, newest first
    Failed {
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Count the requests of each address; default: the last 24 hours
    Count {
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print addresses with unusual activity; default: the last hour
    ///
    /// The thresholds are the settings of section `suspicion`.
    Suspicious {
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Delete old entries
    Cleanup {
        /// Age in days from which entries are deleted; default: setting `retention.access_log`
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days_to_keep: Option<u32>,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(common: &Common, args: LogsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::User { who, range, page } => {
            let user = find_user_id(&app, &who)?;
            let filter = Filter { user: Some(user), ..range.filter(&app)? };
            list(common, &app, "logs user", Some(user), &filter, page.page())
        }
        Action::Ip { address, range, page } => {
            let client_ip = Some(address.to_canonical().to_string());
            list(common, &app, "logs ip", None, &Filter { client_ip, ..range.filter(&app)? }, page.page())
        }
        Action::Range { range, page } => list(common, &app, "logs range", None, &range.filter(&app)?, page.page()),
        Action::Failed { range, page } => {
            let filter = Filter { failed_only: true, ..range.filter(&app)? };
            list(common, &app, "logs failed", None, &filter, page.page())
        }
        Action::Count { range, page } => count(common, &app, &range, page.page()),
        Action::Suspicious { range, page } => suspicious(common, &app, &range, page.page()),
        Action::Cleanup { days_to_keep, yes } => clean_up(common, &app, days_to_keep, yes),
    }
}

impl RangeArgs {
    fn filter(&self, app: &App) -> Result<Filter> {
        let (from, to) = self.bounds(app)?;
        let (from, to) = (from.unwrap_or(Timestamp(0)), to.unwrap_or(Timestamp(i64::MAX)));
        Ok(Filter { from, to, ..Filter::default() })
    }

    fn window(&self, app: &App, default: Duration) -> Result<(Timestamp, Timestamp)> {
        let (from, to) = self.bounds(app)?;
        tallies::window(("from", from), ("to", to), default, app.clock.now())
    }
}

fn list(
    common: &Common,
    app: &App,
    command: &str,
    user: Option<UserId>,
    filter: &Filter,
    page: PageRequest,
) -> Result<()> {
    let listing = search::list(app, filter, page)?;
    record_audit(app, command, user, cli_authority(None))?;
    common.output_page::<_, LoggedRequest>(page, listing, |listing| {
        format!("{}\n{} of {}", table_of(&listing.items), listing.items.len(), listing.total)
    })
}

pub fn table_of(entries: &[Logged]) -> String {
    let rows = entries.iter().map(|entry| {
        let request = format!("{} {}", entry.method, entry.route.as_deref().unwrap_or("(unknown endpoint)"));
        let milliseconds = format!("{}.{:03}", entry.duration_us / 1000, entry.duration_us % 1000);
        row![entry.at, or_empty(entry.user), entry.client_ip, request, entry.status, milliseconds, entry.request_id]
    });
    table(["at", "user", "address", "request", "status", "ms", "request id"], rows)
}

fn count(common: &Common, app: &App, range: &RangeArgs, page: PageRequest) -> Result<()> {
    let (from, to) = range.window(app, tallies::COUNTED)?;
    let all = tallies::count(app, from, to)?;
    record_audit(app, "logs count", None, cli_authority(None))?;
    output_counts::<_, ClientCount>(common, (from, to), page, all, |rows| {
        let rows =
            rows.iter().map(|tally| row![tally.client_ip, tally.requests, tally.failed, tally.users, tally.last_at]);
        table(["address", "requests", "failed", "users", "last"], rows)
    })
}

fn suspicious(common: &Common, app: &App, range: &RangeArgs, page: PageRequest) -> Result<()> {
    let (from, to) = range.window(app, tallies::SUSPECTED)?;
    let all = tallies::suspicious(app, from, to)?;
    record_audit(app, "logs suspicious", None, cli_authority(None))?;
    output_counts::<_, SuspiciousClient>(common, (from, to), page, all, |rows| {
        let rows = rows.iter().map(|Suspect { tally, score, reasons }| {
            let reasons = reasons.iter().map(|reason| format!("{} {}", reason.code, reason.value));
            row![tally.client_ip, score, reasons.collect::<Vec<_>>().join(", "), tally.requests, tally.last_at]
        });
        table(["address", "score", "reasons", "requests", "last"], rows)
    })
}

fn clean_up(common: &Common, app: &App, days_to_keep: Option<u32>, yes: bool) -> Result<()> {
    let age = days_to_keep.map_or(app.config.retention.access_log, |days| Duration::from_hours(24 * u64::from(days)));
    let before = app.clock.now().minus(age);
    confirm(yes, &format!("Delete all entries of the network log before {before}?"))?;
    record_audit_start(app, "logs cleanup", None, cli_authority(None))?;
    let deleted = network_log::clean_up(app, age)?;
    record_audit(app, "logs cleanup", None, cli_authority(None))?;
    common.output(&json!({ "deleted": deleted, "before": before }), || {
        format!("{} deleted", pluralize(deleted, "entry", "entries"))
    })
}

/// Prints one page of counts of a time range. Its JSON is that of the HTTP API.
fn output_counts<R, T: From<R> + Serialize>(
    common: &Common,
    (from, to): (Timestamp, Timestamp),
    page: PageRequest,
    all: Vec<R>,
    text: impl FnOnce(&[R]) -> String,
) -> Result<()> {
    let total = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let rows: Vec<_> = tallies::on_page(all, page).collect();
    if !common.json {
        return print(&text(&rows));
    }
    let items: Vec<_> = rows.into_iter().map(T::from).collect();
    let mut json = page_json(page, &items, total);
    (json["from"], json["to"]) = (json!(from), json!(to));
    print(&json.to_string())
}
