//! Sign-in, sign-out, and the creation of the first owner by a one-time link.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode, header},
};

use super::lost_session;
use crate::{
    domain::operations::admins::{self, IssuedSession, SignInAttempt, demo_owner, first_run},
    error::{Code, Error, Result},
    http::{
        console::{
            request::{ConsoleRequest, is_page_address, message_of, ok, page, see_other},
            session,
            views::{
                context::{BASE, href},
                pages::sign_in::{self, FirstRun, Interrupted, SignInPage},
                texts::Text,
            },
        },
        reply,
    },
    types::Secret,
};

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let shown = SignInPage {
        next: console.query.get("next").to_owned(),
        has_ended: console.query.find("ended").is_some(),
        ..SignInPage::default()
    };
    ok(sign_in::sign_in(&console.view()?, &shown))
}

pub async fn submit(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let form = &console.form;
    match sign_in_as_typed(&console).await {
        Ok(issued) => match lost_session::carried(form) {
            Some(kept) => send_again(&console, &kept, &issued.token),
            None => signed_in(form.get("next"), &issued.token),
        },
        Err(error) => {
            let needs_totp = form.find("totp").is_some() || error.code == Code::TotpRequired;
            let is_question = error.code == Code::TotpRequired;
            let shown = SignInPage {
                name: form.get("name").to_owned(),
                error: (!is_question).then(|| message_of(&error, console.language())),
                needs_totp,
                totp_error: is_question.then(|| console.text(Text::TotpHint).to_owned()),
                next: form.get("next").to_owned(),
                interrupted: lost_session::carried(form),
                ..SignInPage::default()
            };
            Ok(page(reply::status(error.code), sign_in::sign_in(&console.view()?, &shown)))
        }
    }
}

/// Starts the session and goes to a page of the console.
fn signed_in(next: &str, token: &Secret) -> Result<Response<Body>> {
    let overview = format!("{BASE}/");
    let mut response = see_other(if is_page_address(next) { next } else { &overview })?;
    response.headers_mut().append(header::SET_COOKIE, session::start(token)?);
    Ok(response)
}

/// Starts the session and shows the form that was sent without one.
fn send_again(console: &ConsoleRequest, kept: &Interrupted, token: &Secret) -> Result<Response<Body>> {
    let mut cx = console.view()?;
    cx.csrf = session::cross_site_token(&console.context.app.core.keys, token);
    let overview = format!("{BASE}/");
    let back = console.form.find("next").filter(|next| is_page_address(next)).unwrap_or(&overview);
    let mut response = page(StatusCode::OK, sign_in::send_again(&cx, kept, back));
    response.headers_mut().append(header::SET_COOKIE, session::start(token)?);
    Ok(response)
}

pub async fn sign_out(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    if let Some(token) = &console.session {
        console.context.committed(admins::sign_out(&console.context.app.core, token)).await?;
    }
    let mut response = see_other(&href("sign-in"))?;
    response.headers_mut().append(header::SET_COOKIE, session::end());
    Ok(response)
}

pub async fn show_first_run(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    require_private(&console)?;
    let token = console.parameter("token").to_owned();
    let shown = FirstRun { token: token.clone(), min_password: admins::MIN_PASSWORD, ..FirstRun::default() };
    console.context.blocking(move |app| first_run::require(&app.core, &token)).await?;
    ok(sign_in::first_run(&console.view()?, &shown))
}

pub async fn submit_first_run(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    require_private(&console)?;
    let form = &console.form;
    let link = console.parameter("token").to_owned();
    let (name, password) = (form.get("name").to_owned(), form.get("password").to_owned());
    let mut shown =
        FirstRun { token: link.clone(), name: name.clone(), min_password: admins::MIN_PASSWORD, ..FirstRun::default() };
    if form.get("repeated") != password {
        shown.password_error = Some(console.text(Text::PasswordsDiffer).to_owned());
        return Ok(page(StatusCode::UNPROCESSABLE_ENTITY, sign_in::first_run(&console.view()?, &shown)));
    }
    let created =
        console.context.blocking(move |app| first_run::create_owner(&app.admins, &link, &name, &password)).await;
    if let Err(error) = created {
        shown.name_error = console.fault_of(&error, "name");
        shown.password_error = console.fault_of(&error, "password");
        if shown.name_error.is_none() && shown.password_error.is_none() {
            return Err(error);
        }
        return Ok(page(reply::status(error.code), sign_in::first_run(&console.view()?, &shown)));
    }
    signed_in("", &sign_in_as_typed(&console).await?.token)
}

/// Signs in the owner of a demonstration by the link that `yarrow demo` prints.
pub async fn show_demo(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    require_private(&console)?;
    let app = &console.context.app;
    let issued = console.context.committed(demo_owner::sign_in(&app.admins, console.parameter("token"))?).await?;
    signed_in("", &issued.token)
}

/// Signs in with the name, password and code of the form.
async fn sign_in_as_typed(console: &ConsoleRequest) -> Result<IssuedSession> {
    let (form, meta) = (&console.form, &console.context.meta);
    let attempt = SignInAttempt {
        name: form.get("name").to_owned(),
        password: Secret::from_text(form.get("password").to_owned()),
        totp: form.find("totp").map(ToOwned::to_owned),
        client: meta.client,
        request_id: meta.request_id.clone(),
    };
    console.context.blocking(move |app| admins::sign_in(&app.admins, &attempt)).await
}

/// Rejects the link where somebody could read the password on its way.
fn require_private(console: &ConsoleRequest) -> Result<()> {
    let context = &console.context;
    if context.meta.client.is_loopback() || context.app.core.config.server.has_tls() {
        return Ok(());
    }
    Err(Error::new(Code::Forbidden)
        .detail(("This link works from the machine itself, or over TLS.", "此链接只能在本机或通过 TLS 使用。")))
}
