//! API keys.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::operations::admins::keys::{self, ApiKey},
    error::Result,
    http::{
        admin::api_keys,
        console::{
            acts,
            request::{ConsoleRequest, ok},
            views::pages::administrators::{self as view, KeyRow, Keys},
        },
        reply::Created,
    },
    types::Timestamp,
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(view::keys(&console.view()?, &collect(&console)?))
}

fn collect(console: &ConsoleRequest) -> Result<Keys> {
    let app = &console.context.app;
    let now = app.core.clock.now();
    Ok(Keys { keys: keys::list(&app.core)?.into_iter().map(|key| row(key, now)).collect(), created: None })
}

fn row(key: ApiKey, now: Timestamp) -> KeyRow {
    let state = match &key {
        ApiKey { revoked_at: Some(_), .. } => "revoked",
        ApiKey { expires_at: Some(at), .. } if *at <= now => "expired",
        ApiKey { suspended_at: Some(_), .. } => "suspended",
        _ => "active",
    };
    KeyRow {
        label: key.label,
        role: key.role,
        state: state.to_owned(),
        created_at: key.created_at,
        last_used_at: key.last_used_at,
        expires_at: key.expires_at,
    }
}

/// Creates a key and shows it, once.
pub async fn create(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    match acts::perform(&console, &api_keys::create).await {
        Ok(Created(created)) => {
            let shown = Keys { created: Some((created.label, created.key)), ..collect(&console)? };
            ok(view::keys(&console.view()?, &shown))
        }
        Err(error) => acts::reject(&console, error).await,
    }
}
