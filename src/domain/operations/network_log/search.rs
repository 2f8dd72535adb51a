//! Searches of the network log by user, client address, request id, route, status and time.
//!
//! Each search reads a range of one index. Counting stops at [`COUNTED`], so that a page costs the same in a log of any
//! size.

use std::time::Duration;

use serde_json::json;

use super::NetworkLog;
use crate::{
    domain::Each,
    error::{Error, Fault, FieldCode, Result},
    store::{Read, Row},
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// The largest total, which means "at least so many". Pages beyond it are refused.
pub const COUNTED: i64 = 100_000;

const COLUMNS: &str = "id, at, user_id, client_ip, method, route, status, duration_us, request_id";

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
pub fn by_request_id(log: &NetworkLog, request_id: &str, limit: u32) -> Result<Vec<Logged>> {
    log.read(|tx| {
        let sql = format!("select {COLUMNS} from access_log where request_id = ?1 order by at desc, id desc limit ?2");
        let mut found = Vec::new();
        tx.each(&sql, (request_id, limit), |row| {
            found.push(logged_of(row)?);
            Ok(())
        })?;
        Ok(found)
    })
}

fn list_in(tx: &Read<'_>, filter: &Filter, page: PageRequest) -> Result<Paginated<Logged>> {
    let condition = filter.condition();
    let counted =
        format!("select count(*) from (select 1 from access_log where {condition} limit ?6 offset ?7) as counted");
    let mut total = 0;
    filter.each_in(tx, &counted, (COUNTED, 0), |row| {
        total = row.get(0)?;
        Ok(())
    })?;
    if page.offset() >= total {
        return if total < COUNTED { Ok(Paginated { items: Vec::new(), total }) } else { Err(uncounted()) };
    }
    let found =
        format!("select {COLUMNS} from access_log where {condition} order by at desc, id desc limit ?6 offset ?7");
    let mut items = Vec::new();
    filter.each_in(tx, &found, (i64::from(page.size), page.offset()), |row| {
        items.push(logged_of(row)?);
        Ok(())
    })?;
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
    /// Returns the condition, which names all parameters. Expressions keep the planner from other indexes than that of
    /// the subject, the status or the route.
    fn condition(&self) -> String {
        let (subject, is_chosen) = match self.subject {
            Subject::All => ("cast(?3 as bigint) is null", false),
            Subject::Failed => ("cast(?3 as bigint) is null and status >= 400", false),
            Subject::User(_) => ("user_id = ?3", true),
            Subject::Client(_) => ("client_ip = ?3", true),
            Subject::Request(_) => ("request_id = ?3", true),
        };
        let is_by_status = !is_chosen && self.status.is_some_and(|status| status >= 400);
        let status = match self.status {
            None => "cast(?5 as bigint) is null",
            Some(_) if is_by_status => "status >= 400 and status = ?5",
            Some(_) => "status + 0 = ?5",
        };
        let is_by_route = !is_chosen && !is_by_status && self.subject == Subject::All;
        let route = match self.route {
            None => "cast(?4 as text) is null",
            Some(_) if is_by_route => "route = ?4",
            Some(_) => "route || '' = ?4",
        };
        format!("{subject} and at >= ?1 and at < ?2 and {route} and {status}")
    }

    /// Runs a statement with the time range, subject, route, status, limit and offset.
    fn each_in(
        &self,
        tx: &Read<'_>,
        sql: &str,
        (limit, offset): (i64, i64),
        row: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let (from, to, route, status) = (self.from.0, self.to.0, &self.route, self.status);
        match &self.subject {
            Subject::All | Subject::Failed => tx.each(sql, (from, to, None::<i64>, route, status, limit, offset), row),
            Subject::User(user) => tx.each(sql, (from, to, user.0, route, status, limit, offset), row),
            Subject::Client(text) | Subject::Request(text) => {
                tx.each(sql, (from, to, text, route, status, limit, offset), row)
            }
        }
    }
}

/// Exports the user's logged requests, newest first. Blocks.
///
/// # Errors
/// Errors of `each`, storage errors.
pub fn export(log: &NetworkLog, user: UserId, each: Each<'_>) -> Result<()> {
    let sql = format!("select {COLUMNS} from access_log where user_id = ?1 order by at desc, id desc");
    log.read(|tx| {
        tx.each(&sql, [user.0], |row| {
            let logged = logged_of(row)?;
            each(json!({
                "at": logged.at,
                "clientIp": logged.client_ip,
                "method": logged.method,
                "route": logged.route,
                "status": logged.status,
            }))
        })
    })
}

fn logged_of(row: &Row<'_>) -> Result<Logged> {
    Ok(Logged {
        id: row.get(0)?,
        at: Timestamp(row.get(1)?),
        user: row.get::<Option<i64>>(2)?.map(UserId),
        client_ip: row.get(3)?,
        method: row.get(4)?,
        route: row.get(5)?,
        status: row.get(6)?,
        duration_us: row.get(7)?,
        request_id: row.get(8)?,
    })
}
