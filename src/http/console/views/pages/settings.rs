//! The settings in effect, read-only.

use maud::{Markup, html};

use crate::{
    config::{ResolvedSetting, SettingOrigin},
    http::console::views::{
        context::{ViewContext, href},
        forms::{Control, Field},
        layout::{self, PageBody, Place},
        lists::{self, Filters, text},
        parts,
        texts::{Text, Tone},
    },
};

/// A setting with its explanation.
#[derive(Clone, Debug)]
pub struct SettingRow {
    pub setting: ResolvedSetting,
    pub detail: &'static str,
}

/// Renders the kind of the place that a value comes from.
fn origin(cx: &ViewContext, origin: &SettingOrigin) -> Markup {
    let (tone, text) = match origin {
        SettingOrigin::Default => (Tone::Neutral, Text::OriginDefault),
        SettingOrigin::Demo => (Tone::Notice, Text::OriginDemo),
        SettingOrigin::File(_) => (Tone::Notice, Text::OriginFile),
        SettingOrigin::Environment(_) => (Tone::Notice, Text::OriginEnvironment),
        SettingOrigin::CommandLine(_) => (Tone::Notice, Text::OriginCommandLine),
    };
    parts::badge(tone, cx.t(text))
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
                    html! { code { (row.setting.name) } },
                    html! { @if row.setting.value.is_empty() { (parts::dash(cx)) } @else { code { (row.setting.value) } } },
                    origin(cx, &row.setting.origin),
                    with_code(row.detail),
                ]))))
            }
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Settings), Place::Settings, body))
}
