//! Notifications with preview, and releases of the app.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{ViewContext, href},
    format::{self, Timestamp},
    forms::{self, Control, Field, ProofField, field},
    layout::{self, PageBody, Place},
    lists::{self, Column, ListView, Listing, number, text, time},
    parts::{self, panel},
    texts::{self, Language, Text, Tone},
};

/// A sent notification.
#[derive(Clone, Debug)]
pub struct MessageRow {
    pub id: String,
    /// `all` or `users`.
    pub audience: String,
    pub kind: String,
    pub title: String,
    pub recipients: Option<u64>,
    pub read: u64,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// The form of a new notification, as typed.
#[derive(Clone, Debug, Default)]
pub struct MessageDraft {
    pub title: String,
    pub body: String,
    pub kind: String,
    /// `all` or `users`.
    pub audience: String,
    pub recipients: String,
    pub expires: String,
    pub payload: String,
    /// Errors by field.
    pub errors: Vec<(String, String)>,
}

/// The list of notifications with the form for a new one.
#[derive(Clone, Debug)]
pub struct MessagesPage {
    pub listing: Listing<MessageRow>,
    pub draft: MessageDraft,
}

const KINDS: [&str; 4] = ["system", "account", "activity", "promotion"];

/// Renders the list of notifications with the form for a new one.
pub fn messages(cx: &ViewContext, page: &MessagesPage) -> Markup {
    let columns = with_action(&MESSAGE);
    let view = ListView {
        id: "messages",
        caption: Text::Messages,
        empty: Text::NoMessages,
        href: href("messages"),
        bulk: None,
        export: Some(href("messages/export")),
    };
    let body = html! {
        (layout::heading(cx.t(Text::Messages), None, &html! {}))
        (panel("new", cx.t(Text::NewMessage), &draft(cx, &page.draft)))
        section.card aria-label=(cx.t(Text::Messages)) {
            (lists::list(cx, &view, &columns, &page.listing, |row| {
                let withdraw = forms::post(cx, &href(&format!("messages/{}/withdraw", row.id)), &html! {
                    (forms::reason(cx, &format!("withdraw-{}", row.id), "", None))
                    button.button.danger type="submit" { (cx.t(Text::Withdraw)) }
                });
                let mut cells = message_cells(cx, row);
                cells.push(parts::action(cx.t(Text::Withdraw), "small", &withdraw));
                cells
            }))
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Messages), Place::Messages, body))
}

/// The columns of a notification, also in the CSV export.
pub const MESSAGE: [Column; 6] = [
    text(Text::Title),
    text(Text::Audience),
    text(Text::MessageKind),
    number(Text::Read),
    time(Text::Sent),
    time(Text::Expires),
];

fn with_action(columns: &[Column]) -> Vec<Column> {
    columns.iter().copied().chain([text(Text::Action)]).collect()
}

/// Renders a notification as cells.
pub fn message_cells(cx: &ViewContext, row: &MessageRow) -> Vec<Markup> {
    vec![
        html! { (row.title) },
        html! { (texts::code(cx.language, &row.audience)) @if let Some(count) = row.recipients { " " span.hint { (count) } } },
        html! { (texts::code(cx.language, &row.kind)) },
        html! { (format::number(i64::try_from(row.read).unwrap_or(i64::MAX))) },
        cx.cell_time(row.created_at),
        row.expires_at.map_or_else(|| parts::dash(cx), |at| cx.cell_time(at)),
    ]
}

fn draft(cx: &ViewContext, draft: &MessageDraft) -> Markup {
    let error = |name: &str| draft.errors.iter().find(|(field, _)| field == name).map(|(_, error)| error.as_str());
    let kinds = KINDS.map(|kind| (kind, texts::code(cx.language, kind).to_owned())).to_vec();
    let audience = vec![("all", cx.t(Text::ToAll).to_owned()), ("users", cx.t(Text::ToSome).to_owned())];
    forms::post(
        cx,
        &href("messages/preview"),
        &html! {
            div.form-grid {
                (field(cx, &Field::new("title", Text::Title, Control::Text, &draft.title).required().max_length(50).error(error("title"))))
                (field(cx, &Field::new("kind", Text::MessageKind, Control::Select(kinds), &draft.kind).required()))
                (field(cx, &Field::new("audience", Text::Audience, Control::Select(audience), &draft.audience).required()))
                (field(cx, &Field::new("to", Text::Recipients, Control::Text, &draft.recipients).hint(Text::RecipientsHint).error(error("to"))))
                (field(cx, &Field::new("expires", Text::Expires, Control::Moment, &draft.expires).error(error("expires"))))
                (field(cx, &Field::new("payload", Text::Payload, Control::Text, &draft.payload).hint(Text::PayloadHint).error(error("payload"))))
            }
            (field(cx, &Field::new("body", Text::Body, Control::Area, &draft.body).required().max_length(2000).error(error("body"))))
            button.button.primary type="submit" { (cx.t(Text::Preview)) }
        },
    )
}

/// The preview of a notification, before it is sent.
#[derive(Clone, Debug)]
pub struct MessagePreview {
    pub draft: MessageDraft,
    /// The number of users who will receive it; none for a broadcast.
    pub recipients: Option<format::ShownCount>,
    pub reason: String,
    pub reason_error: Option<String>,
    pub step_up: ProofField,
}

/// Renders the preview of a notification.
pub fn preview(cx: &ViewContext, page: &MessagePreview) -> Markup {
    let draft = &page.draft;
    let fields = [
        ("title", &draft.title),
        ("body", &draft.body),
        ("kind", &draft.kind),
        ("audience", &draft.audience),
        ("to", &draft.recipients),
        ("expires", &draft.expires),
        ("payload", &draft.payload),
    ];
    let body = html! {
        (layout::heading(cx.t(Text::Preview), None, &html! {}))
        div.columns {
            div {
                @for language in Language::ALL {
                    section.phone lang=(language.tag()) aria-label=(format!("{} · {}", Text::InTheApp.in_language(language), language.own_name())) {
                        p.hint { (texts::code(language, &draft.kind)) " · " (Text::Now.in_language(language)) }
                        h2 { (draft.title) }
                        p.message { (draft.body) }
                    }
                }
            }
            (panel("send", cx.t(Text::SendMessage), &html! {
                (parts::note(Tone::Notice, &html! { p { @match page.recipients { Some(count) => (texts::recipients(cx.language, &count.text())), None => (cx.t(Text::SentToAll)) } } }))
                (forms::post(cx, &href("messages"), &html! {
                    @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                    (forms::reason(cx, "send", &page.reason, page.reason_error.as_deref()))
                    (forms::step_up(cx, "send", &page.step_up))
                    div.actions {
                        button.button.primary type="submit" { (cx.t(Text::SendMessage)) }
                        button.button type="submit" formaction=(href("messages/edit")) formnovalidate { (cx.t(Text::Edit)) }
                    }
                }))
            }))
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Preview), Place::Messages, body))
}

/// A published version of the app.
#[derive(Clone, Debug)]
pub struct ReleaseRow {
    pub id: String,
    pub version: String,
    pub code: i64,
    /// Empty for all platforms.
    pub platform: String,
    pub url: String,
    pub is_required: bool,
    pub notes: String,
    pub published_at: Timestamp,
    pub is_withdrawn: bool,
}

/// The form of a new release, as typed.
#[derive(Clone, Debug, Default)]
pub struct TypedRelease {
    pub version: String,
    pub code: String,
    pub platform: String,
    pub url: String,
    pub notes: String,
    pub is_required: bool,
    pub errors: Vec<(String, String)>,
}

/// The list of releases with the form for a new one.
#[derive(Clone, Debug)]
pub struct Releases {
    pub listing: Listing<ReleaseRow>,
    pub draft: TypedRelease,
    /// True if the form is shown as the app would, before publication.
    pub is_preview: bool,
}

/// Renders the list of releases.
pub fn releases(cx: &ViewContext, page: &Releases) -> Markup {
    let columns = with_action(&RELEASE);
    let view = ListView {
        id: "releases",
        caption: Text::Releases,
        empty: Text::NoReleases,
        href: href("releases"),
        bulk: None,
        export: Some(href("releases/export")),
    };
    let body = html! {
        (layout::heading(cx.t(Text::Releases), None, &html! {}))
        @if page.is_preview { (release_preview(cx, &page.draft)) }
        @else { (panel("new", cx.t(Text::NewRelease), &release_form(cx, &page.draft))) }
        section.card aria-label=(cx.t(Text::Releases)) {
            (lists::list(cx, &view, &columns, &page.listing, |row| {
                let withdraw = html! { @if !row.is_withdrawn { (parts::action(cx.t(Text::Withdraw), "small", &forms::post(cx, &href(&format!("releases/{}/withdraw", row.id)), &html! {
                    (forms::reason(cx, &format!("release-{}", row.id), "", None))
                    button.button.danger type="submit" { (cx.t(Text::Withdraw)) }
                }))) } };
                let mut cells = release_cells(cx, row);
                cells.push(withdraw);
                cells
            }))
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Releases), Place::Releases, body))
}

/// The columns of a release, also in the CSV export.
pub const RELEASE: [Column; 6] = [
    text(Text::Version),
    number(Text::BuildNumber),
    text(Text::Platform),
    text(Text::State),
    text(Text::ReleaseNotes),
    time(Text::Published),
];

/// Renders a release as cells.
pub fn release_cells(cx: &ViewContext, row: &ReleaseRow) -> Vec<Markup> {
    let state = match (row.is_withdrawn, row.is_required) {
        (true, _) => "withdrawn",
        (false, true) => "required",
        (false, false) => "published",
    };
    vec![
        html! { @if row.url.is_empty() { (row.version) } @else { a href=(row.url) rel="noreferrer" { (row.version) } } },
        html! { (row.code) },
        html! { (platform(cx, &row.platform)) },
        parts::state(cx, state),
        parts::or_dash(cx, Some(&row.notes)),
        cx.cell_time(row.published_at),
    ]
}

fn release_form(cx: &ViewContext, draft: &TypedRelease) -> Markup {
    let error = |name: &str| draft.errors.iter().find(|(field, _)| field == name).map(|(_, error)| error.as_str());
    let platforms = ["android", "ios", ""].map(|name| (name, platform(cx, name).to_owned())).to_vec();
    forms::post(
        cx,
        &href("releases/preview"),
        &html! {
            div.form-grid {
                (field(cx, &Field::new("version", Text::Version, Control::Text, &draft.version).required().error(error("version"))))
                (field(cx, &Field::new("code", Text::BuildNumber, Control::Digits, &draft.code).required().error(error("code"))))
                (field(cx, &Field::new("platform", Text::Platform, Control::Select(platforms), &draft.platform)))
                (field(cx, &Field::new("url", Text::DownloadAddress, Control::Text, &draft.url).error(error("url"))))
            }
            (field(cx, &Field::new("notes", Text::ReleaseNotes, Control::Area, &draft.notes).max_length(2000).error(error("notes"))))
            (field(cx, &Field::new("required", Text::ForcesUpdate, Control::Checkbox, if draft.is_required { "true" } else { "" })))
            button.button.primary type="submit" { (cx.t(Text::Preview)) }
        },
    )
}

/// Returns the name of a platform, or the text for all of them.
fn platform<'a>(cx: &ViewContext, name: &'a str) -> &'a str {
    if name.is_empty() { cx.t(Text::AllPlatforms) } else { texts::code(cx.language, name) }
}

fn release_preview(cx: &ViewContext, draft: &TypedRelease) -> Markup {
    let required = if draft.is_required { "true" } else { "false" };
    let fields = [
        ("version", draft.version.as_str()),
        ("code", &draft.code),
        ("platform", &draft.platform),
        ("url", &draft.url),
        ("notes", &draft.notes),
        ("required", required),
    ];
    html! {
        div.columns {
            div {
                @for language in Language::ALL {
                    section.phone lang=(language.tag()) aria-label=(format!("{} · {}", Text::InTheApp.in_language(language), language.own_name())) {
                        p.hint { (platform(cx, &draft.platform)) }
                        h2 { (texts::new_version(language, &draft.version)) }
                        p.message { (draft.notes) }
                    }
                }
            }
            (panel("publish", cx.t(Text::Publish), &html! {
                @if draft.is_required { (parts::note(Tone::Bad, &html! { p { (cx.t(Text::ForcesUpdateWarning)) } })) }
                (forms::post(cx, &href("releases"), &html! {
                    @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                    div.actions {
                        button.button.primary type="submit" { (cx.t(Text::Publish)) }
                        button.button type="submit" formaction=(href("releases/edit")) { (cx.t(Text::Edit)) }
                    }
                }))
            }))
        }
    }
}
