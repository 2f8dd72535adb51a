//! The tail of the server's structured log.

use maud::{Markup, html};

use crate::{
    domain::operations::server_log::{LogEvent, LogLevel},
    http::console::views::{
        context::{ViewContext, href},
        format::with_query,
        forms::{Control, Field},
        layout::{self, PageBody, Place},
        lists::{self, Filters},
        parts,
        texts::{self, Text, Tone},
        words::Worded,
    },
};

/// The tail of the log with its filters.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The least severe level that is shown.
    pub level: String,
    pub target: String,
    pub query: String,
    /// The id of a request.
    pub request: String,
    /// The trace id of a model call.
    pub trace: String,
    /// Newest first.
    pub lines: Vec<LogEvent>,
    /// The cursor of the older lines.
    pub older: Option<i64>,
    /// False for older lines, which do not refresh themselves.
    pub is_newest: bool,
    /// The number of lines that are kept.
    pub capacity: u32,
    pub dropped: u64,
    /// The faults of the filter by field. Nothing is listed then.
    pub errors: Vec<(String, String)>,
}

/// Renders the tail of the log.
pub fn page(cx: &ViewContext, log: &Log) -> Markup {
    let levels = cx.options(LogLevel::ALL.iter().rev());
    let filters = Filters {
        action: href("logs"),
        fields: vec![
            Field::new("level", Text::LogLevel, Control::Select(levels), &log.level)
                .error(log.errors.iter().find(|(field, _)| field == "level").map(|(_, error)| error.as_str())),
            Field::new("target", Text::LogTarget, Control::Text, &log.target),
            Field::new("q", Text::Contains, Control::Search, &log.query).id("log-q"),
            Field::new("request", Text::RequestId, Control::Text, &log.request),
            Field::new("trace", Text::TraceId, Control::Text, &log.trace),
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
    let before = log.older.map_or_else(String::new, |id| id.to_string());
    let mut query = vec![
        ("level", log.level.as_str()),
        ("target", &log.target),
        ("q", &log.query),
        ("request", &log.request),
        ("trace", &log.trace),
    ];
    query.retain(|(_, value)| !value.is_empty());
    let newest = with_query(&href("logs"), &query);
    let refresh = with_query(&href("fragments/logs"), &query);
    query.push(("before", &before));
    let older = with_query(&href("logs"), &query);
    html! {
        section.card.log id="live" aria-label=(cx.t(Text::ServerLog)) hx-get=[log.is_newest.then_some(refresh)] hx-trigger=[log.is_newest.then_some("every 5s")] hx-swap="outerHTML" data-live-region {
            @if log.dropped > 0 { (parts::note(Tone::Notice, &html! { p { (texts::dropped_lines(cx.language, log.dropped)) } })) }
            @if !log.errors.is_empty() { (lists::rejected_filter(cx, &log.errors)) }
            @else if log.lines.is_empty() { p.empty { (cx.t(Text::NoLines)) } }
            ol.log-lines { @for line in &log.lines {
                @let (tone, level) = line.level.in_words(cx.language);
                li.(tone.class()) {
                    span.log-head { (cx.time(line.at)) " " span.badge.(tone.class()) { (level) } " " code { (line.target) } }
                    span.log-text { (line.message) }
                    @if !line.fields.is_empty() { span.log-fields { @for (name, value) in &line.fields { code { (name) "=" (value) } " " } } }
                }
            } }
            @if log.errors.is_empty() && (log.older.is_some() || !log.is_newest) {
                nav.actions aria-label=(cx.t(Text::Pages)) {
                    @if !log.is_newest { a.button href=(newest) { (cx.t(Text::NewestLines)) } }
                    @if log.older.is_some() { a.button href=(older) { (cx.t(Text::OlderLines)) } }
                }
            }
        }
    }
}
