//! A purchase in an app store as its user sees it, in both API generations.

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::money::{
        ledger::Asset,
        purchases::{
            PurchaseReceipt,
            purchase::{PurchaseEnvironment, PurchaseState, PurchaseStore, StorePurchase},
        },
    },
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{Parameter, Rules, text},
        reply::{Json, Reply, ReplyDescription},
    },
    types::Timestamp,
};

/// Longest signed transaction. One holds three certificates.
const LONGEST_TRANSACTION: usize = 16 * 1024;
/// Longest purchase token of Google Play.
const LONGEST_TOKEN: usize = 1024;

/// A purchase of the caller in an app store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Purchase)]
pub struct UserPurchase {
    /// The number for support.
    #[schema(example = "17")]
    id: String,
    store: PurchaseStore,
    environment: PurchaseEnvironment,
    /// Apple's transaction id, or Google's order number.
    #[schema(example = "2000000800000001")]
    store_number: Option<String>,
    /// The product's id at the store.
    #[schema(example = "com.example.app.coins60")]
    store_product_id: Option<String>,
    /// The product, once it is credited.
    #[schema(example = "coins_60")]
    product_id: Option<String>,
    asset: Option<Asset>,
    /// The number of units bought.
    #[schema(example = 1)]
    quantity: u32,
    /// Coins or points that it brought, without bonus.
    #[schema(example = 60)]
    count: i64,
    #[schema(example = 0)]
    bonus: i64,
    /// `pending` until the buyer has paid; `revoked` when all money went back.
    status: PurchaseState,
    /// Coins or points taken back for refunds.
    #[schema(example = 0)]
    returned: i64,
    purchased_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:06.678Z")]
    credited_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-04T03:04:05.678Z")]
    revoked_at: Option<Timestamp>,
}

impl From<StorePurchase> for UserPurchase {
    fn from(purchase: StorePurchase) -> Self {
        let store_number = purchase.store_number().map(ToOwned::to_owned);
        Self {
            id: purchase.id.to_string(),
            store: purchase.key.store,
            environment: purchase.key.environment,
            store_number,
            store_product_id: purchase.store_product,
            asset: purchase.product.as_ref().map(|product| product.asset),
            product_id: purchase.product.map(|product| product.id),
            quantity: purchase.quantity,
            count: purchase.coin_count,
            bonus: purchase.bonus,
            status: purchase.state,
            returned: purchase.returned + purchase.bonus_returned,
            purchased_at: purchase.purchased_at,
            credited_at: purchase.credited_at,
            revoked_at: purchase.revoked_at,
        }
    }
}

/// A reported purchase, with the balance after it.
#[derive(Serialize, ToSchema)]
pub struct ReportedPurchase {
    purchase: UserPurchase,
    /// The balance of the asset that it brings. Null while the buyer has not paid.
    #[schema(example = 60)]
    balance: Option<i64>,
}

/// Status 200 with the purchase, the same each time, or 202 while the buyer has not paid.
pub struct PurchaseReported(pub PurchaseReceipt);

impl Reply for PurchaseReported {
    fn into_response(self) -> Result<Response<Body>> {
        let PurchaseReceipt { purchase, balance } = self.0;
        let is_pending = purchase.state == PurchaseState::Pending;
        let balance = (!is_pending).then_some(balance);
        let mut response = Json(ReportedPurchase { purchase: purchase.into(), balance }).into_response()?;
        if is_pending {
            *response.status_mut() = StatusCode::ACCEPTED;
        }
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![
                (StatusCode::OK, "The purchase is credited. Finish it in the app."),
                (StatusCode::ACCEPTED, "The buyer has not paid yet. It is credited later."),
            ],
            ..Json::<ReportedPurchase>::describe()
        }
    }
}

/// A signed transaction of the App Store.
pub struct SignedTransaction(pub String);

impl Parameter for SignedTransaction {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let text = text(value)?;
        let text = text.trim();
        if text.len() > LONGEST_TRANSACTION {
            return Err(Fault::new(
                FieldCode::TooLong,
                (
                    format!("must have at most {LONGEST_TRANSACTION} characters"),
                    format!("最多 {LONGEST_TRANSACTION} 个字符"),
                ),
            ));
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'=');
        if text.is_empty() || !text.bytes().all(is_allowed) {
            return Err(Fault::new(
                FieldCode::InvalidFormat,
                ("must be the `jwsRepresentation` of a transaction", "须为交易的 `jwsRepresentation`"),
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({
            "type": "string", "pattern": "^[0-9A-Za-z._=-]+$", "maxLength": LONGEST_TRANSACTION,
            "example": "eyJhbGciOiJFUzI1NiIsIng1YyI6W10fQ.eyJ0cmFuc2FjdGlvbklkIjoiMSJ9.c2lnbmF0dXJl",
        })
    }
}

/// A purchase token of Google Play.
pub struct PurchaseToken(pub String);

impl Parameter for PurchaseToken {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let text = text(value)?;
        let text = text.trim();
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'~');
        if text.len() > LONGEST_TOKEN {
            return Err(Fault::new(
                FieldCode::TooLong,
                (format!("must have at most {LONGEST_TOKEN} characters"), format!("最多 {LONGEST_TOKEN} 个字符")),
            ));
        }
        if !text.is_empty() && text.bytes().all(is_allowed) {
            return Ok(Self(text.to_owned()));
        }
        Err(Fault::new(
            FieldCode::InvalidFormat,
            ("must be the purchase token of Google Play", "须为 Google Play 的购买令牌"),
        ))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({
            "type": "string", "pattern": "^[0-9A-Za-z._:~-]+$", "minLength": 1, "maxLength": LONGEST_TOKEN,
            "example": "abcdefghijklmnop.AO-J1Oz_example",
        })
    }
}
