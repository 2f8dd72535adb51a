//! Having something interpreted, for every endpoint that does: whole, or told as it is written.

use super::{
    interpretation_sse::{Interpretation, SseError, replay, tell},
    request_context::RequestContext,
    sse::{FinalEvent, JsonOrStream, SseSender, cut_off, stream_from_blocking_thread},
};
use crate::{
    app::App,
    domain::divination::{
        interpretation::CallRecord,
        model_calls::{self, CallPermit},
    },
    error::Result,
    providers::llm::Flow,
    types::UserId,
};

/// What a request for an interpretation comes to, once it is prepared.
pub enum Begun {
    /// It is there already.
    Stored(Box<CallRecord>),
    /// The model is to be asked.
    Pending { trace_id: String, run: Run },
}

/// Asks the model, with a sink for what it writes. Blocks.
pub type Run = Box<dyn FnOnce(&App, &mut dyn FnMut(&str) -> Flow) -> Result<CallRecord> + Send>;

/// A place for one model call of this user, as soon as there is one.
///
/// # Errors
/// `too_many_calls`; `overloaded` when the queue is full, or when waiting in it took too long.
pub async fn place(context: &RequestContext, user: UserId) -> Result<CallPermit> {
    let entering = context.app.model_calls.queue.acquire(user)?;
    match tokio::time::timeout(context.app.config.llm.queue_timeout, entering).await {
        Ok(place) => place,
        Err(_) => Err(model_calls::overloaded()),
    }
}

/// Answers with an interpretation that there is.
pub fn respond_with_stored(context: &RequestContext, record: CallRecord) -> JsonOrStream<Interpretation> {
    if !context.wants_stream() {
        return JsonOrStream::Json(record.into());
    }
    let (events, listening) = SseSender::channel(context, last_event(context));
    tokio::task::spawn_blocking(move || replay(&events, record));
    JsonOrStream::Stream(listening)
}

/// Prepares an interpretation, runs it, and answers with it, as JSON or, if the client wants that, as a stream of
/// `meta`, `delta`, `done` and `error` events. `prepare` runs where it may block.
///
/// # Errors
/// Those of [`place`], of `prepare` and of the run; for a stream the last become its `error` event.
pub async fn interpret<P>(context: &RequestContext, user: UserId, prepare: P) -> Result<JsonOrStream<Interpretation>>
where
    P: FnOnce(&App) -> Result<Begun> + Send + 'static,
{
    let place = place(context, user).await?;
    if !context.wants_stream() {
        let record = context.blocking(move |app| {
            let _place = place;
            match prepare(app)? {
                Begun::Stored(record) => Ok(*record),
                Begun::Pending { run, .. } => run(app, &mut |_| Flow::Continue),
            }
        });
        return Ok(JsonOrStream::Json(record.await?.into()));
    }
    let told = stream_from_blocking_thread(
        context,
        place,
        last_event(context),
        prepare,
        |app, meta, events, prepared, begun| {
            // Whether anybody still waits is asked before the model is.
            drop(begun.send(Ok(())));
            match prepared {
                Begun::Stored(record) => replay(events, *record),
                Begun::Pending { trace_id, run } => tell(app, meta, events, &trace_id, |sink| run(app, sink)),
            }
        },
    );
    Ok(JsonOrStream::Stream(told.await?))
}

/// The `error` event of a stream that is cut off by the end of the service.
fn last_event(context: &RequestContext) -> FinalEvent {
    FinalEvent::named("error", &SseError::of(&cut_off(), &context.meta))
}
