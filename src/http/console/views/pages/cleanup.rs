//! Data cleanup: the categories that can be purged. A purge leads to the page that confirms it.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{ViewContext, href},
    forms::{self, ConfirmationView},
    layout::{self, PageBody, Place},
    parts,
    texts::{Text, Tone},
};

/// A category of data. Its rows are counted when its purge is asked for, because counting may take long.
#[derive(Clone, Debug)]
pub struct Category {
    /// `verification-codes`, `payment-records`, `feedback` or `all`.
    pub target: String,
    pub title: Text,
    pub detail: Text,
    pub is_dangerous: bool,
}

/// Renders the page of data cleanup.
pub fn page(cx: &ViewContext, categories: &[Category]) -> Markup {
    let body = html! {
        (layout::heading(cx.t(Text::DataCleanup), Some(cx.t(Text::CleanupLead)), &html! {}))
        (parts::note(Tone::Neutral, &html! { p { (cx.t(Text::BackupFirst)) " " (cx.t(Text::NoRestoreHere)) } }))
        div.columns { @for category in categories { (one(cx, category)) } }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::DataCleanup), Place::Cleanup, body))
}

fn one(cx: &ViewContext, category: &Category) -> Markup {
    parts::panel(
        &category.target,
        cx.t(category.title),
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
