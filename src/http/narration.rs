//! Interpretations as both generations answer them: whole, or told as they are written.

use std::sync::Arc;

use axum::body::Bytes;
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use crate::{
    app::App,
    error::Result,
    http::{call::Call, reply::Problem, stream::Events},
    ops::interpretation::{self, Permit, Record},
    providers::llm::Flow,
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

impl From<interpretation::Usage> for Usage {
    fn from(usage: interpretation::Usage) -> Self {
        Self { prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens }
    }
}

/// An interpretation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interpretation {
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    trace_id: String,
    #[schema(example = "succeeded")]
    status: &'static str,
    #[schema(example = "水雷屯：万事起头难……")]
    result: Option<String>,
    /// Who interpreted; `builtin` is the offline interpreter.
    #[schema(example = "builtin")]
    provider: String,
    #[schema(example = "builtin-1")]
    model: String,
    #[schema(example = 2)]
    duration_ms: Option<i64>,
    usage: Usage,
}

impl From<Record> for Interpretation {
    fn from(record: Record) -> Self {
        Self {
            usage: record.usage.into(),
            trace_id: record.trace_id,
            status: record.status.name(),
            result: record.result,
            provider: record.provider,
            model: record.model,
            duration_ms: record.duration_ms,
        }
    }
}

/// Tells of an interpretation as it is written by `run`, which blocks and gets a sink for the pieces. A listener who
/// has left cancels it.
pub fn narrate<F>(call: &Call, trace_id: &str, permit: Permit, run: F) -> mpsc::Receiver<Bytes>
where
    F: FnOnce(&App, &mut dyn FnMut(&str) -> Flow) -> Result<Record> + Send + 'static,
{
    let (events, receiver) = Events::channel();
    let (app, context) = (Arc::clone(&call.app), Arc::clone(&call.context));
    let meta = json!({ "traceId": trace_id, "provider": app.llm.name(), "model": app.llm.model() });
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        events.send("meta", &meta);
        let outcome = run(&app, &mut |text| {
            // An empty piece only asks whether anybody is still there.
            let is_heard =
                if text.is_empty() { events.is_heard() } else { events.send("delta", &json!({ "text": text })) };
            if is_heard { Flow::Continue } else { Flow::Stop }
        });
        match outcome {
            Ok(record) => events.send("done", &Interpretation::from(record)),
            Err(error) => events.send("error", &Problem::of(&error, &context.request_id)),
        };
    });
    receiver
}

/// Tells of an interpretation that is there already, in the events of one that is being written.
pub fn retell(record: Record) -> mpsc::Receiver<Bytes> {
    let (events, receiver) = Events::channel();
    tokio::task::spawn_blocking(move || {
        let meta = json!({ "traceId": record.trace_id, "provider": record.provider, "model": record.model });
        events.send("meta", &meta);
        events.send("delta", &json!({ "text": record.result.as_deref().unwrap_or_default() }));
        events.send("done", &Interpretation::from(record));
    });
    receiver
}
