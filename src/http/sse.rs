//! Answers that come in pieces, as server-sent events.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, header},
};
use futures_util::stream::unfold;
use serde::Serialize;
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use utoipa::ToSchema;

use super::{
    reply::{Json, Reply, ReplyDescription},
    request_context::RequestContext,
    request_meta::RequestMeta,
    stream_authorization::StreamAuthorization,
};
use crate::{
    app::App,
    domain::divination::model_calls::CallPermit,
    error::{Code, Error, Result},
    providers::client::CancellationCheck,
};

/// Events that wait for a slow reader before the sender waits too.
const WAITING: usize = 64;

/// One answer, whole or as events, as the client asked.
pub enum JsonOrStream<T> {
    Json(T),
    Stream(SseResponse),
}

/// The sending end of an event stream, for a thread that blocks.
pub struct SseSender {
    sender: mpsc::Sender<Bytes>,
    entitlement: Arc<StreamAuthorization>,
}

/// Where a thread that tells something says that it has begun, or why it cannot.
pub type StartSignal = oneshot::Sender<Result<()>>;

/// The receiving end.
pub struct SseResponse {
    receiver: mpsc::Receiver<Bytes>,
    heartbeat: Duration,
    last_event: FinalEvent,
}

/// With what a stream ends when the service stops and cannot wait for its own end: a client is to know that something
/// is missing.
#[derive(Clone)]
pub struct FinalEvent(Bytes);

impl FinalEvent {
    /// One with a name, as [`SseSender::send`] makes it.
    pub fn named(event: &str, data: &impl Serialize) -> Self {
        Self(named_event(event, data).into())
    }

    /// One without.
    pub fn data(data: &impl Serialize) -> Self {
        let data = serde_json::to_string(data).unwrap_or_default();
        Self(format!("data: {data}\n\n").into())
    }
}

/// What streams are told that end now with the service.
pub fn cut_off() -> Error {
    Error::new(Code::Overloaded).detail("The service is stopping; ask again.")
}

/// The same answer; if it is a stream of events, one that ends with its last event when the service cannot wait longer.
pub fn end_on_shutdown(mut response: Response<Body>, ends: &watch::Receiver<bool>) -> Response<Body> {
    let Some(FinalEvent(last)) = response.extensions_mut().remove::<FinalEvent>() else { return response };
    let ends = ends.clone();
    response.map(|body| {
        let begun = Some((body.into_data_stream(), ends));
        Body::from_stream(unfold(begun, move |running| {
            let last = last.clone();
            async move {
                let (mut pieces, mut ends) = running?;
                let next = tokio::select! {
                    biased;
                    _ = ends.wait_for(|ends| *ends) => None,
                    piece = pieces.next() => Some(piece),
                };
                match next {
                    Some(piece) => piece.map(|piece| (piece, Some((pieces, ends)))),
                    None => Some((Ok(last), None)),
                }
            }
        }))
    })
}

/// A stream of what `tell` makes of what `prepare` has found, once `tell` says that it has begun. What goes wrong
/// before that is answered as a problem; only what comes after it is part of the stream. The place of the model call is
/// kept until all is told.
///
/// One thread prepares and tells: a request that is given up in between must not leave a record that nobody ends.
///
/// # Errors
/// Those of `prepare`, and those with which `tell` says that it cannot begin.
pub async fn stream_from_blocking_thread<T>(
    context: &RequestContext,
    place: CallPermit,
    last_event: FinalEvent,
    prepare: impl FnOnce(&App) -> Result<T> + Send + 'static,
    tell: impl FnOnce(&App, &RequestMeta, &SseSender, T, StartSignal) + Send + 'static,
) -> Result<SseResponse> {
    let (events, listening) = SseSender::channel(context, last_event);
    let (begun, beginning) = oneshot::channel();
    let (app, meta) = (Arc::clone(&context.app), Arc::clone(&context.meta));
    tokio::task::spawn_blocking(move || {
        let _place = place;
        match prepare(&app) {
            Ok(prepared) => tell(&app, &meta, &events, prepared, begun),
            Err(error) => drop(begun.send(Err(error))),
        }
    });
    beginning.await.map_err(Error::internal)??;
    Ok(listening)
}

impl SseSender {
    /// Both ends of a stream that answers the call. It gets a comment after a while without an event, so that nobody
    /// between takes it for dead.
    pub fn channel(context: &RequestContext, last_event: FinalEvent) -> (Self, SseResponse) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let entitlement = Arc::new(StreamAuthorization::of(context));
        let heartbeat = context.app.config.llm.heartbeat;
        (Self { sender, entitlement }, SseResponse { receiver, heartbeat, last_event })
    }

    /// Whether somebody listens, and may.
    pub fn is_heard(&self) -> bool {
        !self.sender.is_closed() && self.entitlement.holds()
    }

    /// What came of what is told, unless the listener was found to be nobody any more meanwhile.
    ///
    /// # Errors
    /// `unauthenticated`, and those of the outcome.
    pub fn unless_ended<T>(&self, outcome: Result<T>) -> Result<T> {
        if self.entitlement.has_ended() { Err(Code::Unauthenticated.into()) } else { outcome }
    }

    /// The same for the thread that waits for what is to be sent.
    pub fn wanted(&self) -> CancellationCheck {
        let (sender, entitlement) = (self.sender.clone(), Arc::clone(&self.entitlement));
        Arc::new(move || !sender.is_closed() && entitlement.holds())
    }

    /// Sends one event; false if nobody listens any more. Not for worker threads.
    pub fn send(&self, event: &str, data: &impl Serialize) -> bool {
        self.send_bytes(named_event(event, data))
    }

    /// Sends one event without a name, whose data may have several lines.
    pub fn send_data(&self, data: &str) -> bool {
        if data.contains(['\r', '\n']) {
            let lines: Vec<_> = data.lines().map(|line| ["data: ", line, "\n"].concat()).collect();
            return self.send_bytes(format!("{}\n", lines.concat()));
        }
        self.send_bytes(format!("data: {data}\n\n"))
    }

    /// Sends a comment, which says only that the stream is alive.
    pub fn send_sign_of_life(&self) -> bool {
        self.send_bytes(": alive\n\n")
    }

    fn send_bytes(&self, bytes: impl Into<Bytes>) -> bool {
        self.sender.blocking_send(bytes.into()).is_ok()
    }
}

fn named_event(event: &str, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {event}\ndata: {data}\n\n")
}

impl SseResponse {
    pub fn into_response(self) -> Response<Body> {
        let Self { receiver, heartbeat, last_event } = self;
        let ticks = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
        let events = ReceiverStream::new(receiver).timeout_repeating(ticks);
        let bytes = events.map(|event| Ok::<_, Infallible>(event.unwrap_or(Bytes::from_static(b": heartbeat\n\n"))));
        let mut response = Response::new(Body::from_stream(bytes));
        response.extensions_mut().insert(last_event);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Proxies that gather answers before they pass them on would turn a stream into a wait.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

impl<T: Serialize + ToSchema + Send + 'static> Reply for JsonOrStream<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        match self {
            Self::Json(value) => Json(value).into_response(),
            Self::Stream(listening) => Ok(listening.into_response()),
        }
    }

    fn describe() -> ReplyDescription {
        let mut document = Json::<T>::describe();
        let events = "Events `meta`, `delta`, `done` and `error`, each with a JSON object as its data.";
        document.contents.push(("text/event-stream", json!({ "description": events })));
        document
    }
}
