//! Columns of lists, and their values as data. The kind of a value decides how pages, CSV files and commands show it.

use maud::{Markup, html};

use super::{
    context::{Right, ViewContext, purchase_href},
    format::{self, ShownMoney, Timestamp},
    lists::{self, Heading},
    parts,
    texts::{self, Language, Text, Tone},
    words::Worded,
};
use crate::types::UserId;

/// A column of a list.
pub struct Column<R: 'static> {
    pub heading: Heading,
    pub cell: fn(&R) -> Cell,
}

pub const fn column<R>(heading: Heading, cell: fn(&R) -> Cell) -> Column<R> {
    Column { heading, cell }
}

/// A value of a row.
pub enum Cell {
    Absent,
    Text(String),
    /// A text by a user.
    Quoted(String),
    /// A technical name, such as a route.
    Code(String),
    Actor(String),
    Id(String),
    TraceId(String),
    /// A value in words, as text or as a badge.
    Word(Box<dyn Worded>),
    State(Box<dyn Worded>),
    Time(Timestamp),
    User(UserId),
    Order(String),
    /// The id of a purchase in an app store, and its product.
    Purchase(String, Option<String>),
    /// A text of the console.
    Label(Text),
    Badge(Tone, Text),
    /// The id of the callback that was repeated.
    ReplayOf(String),
    Number(i64),
    /// A number with its sign.
    Change(i64),
    Money(ShownMoney),
    Microseconds(i64),
    Milliseconds(i64),
    /// The status of a response.
    Status(u16),
    /// A value with a link to a page, for roles that may open it.
    Link(Box<Self>, String, Right),
    /// A value, and what explains it.
    Explained(Box<Self>, Box<Self>),
    /// Anything else, such as a form. Files and commands leave it out.
    Html(Box<dyn Fn(&ViewContext) -> Markup>),
}

impl Cell {
    /// Returns a cell of a value that may be missing.
    pub fn optional<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Absent, cell)
    }

    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::Absent } else { Self::Text(text) }
    }

    pub fn html(render: impl Fn(&ViewContext) -> Markup + 'static) -> Self {
        Self::Html(Box::new(render))
    }

    pub fn word(value: impl Worded + 'static) -> Self {
        Self::Word(Box::new(value))
    }

    pub fn state(value: impl Worded + 'static) -> Self {
        Self::State(Box::new(value))
    }

    pub fn link(self, href: String, right: Right) -> Self {
        Self::Link(self.into(), href, right)
    }

    pub fn explained(self, explanation: Self) -> Self {
        Self::Explained(self.into(), explanation.into())
    }

    /// Renders the value for a page.
    pub fn markup(&self, cx: &ViewContext) -> Markup {
        match self {
            Self::Absent => parts::dash(cx),
            Self::Quoted(text) => html! { span.quoted { (text) } },
            Self::Code(name) => html! { code { (name) } },
            Self::Actor(name) => html! { code.actor { (name) } },
            Self::Id(id) => html! { code.id { (id) } },
            Self::TraceId(id) => html! { code.id.trace { (id) } },
            Self::State(state) => parts::state(cx, &**state),
            Self::Time(at) => cx.cell_time(*at),
            Self::User(user) => parts::user_link(cx, &user.to_string()),
            Self::Order(number) => parts::order_link(cx, number),
            Self::Purchase(id, product) => {
                html! { a href=(purchase_href(id)) { code { (product.as_ref().unwrap_or(id)) } } }
            }
            Self::Badge(tone, label) => parts::badge(*tone, cx.t(*label)),
            Self::Html(render) => render(cx),
            Self::Change(delta) => {
                html! { span.change.(if *delta < 0 { "minus" } else { "plus" }) { (format::change(*delta)) } }
            }
            Self::Status(status) => {
                html! { span.status.(match status { 500.. => "st5", 400.. => "st4", _ => "st2" }) { (status) } }
            }
            Self::Link(cell, href, right) => {
                html! { @if cx.may(*right) { a href=(href) { (cell.markup(cx)) } } @else { (cell.markup(cx)) } }
            }
            Self::Explained(cell, explanation) => {
                html! { (cell.markup(cx)) " " span.hint { (explanation.markup(cx)) } }
            }
            Self::Number(number) => html! { (format::number(*number)) },
            Self::Money(amount) => html! { (amount.text()) },
            Self::Microseconds(duration) => html! { (format::duration(*duration)) },
            Self::Milliseconds(duration) => html! { (format::milliseconds(*duration)) },
            Self::Text(_) | Self::Word(_) | Self::Label(_) | Self::ReplayOf(_) => html! { (self.csv(cx)) },
        }
    }

    /// Returns the value for a file that a spreadsheet reads: numbers without groups, times in the zone of the page.
    pub fn csv(&self, cx: &ViewContext) -> String {
        match self {
            Self::Word(value) | Self::State(value) => value.in_words(cx.language).1.to_owned(),
            Self::Time(at) => format::local(*at, &cx.zone),
            Self::Label(label) | Self::Badge(_, label) => cx.t(*label).to_owned(),
            Self::Purchase(id, product) => product.as_ref().unwrap_or(id).clone(),
            Self::ReplayOf(id) => texts::replay_of(cx.language, id),
            Self::Link(cell, ..) => cell.csv(cx),
            Self::Explained(cell, explanation) => format!("{} {}", cell.csv(cx), explanation.csv(cx)),
            _ => self.plain(),
        }
    }

    /// Returns the value as commands print it.
    pub fn plain(&self) -> String {
        match self {
            Self::Absent | Self::Html(_) => String::new(),
            Self::Text(text)
            | Self::Quoted(text)
            | Self::Code(text)
            | Self::Actor(text)
            | Self::Id(text)
            | Self::TraceId(text)
            | Self::Order(text)
            | Self::ReplayOf(text) => text.clone(),
            Self::Purchase(id, None) => id.clone(),
            Self::Purchase(id, Some(product)) => format!("{id} ({product})"),
            Self::Label(label) | Self::Badge(_, label) => label.in_language(Language::English).to_owned(),
            Self::Word(value) | Self::State(value) => value.code().to_owned(),
            Self::Time(at) => at.to_string(),
            Self::User(user) => user.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Change(delta) => format!("{delta:+}"),
            Self::Money(amount) => amount.csv(),
            Self::Microseconds(duration) => format::duration(*duration),
            Self::Milliseconds(duration) => format::milliseconds(*duration),
            Self::Status(status) => status.to_string(),
            Self::Link(cell, ..) => cell.plain(),
            Self::Explained(cell, explanation) => format!("{} ({})", cell.plain(), explanation.plain()),
        }
    }
}

impl<R> Column<R> {
    /// Returns true for columns without acts, which are part of files.
    pub const fn is_data(&self) -> bool {
        !matches!(self.heading.title, Text::Action | Text::Actions)
    }
}

/// Renders rows as a table, or a text if there are none.
pub fn table_or<R: 'static>(cx: &ViewContext, empty: Text, caption: Text, columns: &[Column<R>], rows: &[R]) -> Markup {
    html! { @if rows.is_empty() { p.empty { (cx.t(empty)) } } @else { (table(cx, caption, columns, rows)) } }
}

/// Renders rows as a table.
pub fn table<'rows, R: 'static>(
    cx: &ViewContext,
    caption: Text,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = &'rows R>,
) -> Markup {
    lists::table(cx, caption, &headings(columns), rows.into_iter().map(|row| cells(cx, columns, row)))
}

pub fn headings<R>(columns: &[Column<R>]) -> Vec<Heading> {
    columns.iter().map(|column| column.heading).collect()
}

/// Renders the cells of a row.
pub fn cells<R>(cx: &ViewContext, columns: &[Column<R>], row: &R) -> Vec<Markup> {
    columns.iter().map(|column| (column.cell)(row).markup(cx)).collect()
}

/// Renders the value of a row in the column with a title.
pub fn value<R>(cx: &ViewContext, columns: &[Column<R>], title: Text, row: &R) -> Markup {
    let column = columns.iter().find(|column| column.heading.title == title);
    column.map_or_else(|| parts::dash(cx), |column| (column.cell)(row).markup(cx))
}
