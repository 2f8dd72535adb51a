//! Acts on several users of the list.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::bulk::{BulkForm, or_rejected};
use crate::{
    domain::{
        identity::{staff_acts, suspensions},
        operations::{admins::roles::Right, idempotency::IdempotentRequest},
    },
    error::{Code, Error, Result},
    http::console::{
        request::ConsoleRequest,
        views::{context::user_href, layout::Place, texts::Text},
    },
    types::{SuspensionScope, Timestamp, UserId},
};

/// Suspends the picked users, or signs out their devices.
pub async fn bulk(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    or_rejected(&console, try_bulk(&console).await).await
}

async fn try_bulk(console: &ConsoleRequest) -> Result<Response<Body>> {
    let mut form = BulkForm::read(console, Place::Users)?;
    let right = match form.act {
        "suspend" => Right::Moderate,
        "end-devices" => Right::SupportUsers,
        _ => return Err(form.unknown_act()),
    };
    console.context.admin()?.role().require(right)?;
    let app = &console.context.app;
    let ends_at = console.optional_time("endsAt")?;
    for id in form.ids.clone() {
        let user = id.parse().map(UserId).map_err(|_| Error::from(Code::NotFound));
        let outcome = match (&user, right) {
            (Err(_), _) => Err(Code::NotFound.into()),
            (Ok(user), Right::Moderate) => suspend(console, *user, ends_at).await,
            (Ok(user), _) => {
                let ended = console.context.committed(staff_acts::sign_out(&app.core, *user, None)).await;
                ended.map(|devices| Some(format!("{}: {devices}", console.text(Text::Devices))))
            }
        };
        form.add(&id, Some(user_href(&id)), user.ok(), outcome).await?;
    }
    form.finish()
}

/// Suspends a user for the reason of the form.
pub(super) async fn suspend(
    console: &ConsoleRequest,
    user: UserId,
    ends_at: Option<Timestamp>,
) -> Result<Option<String>> {
    let by = console.context.authority(Some(console.require_reason()?))?;
    let (core, scope) = (&console.context.app.core, SuspensionScope::Account);
    let once = IdempotentRequest::without_key(None);
    console.context.committed(suspensions::suspend(core, user, scope, ends_at, by, once)).await.map(|_| None)
}
