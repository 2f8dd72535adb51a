//! A purchase in an app store, and the question to its store.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    app::App,
    domain::{
        identity::users,
        money::{
            ledger,
            purchases::{purchase::StorePurchase, queries, records},
        },
    },
    error::Result,
    http::console::{
        acts,
        request::{ConsoleRequest, ok},
        views::{
            context::{Flash, href},
            format::with_query,
            pages::purchases::{self as view, PurchasePage},
            texts::{self, Text, Tone},
        },
    },
};

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
    let balance = purchase.user.map(|user| ledger::balance(&app.core, user, purchase.asset())).transpose()?;
    let times = [
        (Text::EventPurchased, purchase.purchased_at),
        (Text::EventCreated, Some(purchase.created_at)),
        (Text::EventCredited, purchase.credited_at),
        (Text::EventRefunded, purchase.revoked_at),
    ];
    let mut times: Vec<_> = times.into_iter().filter_map(|(name, at)| at.map(|at| (name, at))).collect();
    times.sort_by_key(|(_, at)| at.0 / 1000);
    let shown = PurchasePage {
        purchase: purchase.clone(),
        nickname: nickname.and_then(Result::ok).map(|profile| profile.nickname).unwrap_or_default(),
        balance,
        times,
        messages: details.messages,
        entries: details.entries,
    };
    Ok((purchase, shown))
}

/// Asks the App Store about all purchases of the buyer, and shows those of the user.
pub async fn history(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let number = console.parameter("id").to_owned();
    let found = match console.context.blocking(move |app| queries::history(&app.purchases, &number)).await {
        Ok(found) => found,
        Err(error) => return acts::reject(&console, error).await,
    };
    let (all, known) = (found.len(), found.iter().filter(|found| found.purchase.is_some()).count());
    let text = texts::buyer_history(console.language(), all, known);
    match found.iter().find_map(|found| found.purchase.as_ref()?.user) {
        Some(user) => {
            let list = with_query(&href("purchases"), &[("userId", &user.to_string())]);
            console.redirect_to(&list, &Flash { tone: Tone::Good, text })
        }
        None => console.done(&text),
    }
}
