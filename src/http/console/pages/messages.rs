//! Notifications: the sent ones, a new one with its preview, and withdrawal.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use maud::Markup;

use crate::{
    app::App,
    domain::{
        identity::directory,
        messaging::notifications::{
            self, Audience, NotificationDraft, NotificationKind, Payload, SentNotification, require_future,
        },
    },
    error::{Error, Fault, FieldCode, FieldError, Result},
    http::{
        console::{
            acts,
            request::{ConsoleRequest, FormFields, ok, page},
            views::{format::ShownCount, pages::messages as view, texts::Text},
        },
        reply,
    },
    types::{Timestamp, UserId, clean},
};

/// Recipients of one notification from the console.
const MAX_RECIPIENTS: usize = 1000;

/// Parses the form with the rules of the API. Returns all faults.
fn parse(app: &App, typed: &FormFields) -> Result<NotificationDraft> {
    let limits = &app.core.config.limits;
    let mut faults = Vec::new();
    let title = required(typed.get("title"), "title", limits.notification_title, &mut faults);
    let body = required(typed.get("body"), "body", limits.notification_text, &mut faults);
    let payload = match typed.get("payload") {
        "" => Ok(Payload::None {}),
        json => Payload::parse(json, &app.core.config.notifications.url_hosts),
    };
    let payload = payload.map_err(|fault| faults.push(fault.in_field("payload"))).ok();
    let expires_at = expiry(app, typed.get("expires")).map_err(|fault| faults.push(fault.in_field("expires"))).ok();
    let audience = match typed.get("audience") {
        "users" => recipients(app, typed.get("to")).map(Audience::Users),
        _ if typed.get("to").is_empty() => Ok(Audience::Everybody),
        _ => {
            Err(Fault::new(FieldCode::UnknownValue, ("must be left out for a notification to all", "发给所有人时不填")))
        }
    };
    let audience = audience.map_err(|fault| faults.push(fault.in_field("to"))).ok();
    match (payload, expires_at, audience) {
        (Some(payload), Some(expires_at), Some(audience)) if faults.is_empty() => {
            let kind = NotificationKind::from_name(typed.get("kind")).unwrap_or_default();
            Ok(NotificationDraft { audience, kind, title, body, payload, expires_at })
        }
        _ => Err(Error::fields(faults)),
    }
}

fn required(typed: &str, field: &str, limit: u32, faults: &mut Vec<FieldError>) -> String {
    match clean(typed, limit as usize) {
        Ok(text) if text.is_empty() => {
            faults.push(Fault::new(FieldCode::Required, ("is required", "不能为空")).in_field(field));
        }
        Ok(text) => return text,
        Err(fault) => faults.push(fault.in_field(field)),
    }
    String::new()
}

fn expiry(app: &App, typed: &str) -> Result<Option<Timestamp>, Fault> {
    if typed.is_empty() {
        return Ok(None);
    }
    let expires_at = Timestamp::parse(typed, &app.core.config.limits.time_zone)?;
    require_future(expires_at, app.core.clock.now()).map(|()| Some(expires_at))
}

/// Returns the named users, each once.
fn recipients(app: &App, typed: &str) -> Result<Vec<UserId>, Fault> {
    let names: Vec<_> =
        typed.split([',', '，', ';', '；', ' ', '\n']).map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err(Fault::new(FieldCode::Required, ("is required", "不能为空")));
    }
    if names.len() > MAX_RECIPIENTS {
        return Err(Fault::new(
            FieldCode::OutOfRange,
            (format!("must have at most {MAX_RECIPIENTS} users"), format!("最多 {MAX_RECIPIENTS} 个用户")),
        ));
    }
    let mut users = Vec::new();
    for name in names {
        match directory::find_named(&app.core, name) {
            Ok(Some(user)) => users.push(user),
            _ => {
                return Err(Fault::new(
                    FieldCode::UnknownValue,
                    (format!("user {name} does not exist"), format!("用户 {name} 不存在")),
                ));
            }
        }
    }
    users.sort_unstable();
    users.dedup();
    Ok(users)
}

pub async fn preview(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    match check(&console).await {
        Ok(draft) => {
            console.keep_form(None);
            ok(show_preview(&console, &draft)?)
        }
        Err(error) => acts::reject(&console, error).await,
    }
}

/// Shows the form again, as typed.
pub async fn edit(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    acts::show_again(&console, None).await
}

async fn check(console: &ConsoleRequest) -> Result<NotificationDraft> {
    let typed = console.form.clone();
    console.context.blocking(move |app| parse(app, &typed)).await
}

fn show_preview(console: &ConsoleRequest, draft: &NotificationDraft) -> Result<Markup> {
    let recipients = match &draft.audience {
        Audience::Everybody => None,
        Audience::Users(users) => Some(ShownCount::exact(users.len() as u64)),
    };
    Ok(view::preview(&console.view()?, recipients))
}

pub async fn send(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let draft = match check(&console).await {
        Ok(draft) => draft,
        Err(error) => return acts::reject(&console, error).await,
    };
    match try_send(&console, draft.clone()).await {
        // The reason stands on the preview.
        Err(error) if error.fields.iter().any(|fault| fault.field == "reason") => {
            console.keep_form(Some(&error));
            Ok(page(reply::status(error.code), show_preview(&console, &draft)?))
        }
        sent => acts::finish(&console, sent.map(|()| console.text(Text::MessageSent).to_owned())).await,
    }
}

async fn try_send(console: &ConsoleRequest, draft: NotificationDraft) -> Result<()> {
    console.require_reason()?;
    // The form's key makes a double click one notification.
    let once = console.context.once(StatusCode::OK, |sent: &SentNotification| sent.notification.id)?;
    console.context.committed(notifications::send_once(&console.context.app.core, draft, once)).await.map(drop)
}
