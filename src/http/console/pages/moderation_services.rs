//! The moderation services: state, comparison, disagreements and switches.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::moderation::{
        compare::{self as comparison, ComparedText, TimedRuling},
        engine::ContentType,
        policy::Service,
        shadow_mode, status,
    },
    error::Result,
    http::console::{
        request::{ConsoleRequest, ok},
        views::{
            lists::{Listing, Rows},
            pages::moderation::{self as view, Compared, ServicesPage},
        },
    },
};

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let shown = collect(&console).await?;
    ok(view::services(&console.view()?, &shown))
}

async fn collect(console: &ConsoleRequest) -> Result<ServicesPage> {
    let page = console.page_request();
    let (state, found) = console
        .context
        .report(move |app| Ok((status::current(&app.moderation)?, shadow_mode::disagreements(&app.core, page)?)))
        .await?;
    Ok(ServicesPage {
        selected: state.policy.service,
        has_fallback: state.policy.falls_back,
        provider: state.provider.to_owned(),
        state: state.is_configured.then(|| state.breaker.into()),
        last_failure: state.last_failure.map(|failure| (failure.at, failure.code)),
        word_count: state.words.total,
        compared: None,
        text: String::new(),
        disagreements: Listing::Rows(Rows::numbered(page, found)),
    })
}

pub async fn compare(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let text = console.form.get("text").to_owned();
    let compared = ComparedText { content: text.clone(), content_type: ContentType::Question, user: None };
    let found = console.context.blocking(move |app| comparison::compare(&app.moderation, &compared)).await?;
    let timed = |service, timed: TimedRuling| {
        let milliseconds = i64::try_from(timed.took.as_millis()).unwrap_or(i64::MAX);
        (service, view::verdict(timed.ruling.allowed).to_owned(), milliseconds)
    };
    let external = match found.external {
        Ok(ruling) => timed(Service::External, ruling),
        Err(code) => (Service::External, code, 0),
    };
    let mut shown = collect(&console).await?;
    shown.compared = Some(Compared { text: text.clone(), rulings: vec![timed(Service::Local, found.local), external] });
    shown.text = text;
    ok(view::services(&console.view()?, &shown))
}
