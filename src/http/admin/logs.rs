//! `/admin/logs`: the newest events of the server's log.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::operations::server_log::{self, FoundLogEvents, LogLevel, LogQuery, StoredLogEvent},
    error::{Fault, Result},
    http::{
        body::RawValue,
        params::{PageSize, Parameter, RowNumber, Rules, page, parameters, text},
        reply::Json,
        request_context::RequestContext,
    },
    types::{Timestamp, clean},
};

/// The longest text of a filter, in characters.
const MAX_FILTER: usize = 200;

parameters! {
    ListLogsParams(fields) {
        level: Option<LogLevel> = fields.optional("level", "The least severe level. Default: all that the log has.");
        target: Option<LogFilterText> = fields.optional("target", "The module or its beginning, such as `http` or `domain::money`.");
        search: Option<LogFilterText> = fields.optional("search", "A part of the message or of a field such as `status=503`, in any case.");
        request_id: Option<LogFilterText> = fields.optional("requestId", "Id of the request.");
        trace_id: Option<LogFilterText> = fields.optional("traceId", "Trace id of the model call.");
        before: Option<RowNumber> = fields.optional("before", "Only events before this id, from `next`.");
        size: Option<PageSize> = fields.optional("size", "Events in the response.");
    }
}

/// Events of the server's log.
#[derive(Serialize, ToSchema)]
pub struct LogEventList {
    /// Newest first.
    items: Vec<ShownLogEvent>,
    /// The value of `before` for further events; null if there are none.
    #[schema(example = json!(null))]
    next: Option<String>,
}

/// An event of the server's log.
#[derive(Serialize, ToSchema)]
pub struct ShownLogEvent {
    #[schema(example = "4711")]
    id: String,
    at: Timestamp,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    #[schema(example = "warn")]
    level: &'static str,
    #[schema(example = "yarrow::jobs")]
    target: String,
    #[schema(example = "a job failed")]
    message: String,
    /// Values by name.
    #[schema(example = json!({ "job": "backup" }))]
    fields: BTreeMap<String, String>,
}

impl From<FoundLogEvents> for LogEventList {
    fn from(found: FoundLogEvents) -> Self {
        Self {
            items: found.events.into_iter().map(ShownLogEvent::from).collect(),
            next: found.next.map(|id| id.to_string()),
        }
    }
}

impl From<StoredLogEvent> for ShownLogEvent {
    fn from(StoredLogEvent { id, event }: StoredLogEvent) -> Self {
        Self {
            id: id.to_string(),
            at: event.at,
            level: event.level.name(),
            target: event.target,
            message: event.message,
            fields: event.fields,
        }
    }
}

pub async fn list(context: RequestContext, params: ListLogsParams) -> Result<Json<LogEventList>> {
    let size = page(&context, None, params.size).size as usize;
    let own = |text: Option<LogFilterText>| text.map(|LogFilterText(text)| text);
    let query = LogQuery {
        level: params.level,
        target: own(params.target),
        text: own(params.search),
        request_id: own(params.request_id),
        trace_id: own(params.trace_id),
        before: params.before.map(|RowNumber(id)| id),
    };
    let found = context.report(move |app| server_log::search(&app.network_log, &query, size)).await?;
    Ok(Json(found.into()))
}

/// The text of a filter.
pub struct LogFilterText(String);

impl Parameter for LogFilterText {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        clean(&text(value)?, MAX_FILTER).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": MAX_FILTER, "example": "jobs" })
    }
}
