//! An endpoint of the route table: path, access, handler, and its part of the API document.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    http::{Method, StatusCode, Uri},
    routing::MethodFilter,
};

use super::{
    endpoint_service::{BodyLimit, ErasedHandler, ResponseFuture, takes_body},
    guard::Access,
    params::{BodyShape, ParameterDescription, Parameters, Reader},
    rate_limit::RateBudget,
    reply::{Reply, ReplyDescription},
    request_context::RequestContext,
    request_meta::EndpointId,
};
use crate::error::{Code, Error, Result};

/// The areas that group endpoints in the API document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    Identity,
    Divination,
    Money,
    Moderation,
    Messaging,
    Operations,
}

impl Area {
    pub const ALL: [Self; 6] =
        [Self::Identity, Self::Divination, Self::Money, Self::Moderation, Self::Messaging, Self::Operations];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Divination => "divination",
            Self::Money => "money",
            Self::Moderation => "moderation",
            Self::Messaging => "messaging",
            Self::Operations => "operations",
        }
    }

    pub const fn description(self) -> &'static str {
        match self {
            Self::Identity => "Sign-in, devices, accounts, profiles and preferences.",
            Self::Divination => "Castings, their history, interpretations and chat.",
            Self::Money => "Coins, points, invites, orders and refunds.",
            Self::Moderation => "Text screening, the word list and rejected texts.",
            Self::Messaging => "Notifications, feedback and app releases.",
            Self::Operations => "Administrator sessions, logs, data cleanup, health and documentation.",
        }
    }
}

/// An endpoint of the route table.
#[expect(clippy::struct_excessive_bools, reason = "independent properties of an endpoint")]
pub struct Endpoint {
    /// Position in the route table.
    pub index: usize,
    pub area: Area,
    pub method: Method,
    pub path: &'static str,
    /// The stable name in the API document and in generated clients, such as `coinBalance`.
    pub operation: &'static str,
    /// The operation that replaces this one.
    pub successor: Option<&'static str>,
    pub access: Access,
    /// The use of the endpoint in an app, and rules that its parameters do not tell.
    pub notes: &'static str,
    pub summary: &'static str,
    pub parameters: Vec<ParameterDescription>,
    pub body_shape: BodyShape,
    /// Error codes besides those that follow from access and parameters.
    pub errors: &'static [Code],
    pub body_limit: BodyLimit,
    /// The limits that responses show.
    pub budget: Option<RateBudget>,
    /// True if the endpoint accepts an `Idempotency-Key`.
    pub is_idempotent: bool,
    /// Pattern and example of the `Last-Event-ID` from which the endpoint continues an event stream.
    pub last_event_id: Option<(&'static str, &'static str)>,
    /// True if suspended users may call the endpoint although it requires a token.
    pub admits_suspended: bool,
    /// True for acts that move money, delete data or reach every client: sessions of administrators need a recent proof
    /// of identity. API keys need none.
    pub needs_recent_sign_in: bool,
    pub handler: Arc<dyn ErasedHandler>,
    is_creation: bool,
    /// True if other services, browsers or tools call the endpoint, and no app.
    is_for_others: bool,
    describe_reply: fn() -> ReplyDescription,
}

/// An async function from a request and its parameters to a reply.
pub trait Handler<P, R>: Send + Sync + 'static {
    fn handle(&self, context: RequestContext, parameters: P) -> impl Future<Output = Result<R>> + Send + 'static;
}

impl<F, Fut, P, R> Handler<P, R> for F
where
    F: Fn(RequestContext, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R>> + Send + 'static,
{
    fn handle(&self, context: RequestContext, parameters: P) -> impl Future<Output = Result<R>> + Send + 'static {
        self(context, parameters)
    }
}

pub fn get<P: Parameters, R: Reply>(path: &'static str, access: Access, handler: impl Handler<P, R>) -> Endpoint {
    Endpoint::new(Method::GET, path, access, handler)
}

pub fn post<P: Parameters, R: Reply>(path: &'static str, access: Access, handler: impl Handler<P, R>) -> Endpoint {
    Endpoint::new(Method::POST, path, access, handler)
}

pub fn put<P: Parameters, R: Reply>(path: &'static str, access: Access, handler: impl Handler<P, R>) -> Endpoint {
    Endpoint::new(Method::PUT, path, access, handler)
}

pub fn patch<P: Parameters, R: Reply>(path: &'static str, access: Access, handler: impl Handler<P, R>) -> Endpoint {
    Endpoint::new(Method::PATCH, path, access, handler)
}

pub fn delete<P: Parameters, R: Reply>(path: &'static str, access: Access, handler: impl Handler<P, R>) -> Endpoint {
    Endpoint::new(Method::DELETE, path, access, handler)
}

impl Endpoint {
    fn new<P: Parameters, R: Reply>(
        method: Method,
        path: &'static str,
        access: Access,
        handler: impl Handler<P, R>,
    ) -> Self {
        let parameters = P::describe();
        Self::with_handler(method, path, access, (parameters, P::BODY), erase(handler), R::describe)
    }

    fn with_handler(
        method: Method,
        path: &'static str,
        access: Access,
        (parameters, body_shape): (Vec<ParameterDescription>, BodyShape),
        handler: Arc<dyn ErasedHandler>,
        describe_reply: fn() -> ReplyDescription,
    ) -> Self {
        Self {
            index: 0,
            area: Area::Operations,
            method,
            path,
            operation: "",
            successor: None,
            access,
            notes: "",
            summary: "",
            parameters,
            body_shape,
            errors: &[],
            body_limit: |limits| limits.body,
            budget: None,
            is_idempotent: false,
            last_event_id: None,
            admits_suspended: false,
            needs_recent_sign_in: false,
            handler,
            is_creation: false,
            is_for_others: false,
            describe_reply,
        }
    }

    /// Assigns the area and position in the route table.
    pub fn in_table(self, index: usize, area: Area) -> Self {
        Self { index, area, ..self }
    }

    pub fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Sets the name in the API document. Generated clients call the endpoint by it, so that it must not change.
    pub fn named(self, operation: &'static str) -> Self {
        Self { operation, ..self }
    }

    /// Marks the endpoint as deprecated in favour of another operation.
    pub fn successor(self, operation: &'static str) -> Self {
        Self { successor: Some(operation), ..self }
    }

    pub fn notes(self, notes: &'static str) -> Self {
        Self { notes, ..self }
    }

    pub fn errors(self, errors: &'static [Code]) -> Self {
        Self { errors, ..self }
    }

    pub fn body_limit(self, body_limit: BodyLimit) -> Self {
        Self { body_limit, ..self }
    }

    /// Shows what is left of a budget in each response.
    pub fn budget(self, budget: RateBudget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Accepts an `Idempotency-Key`. The handler must respond with [`RequestContext::respond_once`] or its siblings.
    pub fn idempotent(self) -> Self {
        Self { is_idempotent: true, ..self }
    }

    /// Documents the header `Last-Event-ID`, with the pattern of its ids and an example.
    pub fn resumable(self, pattern: &'static str, example: &'static str) -> Self {
        Self { last_event_id: Some((pattern, example)), ..self }
    }

    /// Admits suspended users.
    pub fn for_suspended(self) -> Self {
        Self { admits_suspended: true, ..self }
    }

    /// Requires a recent proof of identity from sessions of administrators. The console's table marks its actions alike.
    pub fn for_recent_sign_in(self) -> Self {
        Self { needs_recent_sign_in: true, ..self }
    }

    /// Leaves the endpoint out of the API document of apps.
    pub fn for_others(self) -> Self {
        Self { is_for_others: true, ..self }
    }

    /// Documents the status 201 in place of 200.
    pub fn creates(self) -> Self {
        Self { is_creation: true, ..self }
    }

    pub fn id(&self) -> EndpointId {
        EndpointId {
            index: self.index,
            path: self.path,
            is_current_api: self.is_current_api(),
            admits_suspended: self.admits_suspended,
            admits_pages: !matches!(self.access, Access::Admin(_) | Access::Signature),
            needs_recent_sign_in: self.needs_recent_sign_in,
        }
    }

    /// Returns true for endpoints that an app calls, with or without a user.
    pub fn is_for_apps(&self) -> bool {
        !matches!(self.access, Access::Admin(_) | Access::Signature)
            && !self.is_for_others
            && !self.path.starts_with("/admin/")
    }

    /// Returns true for the API below `/api/v1`, which names users by their token alone.
    pub fn is_current_api(&self) -> bool {
        self.path.starts_with("/api/v1/")
    }

    /// Returns the method as axum's router needs it.
    ///
    /// # Errors
    /// `internal` for a method that axum does not route.
    pub fn method_filter(&self) -> Result<MethodFilter> {
        MethodFilter::try_from(self.method.clone()).map_err(Error::internal)
    }

    /// Describes the reply for the API document.
    pub fn reply(&self) -> ReplyDescription {
        let reply = (self.describe_reply)();
        if self.is_creation {
            return ReplyDescription { statuses: vec![(StatusCode::CREATED, "Created.")], ..reply };
        }
        reply
    }

    pub fn takes_body(&self) -> bool {
        takes_body(&self.method)
    }
}

/// Erases the types of a handler.
pub fn erase<P: Parameters, R: Reply>(handler: impl Handler<P, R>) -> Arc<dyn ErasedHandler> {
    let declared = P::describe().iter().map(|parameter| parameter.name).collect();
    Arc::new(TypedHandler { handler, declared, types: PhantomData })
}

struct TypedHandler<H, P, R> {
    handler: H,
    /// Names of the parameters.
    declared: Vec<&'static str>,
    types: PhantomData<fn(P) -> R>,
}

impl<H, P, R> ErasedHandler for TypedHandler<H, P, R>
where
    H: Handler<P, R>,
    P: Parameters,
    R: Reply,
{
    fn start(&self, context: RequestContext, path: Vec<(String, String)>, uri: &Uri) -> Result<ResponseFuture> {
        let parameters = Reader::of_request(&context, path, uri, P::BODY, &self.declared)?.parse::<P>()?;
        let reply = self.handler.handle(context, parameters);
        Ok(Box::pin(async move { reply.await?.into_response() }))
    }

    fn declares(&self, name: &str) -> bool {
        self.declared.contains(&name)
    }

    fn error_reply(&self, error: &Error) -> Option<axum::http::Response<axum::body::Body>> {
        R::from_error(error).and_then(|reply| reply.into_response().ok())
    }
}
