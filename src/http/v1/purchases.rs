//! `/api/v1/purchases` and `/api/v1/payment/account-token`: purchases in app stores.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::money::purchases::{accounts, apple, google, records},
    error::Result,
    http::{
        admin::products::StoreId,
        cursor_page::{CursorList, CursorPage, span},
        params::{Flag, Nothing, PageSize, Rules, parameters},
        reply::Json,
        request_context::RequestContext,
        user_purchase::{PurchaseReported, PurchaseToken, SignedTransaction, UserPurchase},
    },
    providers::payment::purchase::plain_token,
    types::Cursor,
};

const PURCHASES: CursorList = CursorList("purchases");

parameters! {
    ReportApplePurchaseParams(fields) {
        transaction: SignedTransaction = fields.required("signedTransaction", "The `jwsRepresentation` of the StoreKit 2 transaction.");
        consent: Option<Flag> = fields.optional("sharesConsumption", "The user's consent that Apple is told how much of a purchase was used, when a refund is asked for. Absent: unchanged.");
    }

    ReportGooglePurchaseParams(fields) {
        product_id: StoreId = fields.required("productId", "The product id at Google Play.");
        token: PurchaseToken = fields.required("purchaseToken", "The purchase token.");
    }

    ListOwnPurchasesParams(fields) {
        limit: Option<PageSize> = fields.optional("limit", "Maximum number of purchases.");
        before: Option<i64> = {
            let cursor = fields.optional("cursor", "`nextCursor` of the previous response.");
            fields.cross_field(cursor, before)
        };
    }
}

/// The token that the app passes to a store, so that a purchase names its user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountToken {
    /// `appAccountToken` of `StoreKit`.
    #[schema(example = "7e3fb20b-4cdb-47cc-936d-99d65f608138")]
    account_token: String,
    /// `setObfuscatedAccountId` of Google Play Billing.
    #[schema(example = "7e3fb20b4cdb47cc936d99d65f608138")]
    obfuscated_account_id: String,
}

pub async fn account_token(context: RequestContext, _: Nothing) -> Result<Json<AccountToken>> {
    let pending = accounts::account_token(&context.app.core, context.user()?)?;
    let account_token = context.committed(pending).await?;
    let obfuscated_account_id = plain_token(&account_token);
    Ok(Json(AccountToken { account_token, obfuscated_account_id }))
}

pub async fn report_apple(context: RequestContext, params: ReportApplePurchaseParams) -> Result<PurchaseReported> {
    let (user, SignedTransaction(jws)) = (context.user()?, params.transaction);
    let consent = params.consent.map(|Flag(consent)| consent);
    Ok(PurchaseReported(context.blocking(move |app| apple::report(&app.purchases, user, &jws, consent)).await?))
}

pub async fn report_google(context: RequestContext, params: ReportGooglePurchaseParams) -> Result<PurchaseReported> {
    let (user, StoreId(product), PurchaseToken(token)) = (context.user()?, params.product_id, params.token);
    Ok(PurchaseReported(context.blocking(move |app| google::report(&app.purchases, user, &product, &token)).await?))
}

pub async fn list(context: RequestContext, params: ListOwnPurchasesParams) -> Result<Json<CursorPage<UserPurchase>>> {
    let span = span(&context, params.before, params.limit);
    let slice = records::of_user(&context.app.core, context.user()?, span)?;
    PURCHASES.page(&context, slice, Into::into)
}

fn before(rules: &Rules<'_>, cursor: Option<Cursor>) -> Result<Option<i64>> {
    PURCHASES.position(rules.context, cursor)
}
