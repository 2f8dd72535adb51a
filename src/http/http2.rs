//! HTTP/2 on one connection: its limits, and requests in the form that the service expects.
//!
//! Many requests share the connection, so that the timeouts of `connection` cannot see a single one of them. A response
//! that its client does not read, and requests that are cancelled again and again, end the connection.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    http::{HeaderMap, HeaderValue, header, uri::PathAndQuery},
};
use hyper::{Request, Response, Uri, body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::graceful::Watcher,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Notify,
    time::Instant,
};

use super::connection::{CHUNK_BYTES, ConnectionHold, Phase, ResponseBody};
use crate::concurrency::lock::lock_unpoisoned;

/// The protocol's name in TLS.
pub const ALPN: &[u8] = b"h2";
/// Requests that may run at once on a connection.
const STREAMS: u32 = 100;
/// Bytes of request bodies that may arrive before they are read: of one request, and of all on a connection.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Requests without a response that a client may cancel before it must have waited for as many responses.
const CANCELLED_REQUESTS: u64 = 100;
/// Checks for unread responses within one idle timeout.
const CHECKS: u32 = 4;

/// The limits and the peer of a connection.
pub struct Http2Connection {
    pub peer: IpAddr,
    pub phase: Phase,
    /// Time in which a client must read a part of each response.
    pub idle: Duration,
    /// Largest request head, in bytes.
    pub head: usize,
}

impl Http2Connection {
    /// Serves the connection until it ends.
    pub async fn serve<S, F, Fut>(self, stream: S, watcher: Watcher, respond: F)
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
        F: Fn(IpAddr, Request<Incoming>) -> Fut + 'static,
        Fut: Future<Output = Response<Body>> + Send + 'static,
    {
        let Self { peer, phase, idle, head } = self;
        let requests = Arc::new(RunningRequests { phase, counts: Mutex::default(), abused: Notify::new() });
        let running = Arc::clone(&requests);
        let service = service_fn(move |request: Request<Incoming>| {
            let mut hold = RunningRequests::begin(&running);
            let response = respond(peer, in_http1_form(request));
            async move {
                let response = response.await;
                // hyper asks for the body once the head is sent, which fails for a cancelled request.
                hold.is_answered = response.body().is_end_stream();
                Ok::<_, Infallible>(response.map(|body| ResponseBody::new(body, hold)))
            }
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(CHUNK_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            outcome = watcher.watch(connection) => if let Err(error) = outcome {
                tracing::debug!(%error, "a connection ended early");
            },
            reason = requests.fault(idle) => tracing::debug!(reason, "a connection was closed"),
        }
    }
}

/// The requests that run on a connection.
struct RunningRequests {
    phase: Phase,
    counts: Mutex<Counts>,
    abused: Notify,
}

#[derive(Default)]
struct Counts {
    running: u32,
    begun: u64,
    answered: u64,
    cancelled: u64,
    /// Requests whose response waits for the client, and since when.
    unread: HashMap<u64, Instant>,
}

impl RunningRequests {
    fn begin(requests: &Arc<Self>) -> RequestHold {
        let mut counts = lock_unpoisoned(&requests.counts);
        counts.running += 1;
        counts.begun += 1;
        requests.phase.responding();
        RequestHold { requests: Arc::clone(requests), number: counts.begun, is_answered: false, is_unread: false }
    }

    /// Returns the reason for which the connection must end, once there is one.
    async fn fault(&self, idle: Duration) -> &'static str {
        loop {
            tokio::select! {
                () = self.abused.notified() => return "too many requests were cancelled",
                () = tokio::time::sleep(idle / CHECKS) => {
                    if lock_unpoisoned(&self.counts).unread.values().any(|since| since.elapsed() >= idle) {
                        return "a response is not read";
                    }
                }
            }
        }
    }
}

/// One running request, until its response is sent or its client has cancelled it.
struct RequestHold {
    requests: Arc<RunningRequests>,
    number: u64,
    is_answered: bool,
    is_unread: bool,
}

impl ConnectionHold for RequestHold {
    fn wants_data(&mut self) {
        self.is_answered = true;
        if self.is_unread {
            self.is_unread = false;
            lock_unpoisoned(&self.requests.counts).unread.remove(&self.number);
        }
    }

    fn has_data(&mut self) {
        self.is_unread = true;
        lock_unpoisoned(&self.requests.counts).unread.insert(self.number, Instant::now());
    }
}

impl Drop for RequestHold {
    fn drop(&mut self) {
        let mut counts = lock_unpoisoned(&self.requests.counts);
        counts.unread.remove(&self.number);
        counts.running -= 1;
        if self.is_answered {
            counts.answered += 1;
        } else {
            counts.cancelled += 1;
        }
        if counts.running == 0 {
            self.requests.phase.quiet();
        }
        if counts.cancelled > CANCELLED_REQUESTS.max(counts.answered) {
            self.requests.abused.notify_one();
        }
    }
}

/// Returns the request as HTTP/1 would have it: the authority in `Host`, only path and query in the address, and one
/// `Cookie`.
fn in_http1_form(mut request: Request<Incoming>) -> Request<Incoming> {
    let authority = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(authority) = authority {
        add_host(request.headers_mut(), authority);
    }
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    join_cookies(request.headers_mut());
    request
}

/// Adds `Host`. A different one that is there already stays beside it, so that the request is rejected.
fn add_host(headers: &mut HeaderMap, authority: HeaderValue) {
    let is_same = |host: &HeaderValue| host.as_bytes().eq_ignore_ascii_case(authority.as_bytes());
    if !headers.get(header::HOST).is_some_and(is_same) {
        headers.append(header::HOST, authority);
    }
}

/// Joins `Cookie` headers, which HTTP/2 may split.
fn join_cookies(headers: &mut HeaderMap) {
    let pieces: Vec<_> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if pieces.len() < 2 {
        return;
    }
    if let Ok(joined) = HeaderValue::from_bytes(&pieces.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_becomes_the_host() {
        let mut headers = HeaderMap::new();
        add_host(&mut headers, HeaderValue::from_static("api.example.com"));
        add_host(&mut headers, HeaderValue::from_static("API.example.com"));
        assert_eq!(headers.get_all(header::HOST).iter().count(), 1);
        add_host(&mut headers, HeaderValue::from_static("other.example.com"));
        assert_eq!(headers.get_all(header::HOST).iter().count(), 2);
    }

    #[test]
    fn split_cookies_are_joined() {
        let mut headers = HeaderMap::new();
        for cookie in ["a=1", "b=2", "c=3"] {
            headers.append(header::COOKIE, HeaderValue::from_static(cookie));
        }
        join_cookies(&mut headers);
        assert_eq!(headers.get_all(header::COOKIE).iter().collect::<Vec<_>>(), ["a=1; b=2; c=3"]);
    }
}
