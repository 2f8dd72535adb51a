//! The interpretation in responses, whole and as a stream of `meta`, `delta`, `done` and `error` events.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::divination::{
        chart::{CastTime, Chart, chart_of},
        hexagram::Cast,
        interpretation::{CallRecord, Rating},
        model_calls::CallStatus,
    },
    error::{Error, Result},
    http::{
        classic_response::Classic,
        openapi::chart::ChartShape,
        reply::{Problem, retry_after_seconds},
        request_meta::RequestMeta,
        sse::{EventDescription, SseSender, StreamedResource},
    },
    providers::{
        client::with_cancellation,
        llm::{Flow, builtin::Written},
    },
    types::Timestamp,
};

/// Tokens as counted by the provider; null if unknown.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Usage)]
pub struct UsageResponse {
    #[schema(example = 180)]
    prompt_tokens: Option<i64>,
    #[schema(example = 420)]
    completion_tokens: Option<i64>,
}

impl From<&CallRecord> for UsageResponse {
    fn from(record: &CallRecord) -> Self {
        Self { prompt_tokens: record.prompt_tokens, completion_tokens: record.completion_tokens }
    }
}

/// A user's rating of an interpretation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Rating)]
pub struct RatingResponse {
    #[schema(example = true)]
    helpful: bool,
    #[schema(example = "讲得很清楚。")]
    note: Option<String>,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:05:06.789Z")]
    rated_at: Timestamp,
}

impl From<Rating> for RatingResponse {
    fn from(rating: Rating) -> Self {
        Self { helpful: rating.is_helpful, note: rating.note, rated_at: rating.rated_at }
    }
}

/// An interpretation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interpretation {
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    trace_id: String,
    status: CallStatus,
    #[schema(example = "水雷屯：万事起头难……")]
    result: Option<String>,
    /// `stop`, or `length` if the token limit cut the result; null if unknown.
    #[schema(example = "stop")]
    finish_reason: Option<String>,
    /// The provider; `builtin` is the offline interpreter.
    #[schema(example = "builtin")]
    provider: String,
    #[schema(example = "builtin-1")]
    model: String,
    /// Version of the prompt.
    #[schema(example = "2")]
    prompt_version: String,
    #[schema(example = 2)]
    duration_ms: Option<i64>,
    usage: UsageResponse,
    created_at: Timestamp,
    /// The caller's rating; null if there is none.
    rating: Option<RatingResponse>,
    /// The chart, if `/divination/enhanced` knows the lines. Without `castAt` it has no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ChartShape, nullable = false)]
    chart: Option<Chart>,
    /// The classical texts, if `/divination/enhanced` knows the lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    classic: Option<Classic>,
}

/// The chart and texts of the casting that was interpreted.
pub struct CastingShown {
    chart: Chart,
    classic: Classic,
}

impl CastingShown {
    pub fn of(cast: Cast, time: Option<&CastTime>, written: Written) -> Self {
        Self { chart: chart_of(&cast, time), classic: Classic::of(cast, written) }
    }
}

impl Interpretation {
    pub fn of(record: CallRecord, casting: Option<Box<CastingShown>>) -> Self {
        let (chart, classic) = casting.map(|casting| (casting.chart, casting.classic)).unzip();
        Self { chart, classic, ..record.into() }
    }
}

impl From<CallRecord> for Interpretation {
    fn from(record: CallRecord) -> Self {
        Self {
            usage: UsageResponse::from(&record),
            trace_id: record.trace_id,
            status: record.status,
            result: record.result,
            finish_reason: record.finish_reason,
            provider: record.provider,
            model: record.model,
            prompt_version: record.prompt_version,
            duration_ms: record.duration_ms,
            created_at: record.created_at,
            rating: record.rating.map(Into::into),
            chart: None,
            classic: None,
        }
    }
}

impl StreamedResource for Interpretation {
    fn events() -> Vec<EventDescription> {
        vec![
            EventDescription::of::<InterpretationStarted<'_>>("meta"),
            EventDescription::of::<InterpretationPiece<'_>>("delta"),
            EventDescription::of::<Self>("done"),
            EventDescription::of::<SseError<'_>>("error"),
        ]
    }
}

/// The data of a `meta` event, which begins a stream.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterpretationStarted<'call> {
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    pub trace_id: &'call str,
    #[schema(example = "builtin")]
    pub provider: &'call str,
    #[schema(example = "builtin-1")]
    pub model: &'call str,
}

/// The data of a `delta` event: the next piece of the text.
#[derive(Serialize, ToSchema)]
pub struct InterpretationPiece<'call> {
    #[schema(example = "万事起头难")]
    pub text: &'call str,
}

/// The data of an `error` event: a problem document and the delay that headers cannot carry any more.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StreamError)]
pub struct SseError<'error> {
    #[serde(flatten)]
    problem: Problem<'error>,
    /// Seconds until a retry makes sense, as in `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 30)]
    retry_after: Option<u64>,
}

impl<'error> SseError<'error> {
    pub fn of(error: &'error Error, meta: &'error RequestMeta) -> Self {
        Self { problem: Problem::of(error, meta), retry_after: retry_after_seconds(error) }
    }
}

/// Streams the text that `run` produces, on the calling thread.
pub fn stream<F>(meta: &RequestMeta, sender: &SseSender, casting: Option<Box<CastingShown>>, run: F)
where
    F: FnOnce(&mut dyn FnMut(&str) -> Flow) -> Result<CallRecord>,
{
    let outcome = with_cancellation(sender.cancellation_check(), || {
        run(&mut |text| {
            // An empty chunk only checks the connection.
            let is_open = sender.is_open() && (text.is_empty() || sender.send("delta", &InterpretationPiece { text }));
            if is_open { Flow::Continue } else { Flow::Stop }
        })
    });
    match sender.unless_revoked(outcome) {
        Ok(record) => sender.send("done", &Interpretation::of(record, casting)),
        Err(error) => sender.send("error", &SseError::of(&error, meta)),
    };
}
