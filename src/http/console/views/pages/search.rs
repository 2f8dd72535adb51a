//! The results of the search box.

use maud::{Markup, html};

use super::user;
use crate::{
    domain::identity::{accounts::CodeMessages, directory::UserState},
    http::console::views::{
        context::{ViewContext, href},
        format::{Timestamp, with_query},
        layout::{self, PageBody},
        parts,
        texts::{self, Text},
    },
};

/// The kind of a found thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    User,
    Order,
    ModelCall,
    Request,
}

impl Found {
    const fn text(self) -> Text {
        match self {
            Self::User => Text::User,
            Self::Order => Text::Order,
            Self::ModelCall => Text::ModelCall,
            Self::Request => Text::Request,
        }
    }
}

/// A result.
#[derive(Clone, Debug)]
pub struct SearchHit {
    pub found: Found,
    /// The id, number or trace id.
    pub name: String,
    /// Nickname and masked address of a user, amount of an order, route of a request.
    pub detail: String,
    pub state: Option<UserState>,
    pub at: Timestamp,
    pub href: String,
}

/// The results of a search. One exact result redirects to its page.
#[derive(Clone, Debug)]
pub struct Search {
    pub query: String,
    pub hits: Vec<SearchHit>,
    /// True if there are more hits than shown.
    pub has_more: bool,
    /// Requests for codes, if the query is an address without an account.
    pub codes: Option<CodeMessages>,
}

/// Renders what the palette found: texts with their addresses, and the search itself.
pub fn suggestions(cx: &ViewContext, typed: &str, hits: &[(String, String)]) -> Markup {
    html! {
        @if !typed.is_empty() {
            ul.choices-list {
                @for (text, address) in hits { li { a href=(address) { (text) } } }
                li { a href=(with_query(&href("search"), &[("q", typed)])) { (texts::results_for(cx.language, typed)) } }
            }
        }
    }
}

/// Renders the results.
pub fn page(cx: &ViewContext, search: &Search) -> Markup {
    let title = texts::results_for(cx.language, &search.query);
    let count = texts::rows(cx.language, &search.hits.len().to_string());
    let body = html! {
        (layout::heading(&title, None, &html! {}))
        section.card aria-label=(cx.t(Text::Search)) {
            @if search.hits.is_empty() {
                div.empty { p { strong { (cx.t(Text::NothingFound)) } } p { (cx.t(Text::SearchHelp)) } }
            } @else {
                p.total { (count) }
                ul.hits { @for hit in &search.hits {
                    li {
                        span.badge.neutral { (cx.t(hit.found.text())) }
                        span.hit { a href=(hit.href) { (hit.name) } span.hint { (hit.detail) } }
                        @if let Some(state) = &hit.state { (parts::state(cx, state)) }
                        span.hint { (cx.ago(hit.at)) }
                    }
                } }
                @if search.has_more { p.hint { (cx.t(Text::MoreHits)) } }
            }
        }
        @if let Some(codes) = &search.codes { (user::codes(cx, codes, &href("search/receipts"), Some(&search.query))) }
    };
    layout::page(cx, &PageBody { title, place: None, has_charts: false, is_live: false, body })
}
