//! The audit.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::operations::{
        admins::roles::Role,
        audit::{self, AuditFilter, StoredAuditEvent},
    },
    error::Result,
    http::console::{
        request::{ConsoleRequest, ok},
        views::{
            format::ShownCount,
            lists::{Listing, Rows},
            pages::{audit as view, rows::AuditEventRow},
            texts::Text,
        },
    },
    types::{PageRequest, Paginated, Timestamp, UserId},
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let query = &console.query;
    let mut typed = view::TypedAuditFilter {
        actor: query.get("actor").to_owned(),
        user: query.get("user").to_owned(),
        from: query.get("from").to_owned(),
        to: query.get("to").to_owned(),
        errors: Vec::new(),
    };
    let own = console.context.admin()?;
    let actor = if own.role() == Role::Owner { query.find("actor").map(ToOwned::to_owned) } else { Some(own.actor()) };
    let mut filter = AuditFilter { actor, ..AuditFilter::default() };
    match query.find("user").map(str::parse).transpose() {
        Ok(user) => filter.user = user.map(UserId),
        Err(_) => typed.errors.push(("user".into(), console.text(Text::NotAUserId).to_owned())),
    }
    for (name, bound) in [("from", &mut filter.from), ("to", &mut filter.to)] {
        match console.moment(name) {
            Ok(Some(at)) => *bound = at,
            Ok(None) => {}
            Err(error) => typed.errors.push(error),
        }
    }
    let page = console.page_request();
    let found = console.context.report(move |app| audit::list(&app.core, &filter, page)).await?;
    ok(&view::page(&console.view()?, &view::Audit { filter: typed, listing: Listing::Rows(rows(page, found, row)) }))
}

/// Converts a numbered page of an operation into rows with a cursor.
pub fn rows<T, R>(page: PageRequest, found: Paginated<T>, row: impl Fn(T) -> R) -> Rows<R> {
    let total = u64::try_from(found.total).unwrap_or(0);
    let is_last = u64::from(page.number) * u64::from(page.size) >= total;
    Rows {
        items: found.items.into_iter().map(row).collect(),
        total: Some(ShownCount::exact(total)),
        next: (!is_last).then(|| (page.number + 1).to_string()),
        is_later: page.number > 1,
    }
}

pub fn row(stored: StoredAuditEvent) -> AuditEventRow {
    let StoredAuditEvent { at, event, .. } = stored;
    AuditEventRow {
        at: Timestamp(at.0),
        actor: event.actor,
        action: event.action,
        user_id: event.user.map(|user| user.to_string()),
        outcome: event.outcome,
        reason: event.reason,
        client_ip: event.client_ip,
        request_id: Some(event.request_id),
    }
}
