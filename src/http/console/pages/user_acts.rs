//! Acts of the staff on one user: suspension, notes, nickname, devices, phone number.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};

use super::users::{collect, subject};
use crate::{
    domain::identity::{
        staff_acts,
        staff_notes::{self, MAX_LENGTH, StaffNote},
        suspensions::{self, Suspension},
    },
    error::{Code, Error, Result},
    http::{
        admin::users,
        console::{
            request::{ConsoleRequest, message_of, page},
            views::pages::user::{self as view, UserForms},
        },
        reply,
    },
    types::{PhoneNumber, SuspensionScope, UserId},
};

pub async fn suspend(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    let suspended = try_suspend(&console, user).await;
    finish(&console, user, "suspend", suspended).await
}

async fn try_suspend(console: &ConsoleRequest, user: UserId) -> Result<()> {
    let app = &console.context.app;
    let ends_at = console.optional_time("endsAt")?;
    let scope = scope(console)?;
    let by = console.context.authority(Some(console.require_reason()?))?;
    let once = console.context.once(StatusCode::OK, |suspension: &Suspension| suspension.id)?;
    console.context.committed(suspensions::suspend(&app.core, user, scope, ends_at, by, once)).await.map(drop)
}

pub async fn lift_suspension(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    let lifted = try_lift(&console, user).await;
    finish(&console, user, "unsuspend", lifted).await
}

async fn try_lift(console: &ConsoleRequest, user: UserId) -> Result<()> {
    let by = console.context.authority(Some(console.require_reason()?))?;
    let scope = scope(console)?;
    match console.context.committed(suspensions::lift(&console.context.app.core, user, scope, by)).await {
        // A double click, or somebody else was faster.
        Err(error) if error.code == Code::NotFound => suspensions::list(&console.context.app.core, user).map(drop),
        lifted => lifted.map(drop),
    }
}

/// Reads the scope of a suspension; the account if the form has none.
fn scope(console: &ConsoleRequest) -> Result<SuspensionScope> {
    let Some(name) = console.form.find("scope") else { return Ok(SuspensionScope::Account) };
    SuspensionScope::from_name(name).ok_or_else(|| Code::InvalidRequest.into())
}

pub async fn add_note(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    let added = try_add_note(&console, user).await;
    finish(&console, user, "notes", added).await
}

async fn try_add_note(console: &ConsoleRequest, user: UserId) -> Result<()> {
    let content = console.required_text("text", MAX_LENGTH)?;
    let author = console.context.admin()?.actor();
    let once = console.context.once(StatusCode::OK, |note: &StaffNote| note.id)?;
    let added = staff_notes::add(&console.context.app.core, user, author, content, once);
    console.context.committed(added).await.map(drop)
}

pub async fn remove_note(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    let id = console.parameter("note").parse().map_err(|_| Code::NotFound)?;
    let author = users::remover(&console.context)?;
    let removed = staff_notes::remove(&console.context.app.core, user, id, author);
    let removed = console.context.committed(removed).await;
    console.finish(&page_of(user), removed)
}

pub async fn reset_nickname(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    let reset = try_reset_nickname(&console, user).await;
    finish(&console, user, "reset-nickname", reset).await
}

async fn try_reset_nickname(console: &ConsoleRequest, user: UserId) -> Result<()> {
    let by = console.context.authority(Some(console.require_reason()?))?;
    console.context.committed(staff_acts::reset_nickname(&console.context.app.core, user, by)).await
}

pub async fn end_all_devices(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    end_devices(&console, None).await
}

pub async fn end_device(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    end_devices(&console, Some(console.parameter("device").to_owned())).await
}

async fn end_devices(console: &ConsoleRequest, device: Option<String>) -> Result<Response<Body>> {
    let user = subject(console)?;
    let ended = console.context.committed(staff_acts::sign_out(&console.context.app.core, user, device)).await;
    console.finish(&page_of(user), ended)
}

pub async fn move_to_phone(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    let moved = try_move(&console, user).await;
    finish(&console, user, "move", moved).await
}

async fn try_move(console: &ConsoleRequest, user: UserId) -> Result<()> {
    let app = &console.context.app;
    let number = PhoneNumber::parse(console.form.get("phoneNumber"), &app.core.phone_rules);
    let number = number.map_err(|fault| Error::field("phoneNumber", fault))?;
    let by = console.context.authority(Some(console.require_reason()?))?;
    let once = console.context.once(StatusCode::OK, |user: &UserId| user.0)?;
    console.context.committed(staff_acts::move_to_phone(&app.core, user, number, by, once)).await.map(drop)
}

fn page_of(user: UserId) -> String {
    format!("users/{user}")
}

/// Goes back to the user, or shows the form of the act again with its fault.
pub async fn finish(console: &ConsoleRequest, user: UserId, act: &str, outcome: Result<()>) -> Result<Response<Body>> {
    let Err(error) = outcome else { return console.finish(&page_of(user), Ok(())) };
    if matches!(error.code, Code::NotFound | Code::Internal) {
        return Err(error);
    }
    let message = message_of(&error, console.language());
    let typed = |name: &str| console.form.get(name).to_owned();
    let forms = UserForms {
        rejected: Some((act.to_owned(), message)),
        until: typed("endsAt"),
        until_error: console.fault_of(&error, "endsAt"),
        phone_number: typed("phoneNumber"),
        phone_error: console.fault_of(&error, "phoneNumber"),
        note: typed("text"),
        note_error: console.fault_of(&error, "text"),
        reason: typed("reason"),
        reason_error: console.fault_of(&error, "reason"),
        ..UserForms::default()
    };
    let shown = collect(console, None, forms).await?;
    Ok(page(reply::status(error.code), view::page(&console.view()?, &shown)))
}
