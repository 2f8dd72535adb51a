//! The overview: figures of today, what waits, health, the last thirty days.

use maud::{Markup, html};

use crate::{
    domain::operations::{
        alerts::ActiveAlerts,
        health::{BackupState, LedgerState},
    },
    http::console::views::{
        chart::{FigureChart, chart},
        context::{Right, ViewContext, href, order_href},
        format::{self, ShownMoney, Timestamp},
        layout::{self, PageBody, Place},
        parts::{self, Stat, stats},
        texts::{self, Text, Tone},
    },
    types::Currency,
};

/// A figure of today so far beside the whole of yesterday. A percentage would fall to −100 % every midnight.
#[derive(Clone, Debug)]
pub struct TodayFigure {
    pub name: Text,
    pub value: i64,
    pub yesterday: i64,
    /// Set for money, which is in hundredths.
    pub currency: Option<Currency>,
    /// The last days, oldest first.
    pub line: Vec<i64>,
    /// The page with more of it, below the console.
    pub path: &'static str,
}

/// An order that waits for a decision.
#[derive(Clone, Debug)]
pub struct WaitingOrder {
    pub order_no: String,
    pub amount: ShownMoney,
    pub reason: String,
    pub since: Timestamp,
}

/// The overview.
#[derive(Clone, Debug)]
pub struct Overview<'a> {
    pub taken_at: Timestamp,
    pub figures: Vec<TodayFigure>,
    pub alerts: ActiveAlerts,
    pub ledger: LedgerState,
    pub backups: BackupState,
    /// The providers that are down.
    pub down: Vec<&'static str>,
    pub is_damaged: bool,
    /// Sizes of the database and the disk.
    pub database: String,
    pub waiting_orders: Vec<WaitingOrder>,
    pub charts: Vec<FigureChart<'a>>,
    /// True on a server without users yet.
    pub is_new: bool,
}

/// Renders the overview.
pub fn page(cx: &ViewContext, overview: &Overview<'_>) -> Markup {
    let body = html! {
        (layout::heading(cx.t(Text::Overview), None, &html! {}))
        @if overview.is_new { (parts::note(Tone::Neutral, &html! { p { strong { (cx.t(Text::NewServer)) } " " (cx.t(Text::NewServerLead)) } })) }
        (live(cx, overview))
        div.columns.charts { @for one in &overview.charts { section.card { (chart(cx, one)) } } }
    };
    let page = PageBody::new(cx.t(Text::Overview), Place::Overview, body).live();
    layout::page(cx, &if overview.charts.is_empty() { page } else { page.with_charts() })
}

/// Renders the part that refreshes itself. Its request is not audited and does not extend the session.
pub fn live(cx: &ViewContext, overview: &Overview<'_>) -> Markup {
    let figures: Vec<_> = overview
        .figures
        .iter()
        .map(|figure| Stat {
            name: figure.name,
            value: format::figure(figure.value, figure.currency),
            detail: html! { (cx.t(Text::Yesterday)) " " (format::figure(figure.yesterday, figure.currency)) },
            href: Some(href(figure.path)),
            line: &figure.line,
        })
        .collect();
    html! {
        div.live id="live" hx-get=(href("fragments/overview")) hx-trigger="every 15s" hx-swap="outerHTML" data-live-region data-signature=(overview.alerts.len()) data-announce=(texts::alerts(cx.language, overview.alerts.len())) {
            @for (rule, alert) in &overview.alerts { (parts::alert(cx, rule, alert, &html! { (cx.t(Text::Since)) " " (cx.ago(alert.since())) })) }
            (stats(cx, &figures))
            div.columns {
                (health(cx, overview))
                @if cx.may(Right::SupportUsers) { (orders(cx, &overview.waiting_orders)) }
            }
            p.hint.taken { (cx.t(Text::AsOf)) " " (cx.time(overview.taken_at)) }
        }
    }
}

fn health(cx: &ViewContext, overview: &Overview<'_>) -> Markup {
    let line =
        |name, detail: &str, state: Markup| html! { li { span { (cx.t(name)) span.hint { (detail) } } (state) } };
    let (providers, database) =
        (if overview.down.is_empty() { "ok" } else { "failed" }, if overview.is_damaged { "damaged" } else { "sound" });
    parts::panel_with(
        "health",
        cx.t(Text::Health),
        &html! {},
        &html! {
            ul.lines {
                (line(Text::Ledger, "", parts::state(cx, &overview.ledger)))
                (line(Text::Backups, "", parts::state(cx, &overview.backups)))
                (line(Text::Providers, &overview.down.join(", "), parts::state(cx, providers)))
                (line(Text::Database, &overview.database, parts::state(cx, database)))
            }
        },
    )
}

fn orders(cx: &ViewContext, orders: &[WaitingOrder]) -> Markup {
    let more = html! { a href=(href("orders?state=review")) { (cx.t(Text::All)) span.sr { ": " (cx.t(Text::OrdersInReview)) } } };
    parts::panel_with(
        "waiting-orders",
        cx.t(Text::OrdersInReview),
        &more,
        &html! {
            @if orders.is_empty() { p.empty { (cx.t(Text::NothingWaits)) } } @else {
                ul.lines { @for order in orders {
                    li {
                        span { a href=(order_href(&order.order_no)) { code { (order.order_no) } } span.hint { (texts::code(cx.language, &order.reason)) " · " (cx.ago(order.since)) } }
                        strong.num { (order.amount.text()) }
                    }
                } }
            }
        },
    )
}
