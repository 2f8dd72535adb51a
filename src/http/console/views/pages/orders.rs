//! Orders: the list, and one order with its callbacks, refunds and decisions.

use maud::{Markup, html};

use super::rows::{self, EntryRow, OrderRow};
use crate::http::console::views::{
    context::{Right, ViewContext, href, order_href},
    format::{self, ShownMoney, Timestamp, with_query},
    forms::{self, Control, Field, ProofField, field},
    layout::{self, PageBody, Place},
    lists::{self, Bulk, Filters, ListView, Listing, text, time},
    parts::{self, facts, panel},
    texts::{self, Text, Tone},
};

/// The filters, as typed.
#[derive(Clone, Debug, Default)]
pub struct TypedOrderFilter {
    pub state: String,
    pub user: String,
    pub min: String,
    pub max: String,
    pub from: String,
    pub to: String,
    /// Errors of fields that could not be read, by name.
    pub errors: Vec<(String, String)>,
}

/// The list with its filters.
#[derive(Clone, Debug)]
pub struct Orders {
    pub filter: TypedOrderFilter,
    pub listing: Listing<OrderRow>,
}

const STATES: [&str; 6] = ["review", "created", "paid", "credited", "refunded", "closed"];

/// Renders the list of orders.
pub fn list(cx: &ViewContext, orders: &Orders) -> Markup {
    let filter = &orders.filter;
    let query = [
        ("state", filter.state.as_str()),
        ("user", &filter.user),
        ("min", &filter.min),
        ("max", &filter.max),
        ("from", &filter.from),
        ("to", &filter.to),
    ];
    let preset = |text, state: &str| (text, with_query(&href("orders"), &[("state", state)]), filter.state == state);
    let mut states = vec![("", cx.t(Text::AnyState).to_owned())];
    states.extend(STATES.map(|state| (state, texts::state(cx.language, state).1.to_owned())));
    let error = |name: &str| filter.errors.iter().find(|(field, _)| field == name).map(|(_, error)| error.as_str());
    let filters = Filters {
        action: href("orders"),
        fields: vec![
            Field::new("state", Text::State, Control::Select(states), &filter.state).error(error("state")),
            Field::new("user", Text::UserId, Control::Text, &filter.user).error(error("user")),
            Field::new("min", Text::MinAmount, Control::Decimal, &filter.min).error(error("min")),
            Field::new("max", Text::MaxAmount, Control::Decimal, &filter.max).error(error("max")),
            Field::new("from", Text::From, Control::Moment, &filter.from).error(error("from")),
            Field::new("to", Text::To, Control::Moment, &filter.to).error(error("to")),
        ],
        presets: vec![
            preset(Text::All, ""),
            preset(Text::InReview, "review"),
            preset(Text::StatePaid, "paid"),
            preset(Text::StateRefunded, "refunded"),
        ],
        region: "orders",
    };
    let view = ListView {
        id: "orders",
        caption: Text::Orders,
        empty: Text::NoOrders,
        href: with_query(&href("orders"), &query),
        bulk: cx.may(Right::SupportUsers).then(|| Bulk {
            action: href("orders/bulk"),
            controls: html! {
                (forms::reason(cx, "bulk", "", None))
                button.button.primary type="submit" name="act" value="query" { (cx.t(Text::AskProvider)) }
            },
        }),
        export: Some(with_query(&href("orders/export"), &query)),
    };
    let body = html! {
        (layout::heading(cx.t(Text::Orders), None, &html! {
            a.button href=(href("orders/bills")) { (cx.t(Text::Bills)) }
            a.button href=(href("orders/callbacks")) { (cx.t(Text::Callbacks)) }
        }))
        (lists::filters(cx, &filters))
        section.card aria-label=(cx.t(Text::Orders)) { (lists::list(cx, &view, &rows::ORDER, &orders.listing, |row| picked(cx, row))) }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Orders), Place::Orders, body))
}

fn picked(cx: &ViewContext, row: &OrderRow) -> Vec<Markup> {
    let mut cells = rows::order(cx, row);
    cells[0] = lists::pick(cx, &row.order_no, &cells[0]);
    cells
}

/// A message of the payment provider.
#[derive(Clone, Debug)]
pub struct CallbackRow {
    pub id: String,
    pub received_at: Timestamp,
    pub channel: String,
    pub is_genuine: bool,
    pub verdict: String,
    pub reason: Option<String>,
    pub order_no: Option<String>,
    /// False for a callback that names an order that does not exist.
    pub has_order: bool,
    pub trade_no: Option<String>,
    pub replay_of: Option<String>,
}

#[derive(Clone, Debug)]
pub struct RefundRow {
    pub refund_no: String,
    pub amount: ShownMoney,
    pub state: String,
    pub reason: String,
    pub actor: String,
    pub failure: Option<String>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// The provider's answer to a query.
#[derive(Clone, Debug)]
pub struct ProviderAnswer {
    pub trade_no: Option<String>,
    pub status: Option<String>,
    pub amount: Option<ShownMoney>,
    pub verdict: String,
    pub reason: Option<String>,
    pub asked_at: Timestamp,
}

/// An order with everything recorded about it.
#[derive(Clone, Debug)]
pub struct OrderPage {
    pub order_no: String,
    pub user_id: String,
    pub nickname: String,
    pub state: String,
    pub reason: Option<String>,
    pub channel: String,
    pub app_id: Option<String>,
    pub amount: ShownMoney,
    /// `coin` or `point`.
    pub asset: String,
    /// The number of coins or points.
    pub count: u32,
    pub trade_no: Option<String>,
    pub paid: ShownMoney,
    pub refunded: ShownMoney,
    pub coins_returned: i64,
    pub coins_written_off: i64,
    /// The balance of the user now.
    pub balance: i64,
    pub checks: u32,
    pub next_check_at: Option<Timestamp>,
    /// Events of the order with their times.
    pub times: Vec<(Text, Timestamp)>,
    pub callbacks: Vec<CallbackRow>,
    pub refunds: Vec<RefundRow>,
    pub entries: Vec<EntryRow>,
    pub inquiry: Option<ProviderAnswer>,
    pub forms: OrderForms,
}

/// The forms of an order, with what was typed and the errors of a rejected attempt.
#[derive(Clone, Debug, Default)]
pub struct OrderForms {
    /// `refund` or `settle`, and the message.
    pub rejected: Option<(String, String)>,
    pub amount: String,
    pub amount_error: Option<String>,
    pub decision: String,
    pub reason: String,
    pub reason_error: Option<String>,
    pub step_up: ProofField,
}

/// Renders an order.
pub fn page(cx: &ViewContext, order: &OrderPage) -> Markup {
    let title = texts::order_title(cx.language, &order.order_no);
    let body = html! {
        (layout::heading(cx.t(Text::Order), None, &html! { (parts::copyable(cx, &order.order_no)) (parts::state(cx, &order.state)) }))
        @if order.state == "review" {
            (parts::note(Tone::Notice, &html! { p { strong { (cx.t(Text::NeedsDecision)) } " " (texts::code(cx.language, order.reason.as_deref().unwrap_or_default())) } }))
        }
        (inquiry(cx, order))
        div.columns {
            (panel("order", cx.t(Text::OrderDetails), &order_facts(cx, order)))
            (panel("times", cx.t(Text::Timeline), &timeline(cx, order)))
        }
        (actions(cx, order))
        (callbacks(cx, Text::Callbacks, &order.callbacks))
        (refunds(cx, &order.refunds))
        (panel("entries", cx.t(Text::LedgerEntries), &html! {
            @if order.entries.is_empty() { p.empty { (cx.t(Text::NothingYet)) } }
            @else { (lists::table(cx, Text::LedgerEntries, &rows::ENTRY, order.entries.iter().map(|row| rows::entry(cx, row)))) }
        }))
    };
    layout::page(cx, &PageBody::new(title, Place::Orders, body))
}

fn order_facts(cx: &ViewContext, order: &OrderPage) -> Markup {
    facts(
        cx,
        &[
            (Text::User, html! { (parts::user_link(cx, &order.user_id)) " " (order.nickname) }),
            (Text::Price, html! { (order.amount.text()) }),
            (Text::CoinsOrPoints, rows::count(cx, order.count, &order.asset)),
            (Text::Paid, html! { (order.paid.text()) }),
            (Text::Refunded, html! { (order.refunded.text()) }),
            (Text::CoinsReturned, html! { (format::number(order.coins_returned)) }),
            (Text::CoinsWrittenOff, html! { (format::number(order.coins_written_off)) }),
            (Text::BalanceNow, html! { (format::number(order.balance)) }),
            (
                Text::Channel,
                html! { (texts::code(cx.language, &order.channel)) " " @if let Some(app) = order.app_id.as_ref().filter(|app| **app != order.channel) { code { (app) } } },
            ),
            (
                Text::TradeNumber,
                match &order.trade_no {
                    Some(trade) => parts::copyable(cx, trade),
                    None => parts::dash(cx),
                },
            ),
            (Text::Cause, parts::or_dash(cx, order.reason.as_deref().map(|reason| texts::code(cx.language, reason)))),
        ],
    )
}

fn timeline(cx: &ViewContext, order: &OrderPage) -> Markup {
    html! {
        ol.timeline { @for (name, at) in &order.times { li { span { (cx.t(*name)) } (cx.time(*at)) } } }
        p.hint { (texts::checks(cx.language, order.checks)) @if let Some(at) = order.next_check_at { " · " (cx.t(Text::NextCheck)) " " (cx.time(at)) } }
    }
}

fn inquiry(cx: &ViewContext, order: &OrderPage) -> Markup {
    html! {
        @if let Some(answer) = &order.inquiry {
            section.note.neutral role="status" {
                p { strong { (cx.t(Text::ProviderAnswered)) } " " (cx.time(answer.asked_at)) }
                @if let Some(trade) = &answer.trade_no {
                    p { code { (trade) } " · " (parts::state(cx, answer.status.as_deref().unwrap_or_default())) @if let Some(amount) = answer.amount { " · " (amount.text()) } }
                } @else { p { (cx.t(Text::NeverOpened)) } }
                p { (cx.t(Text::Effect)) ": " (parts::state(cx, &answer.verdict)) @if let Some(reason) = &answer.reason { " " (texts::code(cx.language, reason)) } }
            }
        }
    }
}

fn actions(cx: &ViewContext, order: &OrderPage) -> Markup {
    let base = order_href(&order.order_no);
    let is_rejected = |form: &str| order.forms.rejected.as_ref().is_some_and(|(action, _)| action == form);
    panel(
        "actions",
        cx.t(Text::Actions),
        &html! {
            div.actions {
                @if cx.may(Right::SupportUsers) { (forms::button(cx, &format!("{base}/query"), cx.t(Text::AskProvider), "primary")) }
                @if cx.may(Right::Administer) {
                    @if order.paid.0 > order.refunded.0 { (parts::action_with(cx.t(Text::Refund), "", is_rejected("refund"), &refund(cx, order, &base))) }
                    @if order.state == "review" { (parts::action_with(cx.t(Text::Decide), "", is_rejected("settle"), &settle(cx, order, &base))) }
                }
                @if !cx.may(Right::Administer) { p.hint { (cx.t(Text::OwnerDecides)) } }
            }
        },
    )
}

fn refund(cx: &ViewContext, order: &OrderPage, base: &str) -> Markup {
    let state = &order.forms;
    let is_rejected = state.rejected.as_ref().is_some_and(|(action, _)| action == "refund");
    let left = ShownMoney(order.paid.0 - order.refunded.0, order.paid.1).plain();
    let amount = if is_rejected { state.amount.as_str() } else { &left };
    forms::post(
        cx,
        &format!("{base}/refund"),
        &html! {
            (forms::rejected(cx, state.rejected.as_ref().filter(|_| is_rejected).map(|(_, detail)| detail.as_str())))
            (field(cx, &Field::new("amount", Text::RefundAmount, Control::Decimal, amount).id("refund-amount").required().hint(Text::RefundHint).error(state.amount_error.as_deref().filter(|_| is_rejected))))
            (forms::reason(cx, "refund", if is_rejected { &state.reason } else { "" }, state.reason_error.as_deref().filter(|_| is_rejected)))
            (forms::step_up(cx, "refund", &state.step_up))
            button.button.danger type="submit" { (cx.t(Text::Refund)) }
        },
    )
}

fn settle(cx: &ViewContext, order: &OrderPage, base: &str) -> Markup {
    let state = &order.forms;
    let is_rejected = state.rejected.as_ref().is_some_and(|(action, _)| action == "settle");
    let decisions = [
        ("credit", Text::DecisionCredit, Text::DecisionCreditHint),
        ("write-off", Text::DecisionWriteOff, Text::DecisionWriteOffHint),
        ("claw-back", Text::DecisionClawBack, Text::DecisionClawBackHint),
        ("refunded-externally", Text::DecisionExternal, Text::DecisionExternalHint),
    ];
    forms::post(
        cx,
        &format!("{base}/settle"),
        &html! {
            (forms::rejected(cx, state.rejected.as_ref().filter(|_| is_rejected).map(|(_, detail)| detail.as_str())))
            fieldset.choices {
                legend { (cx.t(Text::Decision)) }
                @for (value, label, hint) in decisions {
                    label { input type="radio" name="decision" value=(value) required checked[is_rejected && state.decision == value]; span { strong { (cx.t(label)) } span.hint { (cx.t(hint)) } } }
                }
            }
            (forms::reason(cx, "settle", if is_rejected { &state.reason } else { "" }, state.reason_error.as_deref().filter(|_| is_rejected)))
            (forms::step_up(cx, "settle", &state.step_up))
            button.button.danger type="submit" { (cx.t(Text::Decide)) }
        },
    )
}

fn callbacks(cx: &ViewContext, title: Text, callbacks: &[CallbackRow]) -> Markup {
    panel(
        "callbacks",
        cx.t(title),
        &html! {
            @if callbacks.is_empty() { p.empty { (cx.t(Text::NoCallbacks)) } }
            @else { (lists::table(cx, title, &CALLBACK, callbacks.iter().map(|row| callback(cx, row)))) }
        },
    )
}

pub const CALLBACK: [lists::Column; 7] = [
    text(Text::Id),
    time(Text::Received),
    text(Text::Effect),
    text(Text::SignatureValid),
    text(Text::Order),
    text(Text::TradeNumber),
    text(Text::Action),
];

pub fn callback(cx: &ViewContext, row: &CallbackRow) -> Vec<Markup> {
    vec![
        html! { code { (row.id) } @if let Some(of) = &row.replay_of { " " span.hint { (texts::replay_of(cx.language, of)) } } },
        cx.cell_time(row.received_at),
        html! { (parts::state(cx, &row.verdict)) " " @if let Some(reason) = &row.reason { span.hint { (texts::code(cx.language, reason)) } } },
        parts::badge(
            if row.is_genuine { Tone::Good } else { Tone::Bad },
            cx.t(if row.is_genuine { Text::Yes } else { Text::No }),
        ),
        match &row.order_no {
            Some(order) if row.has_order => parts::order_link(cx, order),
            Some(order) => html! { code { (order) } },
            None => parts::dash(cx),
        },
        match &row.trade_no {
            Some(trade) => html! { code { (trade) } },
            None => parts::dash(cx),
        },
        html! { @if cx.may(Right::Administer) { (forms::button(cx, &href(&format!("orders/callbacks/{}/replay", row.id)), cx.t(Text::ReplayCallback), "small")) } },
    ]
}

fn refunds(cx: &ViewContext, refunds: &[RefundRow]) -> Markup {
    let columns = [
        text(Text::RefundNumber),
        text(Text::State),
        lists::number(Text::Amount),
        text(Text::Actor),
        text(Text::Reason),
        text(Text::Failure),
        time(Text::Created),
    ];
    panel(
        "refunds",
        cx.t(Text::Refunds),
        &html! {
            @if refunds.is_empty() { p.empty { (cx.t(Text::NoRefunds)) } } @else {
                (lists::table(cx, Text::Refunds, &columns, refunds.iter().map(|row| vec![
                    html! { code.id { (row.refund_no) } },
                    parts::state(cx, &row.state),
                    html! { (row.amount.text()) },
                    html! { code.actor { (row.actor) } },
                    html! { (row.reason) },
                    parts::or_dash(cx, row.failure.as_deref()),
                    cx.cell_time(row.created_at),
                ])))
            }
        },
    )
}

/// All callbacks, also those without an order.
#[derive(Clone, Debug)]
pub struct Callbacks {
    /// An effect, or empty for all.
    pub verdict: String,
    pub listing: Listing<CallbackRow>,
}

/// Renders all callbacks.
pub fn all_callbacks(cx: &ViewContext, page: &Callbacks) -> Markup {
    let path = href("orders/callbacks");
    let preset = |text, verdict: &str| (text, with_query(&path, &[("verdict", verdict)]), page.verdict == verdict);
    let presets = [preset(Text::All, ""), preset(Text::Rejected, "rejected"), preset(Text::InReview, "review")];
    let view = ListView {
        id: "all-callbacks",
        caption: Text::Callbacks,
        empty: Text::NoCallbacks,
        href: with_query(&path, &[("verdict", &page.verdict)]),
        bulk: None,
        export: Some(with_query(&href("orders/callbacks/export"), &[("verdict", &page.verdict)])),
    };
    let body = html! {
        (layout::heading(cx.t(Text::Callbacks), None, &html! { a.button href=(href("orders")) { (cx.t(Text::Orders)) } }))
        (lists::tabs(cx, Text::Presets, &presets))
        section.card aria-label=(cx.t(Text::Callbacks)) { (lists::list(cx, &view, &CALLBACK, &page.listing, |row| callback(cx, row))) }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Callbacks), Place::Orders, body))
}
