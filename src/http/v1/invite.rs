//! `/api/v1/invite`: the caller's invite code, and the redemption of another user's.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::money::invites::{self, InviteCode, Redeemed},
    error::{Fault, Result},
    http::{
        body::RawValue,
        params::{Nothing, Parameter, Rules, parameters, text},
        reply::{Json, Replayable},
        request_context::RequestContext,
    },
    types::Timestamp,
};

parameters! {
    RedeemInviteParams(fields) {
        code: InviteCode = fields.required("code", "Another user's invite code. Case, spaces and hyphens are ignored.");
    }
}

/// The caller's code and the points it has earned.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names, reason = "the names are the interface's")]
#[schema(as = Invite)]
pub struct InviteResponse {
    #[schema(example = "7KQ4M2XD")]
    code: String,
    /// Number of users who redeemed it.
    #[schema(example = 3)]
    invited: i64,
    /// Rewarded invites of the caller, including earlier accounts.
    #[schema(example = 3)]
    rewarded: i64,
    /// Maximum number of rewarded invites.
    #[schema(example = 50)]
    rewarded_limit: u32,
    /// Points for each invite.
    #[schema(example = 20)]
    invite_bonus: u32,
    /// Points for the user who redeems it.
    #[schema(example = 20)]
    invitee_bonus: u32,
    /// Time at which the caller redeemed a code.
    redeemed_at: Option<Timestamp>,
    /// End of the period in which the caller can redeem a code.
    #[schema(value_type = String, format = DateTime, example = "2026-01-09T03:04:05.678Z")]
    redeemable_until: Timestamp,
}

/// The points granted for a redeemed code.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteRedeemed {
    #[schema(example = 20)]
    points_granted: i64,
    #[schema(example = 120)]
    balance: i64,
}

pub async fn find(context: RequestContext, _: Nothing) -> Result<Json<InviteResponse>> {
    let found = context.committed(invites::find(&context.app.core, context.user()?)).await?;
    let rules = &context.app.core.config.points;
    Ok(Json(InviteResponse {
        code: found.code,
        invited: found.invited,
        rewarded: found.rewarded,
        rewarded_limit: rules.rewarded_invites,
        invite_bonus: rules.invite_bonus,
        invitee_bonus: rules.invitee_bonus,
        redeemed_at: found.redeemed_at,
        redeemable_until: found.redeemable_until,
    }))
}

pub async fn redeem(
    context: RequestContext,
    RedeemInviteParams { code }: RedeemInviteParams,
) -> Result<Replayable<InviteRedeemed>> {
    let user = context.user()?;
    let shown = |&Redeemed { points_granted, balance }: &Redeemed| InviteRedeemed { points_granted, balance };
    context.respond_once(StatusCode::OK, shown, |app, once| invites::redeem(&app.core, user, code, once)).await
}

impl Parameter for InviteCode {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        Self::parse(&text(value)?)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "example": "7KQ4M2XD" })
    }
}
