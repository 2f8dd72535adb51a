//! The overview.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    app::App,
    domain::{
        identity::users,
        money::payments::orders::{self, OrderFilter},
        operations::{alerts, health::HealthSnapshot},
    },
    error::Result,
    http::console::{
        request::{ConsoleRequest, ok},
        views::{
            format::{ShownFen, bytes},
            pages::overview::{self, AlertRow, HealthLine, Overview, WaitingOrder},
            texts::Text,
        },
    },
    providers::payment::OrderState,
    types::PageRequest,
};

/// Orders in review that the overview shows.
const WAITING_ORDERS: u32 = 5;

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let overview = console.context.report(collect).await?;
    ok(overview::page(&console.view()?, &overview))
}

pub async fn refresh(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let overview = console.context.report(collect).await?;
    ok(overview::live(&console.view()?, &overview))
}

fn collect(app: &App) -> Result<Overview<'static>> {
    let snapshot = HealthSnapshot::collect(&app.health)?;
    let active = app.core.store.read(alerts::active_in)?;
    let filter = OrderFilter { state: Some(OrderState::Review), user: None };
    let waiting = orders::list(&app.core, filter, PageRequest::of_newest(WAITING_ORDERS))?;
    let is_new = !app.core.store.read(users::exist_in)?;
    Ok(Overview {
        taken_at: snapshot.at,
        figures: Vec::new(),
        alerts: active
            .iter()
            .map(|(rule, alert)| AlertRow { rule: rule.clone(), detail: alert.detail.clone(), since: alert.since() })
            .collect(),
        health: health_lines(app, &snapshot),
        waiting_orders: waiting
            .items
            .into_iter()
            .map(|order| WaitingOrder {
                order_no: order.order_no,
                amount: ShownFen(order.amount.as_fen()),
                reason: order.reason.unwrap_or_default(),
                since: order.created_at,
            })
            .collect(),
        charts: Vec::new(),
        is_new,
    })
}

fn health_lines(app: &App, snapshot: &HealthSnapshot) -> Vec<HealthLine> {
    let line = |name, state: &str, detail: String| HealthLine { name, state: state.to_owned(), detail };
    let outages = app.health.outages(snapshot);
    let down: Vec<_> = outages.iter().filter(|(_, outage)| outage.is_some()).map(|(name, _)| *name).collect();
    let database = if snapshot.integrity.is_damaged() { "damaged" } else { "sound" };
    vec![
        line(Text::Ledger, snapshot.ledger_state().name(), String::new()),
        line(Text::Backups, snapshot.backup_state(&app.core.config).name(), String::new()),
        line(Text::Providers, if down.is_empty() { "ok" } else { "failed" }, down.join(", ")),
        line(
            Text::Database,
            database,
            format!(
                "{} · {} / {}",
                bytes(snapshot.database_bytes),
                bytes(snapshot.disk_free),
                bytes(snapshot.disk_total)
            ),
        ),
    ]
}
