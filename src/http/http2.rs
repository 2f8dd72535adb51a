//! HTTP/2 on one connection: its limits, and requests in the form that the service expects.
//!
//! Many requests share the connection, so that the timeouts of `connection` cannot see a single one of them. A response
//! that its client does not read, and requests that are cancelled again and again, end the connection.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
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

use super::{
    connection::{CHUNK_BYTES, ConnectionHold, Phase, ResponseBody},
    held_bytes::HeldPools,
    request_meta::RequestMeta,
};
use crate::concurrency::lock::lock_unpoisoned;

/// The protocol's name in TLS.
pub const ALPN: &[u8] = b"h2";
/// Requests that may run at once on a connection. Each has a place in tables of the connection, which never shrink.
const STREAMS: u32 = 16;
/// Bytes of request bodies that may arrive on a connection before they are read.
const WINDOW: u32 = 64 << 10;
/// Requests without a response that a client may cancel before it must have waited for as many responses.
const CANCELLED_REQUESTS: u64 = 100;
/// Headers of a request.
const HEADERS: usize = 100;
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
    pub held: Arc<HeldPools>,
}

impl Http2Connection {
    /// Serves the connection until it ends.
    pub async fn serve<S, F, Fut>(self, stream: S, watcher: Watcher, respond: F)
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
        F: Fn(IpAddr, Request<Incoming>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<Body>> + Send + 'static,
    {
        let Self { peer, phase, idle, head, held } = self;
        let requests = Arc::new(RunningRequests { phase, counts: Mutex::default(), abused: Notify::new() });
        let (running, respond) = (Arc::clone(&requests), Arc::new(respond));
        let service = service_fn(move |request: Request<Incoming>| {
            let request_hold = RunningRequests::begin(&running);
            // hyper has the same limit for HTTP/1. A head that is refused is dropped at once.
            let has_few = request.headers().len() <= HEADERS;
            let arriving = if has_few { held.arrive(peer, request.headers()) } else { None };
            let (arrived, respond) = (arriving.map(|arriving| (arriving, request)), Arc::clone(&respond));
            async move {
                let (arriving, request) = arrived.ok_or(h2::Reason::REFUSED_STREAM)?;
                // In a box that is made once the request runs: many may wait for that.
                let responding = Box::pin(respond(peer, in_http1_form(request)));
                drop(arriving);
                request_hold.pass(responding.await)
            }
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX))
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
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
        RequestHold {
            requests: Arc::clone(requests),
            number: counts.begun,
            is_answered: AtomicBool::new(false),
            meta: OnceLock::new(),
        }
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

/// One running request, until the last part of its response is written or its client has cancelled it.
struct RequestHold {
    requests: Arc<RunningRequests>,
    number: u64,
    is_answered: AtomicBool,
    /// Holds the memory of the request in the ledger.
    meta: OnceLock<Arc<RequestMeta>>,
}

impl RequestHold {
    /// Returns a response that holds its request. One that the ledger has no bytes for is refused, so that nothing of it is kept:
    /// its client may send the request again.
    fn pass(self, mut response: Response<Body>) -> Result<Response<ResponseBody<Body, Arc<Self>>>, h2::Error> {
        let meta = response.extensions_mut().remove::<Arc<RequestMeta>>().ok_or(h2::Reason::REFUSED_STREAM)?;
        let is_whole = response.body().is_end_stream();
        // hyper asks for the body once the head is sent, which fails for a cancelled request.
        self.is_answered.store(is_whole, Ordering::Relaxed);
        if !is_whole {
            self.is_unread();
        }
        self.meta.get_or_init(|| meta);
        Ok(response.map(|body| ResponseBody::new(body, Arc::new(self))))
    }

    fn is_unread(&self) {
        lock_unpoisoned(&self.requests.counts).unread.insert(self.number, Instant::now());
    }
}

impl ConnectionHold for Arc<RequestHold> {
    fn wants_data(&mut self) {
        self.is_answered.store(true, Ordering::Relaxed);
        lock_unpoisoned(&self.requests.counts).unread.remove(&self.number);
    }

    /// A piece holds the request too: a client may let it wait after the body has ended.
    fn has_data(&mut self, piece: Bytes) -> Bytes {
        self.is_unread();
        Bytes::from_owner(HeldPiece { piece, _hold: Arc::clone(self) })
    }
}

/// A piece of a response in the connection's queue.
struct HeldPiece {
    piece: Bytes,
    _hold: Arc<RequestHold>,
}

impl AsRef<[u8]> for HeldPiece {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for RequestHold {
    fn drop(&mut self) {
        let mut counts = lock_unpoisoned(&self.requests.counts);
        counts.unread.remove(&self.number);
        counts.running -= 1;
        if *self.is_answered.get_mut() {
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
