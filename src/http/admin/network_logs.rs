//! `/admin/network-logs`: the network log, request counts and suspicious addresses.

use std::{net::IpAddr, time::Duration};

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::operations::network_log::{
        self,
        clients::{self, Suspect, Tally},
        search::{self, Filter, Logged, Subject},
        unlisted::{self, UnlistedRequests},
    },
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{
            DaysToKeep, PageNumber, PageSize, Parameter, Rules, TimeRange, optional_time_range, page, parameters,
            required_time_range, text,
        },
        reply::Json,
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated, Timestamp, UserId, clean, decimal_milliseconds},
};

/// The longest template and request id, in characters.
const MAX_TEMPLATE: usize = 200;

parameters! {
    UserLogParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Requests on a page.");
        route: Option<LoggedRoute> = fields.optional("route", "Only requests of this endpoint's template.");
        status: Option<LoggedStatus> = fields.optional("status", "Only requests with this status.");
        time: TimeRange = optional_time_range(fields, "Requests at this time or later.", "Requests before this time; a whole day is included.");
    }

    ClientLogParams(fields) {
        client_ip: ClientIp = fields.path("clientIp", "The client's address, IPv4 or IPv6.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Requests on a page.");
        route: Option<LoggedRoute> = fields.optional("route", "Only requests of this endpoint's template.");
        status: Option<LoggedStatus> = fields.optional("status", "Only requests with this status.");
        time: TimeRange = optional_time_range(fields, "Requests at this time or later.", "Requests before this time; a whole day is included.");
    }

    LogPeriodParams(fields) {
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Requests on a page.");
        route: Option<LoggedRoute> = fields.optional("route", "Only requests of this endpoint's template.");
        status: Option<LoggedStatus> = fields.optional("status", "Only requests with this status.");
        request_id: Option<LoggedRequestId> = fields.optional("requestId", "Only requests with this id.");
        time: TimeRange = required_time_range(fields, "Requests at this time or later.", "Requests before this time; a whole day is included.");
    }

    FailedRequestsParams(fields) {
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Items on a page.");
        route: Option<LoggedRoute> = fields.optional("route", "Only requests of this endpoint's template.");
        status: Option<LoggedStatus> = fields.optional("status", "Only requests with this status.");
        time: TimeRange = optional_time_range(fields, "Requests at this time or later.", "Requests before this time; a whole day is included.");
    }

    LogDayParams(fields) {
        client_ip: Option<ClientIp> = fields.optional("clientIp", "Only this client's address, IPv4 or IPv6.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Items on a page.");
        window: (Timestamp, Timestamp) = {
            let range = optional_time_range(fields, "Requests at this time or later.", "Requests before this time; a whole day is included.");
            fields.cross_field(range, of_last_day)
        };
    }

    LogHourParams(fields) {
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Items on a page.");
        window: (Timestamp, Timestamp) = {
            let range = optional_time_range(fields, "Requests at this time or later.", "Requests before this time; a whole day is included.");
            fields.cross_field(range, of_last_hour)
        };
    }

    CleanUpLogParams(fields) {
        days_to_keep: Option<DaysToKeep> = fields.optional("daysToKeep", "Deletes entries older than this. Default: the configured retention.");
    }
}

/// A network log entry.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoggedRequest {
    #[schema(example = "4711")]
    id: String,
    time: Timestamp,
    /// The user of the presented token.
    user_id: Option<UserId>,
    #[schema(example = "203.0.113.9")]
    client_ip: String,
    #[schema(example = "POST")]
    method: String,
    /// The endpoint's route; null if none matched. Paths and queries are not logged.
    #[schema(example = "/coin/consume")]
    route: Option<String>,
    #[schema(example = 200)]
    status: u16,
    #[schema(example = true)]
    success: bool,
    #[schema(example = 1.25)]
    duration_ms: f64,
    #[schema(example = "9f86d081884c7d6500000017")]
    request_id: String,
}

impl From<Logged> for LoggedRequest {
    fn from(logged: Logged) -> Self {
        let (success, duration_ms) = (logged.is_success(), decimal_milliseconds(logged.duration()));
        Self {
            id: logged.id.to_string(),
            time: logged.at,
            user_id: logged.user,
            client_ip: logged.client_ip,
            method: logged.method,
            route: logged.route,
            status: logged.status,
            success,
            duration_ms,
            request_id: logged.request_id,
        }
    }
}

/// The requests to one endpoint that are in no list.
#[derive(Serialize, ToSchema)]
pub struct UnlistedCount {
    /// The endpoint's route; null if none matched.
    #[schema(example = "/coin/consume")]
    route: Option<String>,
    #[schema(example = 1200)]
    count: u64,
}

impl From<UnlistedRequests> for UnlistedCount {
    fn from(unlisted: UnlistedRequests) -> Self {
        Self { route: unlisted.route, count: unlisted.requests }
    }
}

/// One page of the list.
#[derive(Serialize, ToSchema)]
pub struct LoggedRequestPage {
    items: Vec<LoggedRequest>,
    #[schema(minimum = 1, example = 1)]
    page: u32,
    #[schema(minimum = 1, example = 20)]
    size: u32,
    /// Total number on all pages.
    #[schema(minimum = 0, example = 1)]
    total: i64,
    /// Requests of anybody in the time range that could not be stored, because the disk was too slow. Counted by ten minutes.
    unlisted: Vec<UnlistedCount>,
}

impl LoggedRequestPage {
    pub fn of(page: PageRequest, found: Paginated<Logged>, unlisted: Vec<UnlistedRequests>) -> Self {
        Self {
            items: found.items.into_iter().map(Into::into).collect(),
            page: page.number,
            size: page.size,
            total: found.total,
            unlisted: unlisted.into_iter().map(Into::into).collect(),
        }
    }
}

pub async fn list_of_user(context: RequestContext, params: UserLogParams) -> Result<Json<LoggedRequestPage>> {
    context.meta.subject.get_or_init(|| params.user_id);
    let (from, to) = (params.time.from(), params.time.to());
    let (route, status) = narrowed(params.route, params.status);
    let filter = Filter { subject: Subject::User(params.user_id), route, status, from, to };
    list(&context, filter, page(&context, params.page, params.size)).await
}

pub async fn list_of_client(context: RequestContext, params: ClientLogParams) -> Result<Json<LoggedRequestPage>> {
    let (from, to) = (params.time.from(), params.time.to());
    let (route, status) = narrowed(params.route, params.status);
    let filter = Filter { subject: Subject::Client(params.client_ip.0.to_string()), route, status, from, to };
    list(&context, filter, page(&context, params.page, params.size)).await
}

pub async fn list_of_time(context: RequestContext, params: LogPeriodParams) -> Result<Json<LoggedRequestPage>> {
    let (from, to) = (params.time.from(), params.time.to());
    let (route, status) = narrowed(params.route, params.status);
    let subject = params.request_id.map_or(Subject::All, |id| Subject::Request(id.0));
    list(&context, Filter { subject, route, status, from, to }, page(&context, params.page, params.size)).await
}

pub async fn list_failed(context: RequestContext, params: FailedRequestsParams) -> Result<Json<LoggedRequestPage>> {
    let (from, to) = (params.time.from(), params.time.to());
    let (route, status) = narrowed(params.route, params.status);
    let filter = Filter { subject: Subject::Failed, route, status, from, to };
    list(&context, filter, page(&context, params.page, params.size)).await
}

fn narrowed(route: Option<LoggedRoute>, status: Option<LoggedStatus>) -> (Option<String>, Option<u16>) {
    (route.map(|route| route.0), status.map(|status| status.0))
}

async fn list(context: &RequestContext, filter: Filter, page: PageRequest) -> Result<Json<LoggedRequestPage>> {
    let (from, to) = (filter.from, filter.to);
    let found = context.report(move |app| {
        let found = search::list(&app.network_log, &filter, page)?;
        Ok(LoggedRequestPage::of(page, found, unlisted::list(&app.network_log, from, to)?))
    });
    found.await.map(Json)
}

/// The number of requests of a client address.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientCount {
    #[schema(example = "203.0.113.9")]
    client_ip: String,
    #[schema(example = 1200)]
    count: u64,
    #[schema(example = 40)]
    failed: u64,
    /// Number of different users signed in.
    #[schema(example = 2)]
    users: u64,
    first_at: Timestamp,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T04:04:05.678Z")]
    last_at: Timestamp,
}

impl From<Tally> for ClientCount {
    fn from(tally: Tally) -> Self {
        Self {
            client_ip: tally.client_ip,
            count: tally.requests,
            failed: tally.failed,
            users: tally.users,
            first_at: tally.first_at,
            last_at: tally.last_at,
        }
    }
}

/// One page of client addresses, the busiest first.
#[derive(Serialize, ToSchema)]
pub struct ClientCountPage {
    #[schema(value_type = String, format = DateTime, example = "2026-01-01T03:04:05.678Z")]
    from: Timestamp,
    to: Timestamp,
    items: Vec<ClientCount>,
    #[schema(example = 1)]
    page: u32,
    #[schema(example = 20)]
    size: u32,
    /// Addresses on all pages.
    #[schema(example = 1)]
    total: i64,
    /// Requests in the time range that could not be stored and are not counted, because the disk was too slow.
    unlisted: Vec<UnlistedCount>,
}

/// Counts the requests per address in a time range; by default the last 24 hours.
pub async fn count_by_client(context: RequestContext, params: LogDayParams) -> Result<Json<ClientCountPage>> {
    let (from, to) = params.window;
    let page = page(&context, params.page, params.size);
    let client = params.client_ip.map(|ClientIp(address)| address.to_string());
    let counted = context.report(move |app| {
        let found = clients::count(&app.network_log, from, to, client.as_deref(), page)?;
        Ok((found, unlisted::list(&app.network_log, from, to)?))
    });
    let (found, unlisted) = counted.await?;
    let items = found.items.into_iter().map(Into::into).collect();
    let unlisted = unlisted.into_iter().map(Into::into).collect();
    Ok(Json(ClientCountPage { from, to, items, page: page.number, size: page.size, total: found.total, unlisted }))
}

/// A client address with unusual activity.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuspiciousClient {
    #[schema(example = "203.0.113.9")]
    client_ip: String,
    /// 25 for each reason at its threshold, 50 at twice the threshold, at most 100 in total.
    #[schema(example = 62)]
    score: u64,
    reasons: Vec<SuspicionReason>,
    #[schema(example = 1200)]
    requests: u64,
    #[schema(example = 900)]
    failed: u64,
    #[schema(example = 15)]
    failed_sign_ins: u64,
    #[schema(example = 2)]
    users: u64,
    /// Requests in the busiest minute.
    #[schema(example = 180)]
    busiest_minute: u64,
    first_at: Timestamp,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:14:05.678Z")]
    last_at: Timestamp,
}

/// A reason why an address is suspicious.
#[derive(Serialize, ToSchema)]
pub struct SuspicionReason {
    /// `failed_sign_ins`, `failure_share` (percent), `distinct_users` or `request_rate` (in a minute).
    #[schema(example = "failed_sign_ins")]
    code: &'static str,
    #[schema(example = 15)]
    value: u64,
    /// The configured threshold.
    #[schema(example = 10)]
    threshold: u64,
}

impl From<Suspect> for SuspiciousClient {
    fn from(suspect: Suspect) -> Self {
        let Suspect { tally, score, reasons } = suspect;
        let reason = |found: clients::Reason| SuspicionReason {
            code: found.code,
            value: found.value,
            threshold: found.threshold,
        };
        Self {
            client_ip: tally.client_ip,
            score,
            reasons: reasons.into_iter().map(reason).collect(),
            requests: tally.requests,
            failed: tally.failed,
            failed_sign_ins: tally.failed_sign_ins,
            users: tally.users,
            busiest_minute: tally.busiest_minute,
            first_at: tally.first_at,
            last_at: tally.last_at,
        }
    }
}

/// One page of suspicious addresses, the worst first.
#[derive(Serialize, ToSchema)]
pub struct SuspiciousClientPage {
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T02:04:05.678Z")]
    from: Timestamp,
    to: Timestamp,
    items: Vec<SuspiciousClient>,
    #[schema(example = 1)]
    page: u32,
    #[schema(example = 20)]
    size: u32,
    /// Addresses on all pages.
    #[schema(example = 1)]
    total: i64,
}

/// Detects suspicious addresses in a time range; by default the last hour.
pub async fn list_suspicious(context: RequestContext, params: LogHourParams) -> Result<Json<SuspiciousClientPage>> {
    let (from, to) = params.window;
    let page = page(&context, params.page, params.size);
    let found = context.report(move |app| clients::suspicious(&app.network_log, from, to, page)).await?;
    let items = found.items.into_iter().map(Into::into).collect();
    Ok(Json(SuspiciousClientPage { from, to, items, page: page.number, size: page.size, total: found.total }))
}

/// The result of a cleanup.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogsDeleted {
    #[schema(example = 120_000)]
    deleted: usize,
    /// Requests before this time were deleted.
    #[schema(value_type = String, format = DateTime, example = "2025-07-06T03:04:05.678Z")]
    before: Timestamp,
}

pub async fn clean_up(context: RequestContext, params: CleanUpLogParams) -> Result<Json<LogsDeleted>> {
    let age = params.days_to_keep.map_or(context.app.core.config.retention.access_log, |days| days.as_duration());
    let before = context.app.core.clock.now().minus(age);
    context.record_start().await?;
    let deleted = context.blocking(move |app| network_log::clean_up(&app.network_log, age)).await?;
    Ok(Json(LogsDeleted { deleted, before }))
}

fn of_last_day(rules: &Rules<'_>, range: TimeRange) -> Result<(Timestamp, Timestamp)> {
    window(rules, range, clients::COUNTED)
}

fn of_last_hour(rules: &Rules<'_>, range: TimeRange) -> Result<(Timestamp, Timestamp)> {
    window(rules, range, clients::SUSPECTED)
}

fn window(rules: &Rules<'_>, range: TimeRange, usual: Duration) -> Result<(Timestamp, Timestamp)> {
    clients::window(("startTime", range.start), ("endTime", range.end), usual, rules.clock.now())
}

/// A client's address.
pub struct ClientIp(pub IpAddr);

/// The template of an endpoint, such as `/user/{id}`.
pub struct LoggedRoute(pub String);

impl Parameter for LoggedRoute {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        clean(&text(value)?, MAX_TEMPLATE).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": MAX_TEMPLATE, "example": "/coin/consume" })
    }
}

/// A status of HTTP.
pub struct LoggedStatus(pub u16);

impl Parameter for LoggedStatus {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let fault = |code| Fault::new(code, ("must be a status from 100 to 599", "须为 100 到 599 的状态码"));
        let status = text(value)?.trim().parse().map_err(|_| fault(FieldCode::InvalidFormat))?;
        if (100..600).contains(&status) { Ok(Self(status)) } else { Err(fault(FieldCode::OutOfRange)) }
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 100, "maximum": 599, "example": 404 })
    }
}

/// The id of a request.
pub struct LoggedRequestId(pub String);

impl Parameter for LoggedRequestId {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        clean(&text(value)?, MAX_TEMPLATE).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": MAX_TEMPLATE, "example": "9f86d081884c7d6500000017" })
    }
}

impl Parameter for ClientIp {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let address = text(value)?.trim().parse::<IpAddr>();
        address.map(|address| Self(address.to_canonical())).map_err(|_| {
            Fault::new(FieldCode::InvalidFormat, ("must be an IPv4 or IPv6 address", "须为 IPv4 或 IPv6 地址"))
        })
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "example": "203.0.113.9" })
    }
}
