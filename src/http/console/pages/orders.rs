//! Orders: the list, one order, its callbacks, and decisions about it.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::bulk::{BulkForm, or_rejected};
use crate::{
    app::App,
    domain::{
        identity::users,
        money::{
            ledger,
            payments::{
                order_details::{self, OrderDetails},
                orders, reconcile,
            },
        },
        operations::admins::roles::Role,
    },
    error::Result,
    http::console::{
        acts,
        request::{ConsoleRequest, ok},
        views::{
            context::order_href,
            layout::Place,
            pages::orders::{self as view, OrderPage},
            texts::{self, Text},
            words::Worded,
        },
    },
};

/// Asks the provider about the picked orders.
pub async fn bulk(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    or_rejected(&console, try_bulk(&console).await).await
}

async fn try_bulk(console: &ConsoleRequest) -> Result<Response<Body>> {
    let mut form = BulkForm::read(console, Place::Orders)?;
    if form.act != "query" {
        return Err(form.unknown_act());
    }
    for number in form.ids.clone() {
        let asked = number.clone();
        let asked = console.context.blocking(move |app| {
            let user = orders::find(&app.payments, &asked)?.user;
            Ok((user, reconcile::inquire(&app.payments, &asked).map(|inquiry| inquiry.outcome)))
        });
        let (user, outcome) = match asked.await {
            Ok((user, outcome)) => (Some(user), outcome),
            Err(error) => (None, Err(error)),
        };
        let language = console.language();
        let told = outcome.map(|outcome| {
            let state = outcome.verdict.in_words(language).1;
            let reason = outcome.reason.map(|reason| texts::code(language, reason).to_owned());
            Some(reason.map_or_else(|| state.to_owned(), |reason| format!("{state}: {reason}")))
        });
        form.add(&number, Some(order_href(&number)), user, told).await?;
    }
    form.finish()
}

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(view::page(&console.view()?, &collect(&console).await?))
}

async fn collect(console: &ConsoleRequest) -> Result<OrderPage> {
    let number = console.parameter("orderNo").to_owned();
    let role = console.context.admin()?.role();
    let shown = console.context.report(move |app| collect_order(app, &number, role)).await?;
    console.context.meta.subject.get_or_init(|| shown.details.order.user);
    Ok(shown)
}

fn collect_order(app: &App, number: &str, role: Role) -> Result<OrderPage> {
    let file = order_details::find(&app.payments, number)?;
    let order = file.order.clone().seen_by(role);
    let nickname = app.core.store.read(|tx| users::profile_in(tx, order.user));
    let times = [
        (Text::EventCreated, Some(order.created_at)),
        (Text::EventPaid, order.paid_at),
        (Text::EventCredited, order.credited_at),
        (Text::EventRefunded, order.refunded_at),
        (Text::EventSettled, order.settled_at),
        (Text::EventClosed, order.closed_at),
        (Text::EventExpires, Some(order.expires_at)),
    ];
    let mut times: Vec<_> = times.into_iter().filter_map(|(name, at)| at.map(|at| (name, at))).collect();
    // Providers report whole seconds, so that a payment may seem to be older than its order.
    times.sort_by_key(|(_, at)| at.0 / 1000);
    let balance = ledger::balance(&app.core, order.user, order.asset)?;
    let details = OrderDetails { order, ..file };
    let nickname = nickname.map(|profile| profile.nickname).unwrap_or_default();
    Ok(OrderPage { details, nickname, balance, times, inquiry: None })
}

/// Asks the provider, and shows its answer with the order as it is then.
pub async fn query(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let number = console.parameter("orderNo").to_owned();
    let asked = console.context.blocking(move |app| reconcile::inquire(&app.payments, &number)).await;
    let inquiry = match asked {
        Ok(inquiry) => inquiry,
        Err(error) => return acts::reject(&console, error).await,
    };
    let shown = OrderPage { inquiry: Some(inquiry), ..collect(&console).await? };
    ok(view::page(&console.view()?, &shown))
}
