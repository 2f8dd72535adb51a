//! The shell of every page: head, navigation, search, account menu, messages.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    assets,
    context::{ConsoleTheme, Role, ViewContext, href},
    lists,
    parts::{Icon, icon},
    texts::{self, Language, Text, Tone},
};

/// A page of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Overview,
    Users,
    Growth,
    Models,
    Orders,
    Purchases,
    Revenue,
    Violations,
    Review,
    Words,
    Compare,
    Feedback,
    Messages,
    Releases,
    Health,
    NetworkLog,
    Log,
    Audit,
    Administrators,
    Keys,
    Settings,
    Cleanup,
}

impl Place {
    pub const fn title(self) -> Text {
        match self {
            Self::Overview => Text::Overview,
            Self::Users => Text::Users,
            Self::Growth => Text::Growth,
            Self::Models => Text::Models,
            Self::Orders => Text::Orders,
            Self::Purchases => Text::Purchases,
            Self::Revenue => Text::Revenue,
            Self::Violations => Text::Violations,
            Self::Review => Text::ReviewQueue,
            Self::Words => Text::WordList,
            Self::Compare => Text::Services,
            Self::Feedback => Text::Feedback,
            Self::Messages => Text::Messages,
            Self::Releases => Text::Releases,
            Self::Health => Text::Health,
            Self::NetworkLog => Text::NetworkLog,
            Self::Log => Text::ServerLog,
            Self::Audit => Text::Audit,
            Self::Administrators => Text::Administrators,
            Self::Keys => Text::ApiKeys,
            Self::Settings => Text::Settings,
            Self::Cleanup => Text::DataCleanup,
        }
    }

    /// Returns the path below the console.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Overview => "",
            Self::Users => "users",
            Self::Growth => "growth",
            Self::Models => "models",
            Self::Orders => "orders",
            Self::Purchases => "purchases",
            Self::Revenue => "revenue",
            Self::Violations => "moderation",
            Self::Review => "moderation/review",
            Self::Words => "moderation/words",
            Self::Compare => "moderation/services",
            Self::Feedback => "feedback",
            Self::Messages => "messages",
            Self::Releases => "releases",
            Self::Health => "health",
            Self::NetworkLog => "network-log",
            Self::Log => "logs",
            Self::Audit => "audit",
            Self::Administrators => "administrators",
            Self::Keys => "keys",
            Self::Settings => "settings",
            Self::Cleanup => "cleanup",
        }
    }

    const fn waiting(self, cx: &ViewContext) -> u64 {
        match self {
            Self::Orders => cx.waiting.orders,
            Self::Review => cx.waiting.texts,
            Self::Feedback => cx.waiting.feedback,
            Self::Health => cx.waiting.alerts,
            _ => 0,
        }
    }

    /// Returns true if the role can open the page.
    pub const fn is_open_to(self, role: Role) -> bool {
        match self {
            Self::Overview | Self::Growth | Self::Models | Self::Revenue | Self::Health => true,
            Self::Orders | Self::Purchases | Self::Feedback | Self::NetworkLog => {
                matches!(role, Role::Owner | Role::Support)
            }
            Self::Violations | Self::Review | Self::Words | Self::Compare => {
                matches!(role, Role::Owner | Role::Moderator)
            }
            Self::Users | Self::Audit => !matches!(role, Role::ReadOnly),
            Self::Messages
            | Self::Releases
            | Self::Log
            | Self::Administrators
            | Self::Keys
            | Self::Settings
            | Self::Cleanup => matches!(role, Role::Owner),
        }
    }
}

/// An entry of the navigation: pages that are tabs of each other.
struct Entry {
    title: Text,
    places: &'static [Place],
}

const fn entry(title: Text, places: &'static [Place]) -> Entry {
    Entry { title, places }
}

/// The entries before the areas.
const HOME: [(Icon, Entry); 2] = [
    (Icon::Overview, entry(Text::Overview, &[Place::Overview])),
    (Icon::Figures, entry(Text::Figures, &[Place::Growth, Place::Revenue, Place::Models])),
];

/// The areas with their entries.
const AREAS: [(Text, Icon, &[Entry]); 5] = [
    (Text::AreaIdentity, Icon::Users, &[entry(Text::Users, &[Place::Users])]),
    (Text::AreaMoney, Icon::Money, &[entry(Text::Orders, &[Place::Orders, Place::Purchases])]),
    (
        Text::AreaModeration,
        Icon::Moderation,
        &[
            entry(Text::Violations, &[Place::Violations, Place::Review]),
            entry(Text::WordList, &[Place::Words, Place::Compare]),
        ],
    ),
    (
        Text::AreaMessaging,
        Icon::Messaging,
        &[entry(Text::Feedback, &[Place::Feedback]), entry(Text::Messages, &[Place::Messages, Place::Releases])],
    ),
    (
        Text::AreaOperations,
        Icon::Operations,
        &[
            entry(Text::Health, &[Place::Health]),
            entry(Text::Logs, &[Place::Log, Place::NetworkLog]),
            entry(Text::Audit, &[Place::Audit]),
            entry(Text::Administrators, &[Place::Administrators, Place::Keys]),
            entry(Text::Settings, &[Place::Settings, Place::Cleanup]),
        ],
    ),
];

impl Entry {
    fn open_to(&self, role: Role) -> impl Iterator<Item = Place> + '_ {
        self.places.iter().copied().filter(move |place| place.is_open_to(role))
    }

    fn waiting(&self, cx: &ViewContext) -> u64 {
        self.places.iter().map(|place| place.waiting(cx)).sum()
    }
}

/// The contents of a page.
#[derive(Debug)]
pub struct PageBody {
    pub title: String,
    /// The current page of the navigation.
    pub place: Option<Place>,
    pub has_charts: bool,
    /// True if regions refresh themselves, so that a switch to stop them is shown.
    pub is_live: bool,
    pub body: Markup,
}

impl PageBody {
    pub fn new(title: impl Into<String>, place: Place, body: Markup) -> Self {
        Self { title: title.into(), place: Some(place), has_charts: false, is_live: false, body }
    }

    pub fn with_charts(mut self) -> Self {
        self.has_charts = true;
        self
    }

    pub fn live(mut self) -> Self {
        self.is_live = true;
        self
    }
}

/// Renders a page with navigation.
pub fn page(cx: &ViewContext, page: &PageBody) -> Markup {
    document(
        cx,
        &page.title,
        page.has_charts,
        &html! {
            a.skip href="#main" { (cx.t(Text::SkipToContent)) }
            header.top {
                button.icon.menu-button type="button" popovertarget="nav" aria-label=(cx.t(Text::Menu)) { (icon(Icon::Menu)) }
                a.brand href=(href("")) { (icon(Icon::Brand)) span { (cx.t(Text::ProductName)) } }
                (search(cx))
                (account(cx))
            }
            (palette(cx))
            (navigation(cx, page.place))
            main id="main" tabindex="-1" {
                (tabs(cx, page))
                (flash(cx))
                div.session-lost.note.notice id="session-lost" hidden role="alert" {
                    p { strong { (cx.t(Text::SessionEnded)) } " " (cx.t(Text::TypedTextIsKept)) }
                    p { a.button.primary href={ (href("sign-in")) "?ended=1&next=" (super::format::encode(&cx.path)) } { (cx.t(Text::SignIn)) } }
                }
                (page.body)
            }
            footer.foot {
                p { (texts::times_in(cx.language, &cx.zone.name, &cx.zone.label())) }
                @if page.is_live { p { button.button.small type="button" hidden data-live data-on=(cx.t(Text::LiveOn)) data-off=(cx.t(Text::LiveOff)) aria-pressed="true" { (cx.t(Text::LiveOn)) } } }
                p.quiet { (cx.t(Text::RequestId)) ": " code { (cx.request_id) } }
            }
        },
    )
}

/// Renders a page without navigation, for visitors who are not signed in.
pub fn bare(cx: &ViewContext, title: &str, body: &Markup) -> Markup {
    document(
        cx,
        title,
        false,
        &html! {
            a.skip href="#main" { (cx.t(Text::SkipToContent)) }
            main.bare id="main" tabindex="-1" {
                p.brand { (icon(Icon::Brand)) span { (cx.t(Text::ProductName)) } }
                (flash(cx))
                (body)
                (preferences(cx))
            }
        },
    )
}

/// Renders an error with its code and request id.
pub fn error(cx: &ViewContext, status: u16, code: &str, detail: &str) -> Markup {
    let title = texts::status(cx.language, status);
    let body = html! {
        div.narrow.error-page {
            h1 { (title) }
            p { (detail) }
            dl.facts {
                div { dt { (cx.t(Text::Status)) } dd { (status) } }
                div { dt { (cx.t(Text::ErrorCode)) } dd { code { (code) } } }
                div { dt { (cx.t(Text::RequestId)) } dd { (super::parts::copyable(cx, &cx.request_id)) } }
            }
            p.hint { (cx.t(Text::QuoteRequestId)) }
            div.actions { a.button.primary href=(href("")) { (cx.t(Text::Overview)) } a.button href=(cx.path) { (cx.t(Text::TryAgain)) } }
        }
    };
    if cx.viewer.is_some() {
        page(cx, &PageBody { title: title.to_owned(), place: None, has_charts: false, is_live: false, body })
    } else {
        bare(cx, title, &body)
    }
}

/// Renders the page that a navigation from another site receives: it requests itself again from this site, so that the
/// browser sends the session cookie.
pub fn reload(cx: &ViewContext, address: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(cx.language.tag()) {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0; url=" (address) };
                title { (cx.t(Text::ProductName)) }
            }
            body { p { a href=(address) { (cx.t(Text::Continue)) } } }
        }
    }
}

fn document(cx: &ViewContext, title: &str, has_charts: bool, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(cx.language.tag()) data-theme=(cx.theme.name()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(color_scheme(cx.theme));
                meta name="referrer" content="same-origin";
                meta name="robots" content="noindex, nofollow";
                // No styles or scripts of htmx's own; errors are announced and not swapped into the page.
                meta name="htmx-config" content=(PreEscaped("{&quot;includeIndicatorCSS&quot;:false,&quot;noSwap&quot;:[204,304,&quot;4xx&quot;,&quot;5xx&quot;],&quot;defaultTimeout&quot;:20000}"));
                title { (title) " · " (cx.t(Text::ProductName)) }
                link rel="icon" type="image/svg+xml" href=(assets::href(assets::ICON));
                link rel="stylesheet" href=(assets::href(assets::STYLE));
                // The style sheet comes first on slow networks.
                script src=(assets::href(assets::HTMX)) defer fetchpriority="low" {}
                @if has_charts { script src=(assets::href(assets::UPLOT)) defer fetchpriority="low" {} }
                script src=(assets::href(assets::SCRIPT)) defer fetchpriority="low" {}
            }
            body data-idle=[cx.viewer.as_ref().map(|_| cx.idle_seconds)] data-failed=(cx.t(Text::RefreshFailed)) data-restored=(cx.t(Text::TypedTextRestored)) {
                (body)
                div.sr id="announce" role="status" aria-live="polite" {}
            }
        }
    }
}

const fn color_scheme(theme: ConsoleTheme) -> &'static str {
    match theme {
        ConsoleTheme::System => "light dark",
        ConsoleTheme::Light => "light",
        ConsoleTheme::Dark => "dark",
    }
}

fn search(cx: &ViewContext) -> Markup {
    html! {
        form.search role="search" method="get" action=(href("search")) {
            label.sr for="q" { (cx.t(Text::SearchLabel)) }
            (icon(Icon::Search))
            input id="q" name="q" type="search" required placeholder=(cx.t(Text::SearchPlaceholder)) autocomplete="off" spellcheck="false" aria-keyshortcuts="/ Control+K";
            button.sr-until-focus type="submit" { (cx.t(Text::Search)) }
        }
    }
}

/// Acts that the palette offers: their form on a page.
const ACTS: [(Text, Place, &str); 7] = [
    (Text::NewMessage, Place::Messages, "new"),
    (Text::AddWord, Place::Words, "add"),
    (Text::TestText, Place::Words, "test"),
    (Text::AllowPhrase, Place::Words, "allowed"),
    (Text::NewRelease, Place::Releases, "new"),
    (Text::NewAdministrator, Place::Administrators, "new"),
    (Text::NewKey, Place::Keys, "new"),
];

/// Renders the palette of pages, acts, people and orders, and the list of keys. The script opens both.
fn palette(cx: &ViewContext) -> Markup {
    let Some(viewer) = &cx.viewer else { return html! {} };
    let in_areas = AREAS.iter().flat_map(|(_, _, entries)| entries.iter());
    let places = HOME.iter().map(|(_, entry)| entry).chain(in_areas).flat_map(|entry| entry.open_to(viewer.role));
    let acts = ACTS.iter().filter(|(_, place, _)| place.is_open_to(viewer.role));
    let keys = [
        ("/", Text::Palette),
        ("ctrl+k", Text::Palette),
        ("↑ ↓ ↵", Text::KeyChoose),
        ("esc", Text::Close),
        ("?", Text::KeyHelp),
    ];
    html! {
        dialog.palette id="palette" aria-label=(cx.t(Text::Palette)) {
            form.search role="search" method="get" action=(href("search")) {
                (icon(Icon::Search))
                input name="q" type="search" required aria-label=(cx.t(Text::Palette)) placeholder=(cx.t(Text::SearchPlaceholder)) autocomplete="off" spellcheck="false" hx-get=(href("search/suggest")) hx-trigger="input changed delay:200ms" hx-target="#found";
            }
            div id="found" aria-live="polite" {}
            ul.choices-list {
                @for place in places { li { a href=(href(place.path())) { (cx.t(place.title())) } } }
                @for (act, place, id) in acts { li { a href={ (href(place.path())) "#" (id) } { (cx.t(*act)) span.hint { (cx.t(place.title())) } } } }
            }
        }
        dialog.palette id="keys" aria-labelledby="keys-title" {
            h2 id="keys-title" { (cx.t(Text::KeyHelp)) }
            dl.facts { @for (key, text) in keys { div { dt { kbd { (key) } } dd { (cx.t(text)) } } } }
            form method="dialog" { button.button type="submit" { (cx.t(Text::Close)) } }
        }
    }
}

fn account(cx: &ViewContext) -> Markup {
    html! {
        @if let Some(viewer) = &cx.viewer {
            details.account {
                summary {
                    span.sr { (cx.t(Text::Account)) }
                    span.avatar aria-hidden="true" { (viewer.name.chars().next().unwrap_or('?').to_uppercase()) }
                    span.who { span { (viewer.name) } span.role { (cx.word(&viewer.role)) } }
                }
                div.menu {
                    p.signed-in { strong { (viewer.name) } br; span.hint { (cx.word(&viewer.role)) } }
                    (preferences(cx))
                    (super::forms::button(cx, &href("sign-out"), cx.t(Text::SignOut), "wide"))
                }
            }
        }
    }
}

/// Renders the choice of language and theme. The server keeps it in cookies, so that pages appear in it at once.
fn preferences(cx: &ViewContext) -> Markup {
    html! {
        form.preferences method="post" action=(href("preferences")) {
            input type="hidden" name="csrf" value=(cx.csrf);
            input type="hidden" name="back" value=(cx.path);
            fieldset {
                legend { (cx.t(Text::LanguageLabel)) }
                div.segments { @for language in Language::ALL {
                    button type="submit" name="language" value=(language.tag()) lang=(language.tag()) aria-pressed=(language == cx.language) { (language.own_name()) }
                } }
            }
            fieldset {
                legend { (cx.t(Text::ThemeLabel)) }
                div.segments { @for theme in ConsoleTheme::ALL {
                    button type="submit" name="theme" value=(theme.name()) aria-pressed=(theme == cx.theme) { (cx.t(theme_text(theme))) }
                } }
            }
        }
    }
}

const fn theme_text(theme: ConsoleTheme) -> Text {
    match theme {
        ConsoleTheme::System => Text::ThemeSystem,
        ConsoleTheme::Light => Text::ThemeLight,
        ConsoleTheme::Dark => Text::ThemeDark,
    }
}

fn navigation(cx: &ViewContext, current: Option<Place>) -> Markup {
    let Some(viewer) = &cx.viewer else { return html! {} };
    let link = |entry: &Entry, place: Place, picture: Option<Icon>| {
        let waiting = entry.waiting(cx);
        let is_current = current.is_some_and(|current| entry.places.contains(&current));
        html! {
            a href=(href(place.path())) aria-current=[is_current.then_some("page")] {
                @if let Some(picture) = picture { (icon(picture)) }
                span { (cx.t(entry.title)) }
                @if waiting > 0 { span.count { (waiting.min(999)) span.sr { " " (cx.t(Text::WaitingSuffix)) } } }
            }
        }
    };
    html! {
        nav.side id="nav" popover aria-label=(cx.t(Text::Areas)) {
            button.icon.close type="button" popovertarget="nav" popovertargetaction="hide" aria-label=(cx.t(Text::Close)) { (icon(Icon::Close)) }
            ul.home { @for (picture, entry) in &HOME { li { (link(entry, entry.places[0], Some(*picture))) } } }
            @for (title, picture, entries) in AREAS {
                @let open: Vec<_> = entries.iter().filter_map(|entry| Some((entry, entry.open_to(viewer.role).next()?))).collect();
                @if !open.is_empty() {
                    h2 { (icon(picture)) (cx.t(title)) }
                    ul { @for (entry, place) in open { li { (link(entry, place, None)) } } }
                }
            }
        }
    }
}

/// Renders the pages of the current entry as tabs, on the pages themselves and not on those below them.
fn tabs(cx: &ViewContext, page: &PageBody) -> Markup {
    let current = page.place.filter(|place| page.title == cx.t(place.title()));
    let in_areas = AREAS.iter().flat_map(|(_, _, entries)| entries.iter());
    let entry = HOME
        .iter()
        .map(|(_, entry)| entry)
        .chain(in_areas)
        .find(|entry| current.is_some_and(|current| entry.places.contains(&current)));
    let places: Vec<_> = match (entry, &cx.viewer) {
        (Some(entry), Some(viewer)) => entry.open_to(viewer.role).collect(),
        _ => Vec::new(),
    };
    let tab = |place: &Place| {
        let waiting = place.waiting(cx);
        let title = cx.t(place.title());
        let title = if waiting > 0 { format!("{title} ({waiting})") } else { title.to_owned() };
        (title, href(place.path()), current == Some(*place))
    };
    html! { @if places.len() > 1 { div.entry { (lists::tabs(cx, Text::Areas, &places.iter().map(tab).collect::<Vec<_>>())) } } }
}

fn flash(cx: &ViewContext) -> Markup {
    html! {
        @for flash in &cx.flash {
            div.note.flash.(flash.tone.class()) role=(if flash.tone == Tone::Bad { "alert" } else { "status" }) data-kept-done[flash.tone == Tone::Good] { p { (flash.text) } }
        }
    }
}

/// Renders the heading of a page, with links or buttons beside it.
pub fn heading(title: &str, lead: Option<&str>, beside: &Markup) -> Markup {
    html! {
        div.page-head {
            div { h1 { (title) } @if let Some(lead) = lead { p.lead { (lead) } } }
            div.actions { (beside) }
        }
    }
}
