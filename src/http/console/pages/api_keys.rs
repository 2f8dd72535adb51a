//! API keys.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::administrators::role_of;
use crate::{
    domain::operations::admins::keys::{self, ApiKey, ApiKeyChange},
    error::Result,
    http::{
        console::{
            request::{ConsoleRequest, message_of, ok, page},
            views::pages::administrators::{self as view, KeyRow, Keys},
        },
        reply,
    },
    types::Timestamp,
};

const PAGE: &str = "keys";

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(view::keys(&console.view()?, &collect(&console)?))
}

fn collect(console: &ConsoleRequest) -> Result<Keys> {
    let app = &console.context.app;
    let now = app.core.clock.now();
    Ok(Keys {
        keys: keys::list(&app.core)?.into_iter().map(|key| row(key, now)).collect(),
        created: None,
        typed_label: String::new(),
        label_error: None,
        typed_expiry: String::new(),
        step_up: console.step_up()?,
    })
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
    let label = console.form.get("label").to_owned();
    match create_key(&console, &label).await {
        Ok(key) => {
            let mut shown = collect(&console)?;
            shown.created = Some((label, key));
            ok(view::keys(&console.view()?, &shown))
        }
        Err(error) => {
            let mut shown = collect(&console)?;
            shown.typed_label = label;
            console.form.get("expires").clone_into(&mut shown.typed_expiry);
            shown.label_error = Some(message_of(&error, console.language()));
            Ok(page(reply::status(error.code), view::keys(&console.view()?, &shown)))
        }
    }
}

async fn create_key(console: &ConsoleRequest, label: &str) -> Result<String> {
    let app = &console.context.app;
    let expires_at = console.optional_time("expires")?;
    let key = console.context.committed(keys::create(&app.core, label, role_of(console)?, expires_at)?).await?;
    Ok(key.reveal().to_owned())
}

pub async fn suspend(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    change(&console, true).await
}

pub async fn resume(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    change(&console, false).await
}

async fn change(console: &ConsoleRequest, is_suspended: bool) -> Result<Response<Body>> {
    let update = ApiKeyChange { is_suspended: Some(is_suspended), ..ApiKeyChange::default() };
    let changed = match console.require_reason() {
        Ok(_) => {
            let change = keys::change(&console.context.app.core, console.form.get("label"), update);
            console.context.committed(change).await.map(drop)
        }
        Err(error) => Err(error),
    };
    console.finish(PAGE, changed)
}

pub async fn revoke(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let revoked = match console.require_reason() {
        Ok(_) => {
            let revocation = keys::revoke(&console.context.app.core, console.form.get("label"));
            console.context.committed(revocation).await.map(drop)
        }
        Err(error) => Err(error),
    };
    console.finish(PAGE, revoked)
}
