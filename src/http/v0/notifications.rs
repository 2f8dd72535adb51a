//! `/notifications`: broadcasts; for signed-in users, their inbox.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::messaging::notifications,
    error::Result,
    http::{params::Nothing, reply::Json, request_context::RequestContext, v1::notifications::NotificationResponse},
    types::CursorRange,
};

/// The newest broadcast, or null.
#[derive(Serialize, ToSchema)]
pub struct LatestNotification {
    notification: Option<NotificationResponse>,
}

pub async fn latest(context: RequestContext, _: Nothing) -> Result<Json<LatestNotification>> {
    let newest = notifications::latest_broadcast(&context.app.core, context.user().ok())?;
    Ok(Json(LatestNotification { notification: newest.map(Into::into) }))
}

/// Notifications, newest first, at most one page.
#[derive(Serialize, ToSchema)]
pub struct AllNotifications {
    items: Vec<NotificationResponse>,
}

pub async fn all(context: RequestContext, _: Nothing) -> Result<Json<AllNotifications>> {
    let limit = context.app.core.config.limits.page_size_max;
    let found = match context.user() {
        Ok(user) => notifications::list(&context.app.core, user, CursorRange { before: None, limit })?.items,
        Err(_) => notifications::list_broadcasts(&context.app.core, limit)?,
    };
    Ok(Json(AllNotifications { items: found.into_iter().map(Into::into).collect() }))
}
