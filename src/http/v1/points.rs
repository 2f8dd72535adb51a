//! `/api/v1/points`: the balance that pays for castings, and its ledger.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::money::{
        ledger::{Asset, EntryKind, LedgerEntry},
        points::{self, Exchange},
    },
    error::Result,
    http::{
        cursor_page::{CursorList, CursorPage, span},
        params::{Nothing, PageSize, Rules, parameters},
        reply::{Json, Replayable},
        request_context::RequestContext,
        v0::coin::CoinCount,
    },
    types::{Cursor, Timestamp},
};

const LEDGER: CursorList = CursorList("points");

parameters! {
    ExchangeCoinsParams(fields) {
        coins: CoinCount = fields.required("coins", "Coins to exchange.");
    }

    ListPointEntriesParams(fields) {
        limit: Option<PageSize> = fields.optional("limit", "Maximum number of entries.");
        before: Option<i64> = {
            let cursor = fields.optional("cursor", "`nextCursor` of the previous response.");
            fields.cross_field(cursor, before)
        };
    }
}

/// The caller's point balance.
#[derive(Serialize, ToSchema)]
pub struct PointBalance {
    #[schema(example = 90)]
    balance: i64,
}

/// An exchange of coins for points, and the balances after it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoinsExchanged {
    #[schema(example = 10)]
    coins: i64,
    #[schema(example = 100)]
    points: i64,
    #[schema(example = 50)]
    coin_balance: i64,
    #[schema(example = 190)]
    point_balance: i64,
}

/// One change of the balance.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PointEntry {
    /// Counts the caller's entries from 1.
    #[schema(example = 2)]
    seq: i64,
    /// The entry's number in the user's point account.
    #[schema(example = 2)]
    sequence: i64,
    asset: Asset,
    /// Points added; negative for points deducted.
    #[schema(example = -10)]
    delta: i64,
    #[schema(example = 90)]
    balance_after: i64,
    kind: EntryKind,
    /// `session:` and the id of the paid session, which may have been deleted since; `order:` and the number of an order.
    #[schema(example = "session:9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061")]
    r#ref: Option<String>,
    created_at: Timestamp,
}

impl From<LedgerEntry> for PointEntry {
    fn from(entry: LedgerEntry) -> Self {
        Self {
            seq: entry.sequence,
            sequence: entry.sequence,
            asset: entry.asset,
            delta: entry.delta,
            balance_after: entry.balance_after,
            kind: entry.kind,
            // Other references hold keyed hashes of addresses and are not exposed.
            r#ref: entry
                .reference
                .filter(|reference| ["session:", "order:"].iter().any(|prefix| reference.starts_with(prefix))),
            created_at: entry.created_at,
        }
    }
}

pub async fn balance(context: RequestContext, _: Nothing) -> Result<Json<PointBalance>> {
    Ok(Json(PointBalance { balance: points::balance(&context.app.core, context.user()?)? }))
}

pub async fn exchange(
    context: RequestContext,
    ExchangeCoinsParams { coins: CoinCount(coins) }: ExchangeCoinsParams,
) -> Result<Replayable<CoinsExchanged>> {
    let user = context.user()?;
    let shown = |&Exchange { coins, points, coin_balance, point_balance }: &Exchange| CoinsExchanged {
        coins,
        points,
        coin_balance,
        point_balance,
    };
    context.respond_once(StatusCode::OK, shown, |app, once| points::exchange(&app.core, user, coins, once)).await
}

pub async fn entries(context: RequestContext, params: ListPointEntriesParams) -> Result<Json<CursorPage<PointEntry>>> {
    let span = span(&context, params.before, params.limit);
    let slice = points::entries(&context.app.core, context.user()?, span)?;
    LEDGER.page(&context, slice, Into::into)
}

fn before(rules: &Rules<'_>, cursor: Option<Cursor>) -> Result<Option<i64>> {
    LEDGER.position(rules.context, cursor)
}
