//! Notifications: the sent ones, a new one with its preview, and withdrawal.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use maud::Markup;

use super::lists;
use crate::{
    app::App,
    domain::{
        identity::directory,
        messaging::notifications::{
            self, Audience, NotificationDraft, NotificationKind, Payload, SentNotification, require_future,
        },
    },
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    http::{
        admin::notifications::MessageList,
        console::{
            request::{ConsoleRequest, FormFields, ok, page},
            views::{
                context::ViewContext,
                format::ShownCount,
                list_page::Frame,
                pages::messages::{self as view, MessageDraft, MessagePreview},
                texts::Text,
            },
        },
        reply,
    },
    types::{Timestamp, UserId, clean},
};

const PAGE: &str = "messages";
/// Recipients of one notification from the console.
const MAX_RECIPIENTS: usize = 1000;

/// Renders the page with a draft.
async fn render(console: &ConsoleRequest, draft: MessageDraft) -> Result<Markup> {
    let frame = move |cx: &ViewContext, _: &App, _: Option<&()>| {
        Ok(Frame { above: view::new_message(cx, &draft), ..Frame::default() })
    };
    lists::render::<MessageList>(console, frame).await
}

/// Returns the form as typed.
fn typed(form: &FormFields) -> MessageDraft {
    let own = |name: &str| form.get(name).to_owned();
    MessageDraft {
        title: own("title"),
        body: own("body"),
        kind: NotificationKind::from_name(form.get("kind")).unwrap_or_default(),
        audience: own("audience"),
        recipients: own("to"),
        expires: own("expires"),
        payload: own("payload"),
        errors: Vec::new(),
    }
}

/// Parses the form with the rules of the API. Returns all faults.
fn parse(app: &App, typed: &MessageDraft) -> Result<NotificationDraft> {
    let limits = &app.core.config.limits;
    let mut faults = Vec::new();
    let title = required(&typed.title, "title", limits.notification_title, &mut faults);
    let body = required(&typed.body, "body", limits.notification_text, &mut faults);
    let payload = match typed.payload.as_str() {
        "" => Ok(Payload::None {}),
        json => Payload::parse(json, &app.core.config.notifications.url_hosts),
    };
    let payload = payload.map_err(|fault| faults.push(fault.in_field("payload"))).ok();
    let expires_at = expiry(app, &typed.expires).map_err(|fault| faults.push(fault.in_field("expires"))).ok();
    let audience = match typed.audience.as_str() {
        "users" => recipients(app, &typed.recipients).map(Audience::Users),
        _ if typed.recipients.is_empty() => Ok(Audience::Everybody),
        _ => {
            Err(Fault::new(FieldCode::UnknownValue, ("must be left out for a notification to all", "发给所有人时不填")))
        }
    };
    let audience = audience.map_err(|fault| faults.push(fault.in_field("to"))).ok();
    match (payload, expires_at, audience) {
        (Some(payload), Some(expires_at), Some(audience)) if faults.is_empty() => {
            Ok(NotificationDraft { audience, kind: typed.kind, title, body, payload, expires_at })
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
    let draft = typed(&console.form);
    match check(&console, &draft).await {
        Ok(parsed) => ok(view::preview(&console.view()?, &shown(&console, draft, &parsed, None)?)),
        Err(error) => show_faults(&console, draft, &error).await,
    }
}

/// Shows the form again, as typed.
pub async fn edit(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(render(&console, typed(&console.form)).await?)
}

async fn check(console: &ConsoleRequest, draft: &MessageDraft) -> Result<NotificationDraft> {
    let draft = draft.clone();
    console.context.blocking(move |app| parse(app, &draft)).await
}

async fn show_faults(console: &ConsoleRequest, mut draft: MessageDraft, error: &Error) -> Result<Response<Body>> {
    if error.fields.is_empty() {
        return Err(error.without_source());
    }
    draft.errors = console.faults_of(error);
    Ok(page(reply::status(error.code), render(console, draft).await?))
}

fn shown(
    console: &ConsoleRequest,
    draft: MessageDraft,
    parsed: &NotificationDraft,
    error: Option<&Error>,
) -> Result<MessagePreview> {
    let recipients = match &parsed.audience {
        Audience::Everybody => None,
        Audience::Users(users) => Some(ShownCount::exact(users.len() as u64)),
    };
    let reason_error =
        error.and_then(|error| console.faults_of(error).into_iter().find(|(field, _)| field == "reason"));
    Ok(MessagePreview {
        draft,
        recipients,
        reason: console.form.get("reason").to_owned(),
        reason_error: reason_error.map(|(_, message)| message),
        step_up: console.step_up()?,
    })
}

pub async fn send(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let draft = typed(&console.form);
    let parsed = match check(&console, &draft).await {
        Ok(parsed) => parsed,
        Err(error) => return show_faults(&console, draft, &error).await,
    };
    let Err(error) = try_send(&console, parsed.clone()).await else {
        return console.done(PAGE, console.text(Text::MessageSent));
    };
    let is_of_form = error.fields.iter().any(|fault| fault.field == "reason");
    if is_of_form {
        let shown = shown(&console, draft, &parsed, Some(&error))?;
        return Ok(page(reply::status(error.code), view::preview(&console.view()?, &shown)));
    }
    show_faults(&console, draft, &error).await
}

async fn try_send(console: &ConsoleRequest, draft: NotificationDraft) -> Result<()> {
    console.require_reason()?;
    // The form's key makes a double click one notification.
    let once = console.context.once(StatusCode::OK, |sent: &SentNotification| sent.notification.id)?;
    console.context.committed(notifications::send_once(&console.context.app.core, draft, once)).await.map(drop)
}

pub async fn withdraw(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let outcome = try_withdraw(&console).await;
    console.finish(PAGE, outcome)
}

async fn try_withdraw(console: &ConsoleRequest) -> Result<()> {
    let id = console.parameter("id").parse().map_err(|_| Error::from(Code::NotFound))?;
    console.require_reason()?;
    console.context.committed(notifications::delete(&console.context.app.core, id)).await
}
