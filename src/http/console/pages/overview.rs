//! The overview.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use jiff::ToSpan;

use super::figures::currencies_of;

use crate::{
    app::App,
    domain::{
        identity::users,
        money::payments::orders::{self, OrderFilter},
        operations::{
            alerts,
            figures::{self, FigureGrouping, FigureName, FigureQuery, FigureRow},
            health::HealthSnapshot,
            request_tallies::RequestTally,
        },
    },
    error::Result,
    http::console::{
        request::{ConsoleRequest, ok},
        views::{
            chart::{FigureChart, Series, Unit},
            context::ViewContext,
            format::{ShownMoney, bytes, local},
            pages::overview::{self, Overview, TodayFigure, WaitingOrder},
            texts::Text,
        },
    },
    providers::payment::OrderState,
    types::PageRequest,
};

/// Days in the small line of a figure.
const LINE_DAYS: i64 = 14;
/// Minutes of one point of a chart.
const CHART_MINUTES: i64 = 10;
/// Orders in review that the overview shows.
const WAITING_ORDERS: u32 = 5;

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let overview = console.context.report(collect).await?;
    let cx = console.view()?;
    let charts = request_charts(&cx, &console.context.app);
    ok(overview::page(&cx, &Overview { charts, ..overview }))
}

pub async fn refresh(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let overview = console.context.report(collect).await?;
    ok(overview::live(&console.view()?, &overview))
}

fn collect(app: &App) -> Result<Overview<'static>> {
    let snapshot = HealthSnapshot::collect(&app.health)?;
    let filter = OrderFilter { state: Some(OrderState::Review), ..OrderFilter::default() };
    let waiting = orders::list(&app.core, filter, PageRequest::of_newest(WAITING_ORDERS))?;
    let is_new = !app.core.store.read(users::any_in)?;
    let outages = app.health.outages(&snapshot);
    Ok(Overview {
        taken_at: snapshot.at,
        figures: today(app)?,
        alerts: app.core.store.read(alerts::active_in)?,
        ledger: snapshot.ledger_state(),
        backups: snapshot.backup_state(&app.core.config),
        down: outages.iter().filter(|(_, outage)| outage.is_some()).map(|(name, _)| *name).collect(),
        is_damaged: snapshot.integrity.is_damaged(),
        database: format!(
            "{} · {} / {}",
            bytes(snapshot.database_bytes),
            bytes(snapshot.disk_free),
            bytes(snapshot.disk_total)
        ),
        waiting_orders: waiting
            .items
            .into_iter()
            .map(|order| WaitingOrder {
                order_no: order.order_no,
                amount: ShownMoney(order.amount.as_fen(), order.currency),
                reason: order.reason.unwrap_or_default(),
                since: order.created_at,
            })
            .collect(),
        charts: Vec::new(),
        is_new,
    })
}

/// Returns the figures of today beside those of yesterday.
fn today(app: &App) -> Result<Vec<TodayFigure>> {
    const SHOWN: [(FigureName, Text, &str); 6] = [
        (FigureName::NewUsers, Text::NewUsers, "growth"),
        (FigureName::ActiveUsers, Text::ActiveUsers, "growth"),
        (FigureName::Castings, Text::CastingsToday, "growth"),
        (FigureName::Revenue, Text::RevenueToday, "revenue"),
        (FigureName::Refunds, Text::RefundsToday, "revenue"),
        (FigureName::RequestErrors, Text::Errors, "network-log?status=failed"),
    ];
    let core = &app.core;
    let today = core.config.limits.time_zone.today(core.clock.now());
    let days: Vec<_> = (0..LINE_DAYS).rev().filter_map(|ago| today.checked_sub(ago.days()).ok()).collect();
    let names = SHOWN.map(|(name, ..)| name).to_vec();
    let range = (days.first().copied(), Some(today));
    let rows = figures::list(core, &FigureQuery::new(core, Some(names), range, FigureGrouping::Day)?)?;
    let figure = |(name, text, path), currency| {
        let is_of = |row: &FigureRow, day| row.name == name && row.period == day && row.currency() == currency;
        let of_day = |day| rows.iter().filter(|row| is_of(row, day)).map(|row| row.value).sum();
        let line: Vec<i64> = days.iter().map(|day| of_day(*day)).collect();
        let last = |back: usize| line.iter().rev().nth(back).copied().unwrap_or(0);
        TodayFigure { name: text, value: last(0), yesterday: last(1), currency, path, line }
    };
    let currencies = figures::currencies(&rows);
    let with_currencies = SHOWN.into_iter().flat_map(|shown| {
        currencies_of(shown.0.is_money(), &currencies).into_iter().map(move |currency| (shown, currency))
    });
    Ok(with_currencies.map(|(shown, currency)| figure(shown, currency)).collect())
}

/// Returns charts of the requests of the last 24 hours.
fn request_charts(cx: &ViewContext, app: &App) -> Vec<FigureChart<'static>> {
    let periods = app.request_tallies.recent(app.core.clock.now(), CHART_MINUTES);
    let labels: Vec<_> = periods.iter().map(|(at, _)| local(*at, &cx.zone).chars().take(16).collect()).collect();
    let chart = |id: &'static str, title, unit, series| FigureChart {
        id: id.into(),
        title,
        unit,
        label: Text::Time,
        labels: Vec::clone(&labels),
        series,
        has_bars: false,
    };
    let series = |text: Text, value: &dyn Fn(&RequestTally) -> Option<u64>| Series {
        name: cx.t(text).to_owned(),
        values: periods.iter().map(|(_, tally)| value(tally).and_then(|value| i64::try_from(value).ok())).collect(),
    };
    vec![
        chart(
            "requests",
            Text::Requests24Hours,
            Unit::Count,
            vec![
                series(Text::Requests, &|tally| Some(tally.requests)),
                series(Text::Errors, &|tally| Some(tally.errors)),
            ],
        ),
        chart(
            "latency",
            Text::Latency24Hours,
            Unit::Duration,
            vec![
                series(Text::Median, &|tally| tally.percentile(50)),
                series(Text::Percentile95, &|tally| tally.percentile(95)),
                series(Text::Percentile99, &|tally| tally.percentile(99)),
            ],
        ),
    ]
}
