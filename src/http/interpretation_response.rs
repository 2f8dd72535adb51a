//! Runs an interpretation and responds with it, as JSON or as a stream of events.

use axum::{body::Body, http::Response};

use super::{
    interpretation_sse::{self, CastingShown, Interpretation, SseError},
    reply::{Replayable, Reply, ReplyDescription, mark_replayed},
    request_context::RequestContext,
    sse::{FinalEvent, JsonOrStream, SseSender, shutting_down, stream_from_blocking_thread},
};
use crate::{
    app::App,
    domain::{
        divination::{
            interpretation::CallRecord,
            model_calls::{self, CallPermit},
        },
        operations::idempotency::StoredResponse,
    },
    error::Result,
    providers::llm::Flow,
    types::UserId,
};

/// A prepared interpretation.
pub enum Prepared {
    /// The stored interpretation.
    Stored(Box<CallRecord>),
    /// A call of the model to run, and the casting to show with its answer.
    Pending { trace_id: String, casting: Option<Box<CastingShown>>, run: ModelRun },
}

/// An interpretation, or the stored response to an earlier request with the same idempotency key.
pub enum MaybeReplayed {
    Fresh(JsonOrStream<Interpretation>),
    Replayed(JsonOrStream<Interpretation>),
    /// A stored error.
    Refused(StoredResponse),
}

impl Reply for MaybeReplayed {
    fn into_response(self) -> Result<Response<Body>> {
        match self {
            Self::Fresh(reply) => reply.into_response(),
            Self::Replayed(reply) => reply.into_response().map(mark_replayed),
            Self::Refused(response) => Replayable::<Interpretation>::Replayed(response).into_response(),
        }
    }

    fn describe() -> ReplyDescription {
        JsonOrStream::<Interpretation>::describe()
    }
}

/// Calls the model and passes its text to a sink. Blocks.
pub type ModelRun = Box<dyn FnOnce(&App, &mut dyn FnMut(&str) -> Flow) -> Result<CallRecord> + Send>;

/// Waits for the permit for a model call of this user.
///
/// # Errors
/// `too_many_calls`; `overloaded` if the queue is full or the wait times out.
pub async fn acquire_permit(context: &RequestContext, user: UserId) -> Result<CallPermit> {
    let permit = context.app.model_calls.queue.acquire(user)?;
    match tokio::time::timeout(context.app.config.llm.queue_timeout, permit).await {
        Ok(permit) => permit,
        Err(_) => Err(model_calls::overloaded()),
    }
}

/// Responds with a stored interpretation.
pub fn respond_with_stored(context: &RequestContext, record: CallRecord) -> JsonOrStream<Interpretation> {
    if !context.wants_stream() {
        return JsonOrStream::Json(record.into());
    }
    let (sender, response) = SseSender::channel(context, final_event(context));
    tokio::task::spawn_blocking(move || interpretation_sse::replay(&sender, record));
    JsonOrStream::Stream(response)
}

/// Prepares and runs an interpretation, and responds with JSON or a stream as the client asked. `prepare` may block.
///
/// # Errors
/// Errors of [`acquire_permit`], of `prepare` and of the run. In a stream, those of the run become its `error` event.
pub async fn interpret<P>(context: &RequestContext, user: UserId, prepare: P) -> Result<JsonOrStream<Interpretation>>
where
    P: FnOnce(&App) -> Result<Prepared> + Send + 'static,
{
    let permit = acquire_permit(context, user).await?;
    if !context.wants_stream() {
        let interpretation = context.blocking(move |app| {
            let _permit = permit;
            match prepare(app)? {
                Prepared::Stored(record) => Ok(Interpretation::from(*record)),
                Prepared::Pending { casting, run, .. } => {
                    Ok(Interpretation::of(run(app, &mut |_| Flow::Continue)?, casting))
                }
            }
        });
        return Ok(JsonOrStream::Json(interpretation.await?));
    }
    let response = stream_from_blocking_thread(
        context,
        permit,
        final_event(context),
        prepare,
        |app, meta, sender, prepared, start| {
            // Starts before the model is called, so that the client can disconnect meanwhile.
            drop(start.send(Ok(())));
            match prepared {
                Prepared::Stored(record) => interpretation_sse::replay(sender, *record),
                Prepared::Pending { trace_id, casting, run } => {
                    interpretation_sse::stream(app, meta, sender, &trace_id, casting, |sink| run(app, sink));
                }
            }
        },
    );
    Ok(JsonOrStream::Stream(response.await?))
}

/// Returns the `error` event of a stream that a shutdown ends.
fn final_event(context: &RequestContext) -> FinalEvent {
    FinalEvent::named("error", &SseError::of(&shutting_down(), &context.meta))
}
