//! One endpoint: where it is, who may call it, what it takes and answers, and how a request goes through it.

use std::{
    convert::Infallible, future::Future, marker::PhantomData, mem, panic::AssertUnwindSafe, sync::Arc, time::Duration,
};

use axum::{
    RequestExt,
    body::{Body, Bytes},
    extract::RawPathParams,
    http::{Method, Request, Response, StatusCode, Uri},
    routing::{MethodFilter, MethodRouter, on_service},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Either, ready},
};
use tower::service_fn;

use crate::{
    app::App,
    config::{self, Limits},
    error::{Code, Error, Result},
    http::{
        body,
        call::{Call, Caller, Context, Repeatable},
        guard::{self, Access},
        large_answer,
        params::{BodyShape, Described, Fields, Parameters, Rules},
        reply::{Answer, AnswerDocument, problem},
    },
    ops::audit::{self, Act},
    store,
    types::sha256_of_parts,
};

/// An endpoint as it stands on the routes page.
pub struct Endpoint {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub summary: &'static str,
    pub parameters: Vec<Described>,
    /// Makes something and answers 201.
    is_creation: bool,
    describe_answer: fn() -> AnswerDocument,
    /// Codes of its own, beside those that follow from access and parameters.
    pub codes: &'static [Code],
    pub body_limit: BodyLimit,
    /// Takes an `Idempotency-Key`.
    pub is_repeatable: bool,
    task: Arc<dyn Task>,
}

/// Which setting bounds the body.
pub type BodyLimit = fn(&Limits) -> config::Bytes;

/// An async function from a call and its parameters to an answer.
pub trait Operation<P, A>: Clone + Send + Sync + 'static {
    fn call(&self, call: Call, parameters: P) -> impl Future<Output = Result<A>> + Send + 'static;
}

impl<F, Fut, P, A> Operation<P, A> for F
where
    F: Fn(Call, P) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<A>> + Send + 'static,
{
    fn call(&self, call: Call, parameters: P) -> impl Future<Output = Result<A>> + Send + 'static {
        self(call, parameters)
    }
}

impl Endpoint {
    pub fn new<O, P, A>(method: Method, path: &'static str, access: Access, operation: O, summary: &'static str) -> Self
    where
        O: Operation<P, A>,
        P: Parameters,
        A: Answer + Send + 'static,
    {
        let task = Arc::new(Typed { operation, types: PhantomData });
        Self::of(method, path, access, task, summary, P::describe(), A::describe)
    }

    /// What is in the program once, and not for each endpoint.
    #[inline(never)]
    fn of(
        method: Method,
        path: &'static str,
        access: Access,
        task: Arc<dyn Task>,
        summary: &'static str,
        parameters: Vec<Described>,
        describe_answer: fn() -> AnswerDocument,
    ) -> Self {
        Self {
            method,
            path,
            access,
            summary,
            parameters,
            is_creation: false,
            describe_answer,
            codes: &[],
            body_limit: |limits| limits.body,
            is_repeatable: false,
            task,
        }
    }

    pub fn fails(mut self, codes: &'static [Code]) -> Self {
        self.codes = codes;
        self
    }

    pub fn body(mut self, limit: BodyLimit) -> Self {
        self.body_limit = limit;
        self
    }

    /// Takes an `Idempotency-Key`: the operation answers by [`Call::answer_once`].
    pub fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Makes something: answers 201.
    pub fn creates(mut self) -> Self {
        self.is_creation = true;
        self
    }

    /// What it answers, for the API document: too much to be made at every start.
    pub fn answer(&self) -> AnswerDocument {
        let answer = (self.describe_answer)();
        if self.is_creation {
            return AnswerDocument { statuses: vec![(StatusCode::CREATED, "Made.")], ..answer };
        }
        answer
    }

    /// The way in.
    pub fn door(&self, app: &Arc<App>) -> Door {
        let (app, task) = (Arc::clone(app), Arc::clone(&self.task));
        Door(Arc::new(Gate {
            app,
            path: self.path,
            access: self.access,
            body_limit: self.body_limit,
            is_repeatable: self.is_repeatable,
            task,
        }))
    }

    pub fn takes_body(&self) -> bool {
        takes_body(&self.method)
    }
}

fn takes_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

/// An operation together with what it takes and answers. Only this is in the program for each endpoint; the way to it
/// and from it is the same for all.
trait Task: Send + Sync {
    /// Reads the parameters and begins.
    ///
    /// # Errors
    /// What is wrong with the parameters.
    fn begin(
        &self,
        call: Call,
        path: Vec<(String, String)>,
        uri: &Uri,
    ) -> Result<BoxFuture<'static, Result<Response<Body>>>>;

    fn instead_of_problem(&self, error: &Error) -> Option<Response<Body>>;
}

struct Typed<O, P, A> {
    operation: O,
    types: PhantomData<fn(P) -> A>,
}

impl<O, P, A> Task for Typed<O, P, A>
where
    O: Operation<P, A>,
    P: Parameters,
    A: Answer + Send + 'static,
{
    fn begin(
        &self,
        call: Call,
        path: Vec<(String, String)>,
        uri: &Uri,
    ) -> Result<BoxFuture<'static, Result<Response<Body>>>> {
        let parameters = fields(&call, path, uri, P::BODY, P::NAMES)?.parse::<P>()?;
        let doing = self.operation.call(call, parameters);
        // An async block around it would move the whole of it once more, the call included.
        Ok(Box::pin(doing.map(|outcome| outcome.and_then(Answer::into_response))))
    }

    fn instead_of_problem(&self, error: &Error) -> Option<Response<Body>> {
        A::instead_of_problem(error).and_then(|answer| answer.into_response().ok())
    }
}

/// Answers the requests of one endpoint. Clones are the same door.
#[derive(Clone)]
pub struct Door(Arc<Gate>);

/// What an endpoint asks of a request before it looks at its parameters, and what it does then.
struct Gate {
    app: Arc<App>,
    path: &'static str,
    access: Access,
    body_limit: BodyLimit,
    is_repeatable: bool,
    task: Arc<dyn Task>,
}

impl Door {
    pub async fn answer(self, mut request: Request<Body>, context: Arc<Context>) -> Response<Body> {
        let gate = self.0;
        context.route.get_or_init(|| gate.path);
        let run = AssertUnwindSafe(gate.run(&mut request, &context)).catch_unwind();
        unless_panicked(run.await).unwrap_or_else(|error| {
            report(&error, &context);
            gate.task.instead_of_problem(&error).unwrap_or_else(|| problem(&error, &context.request_id))
        })
    }

    /// The door as a part of axum's router, which hands it requests that have their context with them. A service and no
    /// handler, which that would make a service of for each request.
    pub fn method_router(self, method: &Method) -> Result<MethodRouter> {
        let filter = MethodFilter::try_from(method.clone()).map_err(Error::internal)?;
        let service = service_fn(move |mut request: Request<Body>| {
            let answering = match request.extensions_mut().remove::<Arc<Context>>() {
                Some(context) => Either::Left(self.clone().answer(request, context)),
                None => Either::Right(ready(problem(&Error::internal("a request came without its context"), ""))),
            };
            answering.map(Ok::<_, Infallible>)
        });
        Ok(on_service(filter, service))
    }
}

impl Gate {
    /// The request stays where it is: what is handed on and kept by each of these futures is moved with them.
    async fn run(&self, request: &mut Request<Body>, context: &Arc<Context>) -> Result<Response<Body>> {
        let caller = self.admit(request, context).await?;
        let body = if takes_body(request.method()) { self.read_body(request).await? } else { Bytes::new() };
        // Only now: whoever sends a body slowly must not take a place from those who have sent theirs.
        let _place = self.app.requests.enter().map_err(|_| too_many_requests())?;
        let path = path_parameters(request, self.path).await?;
        let audited = match &caller {
            Caller::Admin(identity) if self.access.is_audited() => Some(Audited {
                app: Arc::clone(&self.app),
                context: Arc::clone(context),
                actor: identity.actor(),
                action: format!("{} {}", request.method(), self.path),
            }),
            _ => None,
        };
        let call = Call {
            context: Arc::clone(context),
            caller,
            repeatable: if self.is_repeatable { repeatable(request, &body) } else { None },
            body,
            headers: mem::take(request.headers_mut()),
            app: Arc::clone(&self.app),
        };
        let doing = self.task.begin(call, path, request.uri())?;
        let answer = match audited {
            Some(audited) => audited.see_through(doing).await?,
            None => doing.await?,
        };
        match context.user.get() {
            Some(user) if large_answer::is_large(&answer) => {
                Box::pin(large_answer::one_at_a_time(&self.app, *user, answer)).await
            }
            _ => Ok(answer),
        }
    }

    async fn admit(&self, request: &mut Request<Body>, context: &Context) -> Result<Caller> {
        let admitted = guard::admit(&self.app, self.access, request.headers(), context).await;
        if admitted.is_err() {
            let body = mem::take(request.body_mut());
            Box::pin(body::discard(body, request.headers())).await;
        }
        admitted
    }

    async fn read_body(&self, request: &mut Request<Body>) -> Result<Bytes> {
        let limits = &self.app.config.limits;
        let limit = (self.body_limit)(limits).as_usize();
        let body = mem::take(request.body_mut());
        let read = body::read(body, request.headers(), limit);
        match tokio::time::timeout(limits.body_timeout, read).await {
            Ok(bytes) => bytes,
            Err(_) => Err(Code::RequestTimeout.into()),
        }
    }
}

/// What an administrator asks for, while it is done.
struct Audited {
    app: Arc<App>,
    context: Arc<Context>,
    actor: String,
    action: String,
}

impl Audited {
    /// Waits for what is done and for its row. Both go on by themselves when the client leaves, because what was begun is
    /// done all the same.
    async fn see_through(self, doing: BoxFuture<'static, Result<Response<Body>>>) -> Result<Response<Body>> {
        let seen_through = tokio::spawn(async move {
            let outcome = unless_panicked(AssertUnwindSafe(doing).catch_unwind().await);
            self.record(outcome).await
        });
        seen_through.await.map_err(Error::internal)?
    }

    /// Writes down what came of it: the answer does not leave before that.
    async fn record(self, outcome: Result<Response<Body>>) -> Result<Response<Body>> {
        let status = outcome.as_ref().map_or_else(|error| super::reply::status(error.code), Response::status);
        let act = Act {
            actor: self.actor,
            action: self.action,
            user: self.context.subject.get().copied(),
            reason: self.context.reason.get().cloned(),
            outcome: status.as_u16(),
            client_ip: Some(self.context.client.to_string()),
            request_id: self.context.request_id.clone(),
        };
        audit::record(&self.app, act).await?;
        outcome
    }
}

fn too_many_requests() -> Error {
    Error::new(Code::Overloaded).detail("Too many requests are running.").retry_after(Duration::from_secs(1))
}

/// The outcome of what may have panicked.
fn unless_panicked<T>(caught: std::thread::Result<Result<T>>) -> Result<T> {
    caught.unwrap_or_else(|_| Err(Error::internal("a handler panicked")))
}

/// What path, query and body say, once it is known that a user of the first generation names nobody else beside the names
/// that the endpoint looks for itself.
///
/// # Errors
/// Those of the body; `not_yours`.
fn fields<'request>(
    call: &'request Call,
    path: Vec<(String, String)>,
    uri: &'request Uri,
    shape: BodyShape,
    declared: &[&str],
) -> Result<Fields<'request>> {
    let app = &call.app;
    let query = body::encoded_pairs(uri.query().unwrap_or_default())?;
    let body = match shape {
        BodyShape::Raw => Vec::new(),
        BodyShape::Named => body::pairs(&call.body, &call.headers, None)?,
        BodyShape::NamedOrItems(list) => body::pairs(&call.body, &call.headers, Some(list))?,
    };
    let (config, phone, clock) = (&app.config, &app.phone_rules, &app.clock);
    let rules = Rules { call, config, phone, headers: &call.headers, clock };
    let mut fields = Fields::new(path, query, body, rules);
    if let Some(fault) = call.repeatable.as_ref().and_then(|repeatable| repeatable.key().err()) {
        fields.note(fault);
    }
    if call.is_of_first_generation_user() {
        for claims in fields.claims_beside(declared) {
            call.acting_for(&claims)?;
        }
    }
    Ok(fields)
}

/// The request's `Idempotency-Key`, and what tells the request from others.
fn repeatable(request: &Request<Body>, body: &[u8]) -> Option<Box<Repeatable>> {
    let mut keys = request.headers().get_all("idempotency-key").iter();
    let key = keys.next()?;
    let query = request.uri().query().unwrap_or_default();
    let request_sha256 = sha256_of_parts(&[request.uri().path().as_bytes(), query.as_bytes(), body]);
    Some(Box::new(Repeatable { key: key.clone(), is_ambiguous: keys.any(|other| other != key), request_sha256 }))
}

async fn path_parameters(request: &mut Request<Body>, template: &str) -> Result<Vec<(String, String)>> {
    if !template.contains('{') {
        return Ok(Vec::new());
    }
    let found = Box::pin(request.extract_parts::<RawPathParams>()).await.map_err(|_| Error::new(Code::NotFound))?;
    Ok(found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Logs a failure once, here at the boundary: faults of the service as errors, refused requests not at all.
fn report(error: &Error, context: &Context) {
    let status = super::reply::status(error.code).as_u16();
    let route = context.route.get().copied().unwrap_or_default();
    if let Some(reason) = failed_proof(error.code) {
        // The line that packaging/fail2ban looks for: its beginning must not change.
        let (client_ip, request_id) = (context.client, &context.request_id);
        tracing::warn!(%client_ip, %reason, %route, %request_id, "auth_failed");
    }
    if status == 500 || store::is_damage(error) {
        tracing::error!(request_id = context.request_id, route, %error, "a request failed");
    } else if status > 500 {
        tracing::warn!(request_id = context.request_id, route, %error, "a request could not be served");
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
    let context = parts.extensions.get::<Arc<Context>>();
    Ok(problem(&code.into(), context.map(|context| context.request_id.as_str()).unwrap_or_default()))
}
