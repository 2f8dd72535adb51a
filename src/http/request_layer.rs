//! What happens around every request: an id, a log line, a network log entry.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Method, Request, Response, Version, header},
};
use futures_util::{
    FutureExt,
    future::{Either, ready},
};
use tower::service_fn;
use tower_http::{
    CompressionLevel,
    compression::{
        Compression, Predicate,
        predicate::{NotForContentType, SizeAbove},
    },
};

use crate::{
    app::App,
    domain::operations::network_log::Entry,
    error::{Code, Error, Result},
    http::{
        client_ip::client_ip,
        metrics::RequestMetrics,
        precompressed::accepts_gzip,
        reply::problem,
        request_context::RequestMeta,
        router::{Router, call},
    },
    store,
    types::fill_random,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Noted for a request whose client left before the answer; nobody ever receives it.
const CLIENT_LEFT: u16 = 499;
/// Smaller answers fit into one packet either way.
const COMPRESSED_ABOVE: u64 = 1024;

/// The router with everything that every request needs around it. Clones share it.
#[derive(Clone)]
pub struct RequestLayer {
    shared: Arc<Shared>,
    router: Arc<Router>,
}

struct Shared {
    app: Arc<App>,
    ids: RequestIds,
    requests: Arc<RequestMetrics>,
}

impl RequestLayer {
    pub fn new(app: Arc<App>, router: Router, requests: Arc<RequestMetrics>) -> Result<Self> {
        let ids = RequestIds::new()?;
        app.network_log.expect_ids(&ids.prefix);
        let shared = Shared { app, ids, requests };
        Ok(Self { shared: Arc::new(shared), router: Arc::new(router) })
    }

    /// The same around another router.
    pub fn with_router(&self, router: Router) -> Self {
        Self { shared: Arc::clone(&self.shared), router: Arc::new(router) }
    }

    /// Serves one request that came over a connection from `peer`. What is made of it here is moved with the
    /// connection's state, so it is no more than what is waited for and what is noted then.
    pub fn serve(&self, peer: IpAddr, request: Request<Body>) -> impl Future<Output = Response<Body>> + Send + use<> {
        let app = &self.shared.app;
        let started = Instant::now();
        // A worker that is never idle lets go of an old snapshot here.
        store::end_stale_snapshot(started);
        let meta = Arc::new(RequestMeta {
            request_id: self.shared.ids.of(&request),
            client: client_ip(peer, request.headers(), &app.config.server.trusted_proxies),
            started,
            route: OnceLock::new(),
            user: OnceLock::new(),
            subject: OnceLock::new(),
            reason: OnceLock::new(),
        });
        let (shared, method) = (Arc::clone(&self.shared), request.method().clone());
        let note = AccessLogGuard { shared, meta: Arc::clone(&meta), method, status: CLIENT_LEFT };
        let answering = if !names_its_host(&request) {
            Either::Right(ready(problem(&ambiguous_host(), &meta.request_id)).boxed())
        } else if accepts_gzip(request.headers()) {
            // Looking whether to compress costs something, so only who wants it has it looked at.
            Either::Right(compressed(Arc::clone(&self.router), request, meta).boxed())
        } else {
            Either::Left(self.router.answer(request, meta))
        };
        answering.map(move |response| note.answered(response))
    }
}

fn compressed(
    router: Arc<Router>,
    request: Request<Body>,
    meta: Arc<RequestMeta>,
) -> impl Future<Output = Response<Body>> {
    let answer = move |request| router.answer(request, Arc::clone(&meta)).map(Ok::<_, Infallible>);
    let compressing = Compression::new(service_fn(answer))
        .quality(CompressionLevel::Fastest)
        // Events are to be read as they come, by clients that may well unpack only what is complete.
        .compress_when(SizeAbove::new(COMPRESSED_ABOVE).and(NotForContentType::SSE));
    call(compressing, request).map(|found| found.map(Body::new))
}

/// Whether the request says once for whom it is. One that says so twice may be read in another way by a proxy.
fn names_its_host(request: &Request<Body>) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => true,
        (None, _) => request.version() < Version::HTTP_11,
        (Some(_), Some(_)) => false,
    }
}

fn ambiguous_host() -> Error {
    Error::new(Code::InvalidRequest).detail("A request has one `Host` header.")
}

/// Writes the request down when it is over, and also when it ends early because its client has left: what it changed
/// until then stays changed, so it belongs into the network log.
struct AccessLogGuard {
    shared: Arc<Shared>,
    meta: Arc<RequestMeta>,
    method: Method,
    status: u16,
}

impl AccessLogGuard {
    fn answered(mut self, mut response: Response<Body>) -> Response<Body> {
        if let Ok(id) = HeaderValue::from_str(&self.meta.request_id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        self.status = response.status().as_u16();
        response
    }
}

impl Drop for AccessLogGuard {
    fn drop(&mut self) {
        self.shared.note(&self.meta, &self.method, self.status);
    }
}

impl Shared {
    /// Writes down that the request was answered: in the network log, and in the log if it is worth a line.
    fn note(&self, meta: &RequestMeta, method: &Method, status: u16) {
        let duration = meta.started.elapsed();
        let route = meta.route.get().copied();
        self.requests.record(method, route, status, duration);
        let method = method_name(method);
        self.app.network_log.record(&Entry {
            at: self.app.clock.now(),
            user: meta.user.get().copied(),
            client: meta.client,
            method,
            route,
            status,
            duration,
            request_id: &meta.request_id,
        });
        let duration_ms = duration.as_millis();
        if duration >= self.app.config.limits.slow_request {
            tracing::warn!(request_id = meta.request_id, method, route, status, duration_ms, "slow request");
        } else {
            tracing::debug!(request_id = meta.request_id, method, route, status, duration_ms, "request");
        }
    }
}

/// The name of a method that the service knows. Others are the client's own words and not worth keeping.
pub(super) fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("OTHER")
}

/// Gives every request an id: the caller's own if it is sane, else a new one.
struct RequestIds {
    /// Sixteen hexadecimal digits that differ from process to process, so that ids do not repeat after a restart.
    prefix: String,
    counter: AtomicU32,
}

impl RequestIds {
    fn new() -> Result<Self> {
        let mut bytes = [0; 8];
        fill_random(&mut bytes)?;
        Ok(Self { prefix: format!("{:016x}", u64::from_ne_bytes(bytes)), counter: AtomicU32::new(0) })
    }

    fn of(&self, request: &Request<Body>) -> String {
        let sent = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        match sent {
            Some(id) if is_sane(id) => id.to_owned(),
            _ => self.next(),
        }
    }

    /// Written by hand, because formatting costs as much as looking up a row of a cached page.
    fn next(&self) -> String {
        let mut id = String::with_capacity(self.prefix.len() + 8);
        id.push_str(&self.prefix);
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        id.extend((0..8).rev().filter_map(|digit| char::from_digit((number >> (4 * digit)) & 0xf, 16)));
        id
    }
}

fn is_sane(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
}
