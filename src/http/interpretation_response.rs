//! Runs an interpretation of the first API generation and responds with it, as JSON or as a stream of events.

use super::{
    interpretation_sse::{self, CastingShown, Interpretation, InterpretationStarted, SseError},
    request_context::RequestContext,
    sse::{FinalEvent, JsonOrStream, shutting_down, stream_from_blocking_thread},
};
use crate::{
    app::App,
    domain::{
        divination::{
            help::HelpOccasion,
            interpretation::CallRecord,
            model_calls::{self, CallPermit},
        },
        moderation::risk::Risk,
    },
    error::Result,
    providers::llm::Flow,
    types::UserId,
};

/// A prepared interpretation: a call of the model to run, and the casting to show with its answer.
pub struct Prepared {
    pub trace_id: String,
    /// The provider and model that answer.
    pub provider: &'static str,
    pub model: String,
    pub casting: Option<Box<CastingShown>>,
    pub run: ModelRun,
}

/// Calls the model and passes its text to a sink. Blocks.
pub type ModelRun = Box<dyn FnOnce(&App, &mut dyn FnMut(&str) -> Flow) -> Result<CallRecord> + Send>;

/// Waits for the permit for a model call of this user. What the service answers alone needs none.
///
/// # Errors
/// `too_many_calls`; `overloaded` if the queue is full or the wait times out.
pub async fn acquire_permit(
    app: &App,
    user: UserId,
    risk: Option<Risk>,
    occasion: HelpOccasion,
) -> Result<Option<CallPermit>> {
    if app.model_calls.is_answered_alone(risk, occasion) {
        return Ok(None);
    }
    let permit = app.model_calls.queue.acquire(user)?;
    match tokio::time::timeout(app.core.config.llm.queue_timeout, permit).await {
        Ok(permit) => permit.map(Some),
        Err(_) => Err(model_calls::overloaded()),
    }
}

/// Prepares and runs an interpretation, and responds with JSON or a stream as the client asked. `prepare` may block.
///
/// # Errors
/// Errors of [`acquire_permit`], of `prepare` and of the run. In a stream, those of the run become its `error` event.
pub async fn interpret<P>(
    context: &RequestContext,
    user: UserId,
    risk: Option<Risk>,
    prepare: P,
) -> Result<JsonOrStream<Interpretation>>
where
    P: FnOnce(&App) -> Result<Prepared> + Send + 'static,
{
    let permit = acquire_permit(&context.app, user, risk, HelpOccasion::Interpretation).await?;
    if !context.wants_stream() {
        let interpretation = context.blocking(move |app| {
            let _permit = permit;
            let Prepared { casting, run, .. } = prepare(app)?;
            Ok(Interpretation::of(run(app, &mut |_| Flow::Continue)?, casting))
        });
        return Ok(JsonOrStream::Json(interpretation.await?));
    }
    let final_event = FinalEvent::named("error", &SseError::of(&shutting_down(), &context.meta));
    let response =
        stream_from_blocking_thread(context, permit, final_event, prepare, |app, meta, sender, prepared, start| {
            // Starts before the model is called, so that the client can disconnect meanwhile.
            drop(start.send(Ok(())));
            let Prepared { trace_id, provider, model, casting, run } = prepared;
            sender.send("meta", &InterpretationStarted { trace_id: &trace_id, provider, model: &model });
            interpretation_sse::stream(meta, sender, casting, |sink| run(app, sink));
        });
    Ok(JsonOrStream::Stream(response.await?))
}
