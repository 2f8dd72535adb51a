//! Checked bills of the payment providers, and the check of a day.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::{
        money::payments::bills::{self},
        operations::figures::parse_day,
    },
    error::{Error, Result},
    http::console::{
        request::ConsoleRequest,
        views::{
            context::Flash,
            texts::{self, Text, Tone},
        },
    },
};

const PAGE: &str = "orders/bills";

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
