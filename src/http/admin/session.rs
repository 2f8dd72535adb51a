//! `/admin/login`: signing an administrator in.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    error::Result,
    http::{
        call::Call,
        params::{Credential, parameters},
        reply::Json,
    },
    ops::admins,
    types::Timestamp,
};

parameters! {
    Login {
        name: required Credential = "name", "The administrator's name.";
        password: required Credential = "password", "The password.";
    }
}

/// An administrator's session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminSession {
    /// The token for the calls that follow, as `Authorization: Bearer <token>`.
    #[schema(example = "ys_kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs")]
    token: String,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T11:04:05.678Z")]
    expires_at: Timestamp,
}

pub async fn login(call: Call, Login { name, password }: Login) -> Result<Json<AdminSession>> {
    let client = call.context.client;
    let issued = call.blocking(move |app| admins::sign_in(app, &name.0, &password.0, client)).await?;
    Ok(Json(AdminSession { token: issued.token.reveal().to_owned(), expires_at: issued.expires_at }))
}
