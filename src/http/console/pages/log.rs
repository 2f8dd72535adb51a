//! The tail of the server's log.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::operations::server_log::{self, CAPACITY, LogLevel, LogQuery},
    error::Result,
    http::console::{
        request::{ConsoleRequest, ok},
        views::pages::log::{self as view, Log},
    },
};

/// Lines on the page.
const LINES: usize = 200;

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let log = collect(&console).await?;
    ok(view::page(&console.view()?, &log))
}

pub async fn refresh(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let log = collect(&console).await?;
    ok(view::live(&console.view()?, &log))
}

async fn collect(console: &ConsoleRequest) -> Result<Log> {
    let typed = &console.query;
    let own = |name: &str| typed.find(name).map(ToOwned::to_owned);
    let query = LogQuery {
        level: LogLevel::from_name(typed.get("level")),
        target: own("target"),
        text: own("q"),
        request_id: own("request"),
        trace_id: own("trace"),
        before: typed.get("before").parse().ok(),
    };
    let mut errors = Vec::new();
    console.choice_filter("level", LogLevel::from_name, &mut errors);
    let shown = query.clone();
    if !errors.is_empty() {
        return Ok(Log {
            level: typed.get("level").to_owned(),
            target: shown.target.unwrap_or_default(),
            query: shown.text.unwrap_or_default(),
            request: shown.request_id.unwrap_or_default(),
            trace: shown.trace_id.unwrap_or_default(),
            capacity: CAPACITY,
            errors,
            ..Log::default()
        });
    }
    let found = console.context.report(move |app| server_log::search(&app.network_log, &query, LINES)).await?;
    Ok(Log {
        level: shown.level.unwrap_or(LogLevel::Trace).name().to_owned(),
        target: shown.target.unwrap_or_default(),
        query: shown.text.unwrap_or_default(),
        request: shown.request_id.unwrap_or_default(),
        trace: shown.trace_id.unwrap_or_default(),
        lines: found.events.into_iter().map(|stored| stored.event).collect(),
        older: found.next,
        is_newest: shown.before.is_none(),
        capacity: CAPACITY,
        dropped: console.context.app.server_log.dropped.get(),
        errors,
    })
}
