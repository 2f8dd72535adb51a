//! Administrators, their second factors, sessions and networks.

use std::{net::IpAddr, sync::Arc};

use axum::{body::Body, http::Response};
use ipnet::IpNet;

use crate::{
    core::Core,
    domain::operations::admins::{self, Admin, networks, roles::Role, second_factor, sessions},
    error::{Code, Error, Fault, FieldCode, Result, Sentence},
    http::console::{
        acts,
        request::{ConsoleRequest, ok},
        views::{
            pages::administrators::{self as view, AdministratorsPage, EnrolmentPage},
            texts::Text,
        },
    },
    store::Pending,
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(view::administrators(&console.view()?, &collect(&console)?))
}

fn collect(console: &ConsoleRequest) -> Result<AdministratorsPage> {
    let core = &console.context.app.core;
    Ok(AdministratorsPage {
        admins: admins::list(core)?,
        sessions: sessions::list(core)?,
        own: console.session.as_ref().map(sessions::id_of),
        networks: networks::list(core)?.iter().map(ToString::to_string).collect(),
        own_address: console.context.meta.client.to_string(),
        step_up: console.step_up()?,
    })
}

/// Creates an administrator. The form has another name for the new password, because it may carry the own one as proof.
pub async fn create(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let created = try_create(&console).await;
    acts::done(&console, created).await
}

async fn try_create(console: &ConsoleRequest) -> Result<Admin> {
    let role = Role::from_name(console.form.get("role")).ok_or(Code::InvalidRequest)?;
    let [name, password] = ["name", "newPassword"].map(|field| console.form.get(field).to_owned());
    let created = console.context.blocking(move |app| admins::create(&app.admins, &name, &password, role)).await;
    created.map_err(|mut error| {
        for fault in error.fields.iter_mut().filter(|fault| fault.field == "password") {
            "newPassword".clone_into(&mut fault.field);
        }
        error
    })
}

pub async fn remove_totp(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let removed = match console.require_reason() {
        Ok(_) => {
            let removal = second_factor::remove(&console.context.app.core, console.parameter("name"));
            console.context.committed(removal).await
        }
        Err(error) => Err(error),
    };
    acts::done(&console, removed).await
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
    let confirmation = second_factor::confirm(&console.context.app.core, &name, console.form.get("totp"));
    let confirmed = console.context.committed(confirmation).await;
    acts::done(&console, confirmed).await
}

pub async fn end_session(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let ended = console.context.committed(sessions::end(&console.context.app.core, console.parameter("id"))).await;
    acts::done(&console, ended).await
}

pub async fn allow_network(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    change_networks(&console, networks::allow).await
}

pub async fn disallow_network(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    change_networks(&console, networks::disallow).await
}

/// Changes the networks, unless that would shut out the administrator who changes them.
async fn change_networks(
    console: &Arc<ConsoleRequest>,
    change: fn(&Core, IpNet, Option<IpAddr>) -> Pending<Vec<IpNet>>,
) -> Result<Response<Body>> {
    let rejected = |text| {
        let fault = Fault::new(FieldCode::InvalidFormat, Sentence::for_reader(console.text(text)));
        Err(Error::field("network", fault))
    };
    let changed = match networks::parse(console.form.get("network")) {
        Some(network) => {
            let client = Some(console.context.meta.client);
            console.context.committed(change(&console.context.app.core, network, client)).await
        }
        None => rejected(Text::NetworkHint),
    };
    let changed = match changed {
        Err(error) if error.code == Code::AddressNotAllowed => rejected(Text::NetworkLocksOut),
        changed => changed,
    };
    acts::done(console, changed).await
}
