//! Checked bills of the payment providers.

use maud::{Markup, html};

use crate::{
    domain::money::payments::bills::{BillCheck, BillDifference, BillDifferenceCode},
    http::console::views::{
        cells::{Cell, Column, column},
        context::{Right, ViewContext, href},
        format::ShownMoney,
        forms::{self, Control, Field, field},
        lists::{number, text, time},
        parts,
        texts::{self, Text},
    },
    types::Fen,
};

pub const BILL: &[Column<BillCheck>] = &[
    column(text(Text::Day), |bill| Cell::text(bill.day.to_string())),
    column(text(Text::Channel), |bill| Cell::word(bill.channel.clone())),
    column(number(Text::BillPayments), |bill| count(bill.payments, bill.amount_paid)),
    column(number(Text::BillRefunds), |bill| count(bill.refunds, bill.amount_refunded)),
    column(number(Text::Fees), |bill| Cell::text(&bill.fees)),
    column(text(Text::BillDifferences), |bill| {
        let found = bill.differences.clone();
        if found.is_empty() { Cell::Absent } else { Cell::html(move |cx| differences(cx, &found)) }
    }),
    column(time(Text::CheckedAt), |bill| Cell::Time(bill.checked_at)),
];

fn count(count: u32, sum: Fen) -> Cell {
    Cell::Number(count.into()).explained(money(sum))
}

/// The providers with bills take yuan only.
const fn money(amount: Fen) -> Cell {
    Cell::Money(ShownMoney::yuan(amount.as_fen()))
}

fn differences(cx: &ViewContext, found: &[BillDifference]) -> Markup {
    html! {
        ul.lines { @for one in found { li {
            span {
                (cx.word(&one.code)) " "
                @if one.code == BillDifferenceCode::OrderMissing { code { (one.order_no) } } @else { (parts::order_link(cx, &one.order_no)) }
                @if let Some(refund) = &one.refund_no { " " code.id { (refund) } }
            }
            span.num { (Cell::optional(one.billed, money).markup(cx)) " / " (Cell::optional(one.recorded, money).markup(cx)) }
        } } }
    }
}

/// Renders the form that checks a day's bills of the channels that have some.
pub fn check(cx: &ViewContext, channels: &[&str]) -> Markup {
    let mut choices = vec![("", cx.t(Text::EachChannel).to_owned())];
    choices.extend(channels.iter().map(|channel| (*channel, texts::code(cx.language, channel).to_owned())));
    let form = html! {
        (field(cx, &Field::new("day", Text::BillDay, Control::Date, "").required()))
        (field(cx, &Field::new("channel", Text::Channel, Control::Select(choices), "")))
        button.button.primary type="submit" { (cx.t(Text::CheckBill)) }
    };
    html! {
        p.hint { (cx.t(Text::BillsHint)) }
        @if cx.may(Right::Administer) && !channels.is_empty() {
            section.card aria-label=(cx.t(Text::CheckBill)) {
                (parts::action(cx.t(Text::CheckBill), "", &forms::post(cx, &href("orders/bills"), &form)))
            }
        }
    }
}
