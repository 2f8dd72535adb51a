//! A page or an action of the console.

use std::sync::Arc;

use axum::http::Method;

use super::request::PageHandler;
use crate::domain::operations::admins::roles::Right;

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
    pub handler: Arc<dyn PageHandler>,
    /// The handler of the page that an act belongs to.
    pub page: Option<Arc<dyn PageHandler>>,
}

impl Route {
    /// Requires a recent proof of identity, as [`Endpoint::for_recent_sign_in`] does in the API.
    ///
    /// [`Endpoint::for_recent_sign_in`]: crate::http::endpoint::Endpoint::for_recent_sign_in
    pub fn for_recent_sign_in(self) -> Self {
        Self { needs_recent_sign_in: true, ..self }
    }
}
