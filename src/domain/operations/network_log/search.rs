//! Searches of the network log by user, client address, time and failure.

use std::time::Duration;

use serde_json::json;

use super::{
    blocks::{Kept, each_in},
    pieces::{Span, Subject, spans_in},
};
use crate::{
    core::Core,
    domain::Each,
    error::Result,
    store::Read,
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// A filter on entries. The time range is half-open.
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
    /// Returns the most selective condition.
    pub(super) fn subject(&self) -> Option<Subject> {
        let user = self.user.map(Subject::User);
        let client = || self.client_ip.clone().map(Subject::Client);
        user.or_else(client).or_else(|| self.failed_only.then_some(Subject::Failed))
    }

    pub(super) fn has_time(&self, at: Timestamp) -> bool {
        (self.from..self.to).contains(&at)
    }

    fn takes(&self, entry: &Kept<'_>) -> bool {
        self.has_time(entry.at)
            && self.user.is_none_or(|user| entry.user == Some(user.0))
            && self.client_ip.as_ref().is_none_or(|client_ip| *client_ip == entry.client_ip)
            && !(self.failed_only && entry.status < 400)
    }

    /// Returns true if the count of a piece answers the filter, apart from the time.
    pub(super) fn has_one_condition(&self) -> bool {
        let conditions = [self.user.is_some(), self.client_ip.is_some(), self.failed_only];
        conditions.into_iter().filter(|is_set| *is_set).count() <= 1
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

/// Lists matching requests, newest first. Blocks, because it may read thousands of entries.
///
/// # Errors
/// Storage errors.
pub fn list(core: &Core, filter: &Filter, page: PageRequest) -> Result<Paginated<Logged>> {
    core.store.read(|tx| list_in(tx, filter, page))
}

pub fn list_in(tx: &Read<'_>, filter: &Filter, page: PageRequest) -> Result<Paginated<Logged>> {
    let mut found = Paginated { items: Vec::new(), total: 0 };
    let mut to_skip = page.offset();
    for span in spans_in(tx, filter)? {
        let wanted = usize::try_from(page.size).unwrap_or(0) - found.items.len();
        let known = span.matching.filter(|matching| wanted == 0 || to_skip >= *matching);
        let matching = if let Some(matching) = known {
            matching
        } else {
            let matching = matching_in(tx, filter, span)?;
            let count = i64::try_from(matching.len()).unwrap_or(i64::MAX);
            let skipped = usize::try_from(to_skip.min(count)).unwrap_or(usize::MAX);
            found.items.extend(matching.into_iter().rev().skip(skipped).take(wanted));
            count
        };
        found.total += matching;
        to_skip = (to_skip - matching).max(0);
    }
    Ok(found)
}

/// Exports the user's logged requests, newest first.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let filter = Filter { user: Some(user), ..Filter::default() };
    for span in spans_in(tx, &filter)? {
        for logged in matching_in(tx, &filter, span)?.into_iter().rev() {
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

/// Returns the matching requests of a range, oldest first.
fn matching_in(tx: &Read<'_>, filter: &Filter, span: Span) -> Result<Vec<Logged>> {
    let mut matching = Vec::new();
    each_in(tx, span.first, span.last, |id, entry| {
        if filter.takes(entry) {
            matching.push(entry.to_logged(id));
        }
        Ok(())
    })?;
    Ok(matching)
}
