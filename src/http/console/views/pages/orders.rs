//! Orders: the list, and one order with its callbacks, refunds and decisions.

use maud::{Markup, html};

use super::rows;
use crate::{
    domain::money::payments::{order::Order, order_details::OrderDetails, reconcile::Inquiry},
    http::console::views::{
        cells,
        context::{Right, ViewContext, order_href},
        format::{self, ShownMoney, Timestamp},
        forms::{self, Control, Field, Form},
        layout::{self, PageBody, Place},
        parts::{self, facts, panel},
        texts::{self, Text, Tone},
    },
    providers::payment::OrderState,
    types::Fen,
};

/// An order with everything recorded about it.
pub struct OrderPage {
    pub details: OrderDetails,
    pub nickname: String,
    /// The balance of the user now.
    pub balance: i64,
    /// Events of the order with their times.
    pub times: Vec<(Text, Timestamp)>,
    /// The answer of the provider that was just asked.
    pub inquiry: Option<Inquiry>,
}

fn money(amount: Fen, order: &Order) -> ShownMoney {
    ShownMoney(amount.as_fen(), order.currency)
}

/// Renders an order.
pub fn page(cx: &ViewContext, page: &OrderPage) -> Markup {
    let OrderDetails { order, refunds, callbacks, entries } = &page.details;
    let callbacks: Vec<_> = callbacks.iter().map(|callback| (callback.clone(), true)).collect();
    let refunds: Vec<_> = refunds.iter().map(|refund| (refund.clone(), order.currency)).collect();
    let title = texts::order_title(cx.language, &order.order_no);
    let body = html! {
        (layout::heading(cx.t(Text::Order), None, &html! { (parts::copyable(cx, &order.order_no)) (parts::state(cx, &order.state)) }))
        @if order.state == OrderState::Review {
            (parts::note(Tone::Notice, &html! { p { strong { (cx.t(Text::NeedsDecision)) } " " (texts::code(cx.language, order.reason.as_deref().unwrap_or_default())) } }))
        }
        (inquiry(cx, page.inquiry.as_ref()))
        div.columns {
            (panel("order", cx.t(Text::OrderDetails), &order_facts(cx, order, page)))
            (panel("times", cx.t(Text::Timeline), &timeline(cx, order, &page.times)))
        }
        (actions(cx, order))
        (panel("callbacks", cx.t(Text::Callbacks), &cells::table_or(cx, Text::NoCallbacks, Text::Callbacks, rows::CALLBACK, &callbacks)))
        (panel("refunds", cx.t(Text::Refunds), &cells::table_or(cx, Text::NoRefunds, Text::Refunds, rows::REFUND, &refunds)))
        (panel("entries", cx.t(Text::LedgerEntries), &cells::table_or(cx, Text::NothingYet, Text::LedgerEntries, rows::ENTRY, entries)))
    };
    layout::page(cx, &PageBody::new(title, Place::Orders, body))
}

fn order_facts(cx: &ViewContext, order: &Order, page: &OrderPage) -> Markup {
    facts(
        cx,
        &[
            (Text::User, html! { (parts::user_link(cx, &order.user.to_string())) " " (page.nickname) }),
            (Text::Price, html! { (money(order.amount, order).text()) }),
            (Text::CoinsOrPoints, rows::count(cx, order.coin_count, order.asset)),
            (Text::Paid, html! { (money(order.paid, order).text()) }),
            (Text::Refunded, html! { (money(order.refunded, order).text()) }),
            (Text::CoinsReturned, html! { (format::number(order.coins_returned)) }),
            (Text::CoinsWrittenOff, html! { (format::number(order.coins_written_off)) }),
            (Text::BalanceNow, html! { (format::number(page.balance)) }),
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

fn timeline(cx: &ViewContext, order: &Order, times: &[(Text, Timestamp)]) -> Markup {
    html! {
        ol.timeline { @for (name, at) in times { li { span { (cx.t(*name)) } (cx.time(*at)) } } }
        p.hint { (texts::checks(cx.language, order.checks)) @if let Some(at) = order.next_check_at { " · " (cx.t(Text::NextCheck)) " " (cx.time(at)) } }
    }
}

fn inquiry(cx: &ViewContext, inquiry: Option<&Inquiry>) -> Markup {
    let Some(Inquiry { order, trade, outcome }) = inquiry else { return html! {} };
    html! {
        section.note.neutral role="status" {
            p { strong { (cx.t(Text::ProviderAnswered)) } " " (cx.time(cx.now)) }
            @if let Some(trade) = trade {
                p { code { (trade.trade_no) } " · " (parts::state(cx, &trade.status)) " · " (money(trade.amount, order).text()) }
            } @else { p { (cx.t(Text::NeverOpened)) } }
            p { (cx.t(Text::Effect)) ": " (parts::state(cx, &outcome.verdict)) @if let Some(reason) = outcome.reason { " " (texts::code(cx.language, reason)) } }
        }
    }
}

fn actions(cx: &ViewContext, order: &Order) -> Markup {
    let base = order_href(&order.order_no);
    panel(
        "actions",
        cx.t(Text::Actions),
        &html! {
            div.actions {
                @if cx.may(Right::SupportUsers) { (forms::button(cx, &format!("{base}/query"), cx.t(Text::AskProvider), "primary")) }
                @if cx.may(Right::Administer) {
                    @if order.paid > order.refunded { (refund(cx, order, &base)) }
                    @if order.state == OrderState::Review { (settle(cx, &base)) }
                }
                @if !cx.may(Right::Administer) { p.hint { (cx.t(Text::OwnerDecides)) } }
            }
        },
    )
}

fn refund(cx: &ViewContext, order: &Order, base: &str) -> Markup {
    let form = Form::new(cx, "refund", format!("{base}/refund"));
    let left = ShownMoney(order.paid.as_fen() - order.refunded.as_fen(), order.currency).plain();
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
