//! Purchases in app stores: the list, one purchase, and the question to its store.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::orders::entry_row;
use crate::{
    app::App,
    domain::{
        identity::users,
        money::{
            ledger::{self, Asset},
            purchases::{
                messages::StoreMessage,
                purchase::{PurchaseState, StorePurchase},
                queries,
                records::{self, PurchaseFilter},
            },
        },
    },
    error::Result,
    http::console::{
        csv::{self, CsvList},
        request::{ConsoleRequest, ok, rows},
        views::{
            format::ShownMoney,
            lists::Listing,
            pages::purchases::{self as view, PurchaseList, PurchaseMessageRow, PurchasePage, PurchaseRow},
            texts::{self, Text},
        },
    },
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (filter, errors) = read_filter(&console);
    let (state, user) = (console.query.get("state").to_owned(), console.query.get("user").to_owned());
    let page = console.page_request();
    let listing = if let Some(rejected) = Listing::rejected(&errors) {
        rejected
    } else {
        let found = console.context.report(move |app| records::list(&app.core, filter, page)).await?;
        Listing::Rows(rows(page, found, purchase_row))
    };
    ok(view::list(&console.view()?, &PurchaseList { state, user, errors, listing }))
}

/// Reads the filter of the address, with its faults by field.
fn read_filter(console: &ConsoleRequest) -> (PurchaseFilter, Vec<(String, String)>) {
    let mut faults = Vec::new();
    let user = console.user_filter(&mut faults);
    let state = console.choice_filter("state", PurchaseState::from_name, &mut faults);
    (PurchaseFilter { user, state }, faults)
}

pub async fn export(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (filter, faults) = read_filter(&console);
    csv::require_valid(&faults)?;
    let read = move |app: &App, page| {
        Ok(records::list(&app.core, filter, page)?.items.into_iter().map(purchase_row).collect())
    };
    let list = CsvList {
        page: "purchases".to_owned(),
        columns: view::PURCHASE.to_vec(),
        cells: view::cells,
        next: csv::numbered(read),
    };
    csv::send(console, list).await
}

/// Returns what a purchase brings: coins for a product that is unknown here.
fn asset_of(purchase: &StorePurchase) -> Asset {
    purchase.product.as_ref().map_or(Asset::Coin, |product| product.asset)
}

pub fn purchase_row(purchase: StorePurchase) -> PurchaseRow {
    let amount = purchase.price_in_hundredths().map(|(price, currency)| ShownMoney(price, currency));
    PurchaseRow {
        id: purchase.id.to_string(),
        store: purchase.key.store.name().to_owned(),
        is_test: purchase.is_test(),
        user_id: purchase.user.map(|user| user.to_string()),
        asset: asset_of(&purchase).name().to_owned(),
        product: purchase.product.map(|product| product.id).or(purchase.store_product),
        amount,
        count: purchase.coin_count + purchase.bonus,
        state: purchase.state.name().to_owned(),
        reason: purchase.reason,
        created_at: purchase.created_at,
    }
}

fn message_row(message: StoreMessage) -> PurchaseMessageRow {
    PurchaseMessageRow {
        id: message.message_id,
        kind: message.kind,
        verdict: message.verdict,
        received_at: message.received_at,
    }
}

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(view::page(&console.view()?, &collect(&console).await?))
}

async fn collect(console: &ConsoleRequest) -> Result<PurchasePage> {
    let number = console.parameter("id").to_owned();
    let (purchase, shown) = console.context.report(move |app| collect_purchase(app, &number)).await?;
    if let Some(user) = purchase.user {
        console.context.meta.subject.get_or_init(|| user);
    }
    Ok(shown)
}

fn collect_purchase(app: &App, number: &str) -> Result<(StorePurchase, PurchasePage)> {
    let details = records::find_details(&app.core, number)?;
    let purchase = details.purchase;
    let nickname = purchase.user.map(|user| app.core.store.read(|tx| users::profile_in(tx, user)));
    let balance = purchase.user.map(|user| ledger::balance(&app.core, user, asset_of(&purchase))).transpose()?;
    let times = [
        (Text::EventPurchased, purchase.purchased_at),
        (Text::EventCreated, Some(purchase.created_at)),
        (Text::EventCredited, purchase.credited_at),
        (Text::EventRefunded, purchase.revoked_at),
    ];
    let mut times: Vec<_> = times.into_iter().filter_map(|(name, at)| at.map(|at| (name, at))).collect();
    times.sort_by_key(|(_, at)| at.0 / 1000);
    let shown = PurchasePage {
        row: purchase_row(purchase.clone()),
        nickname: nickname.and_then(Result::ok).map(|profile| profile.nickname).unwrap_or_default(),
        store_number: purchase.store_number().map(ToOwned::to_owned),
        store_product: purchase.store_product.clone(),
        quantity: purchase.quantity,
        country: purchase.country.clone(),
        coins_returned: purchase.returned + purchase.bonus_returned,
        coins_written_off: purchase.written_off + purchase.bonus_written_off,
        balance,
        next_call_at: purchase.due_at,
        times,
        messages: details.messages.into_iter().map(message_row).collect(),
        entries: details.entries.into_iter().map(entry_row).collect(),
    };
    Ok((purchase, shown))
}

/// Asks the App Store about all purchases of the buyer, and shows those of the user.
pub async fn history(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let number = console.parameter("id").to_owned();
    let page = format!("purchases/{number}");
    let found = match console.context.blocking(move |app| queries::history(&app.purchases, &number)).await {
        Ok(found) => found,
        failed => return console.finish(&page, failed),
    };
    let (all, known) = (found.len(), found.iter().filter(|found| found.purchase.is_some()).count());
    let user = found.iter().find_map(|found| found.purchase.as_ref()?.user);
    let list = user.map_or(page, |user| format!("purchases?user={user}"));
    console.done(&list, &texts::buyer_history(console.language(), all, known))
}

/// Asks the store, and shows the purchase as it is then.
pub async fn query(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let number = console.parameter("id").to_owned();
    let page = format!("purchases/{number}");
    match console.context.blocking(move |app| queries::query(&app.purchases, &number)).await {
        Ok(_) => console.done(&page, console.text(Text::ActionDone)),
        Err(error) => console.rejected(&page, &error),
    }
}
