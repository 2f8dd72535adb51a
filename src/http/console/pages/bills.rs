//! Checked bills of the payment providers, and the check of a day.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::{
        money::payments::bills::{self, BillCheck, BillDifference, BillDifferenceCode},
        operations::figures::parse_day,
    },
    error::{Error, Result},
    http::console::{
        request::{ConsoleRequest, ok, rows},
        views::context::Flash,
        views::{
            format::ShownMoney,
            lists::Listing,
            pages::bills::{self as view, BillDifferenceRow, BillRow, Bills},
            texts::{self, Text, Tone},
        },
    },
    types::Fen,
};

const PAGE: &str = "orders/bills";

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let page = console.page_request();
    let found = console.context.report(move |app| bills::list(&app.core, page)).await?;
    let channels = console.context.app.payments.channels.all().filter(|channel| channel.gateway.has_bills());
    let channels = channels.map(|channel| channel.gateway.name().to_owned()).collect();
    ok(view::page(&console.view()?, &Bills { channels, listing: Listing::Rows(rows(page, found, row)) }))
}

fn row(check: BillCheck) -> BillRow {
    BillRow {
        day: check.day.to_string(),
        channel: check.channel,
        payments: check.payments,
        paid: shown(check.amount_paid),
        refunds: check.refunds,
        refunded: shown(check.amount_refunded),
        fees: check.fees,
        differences: check.differences.into_iter().map(difference_row).collect(),
        checked_at: check.checked_at,
    }
}

fn difference_row(found: BillDifference) -> BillDifferenceRow {
    BillDifferenceRow {
        code: found.code.name().to_owned(),
        has_order: found.code != BillDifferenceCode::OrderMissing,
        order_no: found.order_no,
        refund_no: found.refund_no,
        billed: found.billed.map(shown),
        recorded: found.recorded.map(shown),
    }
}

/// The providers with bills take yuan only.
const fn shown(amount: Fen) -> ShownMoney {
    ShownMoney::yuan(amount.as_fen())
}

/// Checks the bills of a day, and says how many differences there are.
pub async fn check(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let channel = console.form.find("channel").map(ToOwned::to_owned);
    let day = match parse_day(console.form.get("day")) {
        Ok(day) => day,
        Err(fault) => return console.rejected(PAGE, &Error::field("day", fault)),
    };
    let checked = console.context.blocking(move |app| bills::check(&app.payments, channel.as_deref(), day)).await;
    let count: usize = match checked {
        Ok(checked) => checked.iter().map(|check| check.differences.len()).sum(),
        failed => return console.finish(PAGE, failed),
    };
    if count == 0 {
        return console.done(PAGE, console.text(Text::BillAgrees));
    }
    let text = texts::bill_differences(console.language(), count);
    console.redirect(PAGE, &Flash { tone: Tone::Bad, text })
}
