//! Interpretations as both generations answer them: whole, or told as they are written.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    app::App,
    domain::divination::{interpretation::CallRecord, model_calls::CallStatus},
    error::{Error, Result},
    http::{
        reply::{Problem, retry_after_seconds},
        request_meta::RequestMeta,
        sse::SseSender,
    },
    providers::{client::with_cancellation, llm::Flow},
};

/// Tokens as the provider counted them; null where it did not say.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    #[schema(example = 180)]
    prompt_tokens: Option<i64>,
    #[schema(example = 420)]
    completion_tokens: Option<i64>,
}

impl From<&CallRecord> for Usage {
    fn from(record: &CallRecord) -> Self {
        Self { prompt_tokens: record.prompt_tokens, completion_tokens: record.completion_tokens }
    }
}

/// An interpretation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interpretation {
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    trace_id: String,
    #[schema(value_type = CallStatus)]
    status: &'static str,
    #[schema(example = "水雷屯：万事起头难……")]
    result: Option<String>,
    /// `stop`, or `length` when the limit of tokens cut the result; null where nobody knows.
    #[schema(example = "stop")]
    finish_reason: Option<String>,
    /// Who interpreted; `builtin` is the offline interpreter.
    #[schema(example = "builtin")]
    provider: String,
    #[schema(example = "builtin-1")]
    model: String,
    #[schema(example = 2)]
    duration_ms: Option<i64>,
    usage: Usage,
}

impl From<CallRecord> for Interpretation {
    fn from(record: CallRecord) -> Self {
        Self {
            usage: Usage::from(&record),
            trace_id: record.trace_id,
            status: record.status.name(),
            result: record.result,
            finish_reason: record.finish_reason,
            provider: record.provider,
            model: record.model,
            duration_ms: record.duration_ms,
        }
    }
}

/// A problem in a stream, whose headers are long gone.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SseError<'error> {
    #[serde(flatten)]
    problem: Problem<'error>,
    /// Seconds, as `Retry-After` has them elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl<'error> SseError<'error> {
    pub fn of(error: &'error Error, meta: &'error RequestMeta) -> Self {
        Self { problem: Problem::of(error, &meta.request_id), retry_after: retry_after_seconds(error) }
    }
}

/// Tells what `run` writes as `meta`, `delta`, `done` and `error` events, on the thread that runs it.
pub fn tell<F>(app: &App, meta: &RequestMeta, events: &SseSender, trace_id: &str, run: F)
where
    F: FnOnce(&mut dyn FnMut(&str) -> Flow) -> Result<CallRecord>,
{
    events.send("meta", &json!({ "traceId": trace_id, "provider": app.model_calls.models.name(), "model": app.model_calls.models.model() }));
    let outcome = with_cancellation(events.wanted(), || {
        run(&mut |text| {
            // An empty piece only asks whether anybody is still there.
            let is_heard = events.is_heard() && (text.is_empty() || events.send("delta", &json!({ "text": text })));
            if is_heard { Flow::Continue } else { Flow::Stop }
        })
    });
    match events.unless_ended(outcome) {
        Ok(record) => events.send("done", &Interpretation::from(record)),
        Err(error) => events.send("error", &SseError::of(&error, meta)),
    };
}

/// Tells of an interpretation that is there already, in the events of one that is being written.
pub fn replay(events: &SseSender, record: CallRecord) {
    let meta = json!({ "traceId": record.trace_id, "provider": record.provider, "model": record.model });
    events.send("meta", &meta);
    events.send("delta", &json!({ "text": record.result.as_deref().unwrap_or_default() }));
    events.send("done", &Interpretation::from(record));
}
