//! `/notifications`: broadcasts; for signed-in users, their inbox.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::messaging::notifications,
    error::Result,
    http::{params::Nothing, reply::Json, request_context::Call, v1::notifications::Notification},
    types::Span,
};

/// The newest broadcast, or nothing.
#[derive(Serialize, ToSchema)]
pub struct LatestNotification {
    notification: Option<Notification>,
}

pub async fn latest(call: Call, _: Nothing) -> Result<Json<LatestNotification>> {
    let newest = notifications::latest_broadcast(&call.app, call.user().ok())?;
    Ok(Json(LatestNotification { notification: newest.map(Into::into) }))
}

/// Notifications, newest first: as many as a page holds at most.
#[derive(Serialize, ToSchema)]
pub struct AllNotifications {
    items: Vec<Notification>,
}

pub async fn all(call: Call, _: Nothing) -> Result<Json<AllNotifications>> {
    let limit = call.app.config.limits.page_size_max;
    let found = match call.user() {
        Ok(user) => notifications::list(&call.app, user, Span { before: None, limit })?.items,
        Err(_) => notifications::all_broadcasts(&call.app, limit)?,
    };
    Ok(Json(AllNotifications { items: found.into_iter().map(Into::into).collect() }))
}
