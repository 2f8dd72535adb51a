//! Server-sent events: a sender for blocking threads and the streamed response.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, header},
};
use futures_util::stream::{BoxStream, Stream, unfold};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    time::Instant,
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use utoipa::ToSchema;

use super::{
    event_connection::RareEvents,
    openapi::schemas::{reference, schemas},
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
    types::Timestamp,
};

/// Maximum events, and their bytes, that are buffered for a slow reader before the sender blocks. A larger event is
/// buffered alone.
const BUFFERED_EVENTS: usize = 64;
const BUFFERED_BYTES: u32 = 64 << 10;

/// A resource that is also sent as a stream of events.
pub trait StreamedResource: Serialize + ToSchema + Send + 'static {
    /// Returns the events in their order.
    fn events() -> Vec<EventDescription>;
}

/// An event in the API document.
pub struct EventDescription {
    name: &'static str,
    data: Value,
    schemas: Vec<(String, Value)>,
}

impl EventDescription {
    /// Describes the event whose data is a `T` in JSON.
    pub fn of<T: ToSchema>(name: &'static str) -> Self {
        Self { name, data: reference::<T>(), schemas: schemas::<T>() }
    }
}

/// A response as JSON or as events, as the client requested.
pub enum JsonOrStream<T> {
    Json(T),
    Stream(SseResponse),
}

/// The sending half of an event stream. Blocks, so it must not be used on worker threads.
pub struct SseSender {
    sender: mpsc::Sender<BufferedEvent>,
    /// A permit for each byte that may be buffered.
    free_bytes: Arc<Semaphore>,
    authorization: Arc<StreamAuthorization>,
}

/// A buffered event, and its share of the byte limit.
struct BufferedEvent {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

/// Reports that a stream has started, or why it could not.
pub type StartSignal = oneshot::Sender<Result<()>>;

/// The response half of an event stream.
pub struct SseResponse {
    events: BoxStream<'static, Bytes>,
    heartbeat: Duration,
    final_event: FinalEvent,
    /// The time of the response, if its events are rare.
    rare_events_at: Option<Timestamp>,
}

/// The event that ends a stream early at a shutdown, so that the client knows that the response is incomplete.
#[derive(Clone)]
pub struct FinalEvent(Bytes);

impl FinalEvent {
    pub fn named(event: &str, data: &impl Serialize) -> Self {
        Self(named_event(event, data).into())
    }

    /// Builds an event without a name.
    pub fn unnamed(data: &impl Serialize) -> Self {
        let data = serde_json::to_string(data).unwrap_or_default();
        Self(format!("data: {data}\n\n").into())
    }
}

/// Returns the error of streams that a shutdown ends.
pub fn shutting_down() -> Error {
    Error::new(Code::Overloaded)
        .detail(("The service is stopping. Repeat the request.", "服务正在停止，请重新发送请求。"))
}

/// Ends an event stream with its [`FinalEvent`] once `ends` is true. Returns other responses unchanged.
pub fn end_on_shutdown(mut response: Response<Body>, ends: &watch::Receiver<bool>) -> Response<Body> {
    let Some(FinalEvent(event)) = response.extensions_mut().remove::<FinalEvent>() else { return response };
    let ends = ends.clone();
    response.map(|body| {
        let state = Some((body.into_data_stream(), ends));
        Body::from_stream(unfold(state, move |state| {
            let event = event.clone();
            async move {
                let (mut pieces, mut ends) = state?;
                let next = tokio::select! {
                    biased;
                    _ = ends.wait_for(|ends| *ends) => None,
                    piece = pieces.next() => Some(piece),
                };
                match next {
                    Some(piece) => piece.map(|piece| (piece, Some((pieces, ends)))),
                    None => Some((Ok(event), None)),
                }
            }
        }))
    })
}

/// Runs `prepare` and `stream` on one blocking thread, and returns the response once `stream` has sent its start
/// signal. Errors before that become problem documents, later ones events. The permit is held until the stream ends.
///
/// Both run on one thread, so that a client that disconnects in between cannot leave an unfinished record.
///
/// # Errors
/// Errors of `prepare`, and those that `stream` reports instead of starting.
pub async fn stream_from_blocking_thread<T>(
    context: &RequestContext,
    permit: Option<CallPermit>,
    final_event: FinalEvent,
    prepare: impl FnOnce(&App) -> Result<T> + Send + 'static,
    stream: impl FnOnce(&App, &RequestMeta, &SseSender, T, StartSignal) + Send + 'static,
) -> Result<SseResponse> {
    context.meta.held.grow(BUFFERED_BYTES as usize)?;
    let (sender, response) = SseSender::channel(context, final_event);
    let (start, started) = oneshot::channel();
    let (app, meta) = (Arc::clone(&context.app), Arc::clone(&context.meta));
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        match prepare(&app) {
            Ok(prepared) => stream(&app, &meta, &sender, prepared, start),
            Err(error) => drop(start.send(Err(error))),
        }
    });
    started.await.map_err(Error::internal)??;
    Ok(response)
}

impl SseSender {
    /// Creates both halves of a stream. It sends comments while there are no events, so that proxies keep it open.
    pub fn channel(context: &RequestContext, final_event: FinalEvent) -> (Self, SseResponse) {
        let (sender, receiver) = mpsc::channel(BUFFERED_EVENTS);
        let authorization = Arc::new(StreamAuthorization::new(context));
        let heartbeat = context.app.core.config.llm.heartbeat;
        let free_bytes = Arc::new(Semaphore::new(BUFFERED_BYTES as usize));
        let events = Box::pin(ReceiverStream::new(receiver).map(|event: BufferedEvent| event.bytes));
        let response = SseResponse { events, heartbeat, final_event, rare_events_at: None };
        (Self { sender, free_bytes, authorization }, response)
    }

    /// Returns true while the client is connected and its token is valid.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed() && self.authorization.is_valid()
    }

    /// Returns the outcome, or an error if the token has been revoked meanwhile.
    ///
    /// # Errors
    /// `unauthenticated`; errors of the outcome.
    pub fn unless_revoked<T>(&self, outcome: Result<T>) -> Result<T> {
        if self.authorization.is_revoked() { Err(Code::Unauthenticated.into()) } else { outcome }
    }

    /// Returns [`Self::is_open`] as a check for the provider client.
    pub fn cancellation_check(&self) -> CancellationCheck {
        let (sender, authorization) = (self.sender.clone(), Arc::clone(&self.authorization));
        Arc::new(move || !sender.is_closed() && authorization.is_valid())
    }

    /// Sends a named event. Returns false if the client has disconnected.
    pub fn send(&self, event: &str, data: &impl Serialize) -> bool {
        self.send_bytes(named_event(event, data))
    }

    /// Sends an event without a name. Its data may have several lines.
    pub fn send_data(&self, data: &str) -> bool {
        if memchr::memchr2(b'\r', b'\n', data.as_bytes()).is_some() {
            let lines: Vec<_> = data.lines().map(|line| ["data: ", line, "\n"].concat()).collect();
            return self.send_bytes(format!("{}\n", lines.concat()));
        }
        self.send_bytes(format!("data: {data}\n\n"))
    }

    /// Sends a comment that keeps the connection alive.
    pub fn send_keep_alive(&self) -> bool {
        self.send_bytes(": alive\n\n")
    }

    fn send_bytes(&self, bytes: impl Into<Bytes>) -> bool {
        let bytes: Bytes = bytes.into();
        let size = u32::try_from(bytes.len()).unwrap_or(BUFFERED_BYTES).min(BUFFERED_BYTES);
        // A response that ends drops the buffer, which releases all permits.
        let permit = pollster::block_on(Arc::clone(&self.free_bytes).acquire_many_owned(size));
        permit.is_ok_and(|permit| self.sender.blocking_send(BufferedEvent { bytes, _permit: permit }).is_ok())
    }
}

/// Returns the schema of an event stream. OpenAPI 3.1 has no words for the single events, so that an extension names the
/// schemas of their data.
pub fn event_stream(events: &str, data: &Map<String, Value>) -> Value {
    let description = format!("Server-sent events: {events}. `x-events` names the schema of the data of each.");
    json!({ "description": description, "x-events": data })
}

/// Adds a stream of these events to the description of a reply.
pub fn add_event_stream(description: &mut ReplyDescription, events: Vec<EventDescription>) {
    let (mut names, mut data) = (Vec::new(), Map::new());
    for event in events {
        names.push(format!("`{}`", event.name));
        data.insert(event.name.to_owned(), event.data);
        description.schemas.extend(event.schemas);
    }
    description.contents.push(("text/event-stream", event_stream(&names.join(", "), &data)));
}

/// Builds an event with a JSON object as its data.
pub fn named_event(event: &str, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {event}\ndata: {data}\n\n")
}

impl SseResponse {
    /// Builds a response that asks for its next event whenever the last one is sent.
    pub fn of_events(
        context: &RequestContext,
        events: impl Stream<Item = Bytes> + Send + 'static,
        final_event: FinalEvent,
    ) -> Self {
        let heartbeat = context.app.core.config.llm.heartbeat;
        Self { events: Box::pin(events), heartbeat, final_event, rare_events_at: None }
    }

    /// Marks the events as rare: an HTTP/1 connection then keeps no buffers for them, and closes after the last one.
    pub fn with_rare_events(self, now: Timestamp) -> Self {
        Self { rare_events_at: Some(now), ..self }
    }

    pub fn into_response(self) -> Response<Body> {
        let Self { events, heartbeat, final_event, rare_events_at } = self;
        let ticks = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
        let events = events.timeout_repeating(ticks);
        let heartbeat = Bytes::from_static(b": heartbeat\n\n");
        let bytes = events.map(move |event| Ok::<_, Infallible>(event.unwrap_or_else(|_| heartbeat.clone())));
        let mut response = Response::new(Body::from_stream(bytes));
        response.extensions_mut().insert(final_event);
        if let Some(now) = rare_events_at {
            response.extensions_mut().insert(RareEvents);
            // hyper adds it to other responses.
            if let Some(date) = now.http_date().and_then(|date| HeaderValue::from_str(&date).ok()) {
                response.headers_mut().insert(header::DATE, date);
            }
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Prevents proxies from buffering the stream.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

impl<T: StreamedResource> Reply for JsonOrStream<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        match self {
            Self::Json(value) => Json(value).into_response(),
            Self::Stream(response) => Ok(response.into_response()),
        }
    }

    fn describe() -> ReplyDescription {
        let mut document = Json::<T>::describe();
        add_event_stream(&mut document, T::events());
        document
    }
}
