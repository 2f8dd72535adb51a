//! Checked bills of the payment providers.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{Right, ViewContext, href},
    format::{self, ShownMoney, Timestamp},
    forms::{self, Control, Field, field},
    layout::{self, PageBody, Place},
    lists::{self, Column, ListView, Listing, number, text, time},
    parts,
    texts::{self, Text},
};

/// A difference between a bill and our records.
#[derive(Clone, Debug)]
pub struct BillDifferenceRow {
    pub code: String,
    pub order_no: String,
    /// False for an order that only the provider knows.
    pub has_order: bool,
    pub refund_no: Option<String>,
    pub billed: Option<ShownMoney>,
    pub recorded: Option<ShownMoney>,
}

/// The last check of the bill of a channel and a day.
#[derive(Clone, Debug)]
pub struct BillRow {
    pub day: String,
    pub channel: String,
    pub payments: u32,
    pub paid: ShownMoney,
    pub refunds: u32,
    pub refunded: ShownMoney,
    /// In yuan.
    pub fees: String,
    pub differences: Vec<BillDifferenceRow>,
    pub checked_at: Timestamp,
}

/// The checked bills.
#[derive(Clone, Debug)]
pub struct Bills {
    /// The configured channels that have bills.
    pub channels: Vec<String>,
    pub listing: Listing<BillRow>,
}

const BILL: [Column; 7] = [
    text(Text::Day),
    text(Text::Channel),
    number(Text::BillPayments),
    number(Text::BillRefunds),
    number(Text::Fees),
    text(Text::BillDifferences),
    time(Text::CheckedAt),
];

/// Renders the checked bills.
pub fn page(cx: &ViewContext, bills: &Bills) -> Markup {
    let view = ListView {
        id: "bills",
        caption: Text::Bills,
        empty: Text::NoBills,
        href: href("orders/bills"),
        bulk: None,
        export: None,
    };
    let body = html! {
        (layout::heading(cx.t(Text::Bills), None, &html! { a.button href=(href("orders?state=review")) { (cx.t(Text::OrdersInReview)) } }))
        p.hint { (cx.t(Text::BillsHint)) }
        @if cx.may(Right::Administer) && !bills.channels.is_empty() {
            section.card aria-label=(cx.t(Text::CheckBill)) { (parts::action(cx.t(Text::CheckBill), "", &check(cx, bills))) }
        }
        section.card aria-label=(cx.t(Text::Bills)) { (lists::list(cx, &view, &BILL, &bills.listing, |row| cells(cx, row))) }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Bills), Place::Orders, body))
}

fn check(cx: &ViewContext, bills: &Bills) -> Markup {
    let mut channels = vec![("", cx.t(Text::EachChannel).to_owned())];
    channels
        .extend(bills.channels.iter().map(|channel| (channel.as_str(), texts::code(cx.language, channel).to_owned())));
    forms::post(
        cx,
        &href("orders/bills"),
        &html! {
            (field(cx, &Field::new("day", Text::BillDay, Control::Date, "").required()))
            (field(cx, &Field::new("channel", Text::Channel, Control::Select(channels), "")))
            button.button.primary type="submit" { (cx.t(Text::CheckBill)) }
        },
    )
}

fn cells(cx: &ViewContext, row: &BillRow) -> Vec<Markup> {
    let counted = |count: u32, sum: ShownMoney| html! { (format::number(i64::from(count))) " · " (sum.text()) };
    vec![
        html! { (row.day) },
        html! { (texts::code(cx.language, &row.channel)) },
        counted(row.payments, row.paid),
        counted(row.refunds, row.refunded),
        html! { (row.fees) },
        differences(cx, &row.differences),
        cx.cell_time(row.checked_at),
    ]
}

fn differences(cx: &ViewContext, found: &[BillDifferenceRow]) -> Markup {
    let amount =
        |amount: Option<ShownMoney>| amount.map_or_else(|| parts::dash(cx), |amount| html! { (amount.text()) });
    html! {
        @if found.is_empty() { (parts::dash(cx)) } @else {
            ul.lines { @for one in found { li {
                span {
                    (texts::code(cx.language, &one.code)) " "
                    @if one.has_order { (parts::order_link(cx, &one.order_no)) } @else { code { (one.order_no) } }
                    @if let Some(refund) = &one.refund_no { " " code.id { (refund) } }
                }
                span.num { (amount(one.billed)) " / " (amount(one.recorded)) }
            } } }
        }
    }
}
