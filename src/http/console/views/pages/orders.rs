//! Orders: the list, and one order with its callbacks, refunds and decisions.

use maud::{Markup, html};

use super::rows::{self, CallbackRow};
use crate::{
    domain::money::{
        ledger::{Asset, LedgerEntry},
        payments::{refunds::Refund, settle::SettlementEffect},
    },
    http::console::views::{
        cells,
        context::{Right, ViewContext, order_href},
        format::{self, ShownMoney, Timestamp},
        forms::{self, Control, Field, Form},
        layout::{self, PageBody, Place},
        parts::{self, facts, panel},
        texts::{self, Text, Tone},
    },
    providers::payment::{OrderState, TradeStatus},
    types::Currency,
};

/// The provider's answer to a query.
#[derive(Clone, Debug)]
pub struct ProviderAnswer {
    pub trade_no: Option<String>,
    pub status: Option<TradeStatus>,
    pub amount: Option<ShownMoney>,
    pub verdict: SettlementEffect,
    pub reason: Option<String>,
    pub asked_at: Timestamp,
}

/// An order with everything recorded about it.
#[derive(Clone, Debug)]
pub struct OrderPage {
    pub order_no: String,
    pub user_id: String,
    pub nickname: String,
    pub state: OrderState,
    pub reason: Option<String>,
    pub channel: String,
    pub app_id: Option<String>,
    pub amount: ShownMoney,
    pub asset: Asset,
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
    pub refunds: Vec<(Refund, Currency)>,
    pub entries: Vec<LedgerEntry>,
    pub inquiry: Option<ProviderAnswer>,
}

/// Renders an order.
pub fn page(cx: &ViewContext, order: &OrderPage) -> Markup {
    let title = texts::order_title(cx.language, &order.order_no);
    let body = html! {
        (layout::heading(cx.t(Text::Order), None, &html! { (parts::copyable(cx, &order.order_no)) (parts::state(cx, &order.state)) }))
        @if order.state == OrderState::Review {
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
            @else { (cells::table(cx, Text::LedgerEntries, rows::ENTRY, &order.entries)) }
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
            (Text::CoinsOrPoints, rows::count(cx, order.count, order.asset)),
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
                    p { code { (trade) } " · " @if let Some(status) = &answer.status { (parts::state(cx, status)) } @if let Some(amount) = answer.amount { " · " (amount.text()) } }
                } @else { p { (cx.t(Text::NeverOpened)) } }
                p { (cx.t(Text::Effect)) ": " (parts::state(cx, &answer.verdict)) @if let Some(reason) = &answer.reason { " " (texts::code(cx.language, reason)) } }
            }
        }
    }
}

fn actions(cx: &ViewContext, order: &OrderPage) -> Markup {
    let base = order_href(&order.order_no);
    panel(
        "actions",
        cx.t(Text::Actions),
        &html! {
            div.actions {
                @if cx.may(Right::SupportUsers) { (forms::button(cx, &format!("{base}/query"), cx.t(Text::AskProvider), "primary")) }
                @if cx.may(Right::Administer) {
                    @if order.paid.0 > order.refunded.0 { (refund(cx, order, &base)) }
                    @if order.state == OrderState::Review { (settle(cx, &base)) }
                }
                @if !cx.may(Right::Administer) { p.hint { (cx.t(Text::OwnerDecides)) } }
            }
        },
    )
}

fn refund(cx: &ViewContext, order: &OrderPage, base: &str) -> Markup {
    let form = Form::new(cx, "refund", format!("{base}/refund"));
    let left = ShownMoney(order.paid.0 - order.refunded.0, order.paid.1).plain();
    let amount = Field::new("amount", Text::RefundAmount, Control::Decimal, &left).required().hint(Text::RefundHint);
    form.danger(cx.t(Text::Refund), "", &html! { (form.field(amount)) (form.reason()) })
}

fn settle(cx: &ViewContext, base: &str) -> Markup {
    let form = Form::new(cx, "settle", format!("{base}/settle"));
    let decisions = [
        ("credit", Text::DecisionCredit, Text::DecisionCreditHint),
        ("write-off", Text::DecisionWriteOff, Text::DecisionWriteOffHint),
        ("claw-back", Text::DecisionClawBack, Text::DecisionClawBackHint),
        ("refunded-externally", Text::DecisionExternal, Text::DecisionExternalHint),
    ];
    let chosen = form.value("decision", "");
    let fields = html! {
        fieldset.choices {
            legend { (cx.t(Text::Decision)) }
            @for (value, label, hint) in decisions {
                label { input type="radio" name="decision" value=(value) required checked[chosen == value]; span { strong { (cx.t(label)) } span.hint { (cx.t(hint)) } } }
            }
        }
        (form.reason())
    };
    form.danger(cx.t(Text::Decide), "", &fields)
}

fn callbacks(cx: &ViewContext, title: Text, callbacks: &[CallbackRow]) -> Markup {
    panel(
        "callbacks",
        cx.t(title),
        &html! {
            @if callbacks.is_empty() { p.empty { (cx.t(Text::NoCallbacks)) } }
            @else { (cells::table(cx, title, rows::CALLBACK, callbacks)) }
        },
    )
}

fn refunds(cx: &ViewContext, refunds: &[(Refund, Currency)]) -> Markup {
    panel(
        "refunds",
        cx.t(Text::Refunds),
        &html! {
            @if refunds.is_empty() { p.empty { (cx.t(Text::NoRefunds)) } }
            @else { (cells::table(cx, Text::Refunds, rows::REFUND, refunds)) }
        },
    )
}
