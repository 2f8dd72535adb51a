//! `yarrow logs`: the network log, and who asks too much.

use std::{net::IpAddr, time::Duration};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::{
    Common, PageArgs, RangeArgs, authority, blank, confirm, find_user_id, paged, print, record, record_beginning, row,
    table,
};
use yarrow::{
    app::App,
    domain::operations::network_log::{
        self,
        search::{self, Filter, Logged},
        tallies::{self, Suspect},
    },
    error::Result,
    http::answers::{ClientCount, LoggedRequest, SuspiciousClient},
    types::{Page, Timestamp, UserId, counted},
};

/// Search the network log, find suspicious addresses, delete old entries.
#[derive(Debug, Args)]
pub struct LogsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the requests of a user, newest first.
    User {
        /// An id, a phone number or an email address.
        who: String,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print the requests from an address, newest first.
    Ip {
        /// The client's address.
        address: IpAddr,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print all requests of a time, newest first.
    Range {
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print the requests that failed, newest first.
    Failed {
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Count the requests of each address; those of the last 24 hours, if no time is said.
    Count {
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print addresses that do more of something than people do; in the last hour, if no time is said.
    Suspicious {
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Delete old entries.
    Cleanup {
        /// Days to keep; without it, the retention of the configuration counts.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days_to_keep: Option<u32>,
        /// Do not ask.
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

    fn window(&self, app: &App, usual: Duration) -> Result<(Timestamp, Timestamp)> {
        let (from, to) = self.bounds(app)?;
        tallies::window(("from", from), ("to", to), usual, app.clock.now())
    }
}

fn list(common: &Common, app: &App, command: &str, user: Option<UserId>, filter: &Filter, page: Page) -> Result<()> {
    let found = search::list(app, filter, page)?;
    record(app, command, user, authority(None))?;
    common.answer_page::<_, LoggedRequest>(page, found, |found| {
        format!("{}\n{} of {}", table_of(&found.items), found.items.len(), found.total)
    })
}

pub fn table_of(entries: &[Logged]) -> String {
    let rows = entries.iter().map(|entry| {
        let request = format!("{} {}", entry.method, entry.route.as_deref().unwrap_or("(no such endpoint)"));
        let milliseconds = format!("{}.{:03}", entry.duration_us / 1000, entry.duration_us % 1000);
        row![entry.at, blank(entry.user), entry.client_ip, request, entry.status, milliseconds, entry.request_id]
    });
    table(["at", "user", "address", "request", "status", "ms", "request id"], rows)
}

fn count(common: &Common, app: &App, range: &RangeArgs, page: Page) -> Result<()> {
    let (from, to) = range.window(app, tallies::COUNTED)?;
    let all = tallies::count(app, from, to)?;
    record(app, "logs count", None, authority(None))?;
    answer_between::<_, ClientCount>(common, (from, to), page, all, |shown| {
        let rows =
            shown.iter().map(|tally| row![tally.client_ip, tally.requests, tally.failed, tally.users, tally.last_at]);
        table(["address", "requests", "failed", "users", "last"], rows)
    })
}

fn suspicious(common: &Common, app: &App, range: &RangeArgs, page: Page) -> Result<()> {
    let (from, to) = range.window(app, tallies::SUSPECTED)?;
    let all = tallies::suspicious(app, from, to)?;
    record(app, "logs suspicious", None, authority(None))?;
    answer_between::<_, SuspiciousClient>(common, (from, to), page, all, |shown| {
        let rows = shown.iter().map(|Suspect { tally, score, reasons }| {
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
    record_beginning(app, "logs cleanup", None, authority(None))?;
    let deleted = network_log::clean_up(app, age)?;
    record(app, "logs cleanup", None, authority(None))?;
    common.answer(&json!({ "deleted": deleted, "before": before }), || {
        format!("{} deleted", counted(deleted, "entry", "entries"))
    })
}

/// Prints one page of what was counted in a time. In JSON it has the shape that it has over HTTP.
fn answer_between<R, T: From<R> + Serialize>(
    common: &Common,
    (from, to): (Timestamp, Timestamp),
    page: Page,
    all: Vec<R>,
    text: impl FnOnce(&[R]) -> String,
) -> Result<()> {
    let total = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let shown: Vec<_> = tallies::on_page(all, page).collect();
    if !common.json {
        return print(&text(&shown));
    }
    let items: Vec<_> = shown.into_iter().map(T::from).collect();
    let mut json = paged(page, &items, total);
    (json["from"], json["to"]) = (json!(from), json!(to));
    print(&json.to_string())
}
