//! `/auth`: sign-in with a code sent by SMS.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::identity::{
        accounts::{self, CodeRequest, IdentitySignIn, SignIn, SignedIn},
        codes::Purpose,
        identity_proofs::IdentityProof,
        tokens,
        users::Address,
    },
    error::Result,
    http::{
        device_label,
        identity_proof::identity_proof,
        params::{VerificationCode, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    types::{PhoneNumber, Secret, Timestamp, UserId},
};

parameters! {
    SendSmsCodeParams(fields) {
        phone_number: PhoneNumber = fields.required("phoneNumber", "Mobile number to send the code to, in any spelling.");
        purpose: Option<Purpose> = fields.optional("purpose", "`sign_in` (default); `address` to add or change an account's number with `/api/v1/account/address`; `cancellation` to authorise the cancellation of an account.");
    }

    SmsSignInParams(fields) {
        phone_number: PhoneNumber = fields.required("phoneNumber", "The number that the code was sent to.");
        code: VerificationCode = fields.required("code", "The code from the message.");
    }

    IdentityProofParams(fields) {
        proof: IdentityProof = identity_proof(fields);
    }

    PresentedTokenParams(fields) {
        token: Secret = fields.token("token", "The token. Defaults to the one in the header.");
    }
}

/// The response after a code was sent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeSent {
    /// The number in canonical form.
    #[schema(value_type = String, example = "13800138000")]
    phone_number: PhoneNumber,
    /// Seconds for which the code is valid.
    #[schema(example = 300)]
    expires_in: u64,
    /// Seconds until another code can be requested.
    #[schema(example = 60)]
    resend_after: u64,
}

pub async fn send_code(
    context: RequestContext,
    SendSmsCodeParams { phone_number, purpose }: SendSmsCodeParams,
) -> Result<Json<CodeSent>> {
    let request = CodeRequest {
        address: Address::Phone(phone_number.clone()),
        purpose: purpose.unwrap_or(Purpose::SignIn),
        locale: context.locale(),
        client: context.meta.client,
    };
    let sent = context.blocking(move |app| accounts::send_code(&app.code_sender, &request)).await?;
    context.meta.show_budget(sent.client_use);
    let (expires_in, resend_after) = (sent.expires_in.as_secs(), sent.resend_after.as_secs());
    Ok(Json(CodeSent { phone_number, expires_in, resend_after }))
}

/// A user who has just signed in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SignedIn)]
pub struct SignInResponse {
    user_id: UserId,
    /// Null for a user without one, who signed in with an identity.
    #[schema(value_type = Option<String>, example = "13800138000")]
    phone_number: Option<PhoneNumber>,
    /// The token for later requests, as `Authorization: Bearer <token>`.
    #[schema(example = "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs")]
    token: String,
    #[schema(value_type = String, format = DateTime, example = "2026-02-01T00:00:00.000Z")]
    expires_at: Timestamp,
    /// True if this sign-in created the account.
    is_new_user: bool,
}

impl From<SignedIn> for SignInResponse {
    fn from(signed_in: SignedIn) -> Self {
        Self {
            user_id: signed_in.user.id,
            phone_number: signed_in.user.phone_number,
            token: signed_in.issued.token.reveal().to_owned(),
            expires_at: signed_in.issued.expires_at,
            is_new_user: signed_in.is_new_user,
        }
    }
}

pub async fn login(
    context: RequestContext,
    SmsSignInParams { phone_number, code }: SmsSignInParams,
) -> Result<Json<SignInResponse>> {
    let address = Address::Phone(phone_number);
    let sign_in = SignIn {
        code: code.of_digits(accounts::code_digits(&address)),
        address,
        label: device_label::from_user_agent(&context.headers),
        invite_code: None,
        client: context.meta.client,
    };
    let signed_in = context.committed(accounts::sign_in(&context.app.code_sender, sign_in)).await?;
    signed_in.attempts.into_iter().for_each(|attempts| context.meta.show_budget(attempts));
    Ok(Json(signed_in.into()))
}

/// Exchanges a proof of identity for a token.
pub async fn sign_in_with_identity(
    context: RequestContext,
    IdentityProofParams { proof }: IdentityProofParams,
) -> Result<Json<SignInResponse>> {
    let label = device_label::from_user_agent(&context.headers);
    let sign_in = IdentitySignIn { proof, label, invite_code: None, client: context.meta.client };
    let queued = context.blocking(move |app| accounts::sign_in_with_identity(&app.identities, sign_in)).await?;
    Ok(Json(context.committed(queued).await?.into()))
}

/// The state of a token. For an invalid one only `valid` is present.
#[derive(Serialize, ToSchema, Default)]
#[serde(rename_all = "camelCase")]
pub struct Validity {
    #[schema(example = true)]
    valid: bool,
    /// True if the token was close to expiry and was extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = false)]
    refreshed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, example = "10001")]
    user_id: Option<UserId>,
    /// Null for a user who has only an email address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, default = json!(null), example = "13800138000")]
    #[expect(clippy::option_option, reason = "only an invalid token omits it")]
    phone_number: Option<Option<PhoneNumber>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, format = DateTime, example = "2026-02-01T00:00:00.000Z")]
    expires_at: Option<Timestamp>,
}

pub async fn validate_token(
    context: RequestContext,
    PresentedTokenParams { token }: PresentedTokenParams,
) -> Result<Json<Validity>> {
    let validated = context.committed(accounts::validate_token(&context.app.core, &token)).await?;
    Ok(Json(validated.map_or_else(Validity::default, |validated| Validity {
        valid: true,
        refreshed: Some(validated.refreshed),
        token: Some(token.reveal().to_owned()),
        user_id: Some(validated.user.id),
        phone_number: Some(validated.user.phone_number.clone()),
        expires_at: Some(validated.expires_at),
    })))
}

/// The token that replaces the old one.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Renewed {
    #[schema(example = "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs")]
    token: String,
    #[schema(value_type = String, format = DateTime, example = "2026-02-01T00:00:00.000Z")]
    expires_at: Timestamp,
}

pub async fn refresh_token(
    context: RequestContext,
    PresentedTokenParams { token }: PresentedTokenParams,
) -> Result<Json<Renewed>> {
    let tokens::IssuedToken { token, expires_at, .. } =
        context.committed(accounts::refresh_token(&context.app.core, &token)).await?;
    Ok(Json(Renewed { token: token.reveal().to_owned(), expires_at }))
}

/// The response after sign-out.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoggedOut {
    #[schema(example = true)]
    logged_out: bool,
}

pub async fn logout(
    context: RequestContext,
    PresentedTokenParams { token }: PresentedTokenParams,
) -> Result<Json<LoggedOut>> {
    context.committed(accounts::sign_out(&context.app.core, &token)).await?;
    Ok(Json(LoggedOut { logged_out: true }))
}
