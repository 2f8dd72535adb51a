//! The network log: requests by filter.

use maud::{Markup, html};

use super::rows::{self, RequestRow};
use crate::http::console::views::{
    context::{ViewContext, href},
    format::{self, Timestamp, with_query},
    forms::{Control, Field},
    layout::{self, PageBody, Place},
    lists::{self, Filters, ListView, Listing},
    texts::Text,
};

/// The filters, as typed.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    pub user: String,
    pub client: String,
    /// `failed`, a status, or empty for all.
    pub status: String,
    pub route: String,
    pub request: String,
    pub from: String,
    pub to: String,
    pub errors: Vec<(String, String)>,
}

/// The network log.
#[derive(Clone, Debug)]
pub struct NetworkLogPage {
    pub filter: LogFilter,
    pub listing: Listing<RequestRow>,
    pub used_bytes: u64,
    pub oldest: Option<Timestamp>,
    /// Requests that could not be stored, by route.
    pub unlisted: Vec<(Option<String>, u64)>,
}

/// Renders the network log.
pub fn page(cx: &ViewContext, page: &NetworkLogPage) -> Markup {
    let filter = &page.filter;
    let path = href("network-log");
    let query = [
        ("user", filter.user.as_str()),
        ("client", &filter.client),
        ("status", &filter.status),
        ("route", &filter.route),
        ("request", &filter.request),
        ("from", &filter.from),
        ("to", &filter.to),
    ];
    let codes = ["200", "400", "401", "403", "404", "409", "422", "429", "500", "503"];
    let mut statuses = vec![("", cx.t(Text::AnyStatus).to_owned()), ("failed", cx.t(Text::StatusFailed).to_owned())];
    statuses.extend(codes.map(|code| (code, code.to_owned())));
    if !statuses.iter().any(|(value, _)| *value == filter.status) {
        statuses.push((&filter.status, filter.status.clone()));
    }
    let preset = |text, name: &str, value: &str, current: bool| (text, with_query(&path, &[(name, value)]), current);
    let error = |name: &str| filter.errors.iter().find(|(field, _)| field == name).map(|(_, error)| error.as_str());
    let filters = Filters {
        action: path.clone(),
        fields: vec![
            Field::new("user", Text::UserId, Control::Text, &filter.user).error(error("user")),
            Field::new("client", Text::ClientAddress, Control::Text, &filter.client).error(error("client")),
            Field::new("status", Text::Status, Control::Select(statuses), &filter.status).error(error("status")),
            Field::new("route", Text::Route, Control::Text, &filter.route).hint(Text::RouteHint).error(error("route")),
            Field::new("request", Text::RequestId, Control::Text, &filter.request).error(error("request")),
            Field::new("from", Text::From, Control::Moment, &filter.from).error(error("from")),
            Field::new("to", Text::To, Control::Moment, &filter.to).error(error("to")),
        ],
        presets: vec![
            preset(Text::All, "status", "", filter.status.is_empty()),
            preset(Text::StatusFailed, "status", "failed", filter.status == "failed"),
        ],
        region: "requests",
    };
    let view = ListView {
        id: "requests",
        caption: Text::Requests,
        empty: Text::NoRequests,
        href: with_query(&path, &query),
        bulk: None,
        export: Some(with_query(&href("network-log/export"), &query)),
    };
    let size = format::bytes(page.used_bytes);
    let body = html! {
        (layout::heading(cx.t(Text::NetworkLog), Some(cx.t(Text::NetworkLogLead)), &html! { span.hint { (size) @if let Some(oldest) = page.oldest { " · " (cx.t(Text::Since)) " " (cx.time(oldest)) } } }))
        (lists::filters(cx, &filters))
        @for (route, requests) in &page.unlisted {
            p.hint { (cx.t(Text::NotInLog)) ": " (requests) " " code { (route.as_deref().unwrap_or("-")) } }
        }
        section.card aria-label=(cx.t(Text::Requests)) { (lists::list(cx, &view, &rows::REQUEST, &page.listing, |row| rows::request(cx, row))) }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::NetworkLog), Place::NetworkLog, body))
}
