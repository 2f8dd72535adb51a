//! Lists: tables that become cards on narrow screens, their states, filters and pagers.

use maud::{Markup, html};

use super::{
    context::ViewContext,
    format::{ShownCount, with_query},
    forms::{Field, Form, field},
    parts,
    texts::{self, Text},
};
use crate::types::{PageRequest, Paginated};

/// The alignment and the header of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// Right-aligned digits.
    Number,
    /// A time; the header names the zone.
    Time,
}

/// The header of a column.
#[derive(Clone, Copy, Debug)]
pub struct Heading {
    pub title: Text,
    pub kind: Kind,
}

pub const fn text(title: Text) -> Heading {
    Heading { title, kind: Kind::Text }
}

pub const fn number(title: Text) -> Heading {
    Heading { title, kind: Kind::Number }
}

pub const fn time(title: Text) -> Heading {
    Heading { title, kind: Kind::Time }
}

impl Heading {
    const fn class(self) -> &'static str {
        match self.kind {
            Kind::Text => "txt",
            Kind::Number => "num",
            Kind::Time => "time",
        }
    }

    pub fn header(self, cx: &ViewContext) -> String {
        match self.kind {
            Kind::Time => format!("{} ({})", cx.t(self.title), cx.zone.label()),
            _ => cx.t(self.title).to_owned(),
        }
    }
}

/// The rows of a list, or the state of a list without rows.
#[derive(Clone, Debug)]
pub enum Listing<T> {
    /// A filter could not be read, so nothing is listed: fields with their faults.
    Rejected(Vec<(String, String)>),
    Rows(Rows<T>),
}

impl<T> Listing<T> {
    /// Returns the list of a filter with faults, or none for a valid filter.
    pub fn rejected(faults: &[(String, String)]) -> Option<Self> {
        (!faults.is_empty()).then(|| Self::Rejected(faults.to_vec()))
    }
}

/// One page of rows.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    pub items: Vec<T>,
    /// The number of rows on all pages, if it is known.
    pub total: Option<ShownCount>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// True if this is not the first page.
    pub is_later: bool,
}

impl<T> Rows<T> {
    /// Returns a list that fits on one page.
    pub fn all(items: Vec<T>) -> Self {
        let total = Some(ShownCount::exact(items.len() as u64));
        Self { items, total, next: None, is_later: false }
    }

    /// Returns a numbered page, whose cursor is the next number.
    pub fn numbered(page: PageRequest, found: Paginated<T>) -> Self {
        let total = u64::try_from(found.total).unwrap_or(0);
        let is_last = u64::from(page.number) * u64::from(page.size) >= total;
        Self {
            items: found.items,
            total: Some(ShownCount::exact(total)),
            next: (!is_last).then(|| (page.number + 1).to_string()),
            is_later: page.number > 1,
        }
    }
}

/// The heading, address and text of a list.
#[derive(Clone, Debug)]
pub struct ListView<'a> {
    /// The id of the region that a filter or the pager replaces.
    pub id: &'a str,
    pub caption: Text,
    pub empty: Text,
    /// The address of the list with its filters and without the cursor.
    pub href: String,
    /// The acts on picked rows.
    pub bulk: Option<Bulk>,
    /// The address to which the form of the CSV export posts.
    pub export: Option<String>,
}

/// An act on picked rows, in a form under the table.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// The address of the form.
    pub action: String,
    /// The fields and buttons under the table.
    pub controls: Markup,
}

/// Renders the box that picks a row. It names its form, because rows have forms of their own, and forms cannot be nested.
pub fn pick_box(cx: &ViewContext, id: &str) -> Markup {
    html! { label.pick { input type="checkbox" name="id" value=(id) form="bulk"; span.sr { (cx.t(Text::Pick)) " " (id) } } }
}

/// Renders a cell with the box that picks its row.
pub fn pick(cx: &ViewContext, id: &str, cell: &Markup) -> Markup {
    html! { span.pick-row { (pick_box(cx, id)) (cell) } }
}

/// Renders a list in any of its states, with number of rows and pager.
pub fn list<T>(
    cx: &ViewContext,
    view: &ListView<'_>,
    columns: &[Heading],
    listing: &Listing<T>,
    row: impl Fn(&T) -> Vec<Markup>,
) -> Markup {
    html! {
        div.list-region id=(view.id) tabindex="-1" {
            @match listing {
                Listing::Rejected(faults) => (rejected_filter(cx, faults)),
                Listing::Rows(rows) => {
                    (head(cx, view, rows.total, rows.items.is_empty()))
                    @if rows.items.is_empty() { p.empty { (cx.t(view.empty)) } }
                    @else {
                        (table(cx, view.caption, columns, rows.items.iter().map(row)))
                        @if let Some(bulk) = &view.bulk { (bulk_form(cx, bulk)) }
                    }
                    (pager(cx, view, rows.next.as_deref(), rows.is_later))
                }
            }
        }
    }
}

/// Renders the number of rows beside the export.
fn head(cx: &ViewContext, view: &ListView<'_>, total: Option<ShownCount>, is_empty: bool) -> Markup {
    let total = total.map(|total| texts::rows(cx.language, &total.text()));
    html! {
        div.list-head {
            @if let Some(total) = total { p.total.sr[is_empty] data-announce=(total) { (total) } }
            @if let Some(address) = view.export.as_ref().filter(|_| !is_empty) { (export(cx, view.id, address)) }
        }
    }
}

/// Renders the form of the CSV export, whose reason the audit keeps.
pub fn export(cx: &ViewContext, id: &str, address: &str) -> Markup {
    let form = Form::new(cx, format!("{id}-export"), address).download();
    form.act(cx.t(Text::ExportCsv), "small", &form.reason())
}

/// Renders the faults of a filter in place of its rows. The script replaces only this region, so it tells them too.
pub fn rejected_filter(cx: &ViewContext, faults: &[(String, String)]) -> Markup {
    html! {
        div.note.bad role="alert" {
            p { strong { (cx.t(Text::FilterRejected)) } }
            @for (_, fault) in faults { p { (fault) } }
        }
    }
}

/// Renders a table. The first column heads the row, and the card on narrow screens.
pub fn table(
    cx: &ViewContext,
    caption: Text,
    columns: &[Heading],
    rows: impl IntoIterator<Item = Vec<Markup>>,
) -> Markup {
    table_of(cx, caption, columns, rows, "cards")
}

/// Renders a table of few short columns, which stays a table on narrow screens.
pub fn compact_table(
    cx: &ViewContext,
    caption: Text,
    columns: &[Heading],
    rows: impl IntoIterator<Item = Vec<Markup>>,
) -> Markup {
    table_of(cx, caption, columns, rows, "compact")
}

fn table_of(
    cx: &ViewContext,
    caption: Text,
    columns: &[Heading],
    rows: impl IntoIterator<Item = Vec<Markup>>,
    class: &str,
) -> Markup {
    html! {
        div.table-box {
            table.(class) role="table" {
                caption.sr { (cx.t(caption)) }
                thead role="rowgroup" { tr role="row" {
                    @for column in columns { th.(column.class()) scope="col" role="columnheader" { (column.header(cx)) } }
                } }
                tbody role="rowgroup" {
                    @for row in rows {
                        tr role="row" {
                            @for (index, (cell, column)) in row.iter().zip(columns).enumerate() {
                                @if index == 0 { th.(column.class()) scope="row" role="rowheader" { div.cell { (cell) } } }
                                @else { td.(column.class()) role="cell" data-label=(column.header(cx)) { div.cell { (cell) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the form for the picked rows of a page.
pub fn bulk_form(cx: &ViewContext, bulk: &Bulk) -> Markup {
    html! {
        form.bulk id="bulk" method="post" action=(bulk.action) data-keep aria-label=(cx.t(Text::BulkAction)) {
            input type="hidden" name="csrf" value=(cx.csrf);
            input type="hidden" name="once" value=(cx.once);
            p { button.button.small type="button" hidden data-select-all { (cx.t(Text::SelectAll)) } }
            (parts::action(cx.t(Text::BulkAction), "small", &bulk.controls))
        }
    }
}

fn pager(cx: &ViewContext, view: &ListView<'_>, next: Option<&str>, is_later: bool) -> Markup {
    if next.is_none() && !is_later {
        return html! {};
    }
    let region = format!("#{}", view.id);
    html! {
        nav.pager aria-label=(cx.t(Text::Pages)) {
            @if is_later { a.button href=(view.href) hx-get=(view.href) hx-target=(region) hx-select=(region) hx-swap="outerHTML" hx-push-url="true" { (cx.t(Text::FirstPage)) } }
            @if let Some(next) = next {
                @let href = with_query(&view.href, &[("cursor", next)]);
                a.button rel="next" href=(href) hx-get=(href) hx-target=(region) hx-select=(region) hx-swap="outerHTML" hx-push-url="true" { (cx.t(Text::NextPage)) }
            }
        }
    }
}

/// A filter that is kept in the address.
#[derive(Clone, Debug)]
pub struct Filters<'a> {
    /// The address of the page without query.
    pub action: String,
    pub fields: Vec<Field<'a>>,
    /// Ready-made filters: label, address, and true for the current one.
    pub presets: Vec<(String, String, bool)>,
    /// The id of the list that the filter replaces.
    pub region: &'a str,
}

/// Renders a filter form.
pub fn filters(cx: &ViewContext, filters: &Filters<'_>) -> Markup {
    let region = format!("#{}", filters.region);
    let is_filtered = cx.path.contains('?') && filters.fields.iter().any(|field| !field.value.is_empty());
    html! {
        @if !filters.presets.is_empty() { (tabs(cx, Text::Presets, &filters.presets)) }
        @if !filters.fields.is_empty() {
            // Wide screens show the closed form too.
            details.filter-box open[is_filtered] {
                summary.button { (cx.t(Text::Filter)) }
                form.filters method="get" action=(filters.action) role="search" aria-label=(cx.t(Text::Filter)) hx-get=(filters.action) hx-target=(region) hx-select=(region) hx-swap="outerHTML" hx-push-url="true" {
                    @for one in &filters.fields { (field(cx, one)) }
                    div.actions {
                        button.button.primary type="submit" { (cx.t(Text::Apply)) }
                        a.button.quiet href=(filters.action) { (cx.t(Text::ClearFilter)) }
                    }
                }
            }
        }
    }
}

/// Renders links of which one is the current page.
pub fn tabs(cx: &ViewContext, label: Text, tabs: &[(String, String, bool)]) -> Markup {
    html! {
        nav.tabs aria-label=(cx.t(label)) {
            ul { @for (title, href, is_current) in tabs {
                li { a href=(href) aria-current=[is_current.then_some("page")] { (title) } }
            } }
        }
    }
}
