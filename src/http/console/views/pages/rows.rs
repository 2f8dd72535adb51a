//! Columns of rows that several pages list.

use maud::{Markup, html};

use crate::{
    domain::{
        divination::interpretation::CallRecord,
        money::{
            ledger::{Asset, LedgerEntry},
            payments::{callbacks::Callback, order::Order, refunds::Refund},
            purchases::purchase::StorePurchase,
        },
        operations::{audit::StoredAuditEvent, network_log::search::Logged},
    },
    http::console::views::{
        cells::{Cell, Column, column},
        context::{Right, ViewContext, href},
        format::{self, ShownMoney, with_query},
        forms,
        lists::{number, text, time},
        texts::{Text, Tone},
    },
    types::Currency,
};

/// Shows how much an order brings. Coins, which most bring, are not named.
pub fn count(cx: &ViewContext, count: impl Into<i64>, asset: Asset) -> Markup {
    html! { (format::number(count.into())) @if asset != Asset::Coin { " " (cx.word(&asset)) } }
}

fn count_of(count: i64, asset: Asset) -> Cell {
    let count = Cell::Number(count);
    if asset == Asset::Coin { count } else { count.explained(Cell::word(asset)) }
}

fn reason(reason: Option<&String>) -> Cell {
    Cell::optional(reason.cloned(), Cell::word)
}

pub const ORDER: &[Column<Order>] = &[
    column(text(Text::Order), |order| Cell::Order(order.order_no.clone())),
    column(text(Text::State), |order| Cell::state(order.state)),
    column(number(Text::Amount), |order| Cell::Money(ShownMoney(order.amount.as_fen(), order.currency))),
    column(number(Text::CoinsOrPoints), |order| count_of(order.coin_count.into(), order.asset)),
    column(text(Text::User), |order| Cell::User(order.user)),
    column(time(Text::Created), |order| Cell::Time(order.created_at)),
    column(text(Text::Cause), |order| reason(order.reason.as_ref())),
];

pub const ENTRY: &[Column<LedgerEntry>] = &[
    column(time(Text::Time), |entry| Cell::Time(entry.created_at)),
    column(text(Text::EntryKind), |entry| Cell::word(entry.kind)),
    column(number(Text::Change), |entry| Cell::Change(entry.delta)),
    column(number(Text::BalanceAfter), |entry| Cell::Number(entry.balance_after)),
    column(text(Text::Asset), |entry| Cell::word(entry.asset)),
    column(text(Text::Reference), |entry| {
        Cell::optional(entry.reference.as_deref(), |reference| match reference.strip_prefix("order:") {
            Some(order) => Cell::Order(order.split('/').next().unwrap_or(order).to_owned()),
            None => Cell::Code(reference.to_owned()),
        })
    }),
];

/// A callback, and true if its order exists.
pub type CallbackRow = (Callback, bool);

pub const CALLBACK: &[Column<CallbackRow>] = &[
    column(text(Text::Id), |(callback, _)| {
        let id = Cell::Code(callback.id.to_string());
        match callback.replay_of {
            Some(of) => id.explained(Cell::ReplayOf(of.to_string())),
            None => id,
        }
    }),
    column(time(Text::Received), |(callback, _)| Cell::Time(callback.received_at)),
    column(text(Text::Effect), |(callback, _)| {
        let effect = Cell::state(callback.verdict.clone());
        if callback.reason.is_some() { effect.explained(reason(callback.reason.as_ref())) } else { effect }
    }),
    column(text(Text::SignatureValid), |(callback, _)| {
        if callback.is_genuine { Cell::Badge(Tone::Good, Text::Yes) } else { Cell::Badge(Tone::Bad, Text::No) }
    }),
    column(text(Text::Order), |(callback, has_order)| {
        let cell = if *has_order { Cell::Order } else { Cell::Code };
        Cell::optional(callback.order_no.clone(), cell)
    }),
    column(text(Text::TradeNumber), |(callback, _)| Cell::optional(callback.trade_no.clone(), Cell::Code)),
    column(text(Text::Action), |(callback, _)| {
        let page = href(&format!("orders/callbacks/{}/replay", callback.id));
        Cell::html(move |cx| {
            html! {
                @if cx.may(Right::Administer) { (forms::button(cx, &page, cx.t(Text::ReplayCallback), "small")) }
            }
        })
    }),
];

/// A refund, and the currency of its order.
pub const REFUND: &[Column<(Refund, Currency)>] = &[
    column(text(Text::RefundNumber), |(refund, _)| Cell::Id(refund.refund_no.clone())),
    column(text(Text::State), |(refund, _)| Cell::state(refund.state)),
    column(number(Text::Amount), |(refund, currency)| Cell::Money(ShownMoney(refund.amount.as_fen(), *currency))),
    column(text(Text::Actor), |(refund, _)| Cell::Actor(refund.actor.clone())),
    column(text(Text::Reason), |(refund, _)| Cell::text(&refund.reason)),
    column(text(Text::Failure), |(refund, _)| Cell::optional(refund.failure.as_ref(), Cell::text)),
    column(time(Text::Created), |(refund, _)| Cell::Time(refund.created_at)),
];

pub const PURCHASE: &[Column<StorePurchase>] = &[
    column(text(Text::Purchase), |purchase| {
        let product = purchase.product.as_ref().map(|product| &product.id).or(purchase.store_product.as_ref());
        Cell::Purchase(purchase.id.to_string(), product.cloned())
    }),
    column(text(Text::Store), |purchase| {
        let store = Cell::word(purchase.key.store);
        if purchase.is_test() { store.explained(Cell::word("sandbox")) } else { store }
    }),
    column(text(Text::State), |purchase| Cell::state(purchase.state)),
    column(number(Text::Amount), |purchase| {
        Cell::optional(purchase.price_in_hundredths(), |(price, currency)| Cell::Money(ShownMoney(price, currency)))
    }),
    column(number(Text::CoinsOrPoints), |purchase| count_of(purchase.coin_count + purchase.bonus, purchase.asset())),
    column(text(Text::User), |purchase| Cell::optional(purchase.user, Cell::User)),
    column(time(Text::Created), |purchase| Cell::Time(purchase.created_at)),
    column(text(Text::Cause), |purchase| reason(purchase.reason.as_ref())),
];

pub const CALL: &[Column<CallRecord>] = &[
    column(text(Text::TraceId), |call| {
        let search = with_query(&href("search"), &[("q", &call.trace_id)]);
        Cell::TraceId(call.trace_id.clone()).link(search, Right::SupportUsers)
    }),
    column(text(Text::Outcome), |call| Cell::state(call.status)),
    column(text(Text::Model), |call| Cell::text(&call.model).explained(Cell::word(call.provider.clone()))),
    column(number(Text::Duration), |call| Cell::optional(call.duration_ms, Cell::Milliseconds)),
    column(text(Text::Failure), |call| reason(call.error_class.as_ref())),
    column(text(Text::User), |call| Cell::User(call.user)),
    column(number(Text::Rating), |call| {
        Cell::optional(call.rating.as_ref(), |rating| {
            Cell::Label(if rating.is_helpful { Text::Helpful } else { Text::NotHelpful })
        })
    }),
    column(time(Text::Time), |call| Cell::Time(call.created_at)),
];

pub const REQUEST: &[Column<Logged>] = &[
    column(time(Text::Time), |request| Cell::Time(request.at)),
    column(number(Text::Status), |request| Cell::Status(request.status)),
    column(text(Text::Route), |request| {
        Cell::Code(format!("{} {}", request.method, request.route.as_deref().unwrap_or("–")))
    }),
    column(number(Text::Duration), |request| Cell::Microseconds(request.duration_us)),
    column(text(Text::ClientAddress), |request| {
        let requests = with_query(&href("network-log"), &[("clientIp", &request.client_ip)]);
        Cell::Code(request.client_ip.clone()).link(requests, Right::SupportUsers)
    }),
    column(text(Text::User), |request| Cell::optional(request.user, Cell::User)),
    column(text(Text::RequestId), |request| Cell::Id(request.request_id.clone())),
];

pub const AUDIT: &[Column<StoredAuditEvent>] = &[
    column(time(Text::Time), |stored| Cell::Time(stored.at)),
    column(text(Text::Actor), |stored| {
        let actor = Cell::Actor(stored.event.actor.clone());
        match &stored.event.system_user {
            Some(user) => actor.explained(Cell::text(user)),
            None => actor,
        }
    }),
    column(text(Text::RecordedAction), |stored| Cell::Code(stored.event.action.clone())),
    column(text(Text::User), |stored| Cell::optional(stored.event.user, Cell::User)),
    column(number(Text::Outcome), |stored| Cell::Status(stored.event.outcome)),
    column(text(Text::Reason), |stored| Cell::optional(stored.event.reason.as_ref(), Cell::text)),
    column(text(Text::RequestId), |stored| Cell::Id(stored.event.request_id.clone())),
];
