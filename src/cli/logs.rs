//! `yarrow logs`: the network log, and who asks too much.

use std::{net::IpAddr, time::Duration};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, PageArgs, authority, confirm, find_user_id, paged, period, record, record_beginning, table};
use yarrow::{
    app::App,
    error::Result,
    ops::access_log::{
        self,
        search::{self, Filter, Logged},
        tallies,
    },
    types::{Page, Timestamp, UserId, counted, decimal_milliseconds},
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

/// A time, from its start until before its end.
#[derive(Debug, Args)]
struct RangeArgs {
    /// This time or later, such as 2026-01-31 or 2026-01-31T08:00:00Z.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
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
        let (from, to) = period(app, self.from.as_deref(), self.to.as_deref())?;
        let (from, to) = (from.unwrap_or(Timestamp(0)), to.unwrap_or(Timestamp(i64::MAX)));
        Ok(Filter { from, to, ..Filter::default() })
    }

    fn window(&self, app: &App, usual: Duration) -> Result<(Timestamp, Timestamp)> {
        let (from, to) = period(app, self.from.as_deref(), self.to.as_deref())?;
        tallies::window(("from", from), ("to", to), usual, app.clock.now())
    }
}

fn list(common: &Common, app: &App, command: &str, user: Option<UserId>, filter: &Filter, page: Page) -> Result<()> {
    let found = search::list(app, filter, page)?;
    record(app, command, user, authority(None))?;
    let items: Vec<_> = found.items.iter().map(json_of).collect();
    common.answer(&paged(page, &items, found.total), || {
        format!("{}\n{} of {}", table_of(&found.items), found.items.len(), found.total)
    })
}

pub fn table_of(entries: &[Logged]) -> String {
    let rows = entries.iter().map(|entry| {
        [
            entry.at.to_string(),
            entry.user.map_or_else(String::new, |user| user.to_string()),
            entry.client_ip.clone(),
            format!("{} {}", entry.method, entry.route.as_deref().unwrap_or("(no such endpoint)")),
            entry.status.to_string(),
            format!("{}.{:03}", entry.duration_us / 1000, entry.duration_us % 1000),
            entry.request_id.clone(),
        ]
    });
    table(["at", "user", "address", "request", "status", "ms", "request id"], rows)
}

pub fn json_of(entry: &Logged) -> Value {
    json!({
        "id": entry.id.to_string(), "time": entry.at, "userId": entry.user, "clientIp": entry.client_ip, "method": entry.method,
        "route": entry.route, "status": entry.status, "success": entry.is_success(),
        "durationMs": decimal_milliseconds(entry.duration()), "requestId": entry.request_id,
    })
}

fn count(common: &Common, app: &App, range: &RangeArgs, page: Page) -> Result<()> {
    let (from, to) = range.window(app, tallies::COUNTED)?;
    let all = tallies::count(app, from, to)?;
    record(app, "logs count", None, authority(None))?;
    let total = all.len();
    let shown: Vec<_> = tallies::on_page(all, page).collect();
    let items: Vec<_> = shown
        .iter()
        .map(|tally| {
            json!({
                "clientIp": tally.client_ip, "count": tally.requests, "failed": tally.failed, "users": tally.users,
                "firstAt": tally.first_at, "lastAt": tally.last_at,
            })
        })
        .collect();
    common.answer(&paged_between((from, to), page, &items, total), || {
        let rows = shown.iter().map(|tally| {
            [
                tally.client_ip.clone(),
                tally.requests.to_string(),
                tally.failed.to_string(),
                tally.users.to_string(),
                tally.last_at.to_string(),
            ]
        });
        table(["address", "requests", "failed", "users", "last"], rows)
    })
}

fn suspicious(common: &Common, app: &App, range: &RangeArgs, page: Page) -> Result<()> {
    let (from, to) = range.window(app, tallies::SUSPECTED)?;
    let all = tallies::suspicious(app, from, to)?;
    record(app, "logs suspicious", None, authority(None))?;
    let total = all.len();
    let shown: Vec<_> = tallies::on_page(all, page).collect();
    let items: Vec<_> = shown
        .iter()
        .map(|suspect| {
            let reasons = suspect
                .reasons
                .iter()
                .map(|reason| json!({ "code": reason.code, "value": reason.value, "threshold": reason.threshold }));
            json!({
                "clientIp": suspect.tally.client_ip, "score": suspect.score, "reasons": reasons.collect::<Vec<_>>(),
                "requests": suspect.tally.requests, "failed": suspect.tally.failed,
                "failedSignIns": suspect.tally.failed_sign_ins, "users": suspect.tally.users,
                "busiestMinute": suspect.tally.busiest_minute, "firstAt": suspect.tally.first_at,
                "lastAt": suspect.tally.last_at,
            })
        })
        .collect();
    common.answer(&paged_between((from, to), page, &items, total), || {
        let rows = shown.iter().map(|suspect| {
            let reasons = suspect.reasons.iter().map(|reason| format!("{} {}", reason.code, reason.value));
            [
                suspect.tally.client_ip.clone(),
                suspect.score.to_string(),
                reasons.collect::<Vec<_>>().join(", "),
                suspect.tally.requests.to_string(),
                suspect.tally.last_at.to_string(),
            ]
        });
        table(["address", "score", "reasons", "requests", "last"], rows)
    })
}

fn clean_up(common: &Common, app: &App, days_to_keep: Option<u32>, yes: bool) -> Result<()> {
    let age = days_to_keep.map_or(app.config.retention.access_log, |days| Duration::from_hours(24 * u64::from(days)));
    let before = app.clock.now().minus(age);
    confirm(yes, &format!("Delete all entries of the network log before {before}?"))?;
    record_beginning(app, "logs cleanup", None, authority(None))?;
    let deleted = access_log::clean_up(app, age)?;
    record(app, "logs cleanup", None, authority(None))?;
    common.answer(&json!({ "deleted": deleted, "before": before }), || {
        format!("{} deleted", counted(deleted, "entry", "entries"))
    })
}

/// One page of what was counted in a time, in the shape that it has over HTTP.
fn paged_between((from, to): (Timestamp, Timestamp), page: Page, items: &[Value], total: usize) -> Value {
    let mut json = paged(page, items, i64::try_from(total).unwrap_or(i64::MAX));
    json["from"] = json!(from);
    json["to"] = json!(to);
    json
}
