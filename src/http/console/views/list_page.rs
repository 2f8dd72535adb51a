//! A page that consists of a list with its filter.

use maud::{Markup, html};

use super::{
    cells::{self, Column},
    context::{BASE, ViewContext},
    format::{self, with_query},
    forms::{Control, Field},
    layout::{self, PageBody, Place},
    lists::{self, Bulk, Filters, ListView, Listing},
    texts::{self, Text},
};

/// A field of a list's filter: a parameter with its label.
#[derive(Clone, Debug)]
pub struct FilterField {
    pub name: &'static str,
    pub label: Text,
    pub hint: Option<Text>,
    /// Used unless the parameter is a choice.
    pub control: Control<'static>,
    /// Values that are tabs above the list, too.
    pub tabs: &'static [&'static str],
    /// True if a missing value means the first one.
    pub has_default: bool,
}

impl FilterField {
    pub const fn new(name: &'static str, label: Text) -> Self {
        Self { name, label, hint: None, control: Control::Text, tabs: &[], has_default: false }
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

    /// Makes it a choice of tabs alone, of which the first one is the default.
    pub fn views(self, tabs: &'static [&'static str]) -> Self {
        Self { tabs, has_default: true, ..self }
    }

    pub fn tabs(self, tabs: &'static [&'static str]) -> Self {
        Self { tabs, ..self }
    }
}

/// What a page shows around its list.
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
    /// The fields of the filter, each with its values if it is a choice.
    pub fields: Vec<(FilterField, Vec<&'static str>)>,
    /// The query of the address.
    pub query: &'a [(String, String)],
    pub columns: &'static [Column<R>],
    pub listing: Listing<R>,
    /// Returns the id of a row that can be picked.
    pub pick: fn(&R) -> Option<String>,
    pub frame: Frame,
}

/// Renders a page that consists of a list.
pub fn page<R>(cx: &ViewContext, page: &ListPage<'_, R>) -> Markup {
    let path = page.path;
    let id = path.trim_start_matches(BASE).trim_matches('/').replace('/', "-");
    let value = |name: &str| page.query.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim());
    let query: Vec<_> = page.fields.iter().map(|(field, _)| (field.name, value(field.name))).collect();
    let error = |name: &str| match &page.listing {
        Listing::Rejected(faults) => faults.iter().find(|(field, _)| field == name).map(|(_, fault)| fault.as_str()),
        Listing::Rows(_) => None,
    };
    let field = |(field, choices): &(FilterField, Vec<&'static str>)| {
        let filter = Field::new(field.name, field.label, control(cx, field, choices), value(field.name));
        Field { hint: field.hint, error: error(field.name), ..filter }
    };
    let tabs = |(field, _): &(FilterField, Vec<&'static str>)| {
        let tab = |code: &str, label| (label, with_query(path, &[(field.name, code)]), value(field.name) == code);
        let mut tabs: Vec<_> =
            field.tabs.iter().map(|code| tab(code, format::capitalized(texts::code(cx.language, code)))).collect();
        match tabs.first_mut() {
            Some(first) if field.has_default => first.2 |= value(field.name).is_empty(),
            Some(_) => tabs.insert(0, tab("", cx.t(Text::All).to_owned())),
            None => {}
        }
        tabs
    };
    let filters = Filters {
        action: path.to_owned(),
        fields: page.fields.iter().filter(|(field, _)| !field.has_default).map(field).collect(),
        presets: page.fields.iter().flat_map(tabs).collect(),
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

/// Returns the control for a parameter. A choice offers all values.
fn control(cx: &ViewContext, field: &FilterField, choices: &[&'static str]) -> Control<'static> {
    if choices.is_empty() {
        return field.control.clone();
    }
    let choices = choices.iter().map(|code| (*code, texts::code(cx.language, code)));
    let choices = [("", cx.t(Text::All))].into_iter().chain(choices);
    Control::Select(choices.map(|(code, label)| (code, label.to_owned())).collect())
}
