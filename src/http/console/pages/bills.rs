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
        acts,
        request::ConsoleRequest,
        views::{
            context::Flash,
            texts::{self, Text, Tone},
        },
    },
};

/// Checks the bills of a day, and says how many differences there are.
pub async fn check(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let channel = console.form.find("channel").map(ToOwned::to_owned);
    let day = match parse_day(console.form.get("day")) {
        Ok(day) => day,
        Err(fault) => return acts::reject(&console, Error::field("day", fault)).await,
    };
    let checked = console.context.blocking(move |app| bills::check(&app.payments, channel.as_deref(), day)).await;
    let count: usize = match checked {
        Ok(checked) => checked.iter().map(|check| check.differences.len()).sum(),
        Err(error) => return acts::reject(&console, error).await,
    };
    if count == 0 {
        return console.done(console.text(Text::BillAgrees));
    }
    let text = texts::bill_differences(console.language(), count);
    console.redirect(&Flash { tone: Tone::Bad, text })
}
