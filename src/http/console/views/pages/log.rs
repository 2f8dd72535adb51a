//! The tail of the server's structured log.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{ViewContext, href},
    format::{Timestamp, with_query},
    forms::{Control, Field},
    layout::{self, PageBody, Place},
    lists::{self, Filters},
    parts,
    texts::{self, Text, Tone},
};

/// A line of the log.
#[derive(Clone, Debug)]
pub struct LogLine {
    pub at: Timestamp,
    /// `error`, `warn`, `info` or `debug`.
    pub level: String,
    pub target: String,
    pub message: String,
    /// Names and values.
    pub fields: Vec<(String, String)>,
}

/// The tail of the log with its filters.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The least severe level that is shown.
    pub level: String,
    pub target: String,
    pub query: String,
    /// Newest first.
    pub lines: Vec<LogLine>,
    /// The number of lines that the ring keeps.
    pub capacity: u32,
    pub dropped: u64,
}

/// Renders the tail of the log.
pub fn page(cx: &ViewContext, log: &Log) -> Markup {
    let levels =
        ["error", "warn", "info", "debug"].map(|level| (level, texts::code(cx.language, level).to_owned())).to_vec();
    let filters = Filters {
        action: href("log"),
        fields: vec![
            Field::new("level", Text::LogLevel, Control::Select(levels), &log.level),
            Field::new("target", Text::LogTarget, Control::Text, &log.target),
            Field::new("q", Text::Contains, Control::Search, &log.query).id("log-q"),
        ],
        presets: Vec::new(),
        region: "live",
    };
    let body = html! {
        (layout::heading(cx.t(Text::ServerLog), Some(&texts::log_lead(cx.language, log.capacity)), &html! {}))
        (lists::filters(cx, &filters))
        (live(cx, log))
    };
    layout::page(cx, &PageBody::new(cx.t(Text::ServerLog), Place::Log, body).live())
}

/// Renders the lines, which refresh themselves.
pub fn live(cx: &ViewContext, log: &Log) -> Markup {
    let query = [("level", log.level.as_str()), ("target", &log.target), ("q", &log.query)];
    html! {
        section.card.log id="live" aria-label=(cx.t(Text::ServerLog)) hx-get=(with_query(&href("fragments/log"), &query)) hx-trigger="every 5s" hx-swap="outerHTML" data-live-region {
            @if log.dropped > 0 { (parts::note(Tone::Notice, &html! { p { (texts::dropped_lines(cx.language, log.dropped)) } })) }
            @if log.lines.is_empty() { p.empty { (cx.t(Text::NoLines)) } }
            ol.log-lines { @for line in &log.lines {
                li.(level_class(&line.level)) {
                    span.log-head { (cx.time(line.at)) " " span.badge.(level_class(&line.level)) { (texts::code(cx.language, &line.level)) } " " code { (line.target) } }
                    span.log-text { (line.message) }
                    @if !line.fields.is_empty() { span.log-fields { @for (name, value) in &line.fields { code { (name) "=" (value) } " " } } }
                }
            } }
        }
    }
}

fn level_class(level: &str) -> &'static str {
    match level {
        "error" => "bad",
        "warn" => "notice",
        _ => "neutral",
    }
}
