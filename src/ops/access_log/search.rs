//! Looking requests up: whose, from where, when, and which failed.

use rusqlite::Row;
use serde_json::json;

use super::pieces::{Span, Subject, spans_in};
use crate::{
    app::App,
    error::Result,
    ops::Each,
    store::Read,
    types::{Listing, Page, Timestamp, UserId},
};

/// Which entries are asked for. The range is half-open.
#[derive(Clone, Debug)]
pub struct Filter {
    pub user: Option<UserId>,
    pub client_ip: Option<String>,
    pub failed_only: bool,
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Default for Filter {
    fn default() -> Self {
        Self { user: None, client_ip: None, failed_only: false, from: Timestamp(0), to: Timestamp(i64::MAX) }
    }
}

impl Filter {
    /// What narrows the search most.
    pub(super) fn subject(&self) -> Option<Subject> {
        let user = self.user.map(Subject::User);
        let client = || self.client_ip.clone().map(Subject::Client);
        user.or_else(client).or_else(|| self.failed_only.then_some(Subject::Failed))
    }

    /// Whether what a piece counts for the subject is all that is asked for, beside the time.
    pub(super) fn has_one_condition(&self) -> bool {
        let conditions = [self.user.is_some(), self.client_ip.is_some(), self.failed_only];
        conditions.into_iter().filter(|is_set| *is_set).count() <= 1
    }
}

/// A request as it was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    pub id: i64,
    pub at: Timestamp,
    pub user: Option<UserId>,
    pub client_ip: String,
    pub method: String,
    /// The route's template; nothing for what no route took.
    pub route: Option<String>,
    pub status: u16,
    pub duration_us: i64,
    pub request_id: String,
}

impl Logged {
    pub fn is_success(&self) -> bool {
        self.status < 400
    }
}

/// Entries, newest first. Reads some thousand entries, so it belongs onto a thread that may block.
///
/// # Errors
/// Storage errors.
pub fn list(app: &App, filter: &Filter, page: Page) -> Result<Listing<Logged>> {
    app.store.read(|tx| list_in(tx, filter, page))
}

pub fn list_in(tx: &Read<'_>, filter: &Filter, page: Page) -> Result<Listing<Logged>> {
    let mut found = Listing { items: Vec::new(), total: 0 };
    let mut to_skip = page.offset();
    for span in spans_in(tx, filter)? {
        let matching = match span.matching {
            Some(matching) => matching,
            None => count_in(tx, filter, span)?,
        };
        found.total += matching;
        let wanted = i64::from(page.size) - i64::try_from(found.items.len()).unwrap_or(i64::MAX);
        if to_skip < matching && wanted > 0 {
            found.items.extend(read_in(tx, filter, span, wanted, to_skip)?);
        }
        to_skip = (to_skip - matching).max(0);
    }
    Ok(found)
}

/// The user's requests, as far as they are kept, newest first.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let filter = Filter { user: Some(user), ..Filter::default() };
    for span in spans_in(tx, &filter)? {
        for logged in read_in(tx, &filter, span, i64::MAX, 0)? {
            each(json!({
                "at": logged.at,
                "clientIp": logged.client_ip,
                "method": logged.method,
                "route": logged.route,
                "status": logged.status,
            }))?;
        }
    }
    Ok(())
}

fn count_in(tx: &Read<'_>, filter: &Filter, span: Span) -> Result<i64> {
    tx.one(
        "select count(*) from access_log where id between ?1 and ?2 and at >= ?3 and at < ?4 \
         and (?5 is null or user_id = ?5) and (?6 is null or client_ip = ?6) and (?7 = 0 or status >= 400)",
        (
            span.first,
            span.last,
            filter.from.0,
            filter.to.0,
            filter.user.map(|user| user.0),
            &filter.client_ip,
            filter.failed_only,
        ),
        |row| row.get(0),
    )
}

fn read_in(tx: &Read<'_>, filter: &Filter, span: Span, limit: i64, offset: i64) -> Result<Vec<Logged>> {
    tx.all(
        "select id, at, user_id, client_ip, method, route, status, duration_us, request_id from access_log \
         where id between ?1 and ?2 and at >= ?3 and at < ?4 \
         and (?5 is null or user_id = ?5) and (?6 is null or client_ip = ?6) and (?7 = 0 or status >= 400) \
         order by id desc limit ?8 offset ?9",
        (
            span.first,
            span.last,
            filter.from.0,
            filter.to.0,
            filter.user.map(|user| user.0),
            &filter.client_ip,
            filter.failed_only,
            limit,
            offset,
        ),
        logged_of,
    )
}

fn logged_of(row: &Row<'_>) -> rusqlite::Result<Logged> {
    Ok(Logged {
        id: row.get(0)?,
        at: Timestamp(row.get(1)?),
        user: row.get::<_, Option<i64>>(2)?.map(UserId),
        client_ip: row.get(3)?,
        method: row.get(4)?,
        route: row.get(5)?,
        status: row.get(6)?,
        duration_us: row.get(7)?,
        request_id: row.get(8)?,
    })
}
