//! API keys.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::operations::admins::keys,
    error::Result,
    http::{
        admin::api_keys,
        console::{
            acts,
            request::{ConsoleRequest, ok},
            views::pages::administrators as view,
        },
        reply::Created,
    },
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(view::keys(&console.view()?, &keys::list(&console.context.app.core)?, None))
}

/// Creates a key and shows it, once.
pub async fn create(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    match acts::perform(&console, &api_keys::create).await {
        Ok(Created(created)) => {
            let keys = keys::list(&console.context.app.core)?;
            ok(view::keys(&console.view()?, &keys, Some(&(created.label, created.key))))
        }
        Err(error) => acts::reject(&console, error).await,
    }
}
