//! `/notifications`: broadcasts; for signed-in users, their inbox.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::messaging::notifications,
    error::Result,
    http::{
        params::{Nothing, PageNumber, PageSize, page, parameters},
        reply::Json,
        request_context::RequestContext,
        v1::notifications::NotificationResponse,
    },
    types::{PageRequest, Paginated},
};

parameters! {
    AllNotificationsParams(fields) {
        page: Option<PageNumber> = fields.optional("page", "Number of the page. Without `page` and `size`, the newest 1000 notifications. Pages end there too.");
        size: Option<PageSize> = fields.optional("size", "Notifications on a page.");
    }
}

/// The newest broadcast, or null.
#[derive(Serialize, ToSchema)]
pub struct LatestNotification {
    notification: Option<NotificationResponse>,
}

pub async fn latest(context: RequestContext, _: Nothing) -> Result<Json<LatestNotification>> {
    let newest = notifications::latest_broadcast(&context.app.core, context.user().ok())?;
    Ok(Json(LatestNotification { notification: newest.map(Into::into) }))
}

/// Notifications, newest first, and how many there are.
#[derive(Serialize, ToSchema)]
pub struct AllNotifications {
    items: Vec<NotificationResponse>,
    #[schema(minimum = 0, example = 1)]
    total: i64,
}

pub async fn all(context: RequestContext, params: AllNotificationsParams) -> Result<Json<AllNotifications>> {
    let page = match (params.page, params.size) {
        (None, None) => PageRequest::of_newest(notifications::NEWEST),
        (number, size) => page(&context, number, size),
    };
    let Paginated { items, total } = notifications::list_newest(&context.app.core, context.user().ok(), page)?;
    Ok(Json(AllNotifications { items: items.into_iter().map(Into::into).collect(), total }))
}
