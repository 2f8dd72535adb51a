//! Data cleanup: the categories that can be purged. A purge leads to the page that confirms it.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{ViewContext, href},
    format::{self, Timestamp},
    forms::{self, ConfirmationView},
    layout::{self, PageBody, Place},
    lists::{self, number, text, time},
    parts::{self, panel},
    texts::{self, Text, Tone},
};

/// A category of data.
#[derive(Clone, Debug)]
pub struct Category {
    /// `verification-codes`, `payment-records`, `feedback`, `expired` or `all`.
    pub target: String,
    pub title: Text,
    pub detail: Text,
    /// Rows that a purge would delete now, if they were counted.
    pub rows: Option<format::ShownCount>,
    pub is_dangerous: bool,
}

/// A purge in the past or under way.
#[derive(Clone, Debug)]
pub struct PurgeRow {
    pub at: Timestamp,
    pub action: String,
    pub actor: String,
    pub outcome: String,
    pub deleted: Option<i64>,
    pub reason: String,
}

/// The page of data cleanup.
#[derive(Clone, Debug)]
pub struct Cleanup {
    pub categories: Vec<Category>,
    pub history: Vec<PurgeRow>,
}

/// Renders the page of data cleanup.
pub fn page(cx: &ViewContext, page: &Cleanup) -> Markup {
    let columns = [
        time(Text::Time),
        text(Text::Action),
        text(Text::Actor),
        text(Text::Outcome),
        number(Text::RowsDeleted),
        text(Text::Reason),
    ];
    let body = html! {
        (layout::heading(cx.t(Text::DataCleanup), Some(cx.t(Text::CleanupLead)), &html! {}))
        (parts::note(Tone::Neutral, &html! { p { (cx.t(Text::BackupFirst)) " " (cx.t(Text::NoRestoreHere)) } }))
        div.columns { @for category in &page.categories { (one(cx, category)) } }
        (panel("history", cx.t(Text::History), &html! {
            @if page.history.is_empty() { p.empty { (cx.t(Text::NothingYet)) } } @else {
                (lists::table(cx, Text::History, &columns, page.history.iter().map(|row| vec![
                    cx.cell_time(row.at),
                    html! { code { (row.action) } },
                    html! { code { (row.actor) } },
                    parts::state(cx, &row.outcome),
                    html! { @match row.deleted { Some(rows) => (format::number(rows)), None => (parts::dash(cx)) } },
                    html! { (row.reason) },
                ])))
            }
        }))
    };
    layout::page(cx, &PageBody::new(cx.t(Text::DataCleanup), Place::Cleanup, body))
}

fn one(cx: &ViewContext, category: &Category) -> Markup {
    let count = html! { @if let Some(rows) = category.rows { span.hint { (texts::rows(cx.language, &rows.text())) } } };
    parts::panel_with(
        &category.target,
        cx.t(category.title),
        &count,
        &html! {
            p { (cx.t(category.detail)) }
            (forms::button(cx, &href(&format!("cleanup/{}", category.target)), cx.t(Text::ShowWhatGoes), if category.is_dangerous { "danger" } else { "" }))
        },
    )
}

/// Renders the page that confirms a destructive action, within the shell.
pub fn confirm(cx: &ViewContext, confirmation: &ConfirmationView, place: Place) -> Markup {
    layout::page(cx, &PageBody::new(confirmation.title.clone(), place, forms::confirmation(cx, confirmation)))
}
