//! The way of a request through an endpoint: who is let in, what it says, and what is answered when it fails.

use std::{convert::Infallible, mem, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    RequestExt,
    body::{Body, Bytes},
    extract::{RawPathParams, rejection::RawPathParamsRejection},
    http::{Method, Request, Response, Uri},
    routing::{MethodFilter, MethodRouter, on_service},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Either, ready},
};
use tower::service_fn;

use super::{
    body,
    guard::{self, Access},
    large_response,
    params::{BodyShape, Reader, Rules},
    reply::{self, problem},
    request_context::{Caller, Repeatable, RequestContext, RequestMeta},
};
use crate::{
    app::App,
    config::{self, Limits},
    domain::{
        identity::codes::client_network,
        operations::audit::{AuditEvent, DescribeEvent, PendingAudit},
    },
    error::{Code, Error, Result},
    store,
    types::sha256_of_parts,
};

/// Long bodies of one sender that may be on their way at once; see [`RequestLimits::long_bodies`](crate::app::RequestLimits::long_bodies).
const LONG_BODIES_OF_ONE: u32 = 16;

/// Answers the requests of one endpoint. Clones are the same door.
#[derive(Clone)]
pub struct EndpointService(Arc<EndpointSpec>);

/// What an endpoint asks of a request before it looks at its parameters, and what it does then.
pub struct EndpointSpec {
    pub app: Arc<App>,
    pub path: &'static str,
    pub access: Access,
    pub body_limit: BodyLimit,
    pub is_repeatable: bool,
    pub task: Arc<dyn ErasedHandler>,
}

/// Which setting bounds the body.
pub type BodyLimit = fn(&Limits) -> config::Bytes;

/// An operation together with what it takes and answers. Only this is in the program for each endpoint; the way to it
/// and from it is the same for all.
pub trait ErasedHandler: Send + Sync {
    /// Reads the parameters and begins.
    ///
    /// # Errors
    /// What is wrong with the parameters.
    fn begin(
        &self,
        context: RequestContext,
        path: Vec<(String, String)>,
        uri: &Uri,
    ) -> Result<BoxFuture<'static, Result<Response<Body>>>>;

    fn replace_problem(&self, error: &Error) -> Option<Response<Body>>;
}

impl EndpointService {
    /// The door behind which this gate stands.
    pub fn behind(gate: EndpointSpec) -> Self {
        Self(Arc::new(gate))
    }

    pub async fn answer(self, mut request: Request<Body>, meta: Arc<RequestMeta>) -> Response<Body> {
        let gate = self.0;
        meta.route.get_or_init(|| gate.path);
        let run = AssertUnwindSafe(gate.run(&mut request, &meta)).catch_unwind();
        unless_panicked(run.await).unwrap_or_else(|error| {
            report(&error, &meta);
            gate.task.replace_problem(&error).unwrap_or_else(|| problem(&error, &meta.request_id))
        })
    }

    /// The door as a part of axum's router, which hands it requests that have their context with them. A service and no
    /// handler, which that would make a service of for each request.
    pub fn method_router(self, method: &Method) -> Result<MethodRouter> {
        let filter = MethodFilter::try_from(method.clone()).map_err(Error::internal)?;
        let service = service_fn(move |mut request: Request<Body>| {
            let answering = match request.extensions_mut().remove::<Arc<RequestMeta>>() {
                Some(meta) => Either::Left(self.clone().answer(request, meta)),
                None => Either::Right(ready(problem(&Error::internal("a request came without its context"), ""))),
            };
            answering.map(Ok::<_, Infallible>)
        });
        Ok(on_service(filter, service))
    }
}

impl EndpointSpec {
    /// The request stays where it is: what is handed on and kept by each of these futures is moved with them.
    async fn run(&self, request: &mut Request<Body>, meta: &Arc<RequestMeta>) -> Result<Response<Body>> {
        let caller = self.admit(request, meta).await?;
        let body =
            if takes_body(request.method()) { self.read_body(request, &caller, meta).await? } else { Bytes::new() };
        // Only now: whoever sends a body slowly must not take a place from those who have sent theirs.
        let _place =
            self.app.limits.requests.try_acquire().map_err(|_| refused_for_now("Too many requests are running."))?;
        let path = path_parameters(request, self.path).await?;
        let act = match &caller {
            Caller::Admin(identity) if self.access.is_audited() => {
                let action = format!("{} {}", request.method(), self.path);
                Some(Arc::new(self.app.audits.prepare(known(meta, identity.actor(), action))))
            }
            _ => None,
        };
        let context = RequestContext {
            meta: Arc::clone(meta),
            caller,
            repeatable: if self.is_repeatable { repeatable(request, &body) } else { None },
            body,
            headers: mem::take(request.headers_mut()),
            act: act.clone(),
            app: Arc::clone(&self.app),
        };
        let doing = self.task.begin(context, path, request.uri())?;
        let answer = match act {
            Some(act) => see_through(act, doing).await?,
            None => doing.await?,
        };
        match meta.user.get() {
            Some(user) if large_response::is_large(&answer) => {
                Box::pin(large_response::one_at_a_time(&self.app, *user, answer)).await
            }
            _ => Ok(answer),
        }
    }

    async fn admit(&self, request: &mut Request<Body>, meta: &RequestMeta) -> Result<Caller> {
        let admitted = guard::admit(&self.app, self.access, request.headers(), meta).await;
        if admitted.is_err() {
            let body = mem::take(request.body_mut());
            Box::pin(body::discard(body, request.headers())).await;
        }
        admitted
    }

    async fn read_body(&self, request: &mut Request<Body>, caller: &Caller, meta: &RequestMeta) -> Result<Bytes> {
        let limits = &self.app.config.limits;
        let limit = (self.body_limit)(limits).as_usize();
        let body = mem::take(request.body_mut());
        let room = || {
            let sender = caller.name().unwrap_or_else(|| client_network(meta.client));
            let room = self.app.limits.long_bodies.try_acquire(sender, LONG_BODIES_OF_ONE);
            room.ok_or_else(|| refused_for_now("Too many long bodies are on their way."))
        };
        let read = body::read(body, request.headers(), limit, room);
        match tokio::time::timeout(limits.body_timeout, read).await {
            Ok(bytes) => bytes,
            Err(_) => Err(Code::RequestTimeout.into()),
        }
    }
}

/// What is known of what an administrator asks for, while it is done.
fn known(meta: &Arc<RequestMeta>, actor: String, action: String) -> DescribeEvent {
    let meta = Arc::clone(meta);
    Arc::new(move |outcome| AuditEvent {
        actor: actor.clone(),
        action: action.clone(),
        user: meta.subject.get().copied(),
        reason: meta.reason.get().cloned(),
        outcome,
        client_ip: Some(meta.client.to_string()),
        request_id: meta.request_id.clone(),
    })
}

/// Waits for what an administrator asks for and for its row: the answer does not leave before that. Both go on by
/// themselves when the client leaves, because what was begun is done all the same.
async fn see_through(
    act: Arc<PendingAudit>,
    doing: BoxFuture<'static, Result<Response<Body>>>,
) -> Result<Response<Body>> {
    act.begin();
    let seen_through = tokio::spawn(async move {
        let outcome = unless_panicked(AssertUnwindSafe(doing).catch_unwind().await);
        let status = outcome.as_ref().map_or_else(|error| reply::status(error.code), Response::status);
        act.finish(status.as_u16()).await.inspect_err(|_| act.abandon())?;
        outcome
    });
    seen_through.await.map_err(Error::internal)?
}

fn refused_for_now(why: &'static str) -> Error {
    Error::new(Code::Overloaded).detail(why).retry_after(Duration::from_secs(1))
}

/// The outcome of what may have panicked.
fn unless_panicked<T>(caught: std::thread::Result<Result<T>>) -> Result<T> {
    caught.unwrap_or_else(|_| Err(Error::internal("a handler panicked")))
}

/// What path, query and body say, once it is known that a user of the first generation names nobody else beside the
/// names that the endpoint looks for itself.
///
/// # Errors
/// Those of the body; `not_yours`.
pub fn reader<'request>(
    context: &'request RequestContext,
    path: Vec<(String, String)>,
    uri: &'request Uri,
    shape: BodyShape,
    declared: &[&str],
) -> Result<Reader<'request>> {
    let app = &context.app;
    let query = body::encoded_pairs(uri.query().unwrap_or_default())?;
    let body = match shape {
        BodyShape::Raw => Vec::new(),
        BodyShape::Named => body::pairs(&context.body, &context.headers, None)?,
        BodyShape::NamedOrItems(list) => body::pairs(&context.body, &context.headers, Some(list))?,
    };
    let (config, phone, clock) = (&app.config, &app.phone_rules, &app.clock);
    let rules = Rules { context, config, phone, headers: &context.headers, clock };
    let mut reader = Reader::new(path, query, body, rules);
    if let Some(fault) = context.repeatable.as_ref().and_then(|repeatable| repeatable.key().err()) {
        reader.add_error(fault);
    }
    if context.is_of_first_generation_user() {
        for claims in reader.undeclared_claims(declared) {
            context.acting_for(&claims)?;
        }
    }
    Ok(reader)
}

/// The request's `Idempotency-Key`, and what tells the request from others.
fn repeatable(request: &Request<Body>, body: &[u8]) -> Option<Box<Repeatable>> {
    let mut keys = request.headers().get_all("idempotency-key").iter();
    let key = keys.next()?;
    let query = request.uri().query().unwrap_or_default();
    let request_sha256 = sha256_of_parts(&[request.uri().path().as_bytes(), query.as_bytes(), body]);
    Some(Box::new(Repeatable { key: key.clone(), is_ambiguous: keys.any(|other| other != key), request_sha256 }))
}

/// Whether requests of this method have a body that is read.
pub fn takes_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

async fn path_parameters(request: &mut Request<Body>, template: &str) -> Result<Vec<(String, String)>> {
    if !template.contains('{') {
        return Ok(Vec::new());
    }
    let found = Box::pin(request.extract_parts::<RawPathParams>()).await.map_err(|refused| match refused {
        RawPathParamsRejection::InvalidUtf8InPathParam(_) => {
            Error::new(Code::InvalidRequest).detail("The path is not UTF-8.")
        }
        other => Error::internal(other),
    })?;
    Ok(found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Logs a failure once, here at the boundary: faults of the service as errors, refused requests not at all.
fn report(error: &Error, meta: &RequestMeta) {
    let status = reply::status(error.code).as_u16();
    let route = meta.route.get().copied().unwrap_or_default();
    if let Some(reason) = failed_proof(error.code) {
        // The line that packaging/fail2ban looks for: its beginning must not change.
        let (client_ip, request_id) = (meta.client, &meta.request_id);
        tracing::warn!(%client_ip, %reason, %route, %request_id, "auth_failed");
    }
    let (request_id, trace_id) = (&meta.request_id, &error.trace_id);
    if status == 500 || store::is_damage(error) {
        tracing::error!(request_id, trace_id, route, %error, "a request failed");
    } else if status > 500 {
        tracing::warn!(request_id, trace_id, route, %error, "a request could not be served");
    }
}

/// What somebody who is not who they claim to be got wrong. A token is not among it: tokens cannot be guessed, and an
/// app that shows an expired one is no attack.
fn failed_proof(code: Code) -> Option<&'static str> {
    match code {
        Code::InvalidCode => Some("code"),
        Code::InvalidCredentials => Some("password"),
        _ => None,
    }
}

/// The answer for a path or method that no endpoint has.
pub async fn refuse(code: Code, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    body::discard(body, &parts.headers).await;
    let meta = parts.extensions.get::<Arc<RequestMeta>>();
    Ok(problem(&code.into(), meta.map(|meta| meta.request_id.as_str()).unwrap_or_default()))
}
