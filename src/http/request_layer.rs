//! The outer layer of every request: request id, client address, compression, log line and network log entry.

use std::{
    convert::Infallible,
    fmt::Write,
    future::ready,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use axum::{
    body::{Body, HttpBody},
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Version, header},
};
use tower::{ServiceExt, service_fn};
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
        allowed_hosts::AllowedHosts,
        body,
        client_ip::client_ip,
        console,
        content_negotiation::COMPRESSED_ABOVE,
        cors::{self, Cors},
        cross_site,
        held_bytes::{BodyBytes, HeldPools},
        metrics::requests::{RequestMetrics, method_name},
        precompressed::{ContentCoding, coding_of_new_content},
        reply::problem,
        request_meta::{Caller, RequestMeta},
        state::HttpState,
    },
    store,
    types::fill_random,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const METHOD_OVERRIDE: HeaderName = HeaderName::from_static("x-http-method-override");
/// Memory of an encoder, which lives until the whole response is compressed. Brotli's also holds a block of the response
/// with its compressed form.
const GZIP_ENCODER: u64 = 320 << 10;
const BROTLI_ENCODER: u64 = 1 << 20;
const BROTLI_BLOCK: u64 = 4 << 20;
/// Logged status of a request whose client disconnected before the response. It is never sent.
const CLIENT_DISCONNECTED: u16 = 499;

/// The router of one listener and the state around it. Cheap to clone.
#[derive(Clone)]
pub struct RequestLayer {
    shared: Arc<Shared>,
    router: axum::Router,
    hosts: AllowedHosts,
    /// `Strict-Transport-Security`, on listeners with TLS.
    hsts: Option<HeaderValue>,
    /// True on listeners with the console, whose errors are pages.
    has_console: bool,
}

struct Shared {
    app: Arc<App>,
    cors: Cors,
    ids: RequestIds,
    metrics: Arc<RequestMetrics>,
    held: Arc<HeldPools>,
}

impl RequestLayer {
    pub fn new(
        state: &HttpState,
        router: axum::Router,
        hosts: AllowedHosts,
        metrics: Arc<RequestMetrics>,
    ) -> Result<Self> {
        let (app, held) = (Arc::clone(&state.app), Arc::clone(&state.held));
        let (ids, cors) = (RequestIds::new()?, Cors::new(&app.core.config));
        let shared = Arc::new(Shared { app, cors, ids, metrics, held });
        Ok(Self { shared, router, hosts, hsts: None, has_console: false })
    }

    /// Returns a layer with the same state for another listener.
    pub fn for_listener(&self, router: axum::Router, hosts: AllowedHosts) -> Self {
        Self { shared: Arc::clone(&self.shared), router, hosts, hsts: None, has_console: false }
    }

    /// Returns the layer of a listener that serves the console or not.
    pub fn with_console(mut self, has_console: bool) -> Self {
        self.has_console = has_console;
        self
    }

    /// Returns the layer of a listener that has TLS or not.
    pub fn with_tls(mut self, has_tls: bool) -> Self {
        let age = self.shared.app.core.config.server.hsts.as_secs();
        let header = HeaderValue::from_str(&format!("max-age={age}")).ok();
        self.hsts = header.filter(|_| has_tls && age > 0);
        self
    }

    /// Serves one request of a connection from `peer`.
    pub async fn serve(&self, peer: IpAddr, mut request: Request<Body>) -> Response<Body> {
        let started = Instant::now();
        override_method(&mut request);
        // A worker that never parks drops its old snapshot here.
        store::end_stale_snapshot(started);
        let client = client_ip(peer, request.headers(), &self.shared.app.core.config.server.trusted_proxies);
        if let Some(fault) = client.fault {
            self.shared.app.forwarding.report(peer.to_canonical(), fault);
        }
        let meta = Arc::new(RequestMeta {
            wrong_code_status: self.shared.app.core.config.auth.wrong_code_status,
            ..RequestMeta::new(self.shared.ids.of(&request), client.address, started, request.headers())
        });
        let method = method_name(request.method());
        let guard = AccessLogGuard { shared: &self.shared, meta: &meta, method, status: CLIENT_DISCONNECTED };
        let page = self.shared.cors.origin_of(&request, &self.shared.app.core.config.server);
        let is_shared = cors::serves(request.uri().path());
        let coding = coding_of_new_content(request.headers());
        let accepted = coding.and_then(|_| request.headers().get(header::ACCEPT_ENCODING).cloned());
        let response = self.respond(request, Arc::clone(&meta)).await;
        let response = self.hold(&meta, coding, response);
        let mut response = match coding.zip(accepted) {
            Some((coding, accepted)) => Box::pin(compressed(response, coding, accepted)).await,
            None => response,
        };
        // Some endpoints of administrators are outside /admin.
        let is_shared = is_shared && meta.endpoint.get().is_none_or(|endpoint| endpoint.admits_pages);
        self.shared.cors.add_to(response.headers_mut(), is_shared, page);
        if let Some(hsts) = &self.hsts {
            response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, hsts.clone());
        }
        guard.finish(response)
    }

    /// Adds a response to the memory that its request holds, which the connection gives back. A response that is too
    /// large for what is left is replaced by an error. If the request is too large itself, the connection keeps nothing.
    fn hold(&self, meta: &Arc<RequestMeta>, coding: Option<ContentCoding>, response: Response<Body>) -> Response<Body> {
        let admitted = meta.admit(&self.shared.held, &Caller::Anonymous, &HeaderMap::new());
        let has_room = admitted.is_ok();
        let held = admitted.and_then(|()| meta.held.grow(held_by(&response, coding)));
        let mut response = held.map_or_else(|error| problem(&error, meta), |()| response);
        if has_room {
            response.extensions_mut().insert(Arc::clone(meta));
        } else {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn respond(&self, mut request: Request<Body>, meta: Arc<RequestMeta>) -> Response<Body> {
        if let Err(error) = self.admit(&request) {
            if self.has_console && console::is_below(request.uri().path()) {
                return console::refusal(&self.shared.app, &meta, request.headers(), &error);
            }
            return problem(&error, &meta);
        }
        if !has_plain_framing(&request) {
            let error = Error::new(Code::InvalidRequest)
                .detail(("The only transfer coding that is accepted is chunked.", "只接受 chunked 传输编码。"));
            let mut response = problem(&error, &meta);
            let body = std::mem::take(request.body_mut());
            Box::pin(body::discard(body, request.headers())).await;
            // A server that applies the codings may see another end of the body.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
        match self.shared.cors.preflight(&request, &self.shared.app.core.config.server) {
            Ok(Some(response)) => return response,
            Ok(None) => {}
            Err(error) => return problem(&error, &meta),
        }
        merge_slashes(&mut request);
        request.extensions_mut().insert(meta);
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Returns the memory that a response holds, with its encoder.
fn held_by(response: &Response<Body>, coding: Option<ContentCoding>) -> usize {
    let size = response.body().size_hint().lower();
    let body = response.extensions().get().map_or(size, |BodyBytes(held)| *held as u64);
    let is_packed = response.headers().contains_key(header::CONTENT_ENCODING);
    let encoder = match coding.filter(|_| !is_packed && size > COMPRESSED_ABOVE) {
        Some(ContentCoding::Gzip) => GZIP_ENCODER,
        Some(ContentCoding::Brotli) => BROTLI_ENCODER + 2 * size.min(BROTLI_BLOCK),
        None => 0,
    };
    usize::try_from(body + encoder).unwrap_or(usize::MAX)
}

/// Compresses a response that is long enough, as the client accepts it.
async fn compressed(response: Response<Body>, coding: ContentCoding, accepted: HeaderValue) -> Response<Body> {
    let mut request = Request::new(());
    request.headers_mut().insert(header::ACCEPT_ENCODING, accepted);
    let mut response = Some(response);
    let respond = service_fn(move |_| ready(Ok::<_, Infallible>(response.take().unwrap_or_default())));
    let compression = Compression::new(respond)
        .quality(CompressionLevel::Fastest)
        .gzip(coding == ContentCoding::Gzip)
        .br(coding == ContentCoding::Brotli)
        // Events must arrive at once, and some clients decompress only complete responses.
        .compress_when(SizeAbove::new(COMPRESSED_ABOVE).and(NotForContentType::SSE));
    match compression.oneshot(request).await {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    }
}

impl RequestLayer {
    /// Checks where the request was sent, and by which site.
    fn admit(&self, request: &Request<Body>) -> Result<()> {
        let server = &self.shared.app.core.config.server;
        if !has_one_host(request) {
            return Err(Error::new(Code::InvalidRequest)
                .detail(("A request must have exactly one `Host` header.", "请求须有且仅有一个 `Host` 头。")));
        }
        if !self.hosts.allows(request.headers()) {
            let detail = (
                "This listener does not serve this `Host`. Its operator can allow it in server.public_url or \
                 server.hosts.",
                "此监听地址不服务该 `Host`。运营方可在 server.public_url 或 server.hosts 中允许。",
            );
            return Err(Error::new(Code::InvalidRequest).detail(detail));
        }
        if cross_site::is_foreign(request, server) {
            let detail = (
                "The request comes from a page of another web site. The operator can allow its origin in \
                 server.allowed_origins.",
                "请求来自其他网站的页面。运营方可在 server.allowed_origins 中允许其来源。",
            );
            return Err(Error::new(Code::Forbidden).detail(detail));
        }
        Ok(())
    }
}

/// Replaces double slashes in the path by single ones: apps join a base address that ends in a slash with a path. Paths of
/// administrators stay as they are, because a proxy may close `/admin` by its spelling.
fn merge_slashes(request: &mut Request<Body>) {
    let path = request.uri().path();
    if !path.contains("//") {
        return;
    }
    let mut merged = String::with_capacity(path.len());
    for character in path.chars() {
        if character != '/' || !merged.ends_with('/') {
            merged.push(character);
        }
    }
    if merged.starts_with("/admin") {
        return;
    }
    if let Some(query) = request.uri().query() {
        merged.push('?');
        merged.push_str(query);
    }
    if let Ok(uri) = merged.parse() {
        *request.uri_mut() = uri;
    }
}

/// Returns true if the request has one `Host` header. With two, a proxy may have used the other one.
fn has_one_host(request: &Request<Body>) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => true,
        (None, _) => request.version() < Version::HTTP_11,
        (Some(_), Some(_)) => false,
    }
}

/// Mini-programs cannot send PATCH. They send POST with this header.
fn override_method(request: &mut Request<Body>) {
    let is_patch = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"PATCH");
    if request.method() == Method::POST && request.headers_mut().remove(METHOD_OVERRIDE).as_ref().is_some_and(is_patch)
    {
        *request.method_mut() = Method::PATCH;
    }
}

/// Returns true if the body has no transfer coding but `chunked`. hyper would pass on the others as they are.
fn has_plain_framing(request: &Request<Body>) -> bool {
    let mut codings = request.headers().get_all(header::TRANSFER_ENCODING).iter();
    codings.next().is_none_or(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
        && codings.next().is_none()
}

/// Logs the request on drop, so that a request is also logged when its client disconnects: its changes remain.
struct AccessLogGuard<'request> {
    shared: &'request Shared,
    meta: &'request RequestMeta,
    method: &'static str,
    status: u16,
}

impl AccessLogGuard<'_> {
    fn finish(mut self, mut response: Response<Body>) -> Response<Body> {
        if let Ok(id) = HeaderValue::from_str(&self.meta.request_id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        self.status = response.status().as_u16();
        response
    }
}

impl Drop for AccessLogGuard<'_> {
    fn drop(&mut self) {
        self.shared.log(self.meta, self.method, self.status);
    }
}

impl Shared {
    /// Adds the request to metrics, network log and log.
    fn log(&self, meta: &RequestMeta, method: &'static str, status: u16) {
        let duration = meta.started.elapsed();
        let endpoint = meta.endpoint.get();
        self.metrics.record(endpoint.map(|endpoint| endpoint.index), status, duration);
        self.app.request_tallies.record(status, duration);
        let route = endpoint.map(|endpoint| endpoint.path).or_else(|| meta.console.get().copied());
        self.app.network_log.record(Entry {
            at: self.app.core.clock.now(),
            user: meta.user.get().copied(),
            client: meta.client,
            method,
            route,
            status,
            duration_us: u32::try_from(duration.as_micros()).unwrap_or(u32::MAX),
            request_id: meta.request_id.as_str().into(),
        });
        let duration_ms = duration.as_millis();
        let is_slow = duration >= self.app.core.config.limits.slow_request;
        let throttle = &self.app.core.log_throttle;
        if is_slow && (meta.user.get().is_some() || throttle.admits("slow request", route.unwrap_or_default())) {
            tracing::warn!(request_id = meta.request_id, method, route, status, duration_ms, "slow request");
        } else {
            tracing::debug!(request_id = meta.request_id, method, route, status, duration_ms, "request");
        }
    }
}

/// Assigns request ids.
struct RequestIds {
    /// Sixteen random hexadecimal digits, so that ids do not repeat after a restart.
    prefix: String,
    counter: AtomicU32,
}

impl RequestIds {
    fn new() -> Result<Self> {
        let mut bytes = [0; 8];
        fill_random(&mut bytes)?;
        Ok(Self { prefix: format!("{:016x}", u64::from_ne_bytes(bytes)), counter: AtomicU32::new(0) })
    }

    /// Returns the id that the client sent if it is valid, or else a new one.
    fn of(&self, request: &Request<Body>) -> String {
        let sent = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        match sent {
            Some(id) if is_valid(id) => id.to_owned(),
            _ => self.next(),
        }
    }

    fn next(&self) -> String {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let mut id = String::with_capacity(self.prefix.len() + 8);
        id.push_str(&self.prefix);
        // Writing to a text cannot fail.
        let _ = write!(id, "{number:08x}");
        id
    }
}

fn is_valid(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
}
