//! `/admin/api-keys`: credentials of programs.

use serde::Serialize;
use utoipa::ToSchema;

use super::administrators::AdminName;
use crate::{
    domain::operations::admins::{
        keys::{self, ApiKey, ApiKeyChange},
        roles::Role,
    },
    error::Result,
    http::{
        params::{Clearable, Flag, Moment, Nothing, Reason, parameters},
        reply::{Created, Json},
        request_context::RequestContext,
    },
};

parameters! {
    NewApiKeyParams(fields) {
        label: AdminName = fields.required("label", "A unique label: at most 64 letters, digits and `-_.@`.");
        role: Role = fields.required("role", "The role.");
        expires_at: Option<Moment> = fields.optional("expiresAt", "The time at which the key expires. Default: never.");
        reason: Option<Reason> = fields.optional("reason", "The reason, for the audit.");
    }

    ApiKeyUpdateParams(fields) {
        label: AdminName = fields.path("label", "The label of the key.");
        role: Option<Role> = fields.optional("role", "The new role.");
        expires_at: Option<Clearable<Moment>> = fields.optional("expiresAt", "The new time of expiry; an empty text: never.");
        is_suspended: Option<Flag> = fields.optional("isSuspended", "True suspends the key, false resumes it.");
        reason: Option<Reason> = fields.optional("reason", "The reason, for the audit.");
    }

    LabelledApiKeyParams(fields) {
        label: AdminName = fields.path("label", "The label of the key.");
        reason: Option<Reason> = fields.optional("reason", "The reason, for the audit.");
    }
}

/// All API keys by label, including revoked ones.
#[derive(Serialize, ToSchema)]
pub struct ApiKeys {
    items: Vec<ApiKey>,
}

/// A new API key with its secret, which is shown once.
#[derive(Serialize, ToSchema)]
pub struct IssuedApiKey {
    #[schema(example = "billing")]
    pub label: String,
    /// The secret, as `Authorization: Bearer <key>`. It is not stored.
    #[schema(example = "yk_kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs")]
    pub key: String,
}

pub async fn list(context: RequestContext, _: Nothing) -> Result<Json<ApiKeys>> {
    let items = keys::list(&context.app.core)?;
    Ok(Json(ApiKeys { items }))
}

pub async fn create(context: RequestContext, new: NewApiKeyParams) -> Result<Created<IssuedApiKey>> {
    context.authority(new.reason.map(|Reason(reason)| reason))?;
    let (AdminName(label), expires_at) = (new.label, new.expires_at.map(|Moment(at)| at));
    let key = context.committed(keys::create(&context.app.core, &label, new.role, expires_at)?).await?;
    Ok(Created(IssuedApiKey { label, key: key.reveal().to_owned() }))
}

pub async fn change(context: RequestContext, update: ApiKeyUpdateParams) -> Result<Json<ApiKey>> {
    context.authority(update.reason.map(|Reason(reason)| reason))?;
    let AdminName(label) = update.label;
    let change = ApiKeyChange {
        role: update.role,
        expires_at: update.expires_at.map(|Clearable(at)| at.map(|Moment(at)| at)),
        is_suspended: update.is_suspended.map(|Flag(is_suspended)| is_suspended),
    };
    context.committed(keys::change(&context.app.core, &label, change)).await?;
    Ok(Json(keys::find(&context.app.core, &label)?))
}

/// The key no longer works.
#[derive(Serialize, ToSchema)]
pub struct ApiKeyRevoked {
    #[schema(example = true)]
    revoked: bool,
}

pub async fn revoke(context: RequestContext, labelled: LabelledApiKeyParams) -> Result<Json<ApiKeyRevoked>> {
    context.authority(labelled.reason.map(|Reason(reason)| reason))?;
    let AdminName(label) = labelled.label;
    context.committed(keys::revoke(&context.app.core, &label)).await?;
    Ok(Json(ApiKeyRevoked { revoked: true }))
}
