//! Answers requests for the interpretation of a session: with a stored one, the running one, or a new call.
//!
//! A new call runs apart from the request that began it, so that it survives a lost connection. Requests for a session
//! whose call is running listen to it.

use std::sync::{Arc, Weak};

use axum::{body::Body, http::Response};

use super::{
    interpretation_response::acquire_permit,
    interpretation_sse::Interpretation,
    live_interpretations::{LiveCall, LiveListener, LiveWriter},
    live_stream::{self, EventId},
    reply::{Replayable, Reply, ReplyDescription, mark_replayed},
    request_context::RequestContext,
    request_meta::RequestMeta,
    sse::JsonOrStream,
};
use crate::{
    app::App,
    domain::{
        divination::{
            help::HelpOccasion,
            interpretation::CallRecord,
            sessions::{
                self,
                interpretation::{self, Existing, InterpretationRequest, PendingCall, Preparation},
            },
        },
        moderation::risk::Risk,
        operations::idempotency::{IdempotentOutcome, IdempotentRequest, StoredResponse},
    },
    error::{Code, Result},
    providers::{client::with_cancellation, llm::Flow},
};

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

/// Responds with JSON or a stream as the client asked.
///
/// # Errors
/// Errors of [`interpretation::find_existing`] and [`interpretation::prepare`], of the admission queue and, in JSON, of the
/// call. In a stream, those become its `error` event.
pub async fn interpret(context: &RequestContext, request: InterpretationRequest) -> Result<MaybeReplayed> {
    let last_event = EventId::last_of(&context.headers)?;
    let session = sessions::find(&context.app.core, request.user, &request.session_id)?;
    if let Some(last_event) = last_event
        && let Some(listener) = continued(context, &session, &last_event)?
    {
        return answer(context, listener, last_event.position).await.map(MaybeReplayed::Fresh);
    }
    let risk = session.risk();
    match interpretation::find_existing(&context.app.core, &request, &session, risk)? {
        Some(Existing::Stored(record)) => {
            return answer(context, context.live.listen_to_stored(*record), 0).await.map(MaybeReplayed::Fresh);
        }
        Some(Existing::Replayed(record)) => {
            return answer(context, context.live.listen_to_stored(*record), 0).await.map(MaybeReplayed::Replayed);
        }
        Some(Existing::Refused(response)) => return Ok(MaybeReplayed::Refused(response)),
        None => {}
    }
    let (listener, writer) = context.live.join_or_begin(&session.id)?;
    let Some(writer) = writer else { return joined(context, listener, request.once).await };
    tokio::spawn(run(Arc::clone(&context.app), Arc::downgrade(&context.meta), writer, request, risk));
    answer(context, listener, 0).await.map(MaybeReplayed::Fresh)
}

/// Returns a listener of the interpretation that the client has begun to read; none if it failed or is unknown.
fn continued(
    context: &RequestContext,
    session: &sessions::Session,
    last_event: &EventId,
) -> Result<Option<LiveListener>> {
    let is_same = |call: Option<&LiveCall>| call.is_some_and(|call| call.trace_id == last_event.trace_id);
    if let Some(listener) = context.live.join(&session.id, is_same)? {
        return Ok(Some(listener));
    }
    let stored = interpretation::find_of_session(&context.app.core, session, &last_event.trace_id)?;
    Ok(stored.map(|record| context.live.listen_to_stored(record)))
}

/// Answers with the running interpretation, and stores that this request got it.
async fn joined(
    context: &RequestContext,
    mut listener: LiveListener,
    once: IdempotentRequest<String>,
) -> Result<MaybeReplayed> {
    let call = listener.begun().await?;
    let is_replayed = if once.key().is_some() {
        let named = interpretation::name_call(&context.app.core, once, call.trace_id);
        matches!(context.committed(named).await?, IdempotentOutcome::Replayed(_))
    } else {
        false
    };
    let reply = answer(context, listener, 0).await?;
    Ok(if is_replayed { MaybeReplayed::Replayed(reply) } else { MaybeReplayed::Fresh(reply) })
}

async fn answer(
    context: &RequestContext,
    mut listener: LiveListener,
    position: usize,
) -> Result<JsonOrStream<Interpretation>> {
    if !context.wants_stream() {
        let record = listener.finished().await?;
        return Ok(JsonOrStream::Json((*record).clone().into()));
    }
    let call = listener.begun().await?;
    Ok(JsonOrStream::Stream(live_stream::respond(context, listener, call, position)))
}

/// Waits for a permit and runs the call on a blocking thread.
async fn run(
    app: Arc<App>,
    meta: Weak<RequestMeta>,
    writer: LiveWriter,
    request: InterpretationRequest,
    risk: Option<Risk>,
) {
    let permit = match acquire_permit(&app, request.user, risk, HelpOccasion::Interpretation).await {
        Ok(permit) => permit,
        Err(error) => return writer.end(Err(error)),
    };
    let call = tokio::task::spawn_blocking(move || {
        let outcome = prepare_and_call(&app, &meta, &writer, request, risk);
        // A listener that reads the end may begin the next call at once.
        drop(permit);
        writer.end(outcome);
    });
    if let Err(error) = call.await {
        tracing::error!(%error, "an interpretation panicked");
    }
}

fn prepare_and_call(
    app: &App,
    meta: &Weak<RequestMeta>,
    writer: &LiveWriter,
    request: InterpretationRequest,
    risk: Option<Risk>,
) -> Result<CallRecord> {
    match interpretation::prepare(&app.model_calls, request, risk)? {
        Preparation::Existing(Existing::Stored(record) | Existing::Replayed(record)) => Ok(*record),
        // Another request with the same key was refused meanwhile. The next one gets the stored error.
        Preparation::Existing(Existing::Refused(_)) => Err(Code::AlreadyRunning.into()),
        Preparation::Pending(pending) => {
            // The request may be gone, and no longer counts for its user then.
            if let Some((meta, budget_use)) = meta.upgrade().zip(pending.prepared.budget_use) {
                meta.show_budget(budget_use);
            }
            call_model(app, writer, &pending)
        }
    }
}

/// Calls the model until the call ends, or nobody has listened for some time.
fn call_model(app: &App, writer: &LiveWriter, pending: &PendingCall) -> Result<CallRecord> {
    writer.begin(LiveCall {
        trace_id: pending.prepared.trace_id.clone(),
        provider: pending.prepared.provider.to_owned(),
        model: pending.prepared.model.clone(),
    });
    let patience = app.core.config.llm.finish_after_disconnect;
    with_cancellation(Arc::new(writer.wanted_check(patience)), || {
        interpretation::run(&app.model_calls, pending, &mut |text| {
            if !text.is_empty() {
                writer.push(text);
            }
            if writer.is_wanted(patience) { Flow::Continue } else { Flow::Stop }
        })
    })
}
