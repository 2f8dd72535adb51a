//! From a request to its endpoint.
//!
//! Most requests name an endpoint without parameters by its path and method, and are found in a table. All others, and
//! those that are refused, go through axum's router, which takes a request apart, keeps its parameters beside it and
//! makes a service and a future for it: a twentieth of what a read takes.

use std::{collections::HashMap, convert::Infallible, sync::Arc};

use axum::{
    body::Body,
    http::{Method, Request, Response},
};
use futures_util::{FutureExt, future::Either};
use tower::Service;

use super::{
    endpoint::Endpoint,
    endpoint_service::{EndpointService, refuse},
    request_context::RequestMeta,
};
use crate::{
    app::App,
    error::{Code, Error, Result},
};

/// Finds the endpoint of a request, or refuses it.
pub struct Router {
    by_path: HashMap<&'static str, Vec<(Method, EndpointService)>>,
    by_template: axum::Router,
}

impl Router {
    /// # Errors
    /// `internal` if two endpoints are in the same place.
    pub fn over(app: &Arc<App>, endpoints: impl Iterator<Item = Endpoint>) -> Result<Self> {
        let mut by_path = HashMap::<_, Vec<_>>::new();
        let mut by_template = axum::Router::new();
        for endpoint in endpoints {
            let (path, method, door) = (endpoint.path, &endpoint.method, endpoint.door(app));
            let at_path = by_path.entry(path).or_default();
            if at_path.iter().any(|(other, _)| other == method) {
                return Err(Error::internal(format!("{method} {path} is declared twice")));
            }
            by_template = by_template.route(path, door.clone().method_router(method)?);
            at_path.push((method.clone(), door));
        }
        by_path.retain(|path, _| !path.contains('{'));
        let by_template = by_template
            .fallback(|request| refuse(Code::NotFound, request))
            .method_not_allowed_fallback(|request| refuse(Code::MethodNotAllowed, request))
            // Makes the refusals services, once and not for each request.
            .with_state(());
        Ok(Self { by_path, by_template })
    }

    pub fn answer(
        &self,
        mut request: Request<Body>,
        meta: Arc<RequestMeta>,
    ) -> impl Future<Output = Response<Body>> + Send + use<> {
        let at_path = self.by_path.get(request.uri().path());
        let door = at_path.and_then(|doors| doors.iter().find(|(method, _)| method == request.method()));
        if let Some((_, door)) = door {
            // Boxed, because what is answered is moved with the connection's state.
            return Either::Left(Box::pin(door.clone().answer(request, meta)));
        }
        request.extensions_mut().insert(meta);
        Either::Right(call(self.by_template.clone(), request))
    }
}

/// Calls a service that is always ready and never fails: what goes wrong is a response.
pub fn call<S, B>(mut service: S, request: Request<Body>) -> impl Future<Output = Response<B>>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
{
    service.call(request).map(|outcome| match outcome {
        Ok(response) => response,
        Err(never) => match never {},
    })
}
