//! Answers that come in pieces, as server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, header},
};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use utoipa::ToSchema;

use super::reply::{Answer, AnswerDocument, Json};
use crate::error::{Error, Result};

/// How often a comment is sent while there is nothing to say, so that nobody between takes the stream for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Events that wait for a slow reader before the sender waits too.
const WAITING: usize = 64;

/// One answer, whole or as events, as the client asked.
pub enum JsonOrStream<T> {
    Json(T),
    Stream(mpsc::Receiver<Bytes>),
}

/// The sending end of an event stream, for a thread that blocks.
pub struct Events(mpsc::Sender<Bytes>);

impl Events {
    pub fn channel() -> (Self, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }

    /// Whether somebody listens.
    pub fn is_heard(&self) -> bool {
        !self.0.is_closed()
    }

    /// Sends one event; false if nobody listens any more. Not for worker threads.
    pub fn send(&self, event: &str, data: &impl Serialize) -> bool {
        let data = serde_json::to_string(data).unwrap_or_default();
        self.0.blocking_send(Bytes::from(format!("event: {event}\ndata: {data}\n\n"))).is_ok()
    }
}

impl<T: Serialize + ToSchema> Answer for JsonOrStream<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let receiver = match self {
            Self::Json(value) => return Json(value).into_response(),
            Self::Stream(receiver) => receiver,
        };
        let events = ReceiverStream::new(receiver).timeout_repeating(tokio::time::interval(HEARTBEAT));
        let bytes = events.map(|event| Ok::<_, Infallible>(event.unwrap_or(Bytes::from_static(b": heartbeat\n\n"))));
        let mut response = Response::new(Body::from_stream(bytes));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Proxies that gather answers before they pass them on would turn a stream into a wait.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    fn describe() -> AnswerDocument {
        let mut document = Json::<T>::describe();
        let events = "Events `meta`, `delta`, `done` and `error`, each with a JSON object as its data.";
        document.contents.push(("text/event-stream", json!({ "type": "string", "description": events })));
        document
    }
}
