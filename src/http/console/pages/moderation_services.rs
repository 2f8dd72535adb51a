//! The moderation services: state, comparison, disagreements and switches.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::moderation::{
        compare::{self as comparison, ComparedText, TimedRuling},
        engine::ContentType,
        policy::{self, Service},
        shadow_mode, status,
    },
    error::{Code, Result},
    http::{
        console::{
            request::{ConsoleRequest, message_of, ok, page},
            views::{
                lists::{Listing, Rows},
                pages::moderation::{self as view, Compared, RejectedSwitch, ServicesPage},
                texts::Text,
            },
        },
        reply,
    },
};

const PAGE: &str = "moderation/services";

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
        rejected: None,
        step_up: console.step_up()?,
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

pub async fn switch(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let outcome = try_switch(&console).await;
    finish(&console, "switch", outcome).await
}

async fn try_switch(console: &ConsoleRequest) -> Result<()> {
    let service = Service::from_name(console.form.get("service")).ok_or(Code::NotFound)?;
    console.require_reason()?;
    let app = &console.context.app;
    console.context.committed(policy::switch(&app.core, &app.moderation.external, service)).await.map(drop)
}

pub async fn set_fallback(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let outcome = try_set_fallback(&console).await;
    finish(&console, "fallback", outcome).await
}

async fn try_set_fallback(console: &ConsoleRequest) -> Result<()> {
    let falls_back = console.form.get("fallback") == "on";
    console.require_reason()?;
    console.context.committed(policy::set_fallback(&console.context.app.core, falls_back)).await.map(drop)
}

/// Goes back to the page, or shows it again with the typed reason.
async fn finish(console: &ConsoleRequest, act: &'static str, outcome: Result<()>) -> Result<Response<Body>> {
    let Err(error) = outcome else { return console.done(PAGE, console.text(Text::ActionDone)) };
    if error.code == Code::Internal {
        return Err(error);
    }
    let message = message_of(&error, console.language());
    let mut shown = collect(console).await?;
    let typed_reason = console.form.get("reason").to_owned();
    shown.rejected = Some(RejectedSwitch { act, typed_reason, message });
    Ok(page(reply::status(error.code), view::services(&console.view()?, &shown)))
}
