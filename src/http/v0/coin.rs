//! `/coin`: the coin balance, which pays for castings in the first API generation.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::{
        identity::{
            accounts::{EMAIL_CODE_DIGITS, SMS_CODE_DIGITS},
            step_up::{OwnCode, StepUp},
            users::User,
        },
        money::{
            coins::{self, Consumed, ResetBy, ResetConfirmation},
            ledger::{self, Asset, Discrepancy, EntryKind, LARGEST_ADJUSTMENT, LedgerEntry},
        },
    },
    error::{Fault, Result},
    http::{
        body::RawValue,
        claims::Claims,
        numbered_page::NumberedPage,
        params::{
            Credential, Fields, Nothing, PageNumber, PageSize, Parameter, Reason, Rules, VerificationCode, page,
            parameters, reason_of_admin, whole_number,
        },
        reply::{Json, Replayable},
        request_context::RequestContext,
    },
    types::{PhoneNumber, Timestamp, UserId},
};

parameters! {
    UserCoinsParams(fields) {
        claims: Claims = claims_by(fields, "userId");
    }

    PhoneCoinsParams(fields) {
        claims: Claims = claims_by(fields, "phoneNumber");
    }

    ResetCoinsParams(fields) {
        code: Option<VerificationCode> = fields.optional("code", "For users: a code sent to the own address, with or without a purpose, in place of a recent sign-in.");
        confirm: Option<Credential> = fields.optional("confirm", "For administrators: the token from the 428 response to the same request without it.");
        claims: Claims = claims_by(fields, "userId");
        reason: Option<Reason> = reason_of_admin(fields);
    }

    ResetPhoneCoinsParams(fields) {
        code: Option<VerificationCode> = fields.optional("code", "For users: a code sent to the own address, with or without a purpose, in place of a recent sign-in.");
        confirm: Option<Credential> = fields.optional("confirm", "For administrators: the token from the 428 response to the same request without it.");
        claims: Claims = claims_by(fields, "phoneNumber");
        reason: Option<Reason> = reason_of_admin(fields);
    }

    CoinHistoryParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Entries on a page.");
    }

    IncreaseCoinsParams(fields) {
        phone_number: PhoneNumber = fields.required("phoneNumber", "The user's number.");
        coin_count: CoinCount = fields.required("coinCount", "Coins to add.");
        user_id: Option<UserId> = fields.optional("userId", "The user's id. Must be the caller's.");
        reason: Option<Reason> = fields.optional("reason", "The reason.");
    }
}

/// A user's coin balance.
#[derive(Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoinBalance {
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

/// A paid use, and the remaining balance.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoinsConsumed {
    user_id: UserId,
    #[schema(value_type = Option<String>, example = "13800138000")]
    phone_number: Option<PhoneNumber>,
    #[schema(example = 1)]
    consumed: i64,
    #[schema(example = 58)]
    balance: i64,
}

pub async fn balance(context: RequestContext, params: UserCoinsParams) -> Result<Json<CoinBalance>> {
    balance_of(&context, &params.claims)
}

pub async fn balance_by_phone(context: RequestContext, params: PhoneCoinsParams) -> Result<Json<CoinBalance>> {
    balance_of(&context, &params.claims)
}

fn balance_of(context: &RequestContext, claims: &Claims) -> Result<Json<CoinBalance>> {
    let user = context.subject(claims)?;
    let balance = coins::balance(&context.app.core, user.id)?;
    Ok(Json(CoinBalance::new(&user, balance)))
}

/// One change of the coin balance.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoinEntry {
    /// Counts the user's entries from 1.
    #[schema(example = 2)]
    sequence: i64,
    /// Coins added; negative for coins spent.
    #[schema(example = -1)]
    delta: i64,
    #[schema(example = 59)]
    balance_after: i64,
    kind: EntryKind,
    /// The order of a purchase or refund.
    #[schema(example = "order:202601020123456789012345")]
    r#ref: Option<String>,
    created_at: Timestamp,
}

impl From<LedgerEntry> for CoinEntry {
    fn from(entry: LedgerEntry) -> Self {
        Self {
            sequence: entry.sequence,
            delta: entry.delta,
            balance_after: entry.balance_after,
            kind: entry.kind,
            r#ref: entry.reference.filter(|reference| reference.starts_with("order:")),
            created_at: entry.created_at,
        }
    }
}

pub async fn history(context: RequestContext, params: CoinHistoryParams) -> Result<Json<NumberedPage<CoinEntry>>> {
    let user = context.acting_for(&Claims::of_user(params.user_id))?;
    let page = page(&context, params.page, params.size);
    Ok(NumberedPage::of(page, ledger::entries(&context.app.core, user, Asset::Coin, page)?))
}

pub async fn consume(context: RequestContext, params: UserCoinsParams) -> Result<Replayable<CoinsConsumed>> {
    consume_as(&context, &params.claims).await
}

pub async fn consume_by_phone(context: RequestContext, params: PhoneCoinsParams) -> Result<Replayable<CoinsConsumed>> {
    consume_as(&context, &params.claims).await
}

async fn consume_as(context: &RequestContext, claims: &Claims) -> Result<Replayable<CoinsConsumed>> {
    let user = context.acting_user(claims)?;
    let id = user.id;
    let shown = move |&Consumed { consumed, balance }: &Consumed| {
        let CoinBalance { user_id, phone_number, balance } = CoinBalance::new(&user, balance);
        CoinsConsumed { user_id, phone_number, consumed, balance }
    };
    context.respond_once(StatusCode::OK, shown, |app, once| coins::consume(&app.core, id, once)).await
}

pub async fn reset(context: RequestContext, reset: ResetCoinsParams) -> Result<Replayable<CoinBalance>> {
    reset_of(&context, reset).await
}

pub async fn reset_by_phone(
    context: RequestContext,
    by_phone: ResetPhoneCoinsParams,
) -> Result<Replayable<CoinBalance>> {
    let ResetPhoneCoinsParams { code, confirm, claims, reason } = by_phone;
    reset_of(&context, ResetCoinsParams { code, confirm, claims, reason }).await
}

async fn reset_of(context: &RequestContext, reset: ResetCoinsParams) -> Result<Replayable<CoinBalance>> {
    let user = context.subject(&reset.claims)?;
    let id = user.id;
    let by = if context.is_admin() {
        let token = reset.confirm.map(|Credential(token)| token);
        let authority = context.authority(reset.reason.map(|Reason(reason)| reason))?;
        ResetBy::Admin(authority, ResetConfirmation::ByToken { token })
    } else {
        ResetBy::Owner(StepUp {
            token: context.own_token()?,
            code: reset.code.map(|code| OwnCode {
                by_sms: code.clone().of_digits(SMS_CODE_DIGITS),
                by_email: code.of_digits(EMAIL_CODE_DIGITS),
                client: context.meta.client,
            }),
        })
    };
    let shown = move |balance: &i64| CoinBalance::new(&user, *balance);
    context.respond_once(StatusCode::OK, shown, |app, once| coins::reset(&app.core, id, by, once)).await
}

pub async fn increase(context: RequestContext, increase: IncreaseCoinsParams) -> Result<Replayable<CoinBalance>> {
    let claims = Claims { user_id: increase.user_id, phone_number: Some(increase.phone_number), id: None };
    let user = context.subject(&claims)?;
    let by = context.authority(increase.reason.map(|Reason(reason)| reason))?;
    let (id, CoinCount(count)) = (user.id, increase.coin_count);
    let limit = context.grant_limit()?;
    let shown = move |balance: &i64| CoinBalance::new(&user, *balance);
    context.respond_once(StatusCode::OK, shown, |app, once| coins::adjust(&app.core, id, count, by, limit, once)).await
}

/// The result of a synchronisation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoinsSynchronised {
    /// Users checked.
    #[schema(example = 1200)]
    checked: u64,
    /// Missing accounts that were created.
    #[schema(example = 0)]
    created: u64,
    /// Accounts whose cached balance was recomputed from the ledger.
    #[schema(example = 0)]
    repaired: u64,
    /// Issues that could not be repaired.
    issues: Vec<LedgerIssue>,
}

/// An inconsistency in the ledger.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LedgerIssue {
    #[schema(example = "balance_after_wrong")]
    code: &'static str,
    user_id: Option<UserId>,
    asset: Option<Asset>,
    #[schema(example = "entry 7: 10 and -1 do not make 10")]
    detail: String,
}

impl From<Discrepancy> for LedgerIssue {
    fn from(found: Discrepancy) -> Self {
        Self {
            code: found.code,
            user_id: found.account.map(|(user, _)| user),
            asset: found.account.map(|(_, asset)| asset),
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
    let done = context.blocking(move |app| coins::synchronise(&app.core, &by)).await?;
    Ok(Json(done.into()))
}

/// Reads the user that the request is about. An administrator must name one; `name` is the field reported if none is
/// named.
fn claims_by(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<Claims> {
    let user_id = fields.optional("userId", "The user's id. The caller by default.");
    let phone_number = fields.optional("phoneNumber", "The user's phone number.");
    fields.cross_field(user_id.zip(phone_number), |rules, (user_id, phone_number)| {
        rules.context.require_claims(Claims { user_id, phone_number, id: None }, name)
    })
}

/// The number of coins to add.
pub struct CoinCount(pub i64);

impl Parameter for CoinCount {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 1..=LARGEST_ADJUSTMENT).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": LARGEST_ADJUSTMENT, "example": 60 })
    }
}
