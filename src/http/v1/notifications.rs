//! `/api/v1/notifications`: the caller's inbox.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    domain::messaging::notifications::{self, InboxItem, NotificationKind, Payload},
    error::Result,
    http::{
        cursor_page::{CursorList, CursorPage, span},
        params::{Nothing, PageSize, RowNumber, Rules, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    types::{Cursor, Timestamp},
};

const LIST: CursorList = CursorList("notifications");

parameters! {
    ListInboxParams(fields) {
        limit: Option<PageSize> = fields.optional("limit", "Maximum notifications in the response.");
        before: Option<i64> = {
            let cursor = fields.optional("cursor", "`nextCursor` of the previous response. Without it, starts with the newest.");
            fields.cross_field(cursor, before)
        };
    }

    MarkNotificationReadParams(fields) {
        id: RowNumber = fields.path("id", "Id of the notification.");
    }
}

/// A notification in the user's inbox.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Notification)]
pub struct NotificationResponse {
    #[schema(example = "42")]
    id: String,
    #[schema(example = "六十四卦全新解读")]
    title: String,
    #[schema(example = "更新后即可使用。")]
    body: String,
    kind: NotificationKind,
    payload: NotificationPayload,
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-02-02T03:04:05.678Z")]
    expires_at: Option<Timestamp>,
    /// Time at which the caller first read it.
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T09:04:05.678Z")]
    read_at: Option<Timestamp>,
}

impl From<InboxItem> for NotificationResponse {
    fn from(InboxItem { notification, read_at }: InboxItem) -> Self {
        Self {
            id: notification.id.to_string(),
            title: notification.title,
            body: notification.body,
            kind: notification.kind,
            payload: notification.payload.into(),
            created_at: notification.created_at,
            expires_at: notification.expires_at,
            read_at,
        }
    }
}

/// The action when the user taps it: none, a page of the app, or a URL.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(example = json!({"type": "open_route", "route": "sessions/detail", "params": {"id": "7"}}))]
pub enum NotificationPayload {
    None,
    OpenRoute { route: String, params: RouteParameters },
    OpenUrl { url: String },
}

/// The parameters of the page.
// Has a schema of its own, because generated clients need a name for it.
#[derive(Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object, example = json!({"id": "7"}))]
pub struct RouteParameters(Map<String, Value>);

impl From<Payload> for NotificationPayload {
    fn from(payload: Payload) -> Self {
        match payload {
            Payload::None {} => Self::None,
            Payload::OpenRoute { route, params } => Self::OpenRoute { route, params: RouteParameters(params) },
            Payload::OpenUrl { url } => Self::OpenUrl { url },
        }
    }
}

pub async fn list(context: RequestContext, params: ListInboxParams) -> Result<Json<CursorPage<NotificationResponse>>> {
    let span = span(&context, params.before, params.limit);
    let found = notifications::list(&context.app.core, context.user()?, span)?;
    LIST.page(&context, found, NotificationResponse::from)
}

fn before(rules: &Rules<'_>, cursor: Option<Cursor>) -> Result<Option<i64>> {
    LIST.position(rules.context, cursor)
}

/// The number of unread notifications.
#[derive(Serialize, ToSchema)]
pub struct UnreadCount {
    #[schema(example = 3)]
    count: usize,
}

pub async fn unread_count(context: RequestContext, _: Nothing) -> Result<Json<UnreadCount>> {
    let count = notifications::unread_count(&context.app.core, context.current_user()?)?;
    Ok(Json(UnreadCount { count }))
}

pub async fn mark_read(
    context: RequestContext,
    MarkNotificationReadParams { id }: MarkNotificationReadParams,
) -> Result<Json<NotificationResponse>> {
    let pending = notifications::mark_read(&context.app.core, context.user()?, id.0);
    Ok(Json(context.committed(pending).await?.into()))
}

/// The number still unread, and the number marked, including kinds that are switched off.
#[derive(Serialize, ToSchema)]
pub struct MarkedRead {
    /// Always 0.
    #[schema(example = 0)]
    count: usize,
    #[schema(example = 3)]
    marked: usize,
}

pub async fn mark_all_read(context: RequestContext, _: Nothing) -> Result<Json<MarkedRead>> {
    let pending = notifications::mark_all_read(&context.app.core, context.user()?);
    let done = context.committed(pending).await?;
    Ok(Json(MarkedRead { count: 0, marked: done.marked }))
}
