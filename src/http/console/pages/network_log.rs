//! The network log.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::{audit::rows, users::request_row};
use crate::{
    domain::operations::network_log::{
        self,
        search::{self, Filter, Subject},
    },
    error::Result,
    http::console::{
        request::{ConsoleRequest, ok},
        views::{
            lists::Listing,
            pages::network_log::{self as view, LogFilter, NetworkLogPage},
            texts::Text,
        },
    },
    types::UserId,
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
    let mut filter = Filter::default();
    if let Some(user) = query.find("user") {
        match user.parse().map(UserId) {
            Ok(user) => {
                console.context.meta.subject.get_or_init(|| user);
                filter.subject = Subject::User(user);
            }
            Err(_) => typed.errors.push(("user".into(), console.text(Text::NotAUserId).to_owned())),
        }
    } else if let Some(client) = query.find("client") {
        filter.subject = Subject::Client(client.to_owned());
    } else if query.get("status") == "failed" {
        filter.subject = Subject::Failed;
    }
    for (name, bound) in [("from", &mut filter.from), ("to", &mut filter.to)] {
        match console.moment(name) {
            Ok(Some(at)) => *bound = at,
            Ok(None) => {}
            Err(error) => typed.errors.push(error),
        }
    }
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
    ok(&view::page(&console.view()?, &shown))
}
