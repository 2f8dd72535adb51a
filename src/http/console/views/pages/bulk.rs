//! The results of an act on several rows.

use maud::{Markup, html};

use crate::http::console::views::{
    context::ViewContext,
    layout::{self, PageBody, Place},
    lists::{self, text},
    parts::{self, or_dash},
    texts::{self, Text},
};

/// The outcome of an act on one row.
#[derive(Clone, Debug)]
pub struct BulkResult {
    /// The name of the row.
    pub id: String,
    /// The address of the row's page, if it has one.
    pub href: Option<String>,
    /// A code for which [`texts::state`] has a text.
    pub outcome: String,
    pub detail: Option<String>,
}

/// The outcomes of an act on several rows.
#[derive(Clone, Debug)]
pub struct BulkResults {
    pub place: Place,
    /// The address of the list.
    pub back: String,
    pub results: Vec<BulkResult>,
}

/// Renders the results.
pub fn page(cx: &ViewContext, page: &BulkResults) -> Markup {
    let back = html! { a.button href=(page.back) { (cx.t(page.place.title())) } };
    let count = page.results.len().to_string();
    let body = html! {
        (layout::heading(cx.t(Text::Results), Some(&texts::rows(cx.language, &count)), &back))
        section.card aria-label=(cx.t(Text::Results)) {
            (lists::table(cx, Text::Results, &[text(Text::Id), text(Text::Outcome), text(Text::Detail)], page.results.iter().map(|result| vec![
                html! { @match &result.href { Some(href) => { a href=(href) { code { (result.id) } } }, None => { code { (result.id) } } } },
                parts::state(cx, &result.outcome),
                or_dash(cx, result.detail.as_deref()),
            ])))
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Results), page.place, body))
}
