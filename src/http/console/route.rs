//! A page or an action of the console.

use std::sync::Arc;

use axum::http::Method;

use super::request::ConsoleRequest;
use crate::{domain::operations::admins::roles::Right, http::endpoint_service::ResponseFuture};

/// The callers that a page admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAccess {
    /// Everybody: sign-in, files, preferences.
    Open,
    /// Administrators with the right.
    Session {
        right: Right,
        /// True for regions that refresh themselves: not audited, and the session is not kept alive.
        is_live: bool,
    },
}

pub type ConsoleHandler = Box<dyn Fn(Arc<ConsoleRequest>) -> ResponseFuture + Send + Sync>;

/// A page or an action.
pub struct Route {
    pub method: Method,
    /// The path template, from the root.
    pub path: String,
    pub access: PageAccess,
    /// True if the address is also a page. Otherwise the address without its last part is the page of an action.
    pub has_page: bool,
    pub handler: ConsoleHandler,
}
