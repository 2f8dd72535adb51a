//! Runs a request through its endpoint: access, body, parameters, handler, and the error response if one fails.

use std::{
    convert::Infallible,
    mem,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    RequestExt,
    body::{Body, Bytes, HttpBody},
    extract::{RawPathParams, rejection::RawPathParamsRejection},
    http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header},
};
use futures_util::FutureExt;
use tower::Service;

use super::{
    body, body_encoding,
    guard::{self, Access, Authorized},
    rate_limit::{BudgetHolder, RateBudget},
    reply::{self, NO_STORE, problem},
    request_context::RequestContext,
    request_meta::{Caller, EndpointId, IdempotencyHeader, RequestMeta, audit_event},
    request_token::{challenge, is_hidden_from_caches},
    state::HttpState,
};
use crate::{
    concurrency::log_throttle::LogThrottle,
    config::{self, LimitsConfig},
    domain::operations::audit::PendingAudit,
    error::{Code, Error, Result, Sentence},
    store,
    types::{Date, sha256_of_parts},
};

/// The tower service of one endpoint. Cheap to clone.
#[derive(Clone)]
pub struct EndpointService(Arc<EndpointSpec>);

/// Access rule, limits and handler of an endpoint.
pub struct EndpointSpec {
    pub state: Arc<HttpState>,
    pub id: EndpointId,
    pub access: Access,
    pub body_limit: BodyLimit,
    /// The path of the endpoint that replaces this one.
    pub successor: Option<&'static str>,
    pub budget: Option<RateBudget>,
    pub is_idempotent: bool,
    pub handler: Arc<dyn ErasedHandler>,
}

/// Selects the setting that limits the body.
pub type BodyLimit = fn(&LimitsConfig) -> config::Bytes;

pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>>> + Send>>;

/// A handler with its parameter and reply types erased, so that the request pipeline is compiled once and not per
/// endpoint.
pub trait ErasedHandler: Send + Sync {
    /// Reads the parameters and starts the handler.
    ///
    /// # Errors
    /// Faults of the parameters.
    fn start(&self, context: RequestContext, path: Vec<(String, String)>, uri: &Uri) -> Result<ResponseFuture>;

    /// Returns true if the endpoint has a parameter with this name.
    fn declares(&self, name: &str) -> bool;

    /// Returns the response to an error for callers that do not understand problem documents.
    fn error_reply(&self, error: &Error) -> Option<Response<Body>>;
}

impl Service<Request<Body>> for EndpointService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let spec = Arc::clone(&self.0);
        Box::pin(async move { Ok(spec.respond(request).await) })
    }
}

impl EndpointService {
    pub fn new(spec: EndpointSpec) -> Self {
        Self(Arc::new(spec))
    }
}

impl EndpointSpec {
    /// Responds to a request that the request layer has given its [`RequestMeta`].
    async fn respond(&self, mut request: Request<Body>) -> Response<Body> {
        let Some(meta) = request.extensions_mut().remove::<Arc<RequestMeta>>() else {
            return problem(&Error::internal("a request has no metadata"), &RequestMeta::unknown());
        };
        meta.endpoint.get_or_init(|| self.id);
        let auth = &self.state.app.core.config.auth;
        let is_hidden_from_caches = self.access.requires_token() && is_hidden_from_caches(request.headers(), auth);
        let outcome = AssertUnwindSafe(self.run(&mut request, &meta)).catch_unwind().await;
        let mut response = panic_as_error(outcome).unwrap_or_else(|error| {
            log_failure(&self.state.app.core.log_throttle, &error, &meta);
            self.handler.error_reply(&error).unwrap_or_else(|| problem(&error, &meta))
        });
        if response.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge(auth));
        }
        let headers = response.headers_mut();
        if let Some(budget) = self.budget {
            let holder = BudgetHolder { user: meta.user.get().copied(), client: meta.client };
            budget.add_to(headers, &self.state.app, holder, meta.budget_use());
        }
        if let Some((path, day)) = self.successor.zip(self.state.app.core.config.server.sunset) {
            announce_sunset(headers, path, day);
        }
        if is_hidden_from_caches || !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(header::CACHE_CONTROL, NO_STORE);
        }
        response
    }

    async fn run(&self, request: &mut Request<Body>, meta: &Arc<RequestMeta>) -> Result<Response<Body>> {
        let app = &self.state.app;
        let Authorized { caller, token } = self.authorize(request, meta).await?;
        meta.admit(&self.state.held, &caller, request.headers())?;
        // Some clients send the parameters of a GET in a body.
        let has_body = !request.body().is_end_stream();
        // Rarely used or large futures are boxed separately, because this one is allocated for every request.
        let body = if has_body { Box::pin(self.read_body(request, meta)).await? } else { Bytes::new() };
        // Taken after the body has arrived: slow senders must not use up the permits.
        let _permit = self
            .state
            .requests
            .try_acquire()
            .map_err(|_| overloaded(("Too many requests are running.", "正在处理的请求过多。")))?;
        let path = path_parameters(request, self.id.path).await?;
        let audit = match &caller {
            Caller::Admin(identity) if self.access.is_audited() => {
                let action = format!("{} {}", request.method(), self.id.path);
                Some(Arc::new(app.audits.prepare(audit_event(meta, identity.actor(), action))))
            }
            _ => None,
        };
        let context = RequestContext {
            meta: Arc::clone(meta),
            caller,
            token,
            idempotency: if self.is_idempotent { idempotency_header(request, &body).map(Box::new) } else { None },
            body,
            headers: mem::take(request.headers_mut()),
            audit: audit.clone(),
            app: Arc::clone(app),
            reports: Arc::clone(&self.state.reports),
            live: Arc::clone(&self.state.live),
            inbox: Arc::clone(&self.state.inbox),
        };
        let future = self.handler.start(context, path, request.uri())?;
        match audit {
            Some(audit) => Box::pin(run_audited(audit, future)).await,
            None => future.await,
        }
    }

    async fn authorize(&self, request: &mut Request<Body>, meta: &RequestMeta) -> Result<Authorized> {
        let authorized = guard::authorize(&self.state.app, self.access, request.headers(), meta).await;
        if authorized.is_err() {
            meta.admit(&self.state.held, &Caller::Anonymous, request.headers())?;
            let body = mem::take(request.body_mut());
            Box::pin(body::discard(body, request.headers())).await;
        }
        authorized
    }

    async fn read_body(&self, request: &mut Request<Body>, meta: &RequestMeta) -> Result<Bytes> {
        let limits = &self.state.app.core.config.limits;
        let limit = (self.body_limit)(limits).as_usize();
        let body = mem::take(request.body_mut());
        let hold = |bytes| meta.held.grow(bytes);
        let read = body::read(body, request.headers(), limit, hold);
        match tokio::time::timeout(limits.body_timeout, read).await {
            Ok(bytes) => {
                let is_parameter = |name: &str| self.handler.declares(name);
                body_encoding::unpack(bytes?, request.headers_mut(), limit, is_parameter, hold).await
            }
            Err(_) => Err(Code::RequestTimeout.into()),
        }
    }
}

/// Tells clients of a deprecated endpoint until when it is served, and what replaces it (RFC 8594).
fn announce_sunset(headers: &mut HeaderMap, successor: &str, day: Date) {
    let end = HeaderValue::from_str(&day.strftime("%a, %d %b %Y 00:00:00 GMT").to_string());
    let link = HeaderValue::from_str(&format!("<{successor}>; rel=\"successor-version\""));
    if let (Ok(end), Ok(link)) = (end, link) {
        headers.insert("sunset", end);
        headers.insert(header::LINK, link);
    }
}

/// Runs an audited handler and records its outcome before the response is sent. Both continue if the client
/// disconnects, because the operation does.
pub async fn run_audited(audit: Arc<PendingAudit>, future: ResponseFuture) -> Result<Response<Body>> {
    audit.begin();
    let task = tokio::spawn(async move {
        let outcome = panic_as_error(AssertUnwindSafe(future).catch_unwind().await);
        let status = outcome.as_ref().map_or_else(|error| reply::status(error.code), Response::status);
        audit.finish(status.as_u16()).await.inspect_err(|_| audit.abandon())?;
        outcome
    });
    task.await.map_err(Error::internal)?
}

pub(super) fn overloaded(detail: impl Into<Sentence>) -> Error {
    Error::new(Code::Overloaded).detail(detail).retry_after(Duration::from_secs(1))
}

pub(super) fn panic_as_error<T>(caught: std::thread::Result<Result<T>>) -> Result<T> {
    caught.unwrap_or_else(|_| Err(Error::internal("a handler panicked")))
}

/// Returns the `Idempotency-Key` of a request together with the hash that identifies the request.
fn idempotency_header(request: &Request<Body>, body: &[u8]) -> Option<IdempotencyHeader> {
    let mut keys = request.headers().get_all("idempotency-key").iter();
    let value = keys.next()?;
    let query = request.uri().query().unwrap_or_default();
    let request_sha256 = sha256_of_parts(&[request.uri().path().as_bytes(), query.as_bytes(), body]);
    Some(IdempotencyHeader { value: value.clone(), is_ambiguous: keys.any(|other| other != value), request_sha256 })
}

/// Returns true if the parameters of requests with this method are documented as a body. One that is sent with another
/// method is read too.
pub fn takes_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

pub(super) async fn path_parameters(request: &mut Request<Body>, template: &str) -> Result<Vec<(String, String)>> {
    if !template.contains('{') {
        return Ok(Vec::new());
    }
    let found = Box::pin(request.extract_parts::<RawPathParams>()).await.map_err(|rejection| match rejection {
        RawPathParamsRejection::InvalidUtf8InPathParam(_) => {
            Error::new(Code::InvalidRequest).detail(("The path is not UTF-8.", "路径不是 UTF-8。"))
        }
        other => Error::internal(other),
    })?;
    Ok(found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Logs a failed request. Faults of the service are errors; requests that clients got wrong are not logged. Those of
/// requests without a user are throttled, because anybody can repeat them.
pub(super) fn log_failure(throttle: &LogThrottle, error: &Error, meta: &RequestMeta) {
    let status = reply::status(error.code).as_u16();
    let route = meta.route();
    if let Some(reason) = failed_proof(error.code) {
        // packaging/fail2ban matches the start of this line.
        let (client_ip, request_id) = (meta.client, &meta.request_id);
        tracing::warn!(%client_ip, %reason, %route, %request_id, "auth_failed");
    }
    let (request_id, trace_id) = (&meta.request_id, &error.trace_id);
    let is_fault = status >= 500 || store::is_damage(error);
    if !is_fault || meta.user.get().is_none() && !throttle.admits(error.code.name(), route) {
        return;
    }
    if status == 500 || store::is_damage(error) {
        tracing::error!(request_id, trace_id, route, %error, "a request failed");
    } else {
        tracing::warn!(request_id, trace_id, route, %error, "a request could not be served");
    }
}

/// Returns the kind of proof that failed. Tokens are not included: they cannot be guessed, and expired ones are normal.
fn failed_proof(code: Code) -> Option<&'static str> {
    match code {
        Code::InvalidCode => Some("code"),
        Code::InvalidCredentials => Some("password"),
        _ => None,
    }
}

/// Responds to a path or method without an endpoint.
pub async fn reject(state: &HttpState, code: Code, mut request: Request<Body>) -> Response<Body> {
    let Some(meta) = request.extensions_mut().remove::<Arc<RequestMeta>>() else {
        return problem(&code.into(), &RequestMeta::unknown());
    };
    if let Err(error) = meta.admit(&state.held, &Caller::Anonymous, request.headers()) {
        return problem(&error, &meta);
    }
    let (parts, body) = request.into_parts();
    body::discard(body, &parts.headers).await;
    problem(&code.into(), &meta)
}
