//! Rejected texts.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::{
    bulk::{BulkForm, or_rejected},
    user_list::suspend,
    words,
};
use crate::{
    domain::{
        identity::staff_acts,
        moderation::{
            acquittals::{self, Acquittal},
            violations,
        },
    },
    error::{Code, Result},
    http::console::{
        acts,
        request::{ConsoleRequest, ok},
        views::{context::href, format::encode, layout::Place, pages::moderation as view},
    },
};

/// Resets the nicknames of the users of the picked texts, or suspends them.
pub async fn bulk(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    or_rejected(&console, try_bulk(&console).await).await
}

async fn try_bulk(console: &ConsoleRequest) -> Result<Response<Body>> {
    let mut form = BulkForm::read(console, Place::Violations)?;
    if !matches!(form.act, "suspend" | "reset-nickname") {
        return Err(form.unknown_act());
    }
    let core = &console.context.app.core;
    for id in form.ids.clone() {
        let found = match id.parse() {
            Ok(number) => console.context.report(move |app| violations::find(&app.core, number)).await,
            Err(_) => Err(Code::NotFound.into()),
        };
        let user = found.as_ref().ok().map(|found| found.user);
        let outcome = match (user, form.act) {
            (None, _) => found.map(|_| None),
            (Some(user), "suspend") => suspend(console, user, None).await,
            (Some(user), _) => {
                let by = console.context.authority(Some(form.reason.clone()))?;
                console.context.committed(staff_acts::reset_nickname(core, user, by)).await.map(|()| None)
            }
        };
        let page = href(&format!("moderation/violations/{}", encode(&id)));
        form.add(&id, Some(page), user, outcome).await?;
    }
    form.finish()
}

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let id = console.parameter("id").parse().map_err(|_| Code::NotFound)?;
    let found = console.context.report(move |app| violations::find(&app.core, id)).await?;
    console.context.meta.subject.get_or_init(|| found.user);
    ok(view::rejected_text(&console.view()?, &found))
}

/// Marks a rejected text as wrongly refused, and says what a phrase allowed with it does not do.
pub async fn acquit(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let acquitted = try_acquit(&console).await;
    if let Ok(acquitted) = &acquitted {
        console.context.meta.subject.get_or_init(|| acquitted.violation.user);
    }
    let message = acquitted.map(|acquitted| console.text(words::allowed_text(acquitted.warning)).to_owned());
    acts::finish(&console, message).await
}

async fn try_acquit(console: &ConsoleRequest) -> Result<Acquittal> {
    let id = console.parameter("id").parse().map_err(|_| Code::NotFound)?;
    let by = console.context.authority(Some(console.require_reason()?))?;
    let phrase = console.form.find("phrase").map(ToOwned::to_owned);
    console.context.blocking(move |app| acquittals::acquit(&app.moderation, id, phrase.as_deref(), &by)).await
}
