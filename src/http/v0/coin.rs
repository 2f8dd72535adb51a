//! `/coin`: the balance that casts are paid with.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::Limits,
    domain::{
        identity::users::User,
        money::{
            coins::{self, Consumed, LARGEST_INCREASE, ResetBy, ResetConfirmation},
            ledger::{Asset, Discrepancy},
        },
    },
    error::{Code, Fault, Result},
    http::{
        body::RawValue,
        params::{Claims, Credential, Nothing, Parameter, Reason, Rules, parameters, reason_of_admin, whole_number},
        reply::{Json, Replayable},
        request_context::RequestContext,
    },
    types::{PhoneNumber, UserId},
};

parameters! {
    OfUser(fields) {
        whom: Claims = {
            let user_id = fields.optional("userId", "The user's id. Without one, the caller.");
            let phone_number = fields.optional("phoneNumber", "The user's number.");
            fields.cross_field(user_id.zip(phone_number), whom)
        };
    }

    Reset(fields) {
        confirm: Option<Credential> = fields.optional("confirm", "For administrators: the token of the answer 428 to the same request without it.");
        whom: Claims = {
            let user_id = fields.optional("userId", "The user's id. Without one, the caller.");
            let phone_number = fields.optional("phoneNumber", "The user's number.");
            fields.cross_field(user_id.zip(phone_number), whom)
        };
        reason: Option<Reason> = reason_of_admin(fields);
    }

    Increase(fields) {
        phone_number: PhoneNumber = fields.required("phoneNumber", "The user's number.");
        coin_count: CoinCount = fields.required("coinCount", "Coins to add.");
        user_id: Option<UserId> = fields.optional("userId", "The user's id, to be compared.");
        reason: Option<Reason> = fields.optional("reason", "Why.");
    }
}

/// A user's coin balance.
#[derive(Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoinBalance {
    #[schema(value_type = String, example = "10001")]
    user_id: UserId,
    #[schema(value_type = Option<String>, example = "13800138000")]
    phone_number: Option<PhoneNumber>,
    #[schema(example = 59)]
    balance: i64,
}

impl CoinBalance {
    fn new(user: &User, balance: i64) -> Self {
        Self { user_id: user.id, phone_number: user.phone_number.clone(), balance }
    }
}

/// A use that was paid, and what is left.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoinsConsumed {
    #[schema(value_type = String, example = "10001")]
    user_id: UserId,
    #[schema(value_type = Option<String>, example = "13800138000")]
    phone_number: Option<PhoneNumber>,
    #[schema(example = 1)]
    consumed: i64,
    #[schema(example = 58)]
    balance: i64,
}

pub async fn balance(context: RequestContext, of: OfUser) -> Result<Json<CoinBalance>> {
    let user = context.subject(&of.whom)?;
    let balance = coins::balance(&context.app, user.id)?;
    Ok(Json(CoinBalance::new(&user, balance)))
}

pub async fn consume(context: RequestContext, of: OfUser) -> Result<Replayable<CoinsConsumed>> {
    let user = context.acting_user(&of.whom)?;
    let id = user.id;
    let shown = move |&Consumed { consumed, balance }: &Consumed| {
        let CoinBalance { user_id, phone_number, balance } = CoinBalance::new(&user, balance);
        CoinsConsumed { user_id, phone_number, consumed, balance }
    };
    context.respond_once(StatusCode::OK, shown, |app, once| coins::consume(app, id, once)).await
}

pub async fn reset(context: RequestContext, of: Reset) -> Result<Replayable<CoinBalance>> {
    let user = context.subject(&of.whom)?;
    let id = user.id;
    let by = if context.is_admin() {
        let token = of.confirm.map(|Credential(token)| token);
        let authority = context.authority(of.reason.map(|Reason(reason)| reason))?;
        ResetBy::Admin(authority, ResetConfirmation::ByToken { token })
    } else {
        ResetBy::Owner { token: context.bearer().ok_or(Code::Unauthenticated)? }
    };
    let shown = move |balance: &i64| CoinBalance::new(&user, *balance);
    context.respond_once(StatusCode::OK, shown, |app, once| coins::reset(app, id, by, once)).await
}

pub async fn increase(context: RequestContext, increase: Increase) -> Result<Replayable<CoinBalance>> {
    let claims = Claims { user_id: increase.user_id, phone_number: Some(increase.phone_number), id: None };
    let user = context.subject(&claims)?;
    let by = context.authority(increase.reason.map(|Reason(reason)| reason))?;
    let (id, CoinCount(count)) = (user.id, increase.coin_count);
    let shown = move |balance: &i64| CoinBalance::new(&user, *balance);
    context.respond_once(StatusCode::OK, shown, |app, once| coins::increase(app, id, count, by, once)).await
}

/// The result of a synchronisation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoinsSynchronised {
    /// Users looked at.
    #[schema(example = 1200)]
    checked: u64,
    /// Accounts that users lacked.
    #[schema(example = 0)]
    created: u64,
    /// Accounts whose cached balance was recomputed from the ledger.
    #[schema(example = 0)]
    repaired: u64,
    /// Issues that could not be repaired.
    issues: Vec<LedgerIssue>,
}

/// Something that is wrong in the ledger.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LedgerIssue {
    #[schema(example = "balance_after_wrong")]
    code: &'static str,
    #[schema(value_type = Option<String>, example = "10001")]
    user_id: Option<UserId>,
    #[schema(value_type = Option<Asset>)]
    asset: Option<&'static str>,
    #[schema(example = "entry 7: 10 and -1 do not make 10")]
    detail: String,
}

impl From<Discrepancy> for LedgerIssue {
    fn from(found: Discrepancy) -> Self {
        Self {
            code: found.code,
            user_id: found.account.map(|(user, _)| user),
            asset: found.account.map(|(_, asset)| asset.name()),
            detail: found.detail,
        }
    }
}

impl From<coins::Synchronised> for CoinsSynchronised {
    fn from(done: coins::Synchronised) -> Self {
        let issues = done.issues.into_iter().map(Into::into).collect();
        Self { checked: done.checked, created: done.created, repaired: done.repaired, issues }
    }
}

pub async fn synchronise(context: RequestContext, _: Nothing) -> Result<Json<CoinsSynchronised>> {
    let by = context.authority(None)?;
    let done = context.blocking(move |app| coins::synchronise(app, &by)).await?;
    Ok(Json(done.into()))
}

/// The user, whom each of the twin endpoints names by a parameter of its own.
fn whom(rules: &Rules<'_>, (user_id, phone_number): (Option<UserId>, Option<PhoneNumber>)) -> Result<Claims> {
    let is_by_phone = rules.context.meta.route.get().is_some_and(|route| route.ends_with("/phone"));
    let name = if is_by_phone { "phoneNumber" } else { "userId" };
    rules.context.naming(Claims { user_id, phone_number, id: None }, name)
}

/// The number of coins to add.
pub struct CoinCount(i64);

impl Parameter for CoinCount {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 1..=LARGEST_INCREASE).map(Self)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["integer", "string"], "minimum": 1, "maximum": LARGEST_INCREASE, "example": 60 })
    }
}
