//! A page or an action of the console.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Method, Response},
};

use super::request::ConsoleRequest;
use crate::{domain::operations::admins::roles::Right, error::Result, http::endpoint_service::ResponseFuture};

/// The callers that a page admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAccess {
    /// Everybody, from every network: files that are the same for all.
    Files,
    /// Everybody in the allowed networks: sign-in, preferences.
    Open,
    /// Administrators with the right.
    Session {
        right: Right,
        /// True for regions that refresh themselves: not audited, and the session is not kept alive.
        is_live: bool,
    },
}

/// An async function from a request to a page.
pub trait PageHandler: Send + Sync + 'static {
    fn handle(&self, console: Arc<ConsoleRequest>) -> ResponseFuture;
}

impl<H, F> PageHandler for H
where
    H: Fn(Arc<ConsoleRequest>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Response<Body>>> + Send + 'static,
{
    fn handle(&self, console: Arc<ConsoleRequest>) -> ResponseFuture {
        Box::pin(self(console))
    }
}

/// A page or an action.
pub struct Route {
    pub method: Method,
    /// The path template, from the root.
    pub path: String,
    pub access: PageAccess,
    /// The number of slashes in the address of the page: all of the path, or its beginning for an action without a page.
    pub page_depth: usize,
    /// True for acts that move money, delete data or reach every client: they need a recent proof of identity.
    pub needs_recent_sign_in: bool,
    pub handler: Box<dyn PageHandler>,
}

impl Route {
    /// Requires a recent proof of identity, as [`Endpoint::for_recent_sign_in`] does in the API.
    ///
    /// [`Endpoint::for_recent_sign_in`]: crate::http::endpoint::Endpoint::for_recent_sign_in
    pub fn for_recent_sign_in(self) -> Self {
        Self { needs_recent_sign_in: true, ..self }
    }
}
