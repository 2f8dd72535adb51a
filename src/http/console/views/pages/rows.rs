//! Rows that several pages list: orders, ledger entries, violations, model calls, requests, audit events.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{Right, ViewContext, href},
    format::{self, ShownMoney, Timestamp, with_query},
    lists::{Column, number, text, time},
    parts::{self, or_dash, order_link, state, user_link},
    texts::{self, Text},
};

/// An order in a list.
#[derive(Clone, Debug)]
pub struct OrderRow {
    pub order_no: String,
    pub user_id: String,
    pub amount: ShownMoney,
    /// `coin` or `point`.
    pub asset: String,
    /// The number of coins or points.
    pub count: u32,
    pub state: String,
    pub reason: Option<String>,
    pub created_at: Timestamp,
}

pub const ORDER: [Column; 7] = [
    text(Text::Order),
    text(Text::State),
    number(Text::Amount),
    number(Text::CoinsOrPoints),
    text(Text::User),
    time(Text::Created),
    text(Text::Cause),
];

/// Shows how much an order brings. Coins, which most bring, are not named.
pub fn count(cx: &ViewContext, count: impl Into<i64>, asset: &str) -> Markup {
    html! { (format::number(count.into())) @if asset != "coin" { " " (texts::code(cx.language, asset)) } }
}

pub fn order(cx: &ViewContext, row: &OrderRow) -> Vec<Markup> {
    vec![
        order_link(cx, &row.order_no),
        state(cx, &row.state),
        html! { (row.amount.text()) },
        count(cx, row.count, &row.asset),
        user_link(cx, &row.user_id),
        cx.cell_time(row.created_at),
        or_dash(cx, row.reason.as_deref().map(|reason| texts::code(cx.language, reason))),
    ]
}

/// An entry of the ledger.
#[derive(Clone, Debug)]
pub struct EntryRow {
    pub seq: i64,
    /// `coin` or `point`.
    pub asset: String,
    pub kind: String,
    pub delta: i64,
    pub balance_after: i64,
    pub reference: Option<String>,
    pub created_at: Timestamp,
}

pub const ENTRY: [Column; 6] = [
    time(Text::Time),
    text(Text::EntryKind),
    number(Text::Change),
    number(Text::BalanceAfter),
    text(Text::Asset),
    text(Text::Reference),
];

pub fn entry(cx: &ViewContext, row: &EntryRow) -> Vec<Markup> {
    let order = row.reference.as_deref().and_then(|reference| reference.strip_prefix("order:"));
    vec![
        cx.cell_time(row.created_at),
        html! { (texts::code(cx.language, &row.kind)) },
        html! { span.change.(if row.delta < 0 { "minus" } else { "plus" }) { (format::change(row.delta)) } },
        html! { (format::number(row.balance_after)) },
        html! { (texts::code(cx.language, &row.asset)) },
        match (order, &row.reference) {
            (Some(order), _) => order_link(cx, order.split('/').next().unwrap_or(order)),
            (None, Some(reference)) => html! { code { (reference) } },
            (None, None) => parts::dash(cx),
        },
    ]
}

/// A refused text.
#[derive(Clone, Debug)]
pub struct ViolationRow {
    pub id: String,
    pub user_id: String,
    pub content_type: String,
    pub kind: String,
    pub masked_text: String,
    pub matched_words: Vec<String>,
    pub provider: String,
    pub created_at: Timestamp,
    /// The decision of a moderator: `confirmed`, `wrongly_refused` or none.
    pub review: Option<String>,
}

pub const VIOLATION: [Column; 7] = [
    text(Text::MaskedText),
    text(Text::ViolationType),
    text(Text::ContentType),
    text(Text::User),
    text(Text::DetectedBy),
    text(Text::Reviewed),
    time(Text::Time),
];

pub fn violation(cx: &ViewContext, row: &ViolationRow) -> Vec<Markup> {
    vec![
        html! { span.quoted { (row.masked_text) } },
        html! { (texts::code(cx.language, &row.kind)) },
        html! { (texts::code(cx.language, &row.content_type)) },
        user_link(cx, &row.user_id),
        html! { (texts::code(cx.language, &row.provider)) },
        match &row.review {
            Some(review) => state(cx, review),
            None => parts::dash(cx),
        },
        cx.cell_time(row.created_at),
    ]
}

/// A call of a language model.
#[derive(Clone, Debug)]
pub struct CallRow {
    pub trace_id: String,
    pub user_id: Option<String>,
    pub status: String,
    pub provider: String,
    pub model: String,
    pub duration_ms: Option<i64>,
    pub error_class: Option<String>,
    pub is_helpful: Option<bool>,
    pub created_at: Timestamp,
}

pub const CALL: [Column; 8] = [
    text(Text::TraceId),
    text(Text::Outcome),
    text(Text::Model),
    number(Text::Duration),
    text(Text::Failure),
    text(Text::User),
    number(Text::Rating),
    time(Text::Time),
];

pub fn call(cx: &ViewContext, row: &CallRow) -> Vec<Markup> {
    vec![
        html! { @if cx.may(Right::SupportUsers) { a href=(with_query(&href("search"), &[("q", &row.trace_id)])) { code.id.trace { (row.trace_id) } } } @else { code.id.trace { (row.trace_id) } } },
        state(cx, &row.status),
        html! { (row.model) " " span.hint { (texts::code(cx.language, &row.provider)) } },
        html! { @match row.duration_ms { Some(ms) => (format::milliseconds(ms)), None => (parts::dash(cx)) } },
        html! { @match &row.error_class { Some(class) => (texts::code(cx.language, class)), None => (parts::dash(cx)) } },
        html! { @match &row.user_id { Some(user) => (user_link(cx, user)), None => (parts::dash(cx)) } },
        html! { @match row.is_helpful { Some(true) => (cx.t(Text::Helpful)), Some(false) => (cx.t(Text::NotHelpful)), None => (parts::dash(cx)) } },
        cx.cell_time(row.created_at),
    ]
}

/// A request of the network log.
#[derive(Clone, Debug)]
pub struct RequestRow {
    pub at: Timestamp,
    pub method: String,
    pub route: Option<String>,
    pub status: u16,
    pub duration_us: i64,
    pub user_id: Option<String>,
    pub client_ip: String,
    pub request_id: String,
}

pub const REQUEST: [Column; 7] = [
    time(Text::Time),
    number(Text::Status),
    text(Text::Route),
    number(Text::Duration),
    text(Text::ClientAddress),
    text(Text::User),
    text(Text::RequestId),
];

pub fn request(cx: &ViewContext, row: &RequestRow) -> Vec<Markup> {
    let by_client = with_query(&href("network-log"), &[("client", &row.client_ip)]);
    vec![
        cx.cell_time(row.at),
        html! { span.status.(if row.status >= 500 { "st5" } else if row.status >= 400 { "st4" } else { "st2" }) { (row.status) } },
        html! { code { (row.method) " " @match &row.route { Some(route) => (route), None => "–" } } },
        html! { (format::duration(row.duration_us)) },
        html! { a href=(by_client) { code { (row.client_ip) } } },
        html! { @match &row.user_id { Some(user) => (user_link(cx, user)), None => (parts::dash(cx)) } },
        html! { code.id { (row.request_id) } },
    ]
}

/// An event of the audit.
#[derive(Clone, Debug)]
pub struct AuditEventRow {
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    pub user_id: Option<String>,
    pub outcome: u16,
    pub reason: Option<String>,
    pub client_ip: Option<String>,
    pub request_id: Option<String>,
}

pub const AUDIT: [Column; 6] = [
    time(Text::Time),
    text(Text::Actor),
    text(Text::Action),
    text(Text::User),
    number(Text::Outcome),
    text(Text::Reason),
];

pub fn audit(cx: &ViewContext, row: &AuditEventRow) -> Vec<Markup> {
    vec![
        cx.cell_time(row.at),
        html! { code.actor { (row.actor) } },
        html! { code { (row.action) } },
        html! { @match &row.user_id { Some(user) => (user_link(cx, user)), None => (parts::dash(cx)) } },
        html! { span.status.(if row.outcome >= 400 { "st4" } else { "st2" }) { (row.outcome) } },
        or_dash(cx, row.reason.as_deref()),
    ]
}
