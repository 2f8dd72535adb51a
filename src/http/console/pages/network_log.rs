//! The network log.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::users::request_row;
use crate::{
    app::App,
    domain::operations::network_log::{
        self,
        search::{self, Filter, Subject},
        unlisted,
    },
    error::{Error, Result},
    http::console::{
        csv::{self, CsvList},
        request::{ConsoleRequest, ok, rows},
        views::{
            lists::Listing,
            pages::{
                network_log::{self as view, LogFilter, NetworkLogPage},
                rows as table_rows,
            },
            texts::Text,
        },
    },
    types::{PageRequest, Timestamp},
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (typed, filter) = read_filter(&console);
    let page = console.page_request();
    let rejected = Listing::rejected(&typed.errors);
    let is_rejected = rejected.is_some();
    let (from, to) = (filter.from, filter.to);
    let (found, status, unlisted) = console
        .context
        .report(move |app| {
            let found = if is_rejected { None } else { Some(search::list(&app.network_log, &filter, page)?) };
            let unlisted = unlisted::list(&app.network_log, from, to)?;
            Ok((found, network_log::status(&app.network_log)?, unlisted))
        })
        .await?;
    let found = found.map(|found| Listing::Rows(rows(page, found, request_row)));
    let shown = NetworkLogPage {
        filter: typed,
        listing: found.or(rejected).ok_or_else(|| Error::internal("a list without rows and faults"))?,
        used_bytes: status.used_bytes,
        oldest: status.oldest,
        unlisted: unlisted.into_iter().map(|unlisted| (unlisted.route, unlisted.requests)).collect(),
    };
    ok(view::page(&console.view()?, &shown))
}

/// Reads the filter of the address.
fn read_filter(console: &ConsoleRequest) -> (LogFilter, Filter) {
    let query = &console.query;
    let mut typed = LogFilter {
        user: query.get("user").to_owned(),
        client: query.get("client").to_owned(),
        status: query.get("status").to_owned(),
        route: query.get("route").to_owned(),
        request: query.get("request").to_owned(),
        from: query.get("from").to_owned(),
        to: query.get("to").to_owned(),
        errors: Vec::new(),
    };
    let user = console.user_filter(&mut typed.errors);
    let is_failed = typed.status == "failed";
    let status = match typed.status.as_str() {
        "" | "failed" => None,
        status => {
            let status = status.parse().ok().filter(|status| (100..600).contains(status));
            if status.is_none() {
                typed.errors.push(("status".into(), console.text(Text::NotAStatus).to_owned()));
            }
            status
        }
    };
    let subject = match (user, query.find("request"), query.find("client")) {
        (_, Some(request_id), _) => Subject::Request(request_id.to_owned()),
        (Some(user), ..) => Subject::User(user),
        (None, None, Some(client)) => Subject::Client(client.to_owned()),
        (None, None, None) if is_failed => Subject::Failed,
        (None, None, None) => Subject::All,
    };
    let (from, to) = console.time_filter(&mut typed.errors);
    let route = query.find("route").map(ToOwned::to_owned);
    (typed, Filter { subject, route, status, from, to })
}

pub async fn export(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (typed, mut filter) = read_filter(&console);
    csv::require_valid(&typed.errors)?;
    let mut is_over = false;
    // By time, because the log counts only its newest entries. Entries of the last millisecond come again and are left
    // out as duplicates.
    let next = move |app: &App| {
        if is_over {
            return Ok(Vec::new());
        }
        let found = search::list(&app.network_log, &filter, PageRequest::of_newest(csv::ROWS))?.items;
        let (first, last) = (found.first().map(|logged| logged.at), found.last().map(|logged| logged.at));
        is_over = found.len() < csv::ROWS as usize;
        // A page within one millisecond would come again and again.
        let step = i64::from(first != last);
        filter.to = last.map_or(filter.to, |last| Timestamp(last.0 + step));
        Ok(found.into_iter().map(request_row).collect())
    };
    let list = CsvList {
        page: "network-log".to_owned(),
        columns: table_rows::REQUEST.to_vec(),
        cells: table_rows::request,
        next: Box::new(next),
    };
    csv::send(console, list).await
}
