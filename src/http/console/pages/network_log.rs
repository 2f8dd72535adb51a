//! The network log.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::users::request_row;
use crate::{
    domain::operations::network_log::{
        self,
        search::{self, Filter, Subject},
    },
    error::Result,
    http::console::{
        request::{ConsoleRequest, ok, rows},
        views::{
            lists::Listing,
            pages::network_log::{self as view, LogFilter, NetworkLogPage},
        },
    },
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let query = &console.query;
    let mut typed = LogFilter {
        user: query.get("user").to_owned(),
        client: query.get("client").to_owned(),
        status: query.get("status").to_owned(),
        from: query.get("from").to_owned(),
        to: query.get("to").to_owned(),
        errors: Vec::new(),
    };
    let user = console.user_filter(&mut typed.errors);
    let subject = match (user, query.find("client"), query.get("status")) {
        (Some(user), _, _) => Subject::User(user),
        (None, Some(client), _) => Subject::Client(client.to_owned()),
        (None, None, "failed") => Subject::Failed,
        _ => Subject::All,
    };
    let (from, to) = console.time_filter(&mut typed.errors);
    let filter = Filter { subject, from, to };
    let page = console.page_request();
    let (found, status) = console
        .context
        .report(move |app| Ok((search::list(&app.network_log, &filter, page)?, network_log::status(&app.network_log)?)))
        .await?;
    let shown = NetworkLogPage {
        filter: typed,
        listing: Listing::Rows(rows(page, found, request_row)),
        used_bytes: status.used_bytes,
        oldest: status.oldest,
    };
    ok(view::page(&console.view()?, &shown))
}
