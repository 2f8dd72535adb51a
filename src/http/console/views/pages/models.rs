//! Language models: usage and cost by model, failures, slow calls, ratings.

use maud::{Markup, html};

use super::{
    figures::{self, Range},
    rows::{self, CallRow},
};
use crate::http::console::views::{
    chart::{FigureChart, chart},
    context::{Right, ViewContext, href},
    format::{self, with_query},
    forms,
    layout::{self, PageBody, Place},
    lists::{self, ListView, Listing, number, text},
    parts::{self, panel},
    texts::{self, Text},
};

/// The usage of a model in the range.
#[derive(Clone, Debug)]
pub struct ModelUsageRow {
    pub provider: String,
    pub model: String,
    pub calls: u64,
    pub failed: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The cost with its currency, as the budget formats it.
    pub cost: String,
    pub mean_ms: i64,
    /// Mean rating in tenths of a star, if there are ratings.
    pub rating: Option<u32>,
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

/// The models page.
#[derive(Clone, Debug)]
pub struct ModelsPage<'a> {
    pub range: Range,
    pub budgets: Vec<BudgetRow>,
    pub usage: Vec<ModelUsageRow>,
    pub charts: Vec<FigureChart<'a>>,
    /// Counts of one to five stars.
    pub ratings: [i64; 5],
    /// The last failures and the slowest calls.
    pub failed: Vec<CallRow>,
    pub slow: Vec<CallRow>,
}

/// Renders the models page.
pub fn page(cx: &ViewContext, page: &ModelsPage<'_>) -> Markup {
    let all = |tab: &str, title: Text| html! { a href=(with_query(&href("models/calls"), &[("show", tab)])) { (cx.t(Text::All)) span.sr { ": " (cx.t(title)) } } };
    let test = html! { @if cx.may(Right::Administer) { (forms::button(cx, &href("models/test"), cx.t(Text::TestModel), "")) } };
    let body = html! {
        (layout::heading(cx.t(Text::Models), None, &test))
        (lists::filters(cx, &figures::range(cx, "models", &page.range)))
        div.stack id="figures" {
            div.columns {
                (panel("budgets", cx.t(Text::BudgetsToday), &budgets(cx, &page.budgets)))
                (panel("ratings", cx.t(Text::Ratings), &ratings(cx, &page.ratings)))
            }
            (panel("usage", cx.t(Text::UsageByModel), &usage(cx, &page.usage)))
            div.columns.charts { @for one in &page.charts { section.card { (chart(cx, one)) } } }
        }
        (calls(cx, "failed", Text::FailedCalls, &all("failed", Text::FailedCalls), &page.failed))
        (calls(cx, "slow", Text::SlowCalls, &all("slow", Text::SlowCalls), &page.slow))
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

fn ratings(cx: &ViewContext, counts: &[i64; 5]) -> Markup {
    let high = counts.iter().copied().max().unwrap_or(1).max(1);
    html! {
        dl.bars { @for (stars, count) in (1_u8..=5).zip(counts).rev() {
            div { dt { (texts::stars(cx.language, stars)) } dd { meter max=(high) value=(count) aria-label=(texts::stars(cx.language, stars)) {} span.num { (format::number(*count)) } } }
        } }
    }
}

fn usage(cx: &ViewContext, rows: &[ModelUsageRow]) -> Markup {
    let columns = [
        text(Text::Model),
        number(Text::Calls),
        number(Text::FailedCalls),
        number(Text::PromptTokens),
        number(Text::CompletionTokens),
        number(Text::Cost),
        number(Text::MeanDuration),
        number(Text::Rating),
    ];
    let count = |value: u64| html! { (format::number(i64::try_from(value).unwrap_or(i64::MAX))) };
    html! {
        @if rows.is_empty() { p.empty { (cx.t(Text::NoCalls)) } } @else {
            (lists::table(cx, Text::UsageByModel, &columns, rows.iter().map(|row| vec![
                html! { (row.model) " " span.hint { (row.provider) } },
                count(row.calls),
                count(row.failed),
                count(row.prompt_tokens),
                count(row.completion_tokens),
                html! { (row.cost) },
                html! { (format::duration(row.mean_ms * 1000)) },
                html! { @match row.rating { Some(tenths) => { (tenths / 10) "." (tenths % 10) }, None => (parts::dash(cx)) } },
            ])))
        }
    }
}

fn calls(cx: &ViewContext, id: &str, title: Text, beside: &Markup, calls: &[CallRow]) -> Markup {
    parts::panel_with(
        id,
        cx.t(title),
        beside,
        &html! {
            @if calls.is_empty() { p.empty { (cx.t(Text::NoCalls)) } }
            @else { (lists::table(cx, title, &rows::CALL, calls.iter().map(|row| rows::call(cx, row)))) }
        },
    )
}

/// All model calls of a kind.
#[derive(Clone, Debug)]
pub struct Calls {
    /// `failed`, `slow`, or empty.
    pub show: String,
    pub user: String,
    pub listing: Listing<CallRow>,
}

/// Renders all model calls of a kind.
pub fn all_calls(cx: &ViewContext, page: &Calls) -> Markup {
    let path = href("models/calls");
    let of = |show: &str| with_query(&path, &[("show", show), ("user", &page.user)]);
    let tab = |text, show: &str| (text, of(show), page.show == show);
    let view = ListView {
        id: "calls",
        caption: Text::Interpretations,
        empty: Text::NoCalls,
        href: of(&page.show),
        export: None,
    };
    let body = html! {
        (layout::heading(cx.t(Text::Interpretations), None, &html! { a.button href=(href("models")) { (cx.t(Text::Models)) } }))
        (lists::tabs(cx, Text::Presets, &[tab(Text::All, ""), tab(Text::FailedCalls, "failed"), tab(Text::SlowCalls, "slow")]))
        section.card aria-label=(cx.t(Text::Interpretations)) { (lists::list(cx, &view, &rows::CALL, &page.listing, |row| rows::call(cx, row))) }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Interpretations), Place::Models, body))
}
