//! Administrators, their second factors, sessions and networks.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};

use ipnet::IpNet;

use crate::{
    domain::operations::admins::{self, AdminChange, networks, roles::Role, second_factor, sessions},
    error::{Code, Error, Fault, FieldCode, Result},
    http::{
        console::{
            request::{ConsoleRequest, message_of, ok, page},
            views::{
                pages::administrators::{self as view, AdminRow, AdministratorsPage, EnrolmentPage, SessionRow},
                texts::Text,
            },
        },
        reply,
    },
    store::Pending,
};

const PAGE: &str = "administrators";

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(view::administrators(&console.view()?, &collect(&console)?))
}

fn collect(console: &ConsoleRequest) -> Result<AdministratorsPage> {
    let app = &console.context.app;
    let sessions = sessions::list(&app.core)?;
    let own = console.session.as_ref().map(sessions::id_of);
    let last_used_at =
        |name: &str| sessions.iter().filter(|session| session.admin == name).map(|session| session.last_used_at).max();
    let admins = admins::list(&app.core)?.into_iter().map(|admin| AdminRow {
        last_used_at: last_used_at(&admin.name),
        name: admin.name,
        role: admin.role,
        has_second_factor: admin.has_second_factor,
        created_at: admin.created_at,
    });
    let admins = admins.collect();
    Ok(AdministratorsPage {
        admins,
        sessions: sessions
            .iter()
            .map(|session| SessionRow {
                id: session.id.clone(),
                admin: session.admin.clone(),
                created_at: session.created_at,
                last_used_at: session.last_used_at,
                expires_at: session.expires_at,
                is_own: own.as_ref() == Some(&session.id),
            })
            .collect(),
        networks: networks::list(&app.core)?.iter().map(ToString::to_string).collect(),
        own_address: console.context.meta.client.to_string(),
        typed_name: String::new(),
        name_error: None,
        password_error: None,
        network_error: None,
        typed_network: String::new(),
        step_up: console.step_up()?,
    })
}

pub async fn create(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let form = &console.form;
    let role = role_of(&console)?;
    let (name, password) = (form.get("name").to_owned(), form.get("newPassword").to_owned());
    let owned = name.clone();
    let created = console.context.blocking(move |app| admins::create(&app.admins, &owned, &password, role)).await;
    let Err(error) = created else { return console.done(PAGE, console.text(Text::ActionDone)) };
    let mut shown = collect(&console)?;
    shown.typed_name = name;
    shown.name_error = console
        .fault_of(&error, "name")
        .or_else(|| (error.code == Code::AlreadyExists).then(|| message_of(&error, console.language())));
    shown.password_error = console.fault_of(&error, "password");
    Ok(page(reply::status(error.code), view::administrators(&console.view()?, &shown)))
}

pub async fn change_role(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (name, role) = (console.parameter("name").to_owned(), role_of(&console)?);
    with_reason(&console, async {
        let change = AdminChange { role: Some(role), password: None };
        console.context.blocking(move |app| admins::change(&app.admins, &name, change)).await
    })
    .await
}

pub async fn remove(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let name = console.parameter("name").to_owned();
    with_reason(&console, async { console.context.committed(admins::remove(&console.context.app.core, &name)).await })
        .await
}

pub async fn remove_totp(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let name = console.parameter("name").to_owned();
    with_reason(&console, async {
        console.context.committed(second_factor::remove(&console.context.app.core, &name)).await
    })
    .await
}

/// Shows the secret, once.
pub async fn enrol(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let name = console.parameter("name").to_owned();
    let owned = name.clone();
    let enrolment = console.context.blocking(move |app| second_factor::enrol(&app.core, &owned)).await?;
    let shown = EnrolmentPage {
        name,
        uri: enrolment.uri.reveal().to_owned(),
        secret: enrolment.secret.reveal().to_owned(),
        error: None,
    };
    ok(view::totp(&console.view()?, &shown))
}

pub async fn confirm_totp(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let name = console.parameter("name").to_owned();
    let confirmed = console
        .context
        .committed(second_factor::confirm(&console.context.app.core, &name, console.form.get("totp")))
        .await;
    console.finish(PAGE, confirmed)
}

pub async fn end_session(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let ended = sessions::end(&console.context.app.core, console.parameter("id"));
    console.finish(PAGE, console.context.committed(ended).await)
}

pub async fn allow_network(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let Some(network) = networks::parse(console.form.get("network")) else {
        return rejected_network(&console, Text::NetworkHint);
    };
    let client = Some(console.context.meta.client);
    change_networks(&console, || networks::allow(&console.context.app.core, network, client)).await
}

pub async fn disallow_network(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let network = networks::parse(console.form.get("network")).ok_or(Code::NotFound)?;
    let client = Some(console.context.meta.client);
    change_networks(&console, || networks::disallow(&console.context.app.core, network, client)).await
}

/// Changes the networks, unless that would shut out the administrator who changes them.
async fn change_networks(
    console: &ConsoleRequest,
    change: impl FnOnce() -> Pending<Vec<IpNet>> + Send,
) -> Result<Response<Body>> {
    match console.context.committed(change()).await {
        Err(error) if error.code == Code::AddressNotAllowed => rejected_network(console, Text::NetworkLocksOut),
        outcome => console.finish(PAGE, outcome),
    }
}

fn rejected_network(console: &ConsoleRequest, fault: Text) -> Result<Response<Body>> {
    let mut shown = collect(console)?;
    console.form.get("network").clone_into(&mut shown.typed_network);
    shown.network_error = Some(console.text(fault).to_owned());
    Ok(page(StatusCode::UNPROCESSABLE_ENTITY, view::administrators(&console.view()?, &shown)))
}

/// Runs an action that needs a reason for the audit, and goes back to the page with its outcome.
async fn with_reason(console: &ConsoleRequest, action: impl Future<Output = Result<()>>) -> Result<Response<Body>> {
    let outcome = match console.require_reason() {
        Ok(_) => action.await,
        Err(error) => Err(error),
    };
    console.finish(PAGE, outcome)
}

/// Reads the role of a form.
pub fn role_of(console: &ConsoleRequest) -> Result<Role> {
    Role::from_name(console.form.get("role"))
        .ok_or_else(|| Error::field("role", Fault::new(FieldCode::UnknownValue, ("is unknown", "未知"))))
}
