//! Growth and revenue: figures over days.

use std::{collections::BTreeMap, sync::Arc};

use axum::{body::Body, http::Response};
use jiff::ToSpan;
use maud::Markup;

use crate::{
    app::App,
    domain::operations::{
        active_users::{self, RetentionRow},
        figures::{self, FigureGrouping, FigureName, FigureQuery, FigureRow, parse_day},
    },
    error::{Error, Result},
    http::console::{
        csv,
        request::{ConsoleRequest, ok},
        views::{
            chart::{FigureChart, Series, Unit},
            context::ViewContext,
            format::ShownMoney,
            pages::figures::{self as view, ChannelMoney, Cohort, Figures, Range, Sum},
            parts::GrowthTone,
            texts::Text,
        },
    },
    types::{Currency, Date},
};

/// The ranges that a page offers, in days.
const PRESETS: [u32; 4] = [7, 30, 90, 365];
const DEFAULT_PRESET: u32 = 30;
/// Longer ranges are shown by week, and the longest by month, so that a chart stays legible.
const MOST_DAYS: i32 = 100;
const MOST_WEEKS: i32 = 750;

/// A chart of a page.
struct ChartSpec {
    id: &'static str,
    title: Text,
    /// Money has a chart for each currency.
    is_money: bool,
    series: &'static [(FigureName, Text)],
}

/// The contents of a page.
struct PageSpec {
    /// The figures whose sums stand above the charts.
    sums: &'static [(FigureName, Text)],
    charts: &'static [ChartSpec],
    /// The steps from a request for a code to a new user.
    funnel: &'static [(FigureName, Text)],
    has_retention: bool,
    has_channels: bool,
}

const GROWTH: PageSpec = PageSpec {
    sums: &[(FigureName::NewUsers, Text::NewUsers), (FigureName::Castings, Text::CastingsToday)],
    charts: &[
        ChartSpec {
            id: "users-by-day",
            title: Text::Users,
            is_money: false,
            series: &[(FigureName::ActiveUsers, Text::ActiveUsers), (FigureName::NewUsers, Text::NewUsers)],
        },
        ChartSpec {
            id: "castings-by-day",
            title: Text::CastingsToday,
            is_money: false,
            series: &[(FigureName::Castings, Text::CastingsToday)],
        },
    ],
    funnel: &[
        (FigureName::CodesAsked, Text::FunnelAsked),
        (FigureName::CodesSent, Text::FunnelSent),
        (FigureName::CodesVerified, Text::FunnelVerified),
        (FigureName::NewUsers, Text::NewUsers),
    ],
    has_retention: true,
    has_channels: false,
};

const REVENUE: PageSpec = PageSpec {
    sums: &[
        (FigureName::Revenue, Text::Revenue),
        (FigureName::Refunds, Text::RefundedMoney),
        (FigureName::CoinsSold, Text::CoinsSold),
        (FigureName::CoinsUsed, Text::CoinsUsed),
    ],
    charts: &[
        ChartSpec {
            id: "revenue-by-day",
            title: Text::Revenue,
            is_money: true,
            series: &[(FigureName::Revenue, Text::Revenue), (FigureName::Refunds, Text::RefundedMoney)],
        },
        ChartSpec {
            id: "coins-by-day",
            title: Text::CoinsSoldAndUsed,
            is_money: false,
            series: &[(FigureName::CoinsSold, Text::CoinsSold), (FigureName::CoinsUsed, Text::CoinsUsed)],
        },
    ],
    funnel: &[],
    has_retention: false,
    has_channels: true,
};

impl PageSpec {
    fn names(&self) -> Vec<FigureName> {
        let charted = self.charts.iter().flat_map(|chart| chart.series).map(|(name, _)| *name);
        let funnel = self.funnel.iter().map(|(name, _)| *name);
        let mut names: Vec<_> = self.sums.iter().map(|(name, _)| *name).chain(charted).chain(funnel).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

pub async fn growth(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    show(&console, &GROWTH, view::growth).await
}

pub async fn revenue(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    show(&console, &REVENUE, view::revenue).await
}

pub async fn growth_csv(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    export(&console, &GROWTH, "growth").await
}

pub async fn revenue_csv(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    export(&console, &REVENUE, "revenue").await
}

async fn show(
    console: &ConsoleRequest,
    spec: &'static PageSpec,
    render: fn(&ViewContext, &Figures<'_>) -> Markup,
) -> Result<Response<Body>> {
    let (range, query) = read_range(console, &spec.names())?;
    let cx = console.view()?;
    let before = former(&query);
    let shown = query.clone();
    let (rows, former_rows, cohorts) = console
        .context
        .report(move |app| {
            let cohorts = if spec.has_retention { cohorts(app)? } else { Vec::new() };
            Ok((figures::list(&app.core, &shown)?, figures::list(&app.core, &before)?, cohorts))
        })
        .await?;
    let currencies = figures::currencies(rows.iter().chain(&former_rows));
    let sums = spec.sums.iter().flat_map(|(name, text)| {
        let each = currencies_of(name.is_money(), &currencies);
        each.into_iter().map(|currency| Sum {
            name: *text,
            value: sum(&rows, *name, currency),
            before: sum(&former_rows, *name, currency),
            currency,
            tone: if *name == FigureName::Refunds { GrowthTone::Bad } else { GrowthTone::Good },
        })
    });
    let charts = spec.charts.iter().flat_map(|chart| {
        let each = currencies_of(chart.is_money, &currencies);
        each.into_iter().map(|currency| chart_of(&cx, chart, currency, &query, &rows))
    });
    let page = Figures {
        sums: sums.collect(),
        charts: charts.collect(),
        funnel: spec.funnel.iter().map(|(name, text)| (*text, sum(&rows, *name, None))).collect(),
        cohorts,
        money: if spec.has_channels { money_by_channel(&rows) } else { Vec::new() },
        through: query.to.to_string(),
        range,
    };
    ok(render(&cx, &page))
}

/// Returns the currencies in which a figure is shown, one after the other. Amounts of different ones are never added.
pub(super) fn currencies_of(is_money: bool, currencies: &[Currency]) -> Vec<Option<Currency>> {
    if is_money { currencies.iter().copied().map(Some).collect() } else { vec![None] }
}

fn sum(rows: &[FigureRow], name: FigureName, currency: Option<Currency>) -> i64 {
    rows.iter().filter(|row| row.name == name && row.currency() == currency).map(|row| row.value).sum()
}

fn money_by_channel(rows: &[FigureRow]) -> Vec<ChannelMoney> {
    let mut channels: BTreeMap<(Currency, String), [i64; 2]> = BTreeMap::new();
    for row in rows {
        let (Some(part), is_refund) = (row.money_part(), row.name == FigureName::Refunds) else { continue };
        let [revenue, refunds] = channels.entry((part.currency, part.channel)).or_default();
        *(if is_refund { refunds } else { revenue }) += row.value;
    }
    let shown = |((currency, channel), [revenue, refunds]): ((Currency, String), [i64; 2])| ChannelMoney {
        channel,
        revenue: ShownMoney(revenue, currency),
        refunds: ShownMoney(refunds, currency),
    };
    channels.into_iter().map(shown).collect()
}

/// Returns the weeks of registration with the shares of users that came back.
fn cohorts(app: &App) -> Result<Vec<Cohort>> {
    let core = &app.core;
    let today = core.config.limits.time_zone.today(core.clock.now());
    let weeks = active_users::retention(core, today)?;
    let Some(first) = weeks.first().map(|row| row.week) else { return Ok(Vec::new()) };
    let days = (Some(first), Some(today));
    let query = FigureQuery::new(core, Some(vec![FigureName::NewUsers]), days, FigureGrouping::Week)?;
    let registered: BTreeMap<Date, i64> =
        figures::list(core, &query)?.into_iter().map(|row| (row.period, row.value)).collect();
    let cohort = |row: RetentionRow| {
        let users = registered.get(&row.week).copied().unwrap_or(0);
        let share = |kept: i64| (kept * 1000).checked_div(users).unwrap_or(0).min(1000);
        Cohort { week: row.week.to_string(), users, kept: row.kept.into_iter().map(share).collect() }
    };
    Ok(weeks.into_iter().map(cohort).filter(|cohort| cohort.users > 0).collect())
}

async fn export(console: &ConsoleRequest, spec: &'static PageSpec, name: &str) -> Result<Response<Body>> {
    let (_, query) = read_range(console, &spec.names())?;
    figures_csv(console, query, name).await
}

/// Responds with figures by day.
pub(super) async fn figures_csv(console: &ConsoleRequest, query: FigureQuery, name: &str) -> Result<Response<Body>> {
    let query = FigureQuery { grouping: FigureGrouping::Day, ..query };
    let rows = console.context.report(move |app| figures::list(&app.core, &query)).await?;
    let header = ["day", "figure", "part", "value"].map(ToOwned::to_owned).to_vec();
    let line =
        |row: FigureRow| vec![row.period.to_string(), row.name.name().to_owned(), row.key, row.value.to_string()];
    csv::respond(name, Body::from(csv::file([header].into_iter().chain(rows.into_iter().map(line)))))
}

/// Reads the range of the address. With a fault in it, the page shows the default range and the fault.
pub(super) fn read_range(console: &ConsoleRequest, names: &[FigureName]) -> Result<(Range, FigureQuery)> {
    let core = &console.context.app.core;
    let today = core.config.limits.time_zone.today(core.clock.now());
    let preset = |days: u32| (today.checked_sub((i64::from(days) - 1).days()).ok(), Some(today));
    let typed = (console.query.find("from"), console.query.find("to"));
    let asked = console.query.find("days").and_then(|days| days.parse().ok()).filter(|days| PRESETS.contains(days));
    let days = match typed {
        (None, None) => Some(asked.unwrap_or(DEFAULT_PRESET)),
        _ => None,
    };
    let parse = |name, text: Option<&str>| text.map(parse_day).transpose().map_err(|fault| Error::field(name, fault));
    let parsed = match days {
        Some(days) => Ok(preset(days)),
        None => parse("from", typed.0).and_then(|from| Ok((from, parse("to", typed.1)?))),
    };
    let made = parsed.and_then(|days| FigureQuery::new(core, Some(names.to_vec()), days, FigureGrouping::Day));
    let (mut query, error) = match made {
        Ok(query) => (query, None),
        Err(error) => {
            let fault = console.fault_of(&error, "from").or_else(|| console.fault_of(&error, "to"));
            let query = FigureQuery::new(core, Some(names.to_vec()), preset(DEFAULT_PRESET), FigureGrouping::Day)?;
            (query, fault)
        }
    };
    let length = length(&query);
    query.grouping = if length <= MOST_DAYS {
        FigureGrouping::Day
    } else if length <= MOST_WEEKS {
        FigureGrouping::Week
    } else {
        FigureGrouping::Month
    };
    let shown = |typed: Option<&str>, day: Date| match typed {
        Some(typed) if error.is_some() => typed.to_owned(),
        _ => day.to_string(),
    };
    let range = Range { from: shown(typed.0, query.from), to: shown(typed.1, query.to), days, error };
    Ok((range, query))
}

/// Returns the number of days of a query.
fn length(query: &FigureQuery) -> i32 {
    query.to.since(query.from).map_or(0, |span| span.get_days()) + 1
}

/// Returns the query of the range before, which is as long.
fn former(query: &FigureQuery) -> FigureQuery {
    let days = i64::from(length(query)).days();
    let (from, to) = (query.from.checked_sub(days), query.to.checked_sub(days));
    FigureQuery { from: from.unwrap_or(query.from), to: to.unwrap_or(query.to), ..query.clone() }
}

/// Returns the first days of the periods of a query.
pub(super) fn periods(query: &FigureQuery) -> Vec<Date> {
    let days = query.from.series(1.day()).take_while(|day| *day <= query.to);
    let mut periods: Vec<_> = days.map(|day| query.grouping.start_of(day)).collect();
    periods.dedup();
    periods
}

/// Returns the name of the periods of a query.
pub(super) const fn period_text(query: &FigureQuery) -> Text {
    match query.grouping {
        FigureGrouping::Day => Text::Day,
        FigureGrouping::Week => Text::Week,
        FigureGrouping::Month => Text::Month,
    }
}

/// Returns one value for each period: the sum of the rows that belong to the series.
pub(super) fn values(
    periods: &[Date],
    rows: &[FigureRow],
    is_included: impl Fn(&FigureRow) -> bool,
) -> Vec<Option<i64>> {
    let mut sums: BTreeMap<Date, i64> = BTreeMap::new();
    for row in rows.iter().filter(|row| is_included(row)) {
        *sums.entry(row.period).or_default() += row.value;
    }
    periods.iter().map(|period| Some(sums.get(period).copied().unwrap_or(0))).collect()
}

fn chart_of(
    cx: &ViewContext,
    spec: &ChartSpec,
    currency: Option<Currency>,
    query: &FigureQuery,
    rows: &[FigureRow],
) -> FigureChart<'static> {
    let periods = periods(query);
    let series = spec.series.iter().map(|(name, text)| Series {
        name: match currency {
            Some(currency) => format!("{} ({currency})", cx.t(*text)),
            None => cx.t(*text).to_owned(),
        },
        values: values(&periods, rows, |row| row.name == *name && row.currency() == currency),
    });
    FigureChart {
        id: match currency.filter(|currency| *currency != Currency::CNY) {
            Some(currency) => format!("{}-{}", spec.id, currency.lower_case()).into(),
            None => spec.id.into(),
        },
        title: spec.title,
        unit: currency.map_or(Unit::Count, Unit::Money),
        label: period_text(query),
        series: series.collect(),
        labels: periods.iter().map(ToString::to_string).collect(),
        has_bars: true,
    }
}
