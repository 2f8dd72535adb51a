//! A page that consists of a list with its filter.

use maud::{Markup, html};

use super::{
    cells::{self, Column},
    context::{BASE, ViewContext},
    format::{self, with_query},
    forms::{Control, Field},
    layout::{self, PageBody, Place},
    lists::{self, Bulk, Filters, ListView, Listing},
    texts::Text,
    words::Worded,
};

/// A field of a list's filter: a parameter with its label.
pub struct FilterField {
    pub name: &'static str,
    label: Text,
    hint: Option<Text>,
    control: Control<'static>,
    /// The values of a choice.
    choices: Vec<Box<dyn Worded>>,
    /// Values that are tabs above the list.
    tabs: Vec<Box<dyn Worded>>,
    /// True if a missing value means the first tab.
    has_default: bool,
}

impl FilterField {
    pub fn new(name: &'static str, label: Text) -> Self {
        let (choices, tabs) = (Vec::new(), Vec::new());
        Self { name, label, hint: None, control: Control::Text, choices, tabs, has_default: false }
    }

    /// Returns the fields of a time range.
    pub fn range(from: Text, to: Text) -> [Self; 2] {
        [("startTime", from), ("endTime", to)].map(|(name, label)| Self::new(name, label).control(Control::Moment))
    }

    pub fn control(self, control: Control<'static>) -> Self {
        Self { control, ..self }
    }

    pub fn hint(self, hint: Text) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// Makes it a choice among values.
    pub fn choice<W: Worded + 'static>(self, values: impl IntoIterator<Item = W>) -> Self {
        Self { choices: boxed(values), ..self }
    }

    /// Makes some values tabs above the list, too.
    pub fn tabs<W: Worded + 'static>(self, values: impl IntoIterator<Item = W>) -> Self {
        Self { tabs: boxed(values), ..self }
    }

    /// Makes it a choice of tabs alone, of which the first one is the default.
    pub fn views<W: Worded + 'static>(self, values: impl IntoIterator<Item = W>) -> Self {
        Self { tabs: boxed(values), has_default: true, ..self }
    }

    /// Returns the control. A choice offers all values.
    fn control_of(&self, cx: &ViewContext) -> Control<'_> {
        if self.choices.is_empty() {
            return self.control.clone();
        }
        let choices = self.choices.iter().map(|value| (value.code(), value.in_words(cx.language).1.to_owned()));
        Control::Select([("", cx.t(Text::All).to_owned())].into_iter().chain(choices).collect())
    }

    /// Returns the tabs: label, address, and true for the current one.
    fn tabs_of(&self, cx: &ViewContext, path: &str, value: &str) -> Vec<(String, String, bool)> {
        let tab = |code: &str, label| (label, with_query(path, &[(self.name, code)]), value == code);
        let word = |value: &dyn Worded| format::capitalized(value.in_words(cx.language).1);
        let mut tabs: Vec<_> = self.tabs.iter().map(|value| tab(value.code(), word(&**value))).collect();
        match tabs.first_mut() {
            Some(first) if self.has_default => first.2 |= value.is_empty(),
            Some(_) => tabs.insert(0, tab("", cx.t(Text::All).to_owned())),
            None => {}
        }
        tabs
    }
}

fn boxed<W: Worded + 'static>(values: impl IntoIterator<Item = W>) -> Vec<Box<dyn Worded>> {
    values.into_iter().map(|value| Box::new(value) as Box<dyn Worded>).collect()
}

/// The parts of a page around its list.
#[derive(Default)]
pub struct Frame {
    pub lead: Option<String>,
    /// Beside the heading.
    pub beside: Markup,
    /// Between filter and list.
    pub above: Markup,
    pub below: Markup,
    pub bulk: Option<Bulk>,
}

/// A page that consists of a list.
pub struct ListPage<'a, R: 'static> {
    pub path: &'a str,
    pub place: Place,
    pub title: Text,
    pub empty: Text,
    /// The fields of the filter.
    pub fields: Vec<FilterField>,
    /// The query of the address.
    pub query: &'a [(String, String)],
    pub columns: &'static [Column<R>],
    pub listing: Listing<R>,
    /// Returns the id of a row that can be picked.
    pub pick: fn(&R) -> Option<String>,
    pub frame: Frame,
}

/// Renders a page that consists of a list.
pub fn page<'a, R>(cx: &ViewContext, page: &'a ListPage<'a, R>) -> Markup {
    let path = page.path;
    let id = path.trim_start_matches(BASE).trim_matches('/').replace('/', "-");
    let value = |name: &str| page.query.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim());
    let query: Vec<_> = page.fields.iter().map(|field| (field.name, value(field.name))).collect();
    let error = |name: &str| match &page.listing {
        Listing::Rejected(faults) => faults.iter().find(|(field, _)| field == name).map(|(_, fault)| fault.as_str()),
        Listing::Rows(_) => None,
    };
    let field = |field: &'a FilterField| {
        let filter = Field::new(field.name, field.label, field.control_of(cx), value(field.name));
        Field { hint: field.hint, error: error(field.name), ..filter }
    };
    let filters = Filters {
        action: path.to_owned(),
        fields: page.fields.iter().filter(|field| !field.has_default).map(field).collect(),
        presets: page.fields.iter().flat_map(|field| field.tabs_of(cx, path, value(field.name))).collect(),
        region: &id,
    };
    let view = ListView {
        id: &id,
        caption: page.title,
        empty: page.empty,
        href: with_query(path, &query),
        bulk: page.frame.bulk.clone(),
        export: Some(with_query(&format!("{path}/export"), &query)),
    };
    let row = |row: &R| {
        let mut cells = cells::cells(cx, page.columns, row);
        if let Some((id, first)) = (page.pick)(row).filter(|_| view.bulk.is_some()).zip(cells.first_mut()) {
            *first = lists::pick(cx, &id, first);
        }
        cells
    };
    let title = cx.t(page.title);
    let body = html! {
        (layout::heading(title, page.frame.lead.as_deref(), &page.frame.beside))
        (lists::filters(cx, &filters))
        (page.frame.above)
        section.card aria-label=(title) { (lists::list(cx, &view, &cells::headings(page.columns), &page.listing, row)) }
        (page.frame.below)
    };
    layout::page(cx, &PageBody::new(title, page.place, body))
}
