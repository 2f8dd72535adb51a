//! The state of one request that every view needs.

use maud::Markup;

pub use crate::domain::operations::admins::roles::{Right, Role};

use super::{
    format::{self, Timestamp, Zone},
    texts::{Language, Text, Tone},
    words::Worded,
};

/// The path below which all pages of the console live.
pub const BASE: &str = "/admin/console";

/// Returns true for the path of a page, or of nothing, in the console.
pub fn is_below(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Light, dark, or the choice of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleTheme {
    System,
    Light,
    Dark,
}

impl ConsoleTheme {
    pub const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// Returns the value of the cookie and of the `data-theme` attribute.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Reads a cookie. Unknown values follow the system.
    pub fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|theme| theme.name() == name).unwrap_or(Self::System)
    }
}

/// The signed-in administrator.
#[derive(Clone, Debug)]
pub struct Viewer {
    pub name: String,
    pub role: Role,
}

/// A message about the last action.
#[derive(Clone, Debug)]
pub struct Flash {
    pub tone: Tone,
    pub text: String,
}

/// A form that its page shows again as it was typed, such as a rejected one.
#[derive(Clone, Debug, Default)]
pub struct KeptForm {
    /// The id of the form, empty for one that is a button.
    pub id: String,
    pub fields: Vec<(String, String)>,
    /// Faults by field.
    pub faults: Vec<(String, String)>,
}

/// Numbers of things that wait for somebody, shown in the navigation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting {
    pub orders: u64,
    pub texts: u64,
    pub feedback: u64,
    pub alerts: u64,
}

/// The state of one request that every view needs.
#[derive(Clone, Debug)]
pub struct ViewContext {
    pub language: Language,
    pub theme: ConsoleTheme,
    pub zone: Zone,
    pub now: Timestamp,
    /// `None` on pages without a session.
    pub viewer: Option<Viewer>,
    /// The token against cross-site requests, sent with every form.
    pub csrf: String,
    /// A fresh idempotency key, sent with every form that changes something.
    pub once: String,
    /// Path and query of the page, for the way back after a change of language or theme.
    pub path: String,
    pub request_id: String,
    pub flash: Vec<Flash>,
    pub kept_form: Option<KeptForm>,
    pub waiting: Waiting,
    /// Seconds without a request after which the session ends.
    pub idle_seconds: u32,
}

impl ViewContext {
    /// Returns the text in the language of the page.
    pub const fn t(&self, text: Text) -> &'static str {
        text.in_language(self.language)
    }

    /// Returns a value in words.
    pub fn word<'value>(&self, value: &'value impl Worded) -> &'value str {
        value.in_words(self.language).1
    }

    /// Returns the options of a choice among values.
    pub fn options<'value, W: Worded + 'value>(
        &self,
        values: impl IntoIterator<Item = &'value W>,
    ) -> Vec<(&'value str, String)> {
        values.into_iter().map(|value| (value.code(), self.word(value).to_owned())).collect()
    }

    /// Returns true if the viewer's role has the right.
    pub fn may(&self, right: Right) -> bool {
        self.viewer.as_ref().is_some_and(|viewer| viewer.role.has(right))
    }

    pub fn is_owner(&self) -> bool {
        self.viewer.as_ref().is_some_and(|viewer| viewer.role == Role::Owner)
    }

    /// Renders a time with its zone.
    pub fn time(&self, at: Timestamp) -> Markup {
        format::time_with_zone(at, &self.zone)
    }

    /// Renders a time for a table whose header names the zone.
    pub fn cell_time(&self, at: Timestamp) -> Markup {
        format::time(at, &self.zone)
    }

    /// Renders the distance of a time from now, with the exact time as its title.
    pub fn ago(&self, at: Timestamp) -> Markup {
        format::ago(at, self.now, &self.zone, self.language)
    }
}

/// Returns the address of a page, with `path` relative to the console.
pub fn href(path: &str) -> String {
    format!("{BASE}/{path}")
}

/// Returns the address of a user's page.
pub fn user_href(id: &str) -> String {
    format!("{BASE}/users/{}", format::encode(id))
}

/// Returns the address of the page of a purchase in an app store.
pub fn purchase_href(id: &str) -> String {
    format!("{BASE}/purchases/{}", format::encode(id))
}

/// Returns the address of an order's page.
pub fn order_href(order_no: &str) -> String {
    format!("{BASE}/orders/{}", format::encode(order_no))
}
