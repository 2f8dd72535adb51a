//! `/admin/administrators`: accounts of administrators and their roles.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::operations::admins::{self, Admin, AdminChange, roles::Role},
    error::{Fault, Result},
    http::{
        body::RawValue,
        params::{Credential, Nothing, Parameter, Reason, Rules, parameters, text},
        reply::{Created, Json},
        request_context::RequestContext,
    },
    types::clean,
};

parameters! {
    NewAdministratorParams(fields) {
        name: AdminName = fields.required("name", "The name: at most 64 letters, digits and `-_.@`.");
        password: Credential = fields.required("password", "The password, 12 to 256 characters.");
        role: Role = fields.required("role", "The role.");
        reason: Option<Reason> = fields.optional("reason", "The reason, for the audit.");
    }

    AdministratorChangeParams(fields) {
        name: AdminName = fields.path("name", "The administrator.");
        role: Option<Role> = fields.optional("role", "The new role.");
        password: Option<Credential> = fields.optional("password", "The new password. Ends the administrator's sessions.");
        reason: Option<Reason> = fields.optional("reason", "The reason, for the audit.");
    }

    NamedAdministratorParams(fields) {
        name: AdminName = fields.path("name", "The administrator.");
        reason: Option<Reason> = fields.optional("reason", "The reason, for the audit.");
    }
}

/// All administrators, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = Administrators)]
pub struct AdministratorList {
    items: Vec<Admin>,
}

pub async fn list(context: RequestContext, _: Nothing) -> Result<Json<AdministratorList>> {
    let items = admins::list(&context.app.core)?;
    Ok(Json(AdministratorList { items }))
}

pub async fn create(context: RequestContext, new: NewAdministratorParams) -> Result<Created<Admin>> {
    context.authority(new.reason.map(|Reason(reason)| reason))?;
    let NewAdministratorParams { name: AdminName(name), password: Credential(password), role, .. } = new;
    let created = context.blocking(move |app| admins::create(&app.admins, &name, &password, role)).await?;
    Ok(Created(created))
}

pub async fn change(context: RequestContext, change: AdministratorChangeParams) -> Result<Json<Admin>> {
    context.authority(change.reason.map(|Reason(reason)| reason))?;
    let AdminName(name) = change.name;
    let (role, password) = (change.role, change.password.map(|Credential(password)| password));
    let changed = context.blocking(move |app| {
        admins::change(&app.admins, &name, AdminChange { role, password: password.as_deref() })?;
        admins::find(&app.core, &name)
    });
    Ok(Json(changed.await?))
}

/// The administrator no longer exists.
#[derive(Serialize, ToSchema)]
pub struct AdministratorRemoved {
    #[schema(example = true)]
    removed: bool,
}

pub async fn remove(context: RequestContext, named: NamedAdministratorParams) -> Result<Json<AdministratorRemoved>> {
    context.authority(named.reason.map(|Reason(reason)| reason))?;
    let AdminName(name) = named.name;
    context.committed(admins::remove(&context.app.core, &name)).await?;
    Ok(Json(AdministratorRemoved { removed: true }))
}

/// The name of an administrator or the label of an API key.
pub struct AdminName(pub String);

impl Parameter for AdminName {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        clean(&text(value)?, 64).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": 64, "example": "alice" })
    }
}
