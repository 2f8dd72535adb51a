//! Notifications with preview, and releases of the app.

use maud::{Markup, html};

use crate::{
    domain::{
        identity::preferences::NotificationKind,
        messaging::{notifications::SentNotification, releases::Release},
    },
    http::console::views::{
        cells::{Cell, Column, column},
        context::{Right, ViewContext, href},
        format::ShownCount,
        forms::{self, Control, Field, ProofField, field},
        layout::{self, PageBody, Place},
        lists::{number, text, time},
        parts::{self, panel},
        texts::{self, Language, Text, Tone},
        words::Worded as _,
    },
};

/// The form of a new notification, as typed.
#[derive(Clone, Debug, Default)]
pub struct MessageDraft {
    pub title: String,
    pub body: String,
    pub kind: NotificationKind,
    /// `all` or `users`.
    pub audience: String,
    pub recipients: String,
    pub expires: String,
    pub payload: String,
    /// Errors by field.
    pub errors: Vec<(String, String)>,
}

/// Renders the form for a new notification.
pub fn new_message(cx: &ViewContext, typed: &MessageDraft) -> Markup {
    panel("new", cx.t(Text::NewMessage), &draft(cx, typed))
}

/// The columns of a notification.
pub const MESSAGE: &[Column<SentNotification>] = &[
    column(text(Text::Id), |sent| Cell::Code(sent.notification.id.to_string())),
    column(text(Text::Title), |sent| Cell::text(&sent.notification.title)),
    column(text(Text::Audience), |sent| {
        let audience = Cell::word(if sent.notification.ordinal.is_some() { "all" } else { "users" });
        match sent.recipients {
            Some(count) => audience.explained(Cell::Number(count.into())),
            None => audience,
        }
    }),
    column(text(Text::MessageKind), |sent| Cell::word(sent.notification.kind)),
    column(number(Text::Read), |sent| Cell::Number(sent.readers.into())),
    column(time(Text::Sent), |sent| Cell::Time(sent.notification.created_at)),
    column(time(Text::Expires), |sent| Cell::optional(sent.notification.expires_at, Cell::Time)),
    column(text(Text::Action), |sent| withdrawal("messages", sent.notification.id)),
];

/// Returns the form that withdraws a notification or a release.
fn withdrawal(page: &'static str, id: i64) -> Cell {
    Cell::html(move |cx| {
        let form = html! {
            (forms::reason(cx, &format!("withdraw-{id}"), "", None))
            button.button.danger type="submit" { (cx.t(Text::Withdraw)) }
        };
        let form = forms::post(cx, &href(&format!("{page}/{id}/withdraw")), &form);
        parts::action(cx.t(Text::Withdraw), "small", &form)
    })
}

fn draft(cx: &ViewContext, draft: &MessageDraft) -> Markup {
    let error = |name: &str| draft.errors.iter().find(|(field, _)| field == name).map(|(_, error)| error.as_str());
    let kinds = cx.options(&NotificationKind::ALL);
    let audience = vec![("all", cx.t(Text::ToAll).to_owned()), ("users", cx.t(Text::ToSome).to_owned())];
    forms::post(
        cx,
        &href("messages/preview"),
        &html! {
            div.form-grid {
                (field(cx, &Field::new("title", Text::Title, Control::Text, &draft.title).required().max_length(50).error(error("title"))))
                (field(cx, &Field::new("kind", Text::MessageKind, Control::Select(kinds), draft.kind.name()).required()))
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
    pub recipients: Option<ShownCount>,
    pub reason: String,
    pub reason_error: Option<String>,
    pub step_up: ProofField,
}

/// Renders the preview of a notification.
pub fn preview(cx: &ViewContext, page: &MessagePreview) -> Markup {
    let draft = &page.draft;
    let fields = [
        ("title", draft.title.as_str()),
        ("body", &draft.body),
        ("kind", draft.kind.name()),
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
                        p.hint { (draft.kind.in_words(language).1) " · " (Text::Now.in_language(language)) }
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

/// Renders the form for a new release, or its preview.
pub fn new_release(cx: &ViewContext, draft: &TypedRelease, is_preview: bool) -> Markup {
    if is_preview { release_preview(cx, draft) } else { panel("new", cx.t(Text::NewRelease), &release_form(cx, draft)) }
}

/// The columns of a release.
pub const RELEASE: &[Column<Release>] = &[
    column(text(Text::Id), |release| Cell::Code(release.id.to_string())),
    column(text(Text::Version), |release| {
        let version = Cell::text(&release.version);
        match release.download_url.clone().filter(|url| !url.is_empty()) {
            Some(url) => version.link(url, Right::Administer),
            None => version,
        }
    }),
    column(number(Text::BuildNumber), |release| Cell::text(release.version_code.to_string())),
    column(text(Text::Platform), |release| match &release.platform {
        Some(platform) => Cell::word(platform.clone()),
        None => Cell::Label(Text::AllPlatforms),
    }),
    column(text(Text::State), |release| {
        Cell::state(match (release.withdrawn_at, release.is_required) {
            (Some(_), _) => "withdrawn",
            (None, true) => "required",
            (None, false) => "published",
        })
    }),
    column(text(Text::ReleaseNotes), |release| Cell::text(&release.notes)),
    column(time(Text::Published), |release| Cell::Time(release.published_at)),
    column(text(Text::Action), |release| match release.withdrawn_at {
        Some(_) => Cell::Absent,
        None => withdrawal("releases", release.id),
    }),
];

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
