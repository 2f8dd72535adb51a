//! The page and the CSV file of any list.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use maud::Markup;

use crate::{
    app::App,
    error::{Code, Result},
    http::{
        admin::lists::StaffList,
        console::{
            csv,
            request::{ConsoleRequest, FormFields, PAGE_SIZE, ok},
            views::{
                context::{ViewContext, href},
                list_page::{self, Frame, ListPage},
                lists::Listing,
            },
        },
        params::Reader,
    },
};

/// Shows the rows that match the filter of the address.
pub async fn show<L: StaffList>(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(render::<L>(&console, L::frame).await?)
}

/// Renders the page of a list in a frame.
///
/// # Errors
/// Errors of the list, except for a filter with faults, which the page shows.
pub async fn render<L: StaffList>(
    console: &ConsoleRequest,
    frame: impl FnOnce(&ViewContext, &App, Option<&L::Filter>) -> Result<Frame> + Send + 'static,
) -> Result<Markup> {
    let (filter, faults) = match filter::<L>(console, &console.query) {
        Ok(filter) => (Some(filter), Vec::new()),
        Err(error) if error.code == Code::InvalidParameters => (None, console.faults_of(&error)),
        Err(error) => return Err(error),
    };
    let (cx, query) = (console.view()?, console.query.clone());
    // A form has another address than its list.
    let path = if console.form.pairs().is_empty() { console.page_path().to_owned() } else { href(L::PLACE.path()) };
    let page = move |app: &App| {
        let listing = match &filter {
            Some(filter) => Listing::Rows(L::rows(app, filter, query.find("cursor"), PAGE_SIZE)?),
            None => Listing::Rejected(faults),
        };
        let page = ListPage {
            path: &path,
            place: L::PLACE,
            title: L::TITLE,
            empty: L::EMPTY,
            fields: L::fields(&cx),
            query: query.pairs(),
            columns: L::COLUMNS,
            listing,
            pick: L::pick,
            frame: frame(&cx, app, filter.as_ref())?,
        };
        Ok(list_page::page(&cx, &page))
    };
    console.context.report(page).await
}

/// Sends all rows that match the filter as a CSV file.
pub async fn export<L: StaffList>(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let filter = filter::<L>(&console, &console.query)?;
    let mut next = Some(None::<String>);
    let read = move |app: &App| {
        // A page can be empty although others follow, because rows of a rare state are far apart.
        while let Some(cursor) = next.take() {
            let rows = L::rows_of_file(app, &filter, cursor.as_deref(), csv::ROWS)?;
            next = rows.next.map(Some);
            if !rows.items.is_empty() {
                return Ok(rows.items);
            }
        }
        Ok(Vec::new())
    };
    csv::send(console, L::COLUMNS, Box::new(read)).await
}

/// Reads the filter of a query.
///
/// # Errors
/// As [`StaffList::filter`].
pub fn filter<L: StaffList>(console: &ConsoleRequest, query: &FormFields) -> Result<L::Filter> {
    let params = Reader::of_form(&console.context, &console.path, query.pairs()).parse()?;
    L::filter(&console.context, params)
}
