//! `/admin/webhooks`: the events for other systems, and their replay.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::operations::{
        webhook_outbox::{self, WebhookEvent, WebhookKind, WebhookState},
        webhooks,
    },
    error::Result,
    http::{
        numbered_page::NumberedPage,
        params::{Nothing, PageNumber, PageSize, RowNumber, page, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    types::{Timestamp, UserId},
};

parameters! {
    ListWebhooksParams(fields) {
        state: Option<WebhookState> = fields.optional("state", "Only events in this state.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Events on a page.");
    }

    ReplayWebhooksParams(fields) {
        number: Option<RowNumber> = fields.optional("number", "The `id` of an event in the list. Without it, all events that were given up.");
    }
}

/// An event with its delivery.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookDelivery {
    #[schema(example = "17")]
    id: String,
    /// The id that the receiver sees.
    #[schema(example = "msg_0123456789abcdef0123456789abcdef")]
    event_id: String,
    kind: WebhookKind,
    /// Also a user who is deleted.
    user_id: Option<UserId>,
    state: WebhookState,
    /// Since the event or its last replay.
    #[schema(example = 1)]
    attempts: u32,
    created_at: Timestamp,
    /// The next attempt; null unless it is pending.
    #[schema(value_type = Option<String>, format = DateTime, example = json!(null))]
    due_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:05.912Z")]
    delivered_at: Option<Timestamp>,
    /// The code of the last failure.
    #[schema(example = json!(null))]
    failure: Option<String>,
}

impl From<WebhookEvent> for WebhookDelivery {
    fn from(event: WebhookEvent) -> Self {
        Self {
            id: event.id.to_string(),
            event_id: event.event_id,
            kind: event.kind,
            user_id: event.user,
            state: event.state,
            attempts: event.attempts,
            created_at: event.created_at,
            due_at: Some(event.due_at).filter(|_| event.state == WebhookState::Pending),
            delivered_at: event.delivered_at,
            failure: event.failure,
        }
    }
}

/// The number of events that will be sent again.
#[derive(Serialize, ToSchema)]
pub struct ReplayedWebhooks {
    #[schema(example = 3)]
    count: usize,
}

impl From<usize> for ReplayedWebhooks {
    fn from(count: usize) -> Self {
        Self { count }
    }
}

/// The test event that the receiver accepted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestedWebhook {
    #[schema(example = "msg_0123456789abcdef0123456789abcdef")]
    event_id: String,
}

impl From<String> for TestedWebhook {
    fn from(event_id: String) -> Self {
        Self { event_id }
    }
}

pub async fn list(context: RequestContext, params: ListWebhooksParams) -> Result<Json<NumberedPage<WebhookDelivery>>> {
    let page = page(&context, params.page, params.size);
    let found = context.report(move |app| webhook_outbox::list(&app.core, params.state, page)).await?;
    Ok(NumberedPage::of(page, found))
}

pub async fn replay(context: RequestContext, params: ReplayWebhooksParams) -> Result<Json<ReplayedWebhooks>> {
    let number = params.number.map(|RowNumber(id)| id);
    Ok(Json(context.blocking(move |app| webhook_outbox::replay(&app.core, number)).await?.into()))
}

pub async fn test(context: RequestContext, _: Nothing) -> Result<Json<TestedWebhook>> {
    let event_id = context.blocking(|app| webhooks::send_test(&app.webhooks)).await?;
    Ok(Json(event_id.into()))
}
