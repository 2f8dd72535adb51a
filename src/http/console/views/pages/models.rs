//! Language models: usage and cost by model, budgets, availability, ratings, failed and slow calls.

use maud::{Markup, html};

use super::{
    figures::{self, Range},
    rows,
};
use crate::{
    domain::{divination::interpretation::CallRecord, operations::health_report::ProviderState},
    http::console::views::{
        cells,
        chart::{FigureChart, chart},
        context::{Right, ViewContext, href},
        format::{self, with_query},
        layout::{self, PageBody, Place},
        lists::{self, number, text},
        parts::{self, panel},
        texts::{self, Text},
    },
};

/// The usage of a model in the range.
#[derive(Clone, Debug, Default)]
pub struct ModelUsageRow {
    pub provider: String,
    pub model: String,
    pub calls: u64,
    pub failed: u64,
    pub slow: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The cost without its currency, as the budget formats it.
    pub cost: String,
    pub mean_ms: u64,
}

/// A budget of today.
#[derive(Clone, Debug)]
pub struct BudgetRow {
    pub name: Text,
    pub spent: String,
    /// None if the budget is unlimited.
    pub limit: Option<String>,
    pub percent: u8,
}

/// The circuit breaker of a model.
#[derive(Clone, Debug)]
pub struct ModelState {
    pub provider: String,
    pub model: String,
    pub state: ProviderState,
}

/// The ratings of a model with one version of the prompt.
#[derive(Clone, Debug)]
pub struct RateRow {
    pub model: String,
    pub prompt_version: String,
    pub rated: i64,
    pub helpful: i64,
}

/// The models page.
#[derive(Clone, Debug)]
pub struct ModelsPage<'a> {
    pub range: Range,
    pub currency: String,
    pub budgets: Vec<BudgetRow>,
    pub breakers: Vec<ModelState>,
    pub usage: Vec<ModelUsageRow>,
    pub charts: Vec<FigureChart<'a>>,
    pub rates: Vec<RateRow>,
    /// The last failures and the last slow calls, for roles that may see users.
    pub failed: Vec<CallRecord>,
    pub slow: Vec<CallRecord>,
    /// The last day that the figures contain.
    pub through: String,
}

/// Renders the models page.
pub fn page(cx: &ViewContext, page: &ModelsPage<'_>) -> Markup {
    let all = |tab: &str, title: Text| html! { a href=(with_query(&href("models/calls"), &[("show", tab)])) { (cx.t(Text::All)) span.sr { ": " (cx.t(title)) } } };
    let export =
        html! { a.button href=(figures::export(Place::Models, &page.range)) download { (cx.t(Text::ExportCsv)) } };
    let body = html! {
        (layout::heading(cx.t(Text::Models), None, &export))
        (lists::filters(cx, &figures::range(cx, Place::Models.path(), &page.range)))
        div.stack id="figures" {
            (panel("usage", cx.t(Text::UsageByModel), &usage(cx, page)))
            div.columns.charts { @for one in &page.charts { section.card { (chart(cx, one)) } } }
            div.columns {
                (panel("budgets", cx.t(Text::BudgetsToday), &budgets(cx, &page.budgets)))
                (panel("breakers", cx.t(Text::AvailableModels), &breakers(cx, &page.breakers)))
            }
            (panel("ratings", cx.t(Text::Ratings), &ratings(cx, &page.rates)))
            p.hint { (texts::figures_through(cx.language, &page.through, &cx.zone.name)) }
        }
        @if cx.may(Right::SupportUsers) {
            (calls(cx, "failed", Text::FailedCalls, &all("failed", Text::FailedCalls), &page.failed))
            (calls(cx, "slow", Text::SlowCalls, &all("slow", Text::SlowCalls), &page.slow))
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Models), Place::Models, body).with_charts())
}

fn budgets(cx: &ViewContext, budgets: &[BudgetRow]) -> Markup {
    html! {
        ul.lines { @for budget in budgets {
            li {
                span { (cx.t(budget.name)) span.hint { (budget.spent) " / " @match &budget.limit { Some(limit) => (limit), None => (cx.t(Text::Unlimited)) } } }
                @if budget.limit.is_some() { (parts::progress(cx.t(budget.name), budget.percent)) }
            }
        } }
    }
}

fn breakers(cx: &ViewContext, models: &[ModelState]) -> Markup {
    html! {
        ul.lines { @for one in models { li { span { (one.model) span.hint { (texts::code(cx.language, &one.provider)) } } (parts::state(cx, &one.state)) } } }
    }
}

fn ratings(cx: &ViewContext, rates: &[RateRow]) -> Markup {
    let columns = [text(Text::Model), text(Text::PromptVersion), number(Text::Rated), number(Text::Helpful)];
    html! {
        @if rates.is_empty() { p.empty { (cx.t(Text::NoRatings)) } } @else {
            (lists::table(cx, Text::Ratings, &columns, rates.iter().map(|rate| vec![
                html! { (rate.model) },
                html! { code { (rate.prompt_version) } },
                html! { (format::number(rate.rated)) },
                html! { (format::per_mille((rate.helpful * 1000).checked_div(rate.rated).unwrap_or(0))) },
            ])))
        }
    }
}

fn usage(cx: &ViewContext, page: &ModelsPage<'_>) -> Markup {
    let columns = [
        text(Text::Model),
        number(Text::Calls),
        number(Text::FailedCalls),
        number(Text::SlowCalls),
        number(Text::PromptTokens),
        number(Text::CompletionTokens),
        number(Text::Cost),
        number(Text::MeanDuration),
    ];
    let count = |value: u64| html! { (format::number(i64::try_from(value).unwrap_or(i64::MAX))) };
    html! {
        @if page.usage.is_empty() { p.empty { (cx.t(Text::NoCalls)) } } @else {
            (lists::table(cx, Text::UsageByModel, &columns, page.usage.iter().map(|row| vec![
                html! { (row.model) " " span.hint { (texts::code(cx.language, &row.provider)) } },
                count(row.calls),
                count(row.failed),
                count(row.slow),
                count(row.prompt_tokens),
                count(row.completion_tokens),
                html! { (row.cost) " " (page.currency) },
                html! { (format::milliseconds(i64::try_from(row.mean_ms).unwrap_or(i64::MAX))) },
            ])))
        }
    }
}

fn calls(cx: &ViewContext, id: &str, title: Text, beside: &Markup, calls: &[CallRecord]) -> Markup {
    parts::panel_with(
        id,
        cx.t(title),
        beside,
        &html! {
            @if calls.is_empty() { p.empty { (cx.t(Text::NoCalls)) } }
            @else { (cells::table(cx, title, rows::CALL, calls)) }
        },
    )
}
