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
        forms::{Control, Field, Form},
        layout::{self, PageBody, Place},
        lists::{number, text, time},
        parts::{self, panel},
        texts::{self, Language, Text, Tone},
        words::Worded as _,
    },
};

/// The fields of a notification.
const MESSAGE_FIELDS: [&str; 7] = ["title", "body", "kind", "audience", "to", "expires", "payload"];
/// The fields of a release.
const RELEASE_FIELDS: [&str; 6] = ["version", "versionCode", "platform", "isRequired", "notes", "downloadUrl"];

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
        let form = Form::new(cx, format!("withdraw-{id}"), href(&format!("{page}/{id}/withdraw")));
        form.danger(cx.t(Text::Withdraw), "small", &form.reason())
    })
}

/// Renders the form for a new notification.
pub fn new_message(cx: &ViewContext) -> Markup {
    let form = Form::new(cx, "message", href("messages/preview"));
    let kinds = Control::Select(cx.options(&NotificationKind::ALL));
    let audience = vec![("all", cx.t(Text::ToAll).to_owned()), ("users", cx.t(Text::ToSome).to_owned())];
    let body = Field::new("body", Text::Body, Control::Area, "").required().max_length(2000);
    let fields = html! {
        div.form-grid {
            (form.field(Field::new("title", Text::Title, Control::Text, "").required().max_length(50)))
            (form.field(Field::new("kind", Text::MessageKind, kinds, NotificationKind::default().name()).required()))
            (form.field(Field::new("audience", Text::Audience, Control::Select(audience), "all").required()))
            (form.field(Field::new("to", Text::Recipients, Control::Text, "").hint(Text::RecipientsHint)))
            (form.field(Field::new("expires", Text::Expires, Control::Moment, "")))
            (form.field(Field::new("payload", Text::Payload, Control::Text, "").hint(Text::PayloadHint)))
        }
        (form.field(body))
    };
    panel("new", cx.t(Text::NewMessage), &form.render(cx.t(Text::Preview), &fields))
}

/// Renders a text as apps show it, in both languages.
fn phones(head: impl Fn(Language) -> Markup, title: impl Fn(Language) -> String, text: &str) -> Markup {
    html! {
        div {
            @for language in Language::ALL {
                section.phone lang=(language.tag()) aria-label=(format!("{} · {}", Text::InTheApp.in_language(language), language.own_name())) {
                    p.hint { (head(language)) }
                    h2 { (title(language)) }
                    p.message { (text) }
                }
            }
        }
    }
}

/// Renders the preview of the notification that was typed, for so many users; for none as a broadcast.
pub fn preview(cx: &ViewContext, recipients: Option<ShownCount>) -> Markup {
    let form = Form::new(cx, "message", href("messages")).repeating(&MESSAGE_FIELDS);
    let kind = NotificationKind::from_name(form.value("kind", "")).unwrap_or_default();
    let title = form.value("title", "");
    let head = |language| html! { (kind.in_words(language).1) " · " (Text::Now.in_language(language)) };
    let buttons = html! {
        div.actions {
            button.button.primary type="submit" { (cx.t(Text::SendMessage)) }
            button.button type="submit" formaction=(href("messages/edit")) formnovalidate { (cx.t(Text::Edit)) }
        }
    };
    let body = html! {
        (layout::heading(cx.t(Text::Preview), None, &html! {}))
        div.columns {
            (phones(head, |_| title.to_owned(), form.value("body", "")))
            (panel("send", cx.t(Text::SendMessage), &html! {
                (parts::note(Tone::Notice, &html! { p { @match recipients { Some(count) => (texts::recipients(cx.language, &count.text())), None => (cx.t(Text::SentToAll)) } } }))
                (form.with_button(&form.reason(), &buttons))
            }))
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Preview), Place::Messages, body))
}

/// Renders the form for a new release, or its preview.
pub fn new_release(cx: &ViewContext, is_preview: bool) -> Markup {
    if is_preview { release_preview(cx) } else { panel("new", cx.t(Text::NewRelease), &release_form(cx)) }
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

fn release_form(cx: &ViewContext) -> Markup {
    let form = Form::new(cx, "release", href("releases/preview"));
    let platforms = ["android", "ios", ""].map(|name| (name, platform(cx, name).to_owned())).to_vec();
    let fields = html! {
        div.form-grid {
            (form.field(Field::new("version", Text::Version, Control::Text, "").required()))
            (form.field(Field::new("versionCode", Text::BuildNumber, Control::Digits, "").required()))
            (form.field(Field::new("platform", Text::Platform, Control::Select(platforms), "android")))
            (form.field(Field::new("downloadUrl", Text::DownloadAddress, Control::Text, "")))
        }
        (form.field(Field::new("notes", Text::ReleaseNotes, Control::Area, "").max_length(2000)))
        (form.field(Field::new("isRequired", Text::ForcesUpdate, Control::Checkbox, "")))
    };
    form.render(cx.t(Text::Preview), &fields)
}

/// Returns the name of a platform, or the text for all of them.
fn platform<'a>(cx: &ViewContext, name: &'a str) -> &'a str {
    if name.is_empty() { cx.t(Text::AllPlatforms) } else { texts::code(cx.language, name) }
}

fn release_preview(cx: &ViewContext) -> Markup {
    let form = Form::new(cx, "release", href("releases")).repeating(&RELEASE_FIELDS);
    let (name, version) = (form.value("platform", ""), form.value("version", ""));
    let buttons = html! {
        div.actions {
            button.button.primary type="submit" { (cx.t(Text::Publish)) }
            button.button type="submit" formaction=(href("releases/edit")) { (cx.t(Text::Edit)) }
        }
    };
    html! {
        div.columns {
            (phones(|_| html! { (platform(cx, name)) }, |language| texts::new_version(language, version), form.value("notes", "")))
            (panel("publish", cx.t(Text::Publish), &html! {
                @if form.value("isRequired", "") == "true" { (parts::note(Tone::Bad, &html! { p { (cx.t(Text::ForcesUpdateWarning)) } })) }
                (form.with_button(&html! {}, &buttons))
            }))
        }
    }
}
