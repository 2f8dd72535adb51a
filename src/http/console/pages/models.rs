//! Language models: usage and cost, budgets, availability, failed and slow calls.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use axum::{body::Body, http::Response};
use maud::html;

use super::figures::{figures_csv, period_text, periods, read_range, values};
use crate::{
    app::App,
    domain::{
        divination::{
            budget::{self, SLOW_CALL_MS, UsageRow},
            interpretation::{self, CallRecord, Rate},
        },
        operations::{
            admins::roles::Right,
            figures::{self, FigureName, FigureQuery, FigureRow},
        },
    },
    error::Result,
    http::{
        admin::lists::StaffList,
        console::{
            request::{ConsoleRequest, ok},
            views::{
                cells::Column,
                chart::{FigureChart, Series, Unit},
                context::{ViewContext, href},
                format,
                layout::Place,
                list_page::{FilterField, Frame},
                pages::{
                    models::{self as view, BudgetRow, ModelState, ModelUsageRow, ModelsPage, RateRow},
                    rows,
                },
                texts::Text,
            },
        },
        params::{CallChoice, parameters},
        request_context::RequestContext,
    },
    providers::llm::models::GuardedModel,
    types::{Date, MicroAmount, PageRequest, Paginated},
};

/// Failed and slow calls that the page shows.
const CALLS: u32 = 5;
/// Models with a line of their own in a chart; the others share one.
const LINES: usize = 3;
const NAMES: [FigureName; 4] =
    [FigureName::ModelCalls, FigureName::SlowModelCalls, FigureName::ModelTokens, FigureName::ModelCost];
const SLOW: Duration = Duration::from_millis(SLOW_CALL_MS as u64);

/// The rows of a page, as read.
struct Found {
    usage: Vec<UsageRow>,
    figures: Vec<FigureRow>,
    rates: Vec<Rate>,
    spent: budget::Amount,
    failed: Vec<CallRecord>,
    slow: Vec<CallRecord>,
}

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (range, query) = read_range(&console, &NAMES)?;
    let cx = console.view()?;
    let (asked, may_see_users) = (query.clone(), cx.may(Right::SupportUsers));
    let found = console.context.report(move |app| collect(app, &asked, may_see_users)).await?;
    let app = &console.context.app;
    let page = ModelsPage {
        range,
        currency: app.core.config.llm.currency.clone(),
        budgets: budgets(app, found.spent),
        breakers: app.model_calls.models.all().map(model_state).collect(),
        usage: usage(found.usage),
        charts: charts(&cx, &query, &found.figures),
        rates: found.rates.into_iter().map(rate_row).collect(),
        failed: found.failed,
        slow: found.slow,
        through: query.to.to_string(),
    };
    ok(view::page(&cx, &page))
}

pub async fn export(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (_, query) = read_range(&console, &NAMES)?;
    figures_csv(&console, query, "models").await
}

parameters! {
    ListCallsParams(fields) {
        show: Option<CallChoice> = fields.optional("show", "Failed or slow calls.");
    }
}

pub struct CallList;

impl StaffList for CallList {
    type Params = ListCallsParams;
    type Filter = CallChoice;
    type Row = CallRecord;

    const PLACE: Place = Place::Models;
    const TITLE: Text = Text::Interpretations;
    const EMPTY: Text = Text::NoCalls;
    const COLUMNS: &'static [Column<CallRecord>] = rows::CALL;

    fn fields(_: &ViewContext) -> Vec<FilterField> {
        vec![FilterField::new("show", Text::Presets).views(CallChoice::ALL)]
    }

    fn filter(_: &RequestContext, params: ListCallsParams) -> Result<CallChoice> {
        Ok(params.show.unwrap_or(CallChoice::Failed))
    }

    fn read(app: &App, choice: &CallChoice, page: PageRequest) -> Result<Paginated<CallRecord>> {
        match choice {
            CallChoice::Failed => interpretation::list_failed(&app.core, page),
            CallChoice::Slow => interpretation::list_slow(&app.core, SLOW, page),
        }
    }

    fn frame(cx: &ViewContext, _: &App, _: Option<&CallChoice>) -> Result<Frame> {
        Ok(Frame { beside: html! { a.button href=(href("models")) { (cx.t(Text::Models)) } }, ..Frame::default() })
    }
}

fn collect(app: &App, query: &FigureQuery, may_see_users: bool) -> Result<Found> {
    let (core, newest) = (&app.core, PageRequest::of_newest(CALLS));
    let (from, to) = query.bounds(&core.config.limits.time_zone);
    let (mut failed, mut slow) = (Vec::new(), Vec::new());
    if may_see_users {
        failed = interpretation::list_failed(core, newest)?.items;
        slow = interpretation::list_slow(core, SLOW, newest)?.items;
    }
    Ok(Found {
        usage: budget::usage(core, query.from, query.to)?,
        figures: figures::list(core, query)?,
        rates: interpretation::rates(core, from, to)?,
        spent: budget::spent_today(core)?,
        failed,
        slow,
    })
}

fn budgets(app: &App, spent: budget::Amount) -> Vec<BudgetRow> {
    let llm = &app.core.config.llm;
    let cost = |cost: MicroAmount| format!("{cost} {}", llm.currency);
    let tokens = |tokens: u64| format::number(i64::try_from(tokens).unwrap_or(i64::MAX));
    let percent = |spent: u64, limit: Option<u64>| {
        limit.map_or(0, |limit| {
            let percent = (u128::from(spent) * 100).checked_div(limit.into()).unwrap_or(100).min(100);
            u8::try_from(percent).unwrap_or(100)
        })
    };
    vec![
        BudgetRow {
            name: Text::BudgetCost,
            spent: cost(spent.cost),
            limit: llm.cost_per_day.map(cost),
            percent: percent(spent.cost.0, llm.cost_per_day.map(|limit| limit.0)),
        },
        BudgetRow {
            name: Text::BudgetTokens,
            spent: tokens(spent.tokens),
            limit: llm.tokens_per_day.map(tokens),
            percent: percent(spent.tokens, llm.tokens_per_day),
        },
    ]
}

fn model_state(model: &GuardedModel) -> ModelState {
    ModelState {
        provider: model.name().to_owned(),
        model: model.model().to_owned(),
        state: model.breaker_state().into(),
    }
}

/// Sums the usage of each model, the model with most calls first.
fn usage(rows: Vec<UsageRow>) -> Vec<ModelUsageRow> {
    let mut sums: BTreeMap<(String, String), (ModelUsageRow, MicroAmount, u64)> = BTreeMap::new();
    for row in rows {
        let key = (row.provider.clone(), row.model.clone());
        let (sum, cost, duration_ms) = sums.entry(key).or_insert_with(|| {
            let (provider, model) = (row.provider, row.model);
            (ModelUsageRow { provider, model, ..ModelUsageRow::default() }, MicroAmount::default(), 0)
        });
        sum.calls += row.calls;
        sum.failed += if is_failure(&row.outcome) { row.calls } else { 0 };
        sum.slow += row.slow_calls;
        sum.prompt_tokens += row.prompt_tokens;
        sum.completion_tokens += row.completion_tokens;
        *cost = cost.plus(row.cost);
        *duration_ms += row.duration_ms;
    }
    let with_cost = |(sum, cost, duration_ms): (ModelUsageRow, MicroAmount, u64)| ModelUsageRow {
        cost: cost.to_string(),
        mean_ms: duration_ms.checked_div(sum.calls).unwrap_or(0),
        ..sum
    };
    let mut shown: Vec<_> = sums.into_values().map(with_cost).collect();
    shown.sort_by_key(|row| Reverse(row.calls));
    shown
}

fn is_failure(outcome: &str) -> bool {
    matches!(outcome, "failed" | "interrupted")
}

fn rate_row(rate: Rate) -> RateRow {
    RateRow { model: rate.model, prompt_version: rate.prompt_version, rated: rate.rated, helpful: rate.helpful }
}

fn charts(cx: &ViewContext, query: &FigureQuery, rows: &[FigureRow]) -> Vec<FigureChart<'static>> {
    let days = periods(query);
    let labels: Vec<_> = days.iter().map(ToString::to_string).collect();
    let chart = |id: &'static str, title, unit, series, has_bars| FigureChart {
        id: id.into(),
        title,
        unit,
        label: period_text(query),
        labels: labels.clone(),
        series,
        has_bars,
    };
    let by_model = |name| model_series(cx, name, &days, rows);
    let of_outcome = |text: Text, is_included: &dyn Fn(&FigureRow) -> bool| Series {
        name: cx.t(text).to_owned(),
        values: values(&days, rows, is_included),
    };
    let has_failed = |row: &FigureRow| row.key.rsplit('/').next().is_some_and(is_failure);
    let calls = vec![
        of_outcome(Text::Calls, &|row| row.name == FigureName::ModelCalls),
        of_outcome(Text::FailedCalls, &|row| row.name == FigureName::ModelCalls && has_failed(row)),
        of_outcome(Text::SlowCalls, &|row| row.name == FigureName::SlowModelCalls),
    ];
    vec![
        chart("cost-by-day", Text::Cost, Unit::Cost, by_model(FigureName::ModelCost), true),
        chart("calls-by-day", Text::Calls, Unit::Count, calls, false),
        chart("tokens-by-day", Text::BudgetTokens, Unit::Count, by_model(FigureName::ModelTokens), true),
    ]
}

/// Returns a series for each of the models with the largest sums, and one for the others.
fn model_series(cx: &ViewContext, name: FigureName, days: &[Date], rows: &[FigureRow]) -> Vec<Series> {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.name == name) {
        *sums.entry(&row.key).or_default() += row.value;
    }
    let mut models: Vec<_> = sums.into_iter().collect();
    models.sort_by_key(|(_, sum)| -sum);
    let own: Vec<_> = models.iter().take(LINES).map(|(model, _)| *model).collect();
    let mut series: Vec<_> = own
        .iter()
        .map(|model| Series {
            name: (*model).to_owned(),
            values: values(days, rows, |row| row.name == name && row.key == *model),
        })
        .collect();
    if models.len() > LINES || series.is_empty() {
        let is_other = |row: &FigureRow| row.name == name && !own.contains(&row.key.as_str());
        series.push(Series { name: cx.t(Text::Others).to_owned(), values: values(days, rows, is_other) });
    }
    series
}
