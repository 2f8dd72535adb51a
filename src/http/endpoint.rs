//! One endpoint: where it is, who may call it, what it takes and what it answers.

use std::{future::Future, marker::PhantomData, sync::Arc};

use axum::{
    body::Body,
    http::{Method, Response, StatusCode, Uri},
};
use futures_util::{FutureExt, future::BoxFuture};

use super::{
    endpoint_service::{BodyLimit, EndpointService, EndpointSpec, ErasedHandler, reader, takes_body},
    guard::Access,
    params::{BodyShape, ParameterDescription, Parameters},
    reply::{Reply, ReplyDescription},
    request_context::RequestContext,
};
use crate::{
    app::App,
    error::{Code, Error, Result},
};

/// An endpoint of the route table.
pub struct Endpoint {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub summary: &'static str,
    pub parameters: Vec<ParameterDescription>,
    pub body_shape: BodyShape,
    /// Makes something and answers 201.
    is_creation: bool,
    describe_answer: fn() -> ReplyDescription,
    /// Error codes beyond those that follow from access and parameters.
    pub codes: &'static [Code],
    pub body_limit: BodyLimit,
    /// Takes an `Idempotency-Key`.
    pub is_repeatable: bool,
    task: Arc<dyn ErasedHandler>,
}

/// An async function from a call and its parameters to an answer.
pub trait Handler<P, A>: Clone + Send + Sync + 'static {
    fn call(&self, context: RequestContext, parameters: P) -> impl Future<Output = Result<A>> + Send + 'static;
}

impl<F, Fut, P, A> Handler<P, A> for F
where
    F: Fn(RequestContext, P) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<A>> + Send + 'static,
{
    fn call(&self, context: RequestContext, parameters: P) -> impl Future<Output = Result<A>> + Send + 'static {
        self(context, parameters)
    }
}

impl Endpoint {
    pub fn new<O, P, A>(method: Method, path: &'static str, access: Access, operation: O, summary: &'static str) -> Self
    where
        O: Handler<P, A>,
        P: Parameters,
        A: Reply + Send + 'static,
    {
        let parameters = P::describe();
        let declared = parameters.iter().map(|parameter| parameter.name).collect();
        let task = Arc::new(TypedHandler { operation, declared, types: PhantomData });
        Self::of(method, path, access, task, summary, (parameters, P::BODY), A::describe)
    }

    /// What is in the program once, and not for each endpoint.
    #[inline(never)]
    fn of(
        method: Method,
        path: &'static str,
        access: Access,
        task: Arc<dyn ErasedHandler>,
        summary: &'static str,
        (parameters, body_shape): (Vec<ParameterDescription>, BodyShape),
        describe_answer: fn() -> ReplyDescription,
    ) -> Self {
        Self {
            method,
            path,
            access,
            summary,
            parameters,
            body_shape,
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

    /// Takes an `Idempotency-Key`: the operation answers by [`RequestContext::respond_once`].
    pub fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Makes something: answers 201.
    pub fn creates(mut self) -> Self {
        self.is_creation = true;
        self
    }

    /// Describes the response for the API document. Built on demand, because it is slow.
    pub fn answer(&self) -> ReplyDescription {
        let answer = (self.describe_answer)();
        if self.is_creation {
            return ReplyDescription { statuses: vec![(StatusCode::CREATED, "Made.")], ..answer };
        }
        answer
    }

    /// The way in.
    pub fn door(&self, app: &Arc<App>) -> EndpointService {
        let (app, task) = (Arc::clone(app), Arc::clone(&self.task));
        EndpointService::behind(EndpointSpec {
            app,
            path: self.path,
            access: self.access,
            body_limit: self.body_limit,
            is_repeatable: self.is_repeatable,
            task,
        })
    }

    pub fn takes_body(&self) -> bool {
        takes_body(&self.method)
    }
}

struct TypedHandler<O, P, A> {
    operation: O,
    /// Names of the parameters.
    declared: Vec<&'static str>,
    types: PhantomData<fn(P) -> A>,
}

impl<O, P, A> ErasedHandler for TypedHandler<O, P, A>
where
    O: Handler<P, A>,
    P: Parameters,
    A: Reply + Send + 'static,
{
    fn begin(
        &self,
        context: RequestContext,
        path: Vec<(String, String)>,
        uri: &Uri,
    ) -> Result<BoxFuture<'static, Result<Response<Body>>>> {
        let parameters = reader(&context, path, uri, P::BODY, &self.declared)?.parse::<P>()?;
        let doing = self.operation.call(context, parameters);
        // An async block around it would move the whole of it once more, the call included.
        Ok(Box::pin(doing.map(|outcome| outcome.and_then(Reply::into_response))))
    }

    fn replace_problem(&self, error: &Error) -> Option<Response<Body>> {
        A::replace_problem(error).and_then(|answer| answer.into_response().ok())
    }
}
