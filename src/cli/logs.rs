//! `yarrow logs`: the network log, suspicious clients and the server's own log.

use std::{net::IpAddr, time::Duration};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Common, PageArgs, RangeArgs, choice::choice, cli_authority, find_user_id, http_rows, list_of, page_json,
    record_audit, record_audit_start, row, table,
};
use crate::{
    app::App,
    domain::operations::network_log::{
        self,
        clients::{self, Suspect},
        search::{self, COUNTED, Filter, Subject},
        unlisted::{self, UnlistedRequests},
    },
    domain::operations::server_log::{self, LogLevel, LogQuery, StoredLogEvent},
    error::Result,
    http::{
        console::views::pages::rows,
        responses::{ClientCount, LogEventList, LoggedRequestPage, SuspiciousClient, UnlistedCount},
    },
    types::{PageRequest, Paginated, Timestamp, UserId, pluralize},
};

/// Search the network log and the server's log, find suspicious addresses, delete old entries
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
        narrowed: NarrowedArgs,
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
        narrowed: NarrowedArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print all requests of a time range, newest first
    Range {
        /// Only requests with this id
        #[arg(long, value_name = "ID")]
        request_id: Option<String>,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        narrowed: NarrowedArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print failed requests, newest first
    Failed {
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        narrowed: NarrowedArgs,
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
    /// Print the newest events of the server's own log, newest first
    ///
    /// The server stores them twice a second, the newest 10 000, as its standard error shows them.
    Server {
        /// Minimum level
        #[arg(long, value_parser = choice!(LogLevel))]
        level: Option<LogLevel>,
        /// Module path or prefix, such as `http` or `domain::money`
        #[arg(long)]
        target: Option<String>,
        /// Part of the message or of a field such as `status=503`
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Id of the request
        #[arg(long, value_name = "ID")]
        request: Option<String>,
        /// Trace id of the model call
        #[arg(long, value_name = "ID")]
        trace: Option<String>,
        /// Only events before this id
        #[arg(long, value_name = "ID")]
        before: Option<i64>,
        /// Number of events
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        size: u32,
    },
    /// Delete old entries of the network log
    Cleanup {
        /// Age in days from which entries are deleted; default: setting `retention.access_log`
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days_to_keep: Option<u32>,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// Filters beside the subject.
#[derive(Debug, Args)]
struct NarrowedArgs {
    /// Only requests of this endpoint's template, such as /coin/consume
    #[arg(long, value_name = "TEMPLATE")]
    route: Option<String>,
    /// Only requests with this status
    #[arg(long, value_parser = clap::value_parser!(u16).range(100..600))]
    status: Option<u16>,
}

pub fn run(common: &Common, args: LogsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::User { who, range, narrowed, page } => {
            let user = find_user_id(&app, &who)?;
            let filter = range.filter(&app, Subject::User(user), narrowed)?;
            list(common, &app, "logs user", Some(user), &filter, page.page())
        }
        Action::Ip { address, range, narrowed, page } => {
            let filter = range.filter(&app, Subject::Client(address.to_canonical().to_string()), narrowed)?;
            list(common, &app, "logs ip", None, &filter, page.page())
        }
        Action::Range { request_id, range, narrowed, page } => {
            let subject = request_id.map_or(Subject::All, Subject::Request);
            list(common, &app, "logs range", None, &range.filter(&app, subject, narrowed)?, page.page())
        }
        Action::Failed { range, narrowed, page } => {
            list(common, &app, "logs failed", None, &range.filter(&app, Subject::Failed, narrowed)?, page.page())
        }
        Action::Count { range, page } => count(common, &app, &range, page.page()),
        Action::Suspicious { range, page } => suspicious(common, &app, &range, page.page()),
        Action::Server { level, target, search, request, trace, before, size } => {
            let query = LogQuery { level, target, text: search, request_id: request, trace_id: trace, before };
            list_events(common, &app, &query, size)
        }
        Action::Cleanup { days_to_keep, yes } => clean_up(common, &app, days_to_keep, yes),
    }
}

impl RangeArgs {
    fn filter(&self, app: &App, subject: Subject, narrowed: NarrowedArgs) -> Result<Filter> {
        let (from, to) = self.bounds(app)?;
        let NarrowedArgs { route, status } = narrowed;
        Ok(Filter { subject, route, status, from: from.unwrap_or(Timestamp(0)), to: to.unwrap_or(Timestamp(i64::MAX)) })
    }

    fn window(&self, app: &App, default: Duration) -> Result<(Timestamp, Timestamp)> {
        let (from, to) = self.bounds(app)?;
        clients::window(("from", from), ("to", to), default, app.core.clock.now())
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
    let listing = search::list(&app.network_log, filter, page)?;
    record_audit(app, command, user, cli_authority(None))?;
    let unlisted = unlisted::list(&app.network_log, filter.from, filter.to)?;
    if !common.json {
        let more = if listing.total == COUNTED { " or more" } else { "" };
        let (rows, shown, total) = (list_of(rows::REQUEST, &listing.items), listing.items.len(), listing.total);
        return common.print(&format!("{rows}\n{shown} of {total}{more}{}", unlisted_lines(&unlisted)));
    }
    common.output(&LoggedRequestPage::of(page, listing, unlisted), String::new)
}

/// Returns a line for each route with requests that are in no list.
fn unlisted_lines(unlisted: &[UnlistedRequests]) -> String {
    let line = |unlisted: &UnlistedRequests| {
        let route = unlisted.route.as_deref().unwrap_or("(unknown endpoint)");
        format!("\nnot stored, because the disk was too slow: {} to {route}", unlisted.requests)
    };
    unlisted.iter().map(line).collect()
}

fn count(common: &Common, app: &App, range: &RangeArgs, page: PageRequest) -> Result<()> {
    let (from, to) = range.window(app, clients::COUNTED)?;
    let found = clients::count(&app.network_log, from, to, None, page)?;
    let unlisted = unlisted::list(&app.network_log, from, to)?;
    record_audit(app, "logs count", None, cli_authority(None))?;
    let more = [("unlisted", json!(http_rows::<_, UnlistedCount>(&unlisted)))];
    output_counts::<_, ClientCount>(common, (from, to), page, (found, &more), |rows| {
        let rows =
            rows.iter().map(|tally| row![tally.client_ip, tally.requests, tally.failed, tally.users, tally.last_at]);
        format!("{}{}", table(["address", "requests", "failed", "users", "last"], rows), unlisted_lines(&unlisted))
    })
}

fn suspicious(common: &Common, app: &App, range: &RangeArgs, page: PageRequest) -> Result<()> {
    let (from, to) = range.window(app, clients::SUSPECTED)?;
    let found = clients::suspicious(&app.network_log, from, to, page)?;
    record_audit(app, "logs suspicious", None, cli_authority(None))?;
    output_counts::<_, SuspiciousClient>(common, (from, to), page, (found, &[]), |rows| {
        let rows = rows.iter().map(|Suspect { tally, score, reasons }| {
            let reasons = reasons.iter().map(|reason| format!("{} {}", reason.code, reason.value));
            row![tally.client_ip, score, reasons.collect::<Vec<_>>().join(", "), tally.requests, tally.last_at]
        });
        table(["address", "score", "reasons", "requests", "last"], rows)
    })
}

fn list_events(common: &Common, app: &App, query: &LogQuery, size: u32) -> Result<()> {
    let found = server_log::search(&app.network_log, query, size as usize)?;
    let rows: Vec<_> = found
        .events
        .iter()
        .map(|StoredLogEvent { id, event }| {
            let fields = event.fields.iter().map(|(name, value)| format!("{name}={value}"));
            let text = std::iter::once(event.message.clone()).chain(fields).collect::<Vec<_>>().join(" ");
            row![id, event.at, event.level.name(), event.target, text]
        })
        .collect();
    common.output(&LogEventList::from(found), || table(["id", "at", "level", "target", "event"], rows))
}

fn clean_up(common: &Common, app: &App, days_to_keep: Option<u32>, yes: bool) -> Result<()> {
    let age =
        days_to_keep.map_or(app.core.config.retention.access_log, |days| Duration::from_hours(24 * u64::from(days)));
    let before = app.core.clock.now().minus(age);
    common.confirm(yes, &format!("Delete all entries of the network log before {before}?"))?;
    record_audit_start(app, "logs cleanup", None, cli_authority(None))?;
    let deleted = network_log::clean_up(&app.network_log, age)?;
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
    (found, more): (Paginated<R>, &[(&str, Value)]),
    text: impl FnOnce(&[R]) -> String,
) -> Result<()> {
    if !common.json {
        return common.print(&text(&found.items));
    }
    let items: Vec<_> = found.items.into_iter().map(T::from).collect();
    let mut json = page_json(page, &items, found.total);
    (json["from"], json["to"]) = (json!(from), json!(to));
    for (name, value) in more {
        json[*name] = value.clone();
    }
    common.print(&json.to_string())
}
