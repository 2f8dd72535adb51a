//! The network log.

use maud::html;
use serde_json::Value;

use crate::{
    app::App,
    config::LimitsConfig,
    domain::operations::network_log::{
        self,
        search::{self, Filter, Logged, Subject},
        unlisted,
    },
    error::{Fault, Result},
    http::{
        admin::{
            lists::StaffList,
            network_logs::{ClientIp, LoggedRequestId, LoggedRoute, LoggedStatus},
        },
        body::RawValue,
        console::views::{
            cells::Column,
            context::ViewContext,
            format,
            layout::Place,
            list_page::{FilterField, Frame},
            lists::Rows,
            pages::rows,
            texts::Text,
        },
        params::{Parameter, Rules, TimeRange, optional_time_range, parameters, text},
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated, Timestamp, UserId},
};

parameters! {
    SearchLogParams(fields) {
        user: Option<UserId> = fields.optional("userId", "Only requests of this user.");
        client: Option<ClientIp> = fields.optional("clientIp", "Only requests of this client.");
        status: Option<StatusFilter> = fields.optional("status", "Only requests with this status.");
        route: Option<LoggedRoute> = fields.optional("route", "Only requests of this template.");
        request: Option<LoggedRequestId> = fields.optional("requestId", "Only requests with this id.");
        time: TimeRange = optional_time_range(fields, "Requests at this time or later.", "Requests before this time.");
    }
}

/// A status, or all failures.
pub enum StatusFilter {
    Failed,
    Exactly(LoggedStatus),
}

impl Parameter for StatusFilter {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        if text(value)? == "failed" { Ok(Self::Failed) } else { LoggedStatus::read(value, rules).map(Self::Exactly) }
    }

    fn schema(limits: &LimitsConfig) -> Value {
        LoggedStatus::schema(limits)
    }
}

pub struct RequestList;

impl StaffList for RequestList {
    type Params = SearchLogParams;
    type Filter = Filter;
    type Row = Logged;

    const PLACE: Place = Place::NetworkLog;
    const EMPTY: Text = Text::NoRequests;
    const COLUMNS: &'static [Column<Logged>] = rows::REQUEST;

    fn fields(_: &ViewContext) -> Vec<FilterField> {
        let [from, to] = FilterField::range(Text::From, Text::To);
        vec![
            FilterField::new("userId", Text::UserId),
            FilterField::new("clientIp", Text::ClientAddress),
            FilterField::new("status", Text::Status)
                .choice(["failed", "200", "400", "401", "403", "404", "409", "422", "429", "500", "503"])
                .tabs(["failed"]),
            FilterField::new("route", Text::Route).hint(Text::RouteHint),
            FilterField::new("requestId", Text::RequestId),
            from,
            to,
        ]
    }

    fn filter(context: &RequestContext, params: SearchLogParams) -> Result<Filter> {
        context.name_subject(params.user);
        let is_failed = matches!(params.status, Some(StatusFilter::Failed));
        let subject = match (params.request, params.user, params.client) {
            (Some(LoggedRequestId(request)), ..) => Subject::Request(request),
            (None, Some(user), _) => Subject::User(user),
            (None, None, Some(ClientIp(client))) => Subject::Client(client.to_string()),
            (None, None, None) if is_failed => Subject::Failed,
            (None, None, None) => Subject::All,
        };
        let status = match params.status {
            Some(StatusFilter::Exactly(LoggedStatus(status))) => Some(status),
            _ => None,
        };
        let (from, to) = (params.time.from(), params.time.to());
        Ok(Filter { subject, route: params.route.map(|LoggedRoute(route)| route), status, from, to })
    }

    fn read(app: &App, filter: &Filter, page: PageRequest) -> Result<Paginated<Logged>> {
        search::list(&app.network_log, filter, page)
    }

    /// Goes on by time, because the log counts only its newest entries. Entries of the last millisecond come again.
    fn rows_of_file(app: &App, filter: &Filter, cursor: Option<&str>, size: u32) -> Result<Rows<Logged>> {
        let to = cursor.and_then(|cursor| cursor.parse().ok()).map_or(filter.to, Timestamp);
        let found =
            search::list(&app.network_log, &Filter { to, ..filter.clone() }, PageRequest::of_newest(size))?.items;
        let (first, last) = (found.first().map(|logged| logged.at), found.last().map(|logged| logged.at));
        // A page within one millisecond would come again and again.
        let step = i64::from(first != last);
        let next = last.filter(|_| found.len() >= size as usize).map(|last| (last.0 + step).to_string());
        Ok(Rows { next, ..Rows::all(found) })
    }

    fn frame(cx: &ViewContext, app: &App, filter: Option<&Filter>) -> Result<Frame> {
        let status = network_log::status(&app.network_log)?;
        let size = format::bytes(status.used_bytes);
        let unlisted = match filter {
            Some(filter) => unlisted::list(&app.network_log, filter.from, filter.to)?,
            None => Vec::new(),
        };
        Ok(Frame {
            lead: Some(cx.t(Text::NetworkLogLead).to_owned()),
            beside: html! {
                span.hint { (size) @if let Some(oldest) = status.oldest { " · " (cx.t(Text::Since)) " " (cx.time(oldest)) } }
            },
            above: html! {
                @for one in &unlisted {
                    p.hint { (cx.t(Text::NotInLog)) ": " (one.requests) " " code { (one.route.as_deref().unwrap_or("-")) } }
                }
            },
            ..Frame::default()
        })
    }
}
