//! The audit.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    app::App,
    domain::operations::{
        admins::roles::Role,
        audit::{self, AuditFilter, StoredAuditEvent},
    },
    error::Result,
    http::console::{
        csv::{self, CsvList},
        request::{ConsoleRequest, ok, rows},
        views::{
            lists::Listing,
            pages::{
                audit as view,
                rows::{self as table_rows, AuditEventRow},
            },
        },
    },
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (typed, filter) = read_filter(&console)?;
    let page = console.page_request();
    let listing = if let Some(rejected) = Listing::rejected(&typed.errors) {
        rejected
    } else {
        let found = console.context.report(move |app| audit::list(&app.core, &filter, page)).await?;
        Listing::Rows(rows(page, found, row))
    };
    ok(view::page(&console.view()?, &view::Audit { filter: typed, listing }))
}

/// Reads the filter of the address. Only owners see the events of others.
fn read_filter(console: &ConsoleRequest) -> Result<(view::TypedAuditFilter, AuditFilter)> {
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
    let user = console.user_filter(&mut typed.errors);
    let (from, to) = console.time_filter(&mut typed.errors);
    Ok((typed, AuditFilter { user, actor, from, to }))
}

pub async fn export(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (typed, filter) = read_filter(&console)?;
    csv::require_valid(&typed.errors)?;
    let read = move |app: &App, page| Ok(audit::list(&app.core, &filter, page)?.items.into_iter().map(row).collect());
    let list = CsvList {
        page: "audit".to_owned(),
        columns: table_rows::AUDIT.to_vec(),
        cells: table_rows::audit,
        next: csv::numbered(read),
    };
    csv::send(console, list).await
}

pub fn row(stored: StoredAuditEvent) -> AuditEventRow {
    let StoredAuditEvent { at, event, .. } = stored;
    AuditEventRow {
        at,
        actor: event.actor,
        action: event.action,
        user_id: event.user.map(|user| user.to_string()),
        outcome: event.outcome,
        reason: event.reason,
        client_ip: event.client_ip,
        request_id: Some(event.request_id),
    }
}
