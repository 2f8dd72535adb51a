//! The settings in effect, read-only.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{ViewContext, href},
    forms::{Control, Field},
    layout::{self, PageBody, Place},
    lists::{self, Filters, text},
    parts,
    texts::{self, Text, Tone},
};

/// A setting. Secrets are masked.
#[derive(Clone, Debug)]
pub struct SettingRow {
    pub name: String,
    pub value: String,
    /// `default`, `file`, `environment` or `command_line`.
    pub source: String,
    pub detail: String,
}

/// The settings, grouped by section.
#[derive(Clone, Debug)]
pub struct Settings {
    pub query: String,
    pub is_changed_only: bool,
    pub sections: Vec<(String, Vec<SettingRow>)>,
}

/// Renders a text whose parts in backticks are code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Renders the settings.
pub fn page(cx: &ViewContext, page: &Settings) -> Markup {
    let columns = [text(Text::Setting), text(Text::Value), text(Text::Source), text(Text::Detail)];
    let filters = Filters {
        action: href("settings"),
        fields: vec![
            Field::new("q", Text::Setting, Control::Search, &page.query).id("setting-q"),
            Field::new("changed", Text::ChangedOnly, Control::Checkbox, if page.is_changed_only { "true" } else { "" }),
        ],
        presets: Vec::new(),
        region: "settings",
    };
    let body = html! {
        (layout::heading(cx.t(Text::Settings), Some(cx.t(Text::SettingsLead)), &html! {}))
        (lists::filters(cx, &filters))
        div.stack id="settings" {
            @if page.sections.is_empty() { section.card { p.empty { (cx.t(Text::NothingFound)) } } }
            @for (section, rows) in &page.sections {
                (parts::panel(&format!("section-{section}"), section, &lists::table(cx, Text::Settings, &columns, rows.iter().map(|row| vec![
                    html! { code { (row.name) } },
                    html! { @if row.value.is_empty() { (parts::dash(cx)) } @else { code { (row.value) } } },
                    parts::badge(if row.source == "default" { Tone::Neutral } else { Tone::Notice }, texts::code(cx.language, &row.source)),
                    with_code(&row.detail),
                ]))))
            }
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Settings), Place::Settings, body))
}
