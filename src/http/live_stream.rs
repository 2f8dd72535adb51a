//! The event stream of a session's interpretation to one listener.
//!
//! Its events have ids, `traceId:position`, from which another request continues the stream (`Last-Event-ID`). The
//! position counts the bytes of text before it.

use std::{fmt, sync::Arc};

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName},
};
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{
    interpretation_sse::{Interpretation, InterpretationPiece, InterpretationStarted, SseError},
    live_interpretations::{LiveCall, LiveListener, LiveOutcome, LiveProgress, copy_of},
    request_context::RequestContext,
    request_meta::RequestMeta,
    sse::{FinalEvent, SseResponse, named_event, shutting_down},
    stream_authorization::{CHECK_INTERVAL, StreamAuthorization},
};
use crate::error::{Code, Error, Fault, FieldCode, Result};

pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The id of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventId {
    pub trace_id: String,
    /// The bytes of text up to the end of the event.
    pub position: usize,
}

impl EventId {
    /// Returns the last event that the client has received, if it names one.
    ///
    /// # Errors
    /// `invalid_parameters` for anything but an id of these streams.
    pub fn last_of(headers: &HeaderMap) -> Result<Option<Self>> {
        let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
        let parsed = value.to_str().ok().and_then(Self::parse).map(Some);
        parsed.ok_or_else(|| {
            let fault = Fault::new(
                FieldCode::InvalidFormat,
                ("must be the id of an event of an interpretation", "须为解读事件的 ID"),
            );
            Error::field("Last-Event-ID", fault)
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let (trace_id, position) = text.trim().split_once(':')?;
        let is_trace_id = trace_id.len() == 32 && trace_id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let position = position.parse().ok().filter(|_| is_trace_id)?;
        Some(Self { trace_id: trace_id.to_ascii_lowercase(), position })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.trace_id, self.position)
    }
}

/// Responds with the events of an interpretation, from a position of its text.
pub fn respond(context: &RequestContext, listener: LiveListener, call: LiveCall, position: usize) -> SseResponse {
    let mut checks = interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = LiveStream {
        listener,
        id: EventId { trace_id: call.trace_id.clone(), position },
        stage: Stage::Beginning(call),
        authorization: Arc::new(StreamAuthorization::new(context)),
        meta: Arc::clone(&context.meta),
        checks,
    };
    let final_event = FinalEvent::named("error", &SseError::of(&shutting_down(), &context.meta));
    SseResponse::of_events(context, unfold(stream, LiveStream::next), final_event)
}

/// The state of a stream between two events.
struct LiveStream {
    listener: LiveListener,
    /// The id of the last event.
    id: EventId,
    stage: Stage,
    authorization: Arc<StreamAuthorization>,
    meta: Arc<RequestMeta>,
    checks: Interval,
}

enum Stage {
    Beginning(LiveCall),
    Running,
    Over,
}

impl LiveStream {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let event = match std::mem::replace(&mut self.stage, Stage::Running) {
            Stage::Beginning(LiveCall { trace_id, provider, model }) => {
                self.event("meta", &InterpretationStarted { trace_id: &trace_id, provider: &provider, model: &model })
            }
            Stage::Running => self.next_text().await,
            Stage::Over => return None,
        };
        let event = match self.meta.held.grow(event.len()) {
            Ok(()) => event,
            Err(error) => self.end_with_error(&error),
        };
        Some((event, self))
    }

    async fn next_text(&mut self) -> Bytes {
        loop {
            if !StreamAuthorization::check(&self.authorization).await {
                return self.end_with_error(&Code::Unauthenticated.into());
            }
            match self.listener.progress(self.id.position) {
                LiveProgress::Text(text, position) => {
                    self.id.position = position;
                    return self.event("delta", &InterpretationPiece { text: &text });
                }
                LiveProgress::Ended(LiveOutcome::Finished(record)) => {
                    self.stage = Stage::Over;
                    return self.event("done", &Interpretation::from((*record).clone()));
                }
                LiveProgress::Ended(LiveOutcome::Failed(error)) => return self.end_with_error(&copy_of(&error)),
                LiveProgress::Pending => {
                    tokio::select! {
                        () = self.listener.changed() => {}
                        _ = self.checks.tick() => {}
                    }
                }
            }
        }
    }

    fn event(&self, name: &str, data: &impl Serialize) -> Bytes {
        format!("id: {}\n{}", self.id, named_event(name, data)).into()
    }

    /// Builds the last event. It has no id, so that the client continues after the text that it has.
    fn end_with_error(&mut self, error: &Error) -> Bytes {
        self.stage = Stage::Over;
        named_event("error", &SseError::of(error, &self.meta)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_its_own_ids_only() {
        let id = EventId { trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(), position: 17 };
        assert_eq!(EventId::parse(&id.to_string()), Some(id));
        for text in ["", "17", "4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4736:-1", "x:1"] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
    }
}
