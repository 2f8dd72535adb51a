//! Calls endpoints of administrators in this process, for the command line: with the parameters, rules, replies and audit of
//! HTTP, and without its limits.

use std::{net::IpAddr, sync::Arc, time::Instant};

use axum::{
    body::{Bytes, to_bytes},
    http::{HeaderMap, HeaderValue, Uri, header},
};
use serde_json::{Map, Value};

use super::{
    admin::lists::{self, Paged, StaffList},
    endpoint::{Endpoint, erase},
    endpoint_service::{ErasedHandler, run_audited},
    reply::{JSON, PlainText},
    request_context::RequestContext,
    request_meta::{Caller, RequestMeta},
    state::HttpState,
};
use crate::{
    app::App,
    domain::operations::{admins::Identity, audit::AuditEvent},
    error::{Error, Result},
    types::{Paginated, UserId},
};

/// A call of an endpoint.
pub struct EndpointCall<'call> {
    pub app: &'call Arc<App>,
    pub endpoint: &'call Endpoint,
    /// The endpoint's own, or another one with the same parameters.
    pub handler: &'call dyn ErasedHandler,
    pub request_id: String,
    /// Parameters in the path.
    pub path: Vec<(String, String)>,
    /// All others.
    pub fields: Map<String, Value>,
}

impl EndpointCall<'_> {
    /// Runs the handler, and returns the body of its reply. The audit gets an event that `describe` makes of the user
    /// concerned, the reason and the outcome.
    ///
    /// # Errors
    /// Faults of the parameters; errors of the endpoint.
    pub fn run(
        self,
        describe: impl Fn(Option<UserId>, Option<String>, u16) -> AuditEvent + Send + Sync + 'static,
    ) -> Result<Bytes> {
        let headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, JSON),
            (header::ACCEPT_LANGUAGE, HeaderValue::from_static("en")),
        ]);
        let meta = RequestMeta::new(self.request_id, IpAddr::from([127, 0, 0, 1]), Instant::now(), &headers);
        meta.endpoint.get_or_init(|| self.endpoint.id());
        let meta = Arc::new(meta);
        let described = Arc::clone(&meta);
        let audit = self.app.audits.prepare(Arc::new(move |outcome| {
            describe(described.subject.get().copied(), described.reason.get().cloned(), outcome)
        }));
        let audit = Arc::new(audit);
        let HttpState { app, reports, live, inbox, .. } = HttpState::new(Arc::clone(self.app));
        let context = RequestContext {
            app,
            meta,
            caller: Caller::Admin(Identity::CommandLine),
            token: None,
            headers,
            idempotency: None,
            audit: Some(Arc::clone(&audit)),
            reports,
            live,
            inbox,
            body: Value::Object(self.fields).to_string().into(),
        };
        // Handlers read in place; a read on a database server waits for it, which only this kind of runtime allows.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(Error::internal)?;
        runtime.block_on(async {
            let future = self.handler.start(context, self.path, &Uri::from_static("/"))?;
            let response = run_audited(audit, future).await?;
            to_bytes(response.into_body(), usize::MAX).await.map_err(Error::internal)
        })
    }
}

/// Returns the handler of a list that replies with its page as text.
pub fn text_of_list<L: StaffList>(format: fn(&Paginated<L::Row>) -> String) -> Arc<dyn ErasedHandler> {
    erase(move |context: RequestContext, params: Paged<L::Params>| async move {
        let (_, found) = lists::read::<L>(context, params).await?;
        Ok(PlainText(format(&found)))
    })
}
