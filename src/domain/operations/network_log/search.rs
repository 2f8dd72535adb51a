//! Searches of the network log by user, client address, request id, route, status and time.
//!
//! Each search reads the blocks of one key and decodes those of its page. Counting stops at [`COUNTED`], so that a page costs
//! the same in a log of any size.

use std::{ops::ControlFlow, time::Duration};

use serde_json::json;

use super::{
    NetworkLog,
    blocks::{self, ALWAYS, Key, Order, Row},
};
use crate::{
    domain::Each,
    error::{Error, Fault, FieldCode, Result},
    store::Read,
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// The largest total, which means "at least so many". Pages beyond it are refused.
pub const COUNTED: i64 = 100_000;

/// The requests to search for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    #[default]
    All,
    Failed,
    User(UserId),
    Client(String),
    /// The requests with this id.
    Request(String),
}

/// A filter on entries. The time range is half-open.
#[derive(Clone, Debug)]
pub struct Filter {
    pub subject: Subject,
    /// The route's template.
    pub route: Option<String>,
    pub status: Option<u16>,
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Default for Filter {
    fn default() -> Self {
        Self { subject: Subject::All, route: None, status: None, from: Timestamp(0), to: Timestamp(i64::MAX) }
    }
}

/// A logged request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    pub id: i64,
    pub at: Timestamp,
    pub user: Option<UserId>,
    pub client_ip: String,
    pub method: String,
    /// The route's template; nothing if no route matched.
    pub route: Option<String>,
    pub status: u16,
    pub duration_us: i64,
    pub request_id: String,
}

impl Logged {
    pub fn duration(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.duration_us).unwrap_or(0))
    }

    pub fn is_success(&self) -> bool {
        self.status < 400
    }
}

/// Lists matching requests, newest first. Blocks.
///
/// # Errors
/// `invalid_parameters` for a page that is not counted; storage errors.
pub fn list(log: &NetworkLog, filter: &Filter, page: PageRequest) -> Result<Paginated<Logged>> {
    log.read(|tx| list_in(tx, filter, page))
}

/// Returns up to `limit` requests with this id, newest first. Blocks.
///
/// # Errors
/// Storage errors.
pub fn by_request_id(log: &NetworkLog, request_id: &str, limit: usize) -> Result<Vec<Logged>> {
    log.read(|tx| {
        let mut found = Vec::new();
        blocks::each_row_in(tx, Key::of_request(request_id), ALWAYS, Order::NewestFirst, |block, row| {
            if row.request_id == request_id {
                found.push(logged_of(block, row));
            }
            Ok(if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(found)
    })
}

fn list_in(tx: &Read<'_>, filter: &Filter, page: PageRequest) -> Result<Paginated<Logged>> {
    let (key, range) = (filter.key(), (filter.from.0, filter.to.0));
    let (first, end) = (page.offset(), page.offset() + i64::from(page.size));
    let (mut total, mut items) = (0, Vec::new());
    blocks::each_in(tx, key, range, Order::NewestFirst, |block, entries| {
        let is_on_page = total < end && total + entries > first;
        if !is_on_page && filter.is_said_by(key) && blocks::is_inside(block, range.0, range.1) {
            total += entries;
        } else {
            blocks::rows_in(tx, block, Order::NewestFirst, |rows| {
                for row in rows.iter().filter(|row| filter.includes(row)) {
                    if (first..end).contains(&total) {
                        items.push(logged_of(block, row));
                    }
                    total += 1;
                }
                Ok(())
            })?;
        }
        Ok(if total < COUNTED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    let total = total.min(COUNTED);
    if page.offset() >= total && total == COUNTED {
        return Err(uncounted());
    }
    Ok(Paginated { items, total })
}

fn uncounted() -> Error {
    let message = (
        format!("is beyond the newest {COUNTED} requests: choose a shorter time range"),
        format!("超出最新的 {COUNTED} 条请求，请缩短时间范围"),
    );
    Error::field("page", Fault::new(FieldCode::OutOfRange, message))
}

impl Filter {
    /// Returns the key under which fewest blocks have to be read.
    fn key(&self) -> Key<'_> {
        match (&self.subject, self.status, &self.route) {
            (Subject::User(user), ..) => Key::User(user.0),
            (Subject::Client(client), ..) => Key::Client(client),
            (Subject::Request(id), ..) => Key::of_request(id),
            (_, Some(status), _) if status >= 400 => Key::Status(status),
            (Subject::All, _, Some(route)) => Key::Route(route),
            (Subject::Failed, ..) => Key::Failed,
            (Subject::All, ..) => Key::All,
        }
    }

    /// Returns true if the filter includes all entries with its key, apart from their time.
    fn is_said_by(&self, key: Key<'_>) -> bool {
        match key {
            Key::Request(_) => false,
            Key::Status(_) => self.route.is_none(),
            Key::Route(_) => self.status.is_none(),
            Key::All | Key::Failed | Key::User(_) | Key::Client(_) => self.route.is_none() && self.status.is_none(),
        }
    }

    fn includes(&self, row: &Row<'_>) -> bool {
        let is_of_subject = match &self.subject {
            Subject::All => true,
            Subject::Failed => row.is_failed(),
            Subject::User(user) => row.user == Some(user.0),
            Subject::Client(client) => row.client == client,
            Subject::Request(id) => row.request_id == id,
        };
        is_of_subject
            && (self.from.0..self.to.0).contains(&row.at)
            && self.route.as_deref().is_none_or(|route| row.route == Some(route))
            && self.status.is_none_or(|status| row.status == status)
    }
}

/// Exports the user's logged requests, newest first. Blocks.
///
/// # Errors
/// Errors of `each`, storage errors.
pub fn export(log: &NetworkLog, user: UserId, each: Each<'_>) -> Result<()> {
    log.read(|tx| {
        blocks::each_row_in(tx, Key::User(user.0), ALWAYS, Order::NewestFirst, |_, row| {
            if row.user == Some(user.0) {
                each(json!({
                    "at": Timestamp(row.at),
                    "clientIp": row.client,
                    "method": row.method,
                    "route": row.route,
                    "status": row.status,
                }))?;
            }
            Ok(ControlFlow::Continue(()))
        })
    })
}

fn logged_of(block: i64, row: &Row<'_>) -> Logged {
    Logged {
        id: row.id(block),
        at: Timestamp(row.at),
        user: row.user.map(UserId),
        client_ip: row.client.to_owned(),
        method: row.method.to_owned(),
        route: row.route.map(ToOwned::to_owned),
        status: row.status,
        duration_us: row.duration_us,
        request_id: row.request_id.to_owned(),
    }
}
