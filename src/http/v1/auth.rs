//! `/api/v1/auth`: sign-in with a code sent by email, and signed-in devices.

use serde::Serialize;
use utoipa::ToSchema;

use super::account::AccountResponse;
use crate::{
    domain::{
        identity::{
            accounts::{self, CodeRequest, IdentitySignIn, SignIn, SignedIn},
            codes::Purpose,
            identity_proofs::IdentityProof,
            tokens,
            users::Address,
        },
        money::invites::{InviteCode, Redeemed},
    },
    error::{Code, Result},
    http::{
        device_label,
        identity_proof::identity_proof,
        params::{DeviceId, DeviceName, EmailCode, Nothing, parameters},
        reply::{Json, NoContent},
        request_context::RequestContext,
    },
    types::{EmailAddress, Secret, Timestamp},
};

parameters! {
    SendEmailCodeParams(fields) {
        email: EmailAddress = fields.required("email", "Address to send the code to.");
        purpose: Option<Purpose> = fields.optional("purpose", "`sign_in` (default); `address` to add or change an account's address with `/api/v1/account/address`; `cancellation` to authorise the cancellation of an account.");
    }

    EmailSignInParams(fields) {
        email: EmailAddress = fields.required("email", "The address that the code was sent to.");
        code: EmailCode = fields.required("code", "The code from the message.");
        device: Option<DeviceName> = fields.optional("device", "Name of the device. Derived from the `User-Agent` if absent.");
        invite_code: Option<InviteCode> = fields.optional("inviteCode", "Another user's invite code, redeemed with the sign-in. An invalid one does not fail the sign-in: see `invite` in the response.");
    }

    IdentitySignInParams(fields) {
        proof: IdentityProof = identity_proof(fields);
        device: Option<DeviceName> = fields.optional("device", "Name of the device. Derived from the `User-Agent` if absent.");
        invite_code: Option<InviteCode> = fields.optional("inviteCode", "Another user's invite code, redeemed with the sign-in. An invalid one does not fail the sign-in: see `invite` in the response.");
    }

    TokenParams(fields) {
        token: Secret = fields.token("token", "The token. Defaults to the one in the header.");
    }

    RevokeDeviceParams(fields) {
        id: DeviceId = fields.path("id", "The device's id.");
    }
}

/// The response after a code was sent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmailCodeSent {
    /// The address in canonical form.
    #[schema(value_type = String, example = "li.ming@example.com")]
    email: EmailAddress,
    /// Seconds for which the code is valid.
    #[schema(example = 600)]
    expires_in: u64,
    /// Seconds until another code can be requested.
    #[schema(example = 60)]
    resend_after: u64,
}

pub async fn send_code(
    context: RequestContext,
    SendEmailCodeParams { email, purpose }: SendEmailCodeParams,
) -> Result<Json<EmailCodeSent>> {
    let request = CodeRequest {
        address: Address::Email(email.clone()),
        purpose: purpose.unwrap_or(Purpose::SignIn),
        locale: context.locale(),
        client: context.meta.client,
    };
    let sent = context.blocking(move |app| accounts::send_code(&app.code_sender, &request)).await?;
    context.meta.show_budget(sent.client_use);
    let (expires_in, resend_after) = (sent.expires_in.as_secs(), sent.resend_after.as_secs());
    Ok(Json(EmailCodeSent { email, expires_in, resend_after }))
}

/// A user who has just signed in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedInByEmail {
    user: AccountResponse,
    /// The token for later requests, as `Authorization: Bearer <token>`.
    #[schema(example = "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs")]
    token: String,
    #[schema(value_type = String, format = DateTime, example = "2026-02-01T00:00:00.000Z")]
    expires_at: Timestamp,
    /// True if this sign-in created the account.
    is_new_user: bool,
    /// True if points of a deleted account were restored.
    #[schema(example = false)]
    restored: bool,
    /// Points restored from an earlier account.
    #[schema(example = 0)]
    points_restored: i64,
    /// The sign-up bonus, granted once per address.
    #[schema(example = 100)]
    points_granted: i64,
    /// The outcome of the invite code, if one was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    invite: Option<InviteAtLogin>,
}

/// The outcome of an invite code at sign-in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteAtLogin {
    #[schema(example = true)]
    redeemed: bool,
    /// Points granted to the caller.
    #[schema(example = 20)]
    points_granted: i64,
    /// The problem code if nothing was granted, such as `unknown_invite`, `own_invite`, `invite_expired` or
    /// `already_invited`.
    #[schema(example = json!(null))]
    refusal: Option<&'static str>,
}

impl From<Result<Redeemed, Code>> for InviteAtLogin {
    fn from(outcome: Result<Redeemed, Code>) -> Self {
        match outcome {
            Ok(Redeemed { points_granted, .. }) => Self { redeemed: true, points_granted, refusal: None },
            Err(code) => Self { redeemed: false, points_granted: 0, refusal: Some(code.name()) },
        }
    }
}

pub async fn login(context: RequestContext, login: EmailSignInParams) -> Result<Json<SignedInByEmail>> {
    let label = device_label(&context, login.device);
    let address = Address::Email(login.email);
    let code = login.code.0.of_digits(accounts::code_digits(&address));
    let sign_in = SignIn { address, code, label, invite_code: login.invite_code, client: context.meta.client };
    let signed_in = context.committed(accounts::sign_in(&context.app.code_sender, sign_in)).await?;
    signed_in.attempts.into_iter().for_each(|attempts| context.meta.show_budget(attempts));
    respond(&context, &signed_in)
}

/// Exchanges a proof of identity for a token.
pub async fn sign_in_with_identity(
    context: RequestContext,
    params: IdentitySignInParams,
) -> Result<Json<SignedInByEmail>> {
    let label = device_label(&context, params.device);
    let (proof, invite_code, client) = (params.proof, params.invite_code, context.meta.client);
    let sign_in = IdentitySignIn { proof, label, invite_code, client };
    let queued = context.blocking(move |app| accounts::sign_in_with_identity(&app.identities, sign_in)).await?;
    let signed_in = context.committed(queued).await?;
    respond(&context, &signed_in)
}

fn device_label(context: &RequestContext, named: Option<DeviceName>) -> String {
    named.map_or_else(|| device_label::from_user_agent(&context.headers), |DeviceName(name)| name)
}

fn respond(context: &RequestContext, signed_in: &SignedIn) -> Result<Json<SignedInByEmail>> {
    Ok(Json(SignedInByEmail {
        user: accounts::find(&context.app.core, signed_in.user.id)?.into(),
        token: signed_in.issued.token.reveal().to_owned(),
        expires_at: signed_in.issued.expires_at,
        is_new_user: signed_in.is_new_user,
        restored: signed_in.points.restored > 0,
        points_restored: signed_in.points.restored,
        points_granted: signed_in.points.granted,
        invite: signed_in.invite.map(Into::into),
    }))
}

/// The token that replaces the old one.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefreshedToken {
    #[schema(example = "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs")]
    token: String,
    #[schema(value_type = String, format = DateTime, example = "2026-02-01T00:00:00.000Z")]
    expires_at: Timestamp,
}

pub async fn refresh(context: RequestContext, TokenParams { token }: TokenParams) -> Result<Json<RefreshedToken>> {
    let tokens::IssuedToken { token, expires_at, .. } =
        context.committed(accounts::refresh_token(&context.app.core, &token)).await?;
    Ok(Json(RefreshedToken { token: token.reveal().to_owned(), expires_at }))
}

/// The response after sign-out.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedOut {
    #[schema(example = true)]
    logged_out: bool,
}

pub async fn logout(context: RequestContext, TokenParams { token }: TokenParams) -> Result<Json<SignedOut>> {
    context.committed(accounts::sign_out(&context.app.core, &token)).await?;
    Ok(Json(SignedOut { logged_out: true }))
}

/// The signed-in devices, newest sign-in first.
#[derive(Serialize, ToSchema)]
pub struct Devices {
    items: Vec<DeviceResponse>,
}

/// A device that is signed in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Device)]
pub struct DeviceResponse {
    #[schema(example = "9f2c1b7d03aa41c5")]
    id: String,
    /// The device's own label; empty if it has none.
    #[schema(example = "Yarrow, iPhone")]
    label: String,
    created_at: Timestamp,
    /// Accurate to the hour.
    #[schema(value_type = String, format = DateTime, example = "2026-01-05T09:00:00.000Z")]
    last_used_at: Timestamp,
    #[schema(value_type = String, format = DateTime, example = "2026-02-01T00:00:00.000Z")]
    expires_at: Timestamp,
    /// True for the device that sent the request.
    #[schema(example = true)]
    current: bool,
}

pub async fn list_devices(context: RequestContext, _: Nothing) -> Result<Json<Devices>> {
    let devices = tokens::list_devices(&context.app.core, context.user()?, context.token.as_ref())?;
    Ok(Json(Devices::of(devices)))
}

impl Devices {
    pub fn of(devices: Vec<tokens::Device>) -> Self {
        let shown = |device: tokens::Device| DeviceResponse {
            id: device.id,
            label: device.label,
            created_at: device.signed_in_at,
            last_used_at: device.last_used_at,
            expires_at: device.expires_at,
            current: device.is_current,
        };
        Self { items: devices.into_iter().map(shown).collect() }
    }
}

pub async fn end_device(context: RequestContext, RevokeDeviceParams { id }: RevokeDeviceParams) -> Result<NoContent> {
    context.committed(tokens::revoke_device(&context.app.core, context.user()?, id.0)).await?;
    Ok(NoContent)
}
