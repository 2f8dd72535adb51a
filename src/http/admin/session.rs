//! `/admin/login` and `/admin/logout`: an administrator's session.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::operations::admins::{self, Identity, SignInAttempt},
    error::{Code, Error, Result},
    http::{
        params::{Credential, Nothing, VerificationCode, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    types::{Secret, Timestamp},
};

parameters! {
    AdminSignInParams(fields) {
        name: Credential = fields.required("name", "The administrator's name.");
        password: Credential = fields.required("password", "The password.");
        totp: Option<VerificationCode> = fields.optional("totp", "The current code of the authenticator app, if one is set up.");
    }
}

/// An administrator's session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AdminSession)]
pub struct AdminSessionResponse {
    /// The token for later requests, as `Authorization: Bearer <token>`.
    #[schema(example = "ys_kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs")]
    token: String,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T11:04:05.678Z")]
    expires_at: Timestamp,
}

pub async fn login(
    context: RequestContext,
    AdminSignInParams { name, password, totp }: AdminSignInParams,
) -> Result<Json<AdminSessionResponse>> {
    let attempt = SignInAttempt {
        name: name.0,
        password: Secret::from_text(password.0),
        totp: totp.map(|code| code.of_digits(admins::second_factor::DIGITS)),
        client: context.meta.client,
        request_id: context.meta.request_id.clone(),
    };
    let issued = context.blocking(move |app| admins::sign_in(&app.admins, &attempt)).await?;
    Ok(Json(AdminSessionResponse { token: issued.token.reveal().to_owned(), expires_at: issued.expires_at }))
}

/// The token is no longer valid.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminLoggedOut {
    #[schema(example = true)]
    logged_out: bool,
}

/// Rejects API keys: they have no session and stay valid until revoked, so success would mislead.
pub async fn logout(context: RequestContext, _: Nothing) -> Result<Json<AdminLoggedOut>> {
    if let Identity::Key { .. } = context.admin()? {
        return Err(Error::new(Code::Forbidden).detail((
            "API keys have no session. Revoke the key on the server with `yarrow admin key revoke`.",
            "API 密钥没有会话。请在服务器上用 `yarrow admin key revoke` 吊销。",
        )));
    }
    if let Some(token) = &context.token {
        context.committed(admins::sign_out(&context.app.core, token)).await?;
    }
    Ok(Json(AdminLoggedOut { logged_out: true }))
}
