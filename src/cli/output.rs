//! Prints results as text or JSON, and builds the errors that commands share.

use std::{borrow::Cow, fmt::Display, io, path::Path};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Common, table::list_of};
use crate::{
    error::{Code, Error, Result},
    http::console::views::cells::Column,
    types::{PageRequest, Paginated},
};

impl Common {
    /// Prints the result: `json` with `--json`, else `text`.
    pub fn output(&self, json: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if !self.json {
            return self.print(&text());
        }
        // A `Value` prints its members in alphabetical order.
        self.print(&serde_json::to_value(json).map_err(Error::internal)?.to_string())
    }

    /// Prints a page of a list with the columns that the console shows.
    pub fn output_list<R: 'static, T: From<R> + Serialize>(
        &self,
        page: PageRequest,
        listing: Paginated<R>,
        columns: &[Column<R>],
    ) -> Result<()> {
        self.output_page::<R, T>(page, listing, |listing| list_of(columns, &listing.items))
    }

    /// Prints a page of a list. Its JSON is that of the HTTP API, with each row as a `T`.
    pub fn output_page<R, T: From<R> + Serialize>(
        &self,
        page: PageRequest,
        listing: Paginated<R>,
        text: impl FnOnce(&Paginated<R>) -> String,
    ) -> Result<()> {
        if !self.json {
            return self.print(&text(&listing));
        }
        let items: Vec<_> = listing.items.into_iter().map(T::from).collect();
        self.print(&page_json(page, &items, listing.total).to_string())
    }
}

/// Converts rows to the types of the HTTP API.
pub fn http_rows<R: Clone, T: From<R>>(rows: &[R]) -> Vec<T> {
    rows.iter().cloned().map(T::from).collect()
}

/// Returns a page of a list in the JSON of the HTTP API.
pub fn page_json(page: PageRequest, items: &[impl Serialize], total: i64) -> Value {
    json!({ "items": items, "page": page.number, "size": page.size, "total": total })
}

/// Fails with exit code 5 unless the check passed.
pub fn check(has_passed: bool, detail: impl Into<Cow<'static, str>>) -> Result<()> {
    if has_passed { Ok(()) } else { Err(Error::new(Code::ChecksFailed).english_detail(detail)) }
}

/// Converts the error of reading an operator's file, and names the file.
pub fn unreadable_file(path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| {
        let code = if error.kind() == io::ErrorKind::NotFound { Code::NotFound } else { Code::InvalidRequest };
        Error::new(code).english_detail(format!("{}: {error}", path.display()))
    }
}

/// Replaces the detail of errors with this code.
pub fn with_detail(code: Code, detail: String) -> impl FnOnce(Error) -> Error {
    move |error| if error.code == code { error.english_detail(detail) } else { error }
}

/// Names the missing item in `not_found` errors. Operators may see what HTTP callers may not.
pub fn name_missing(item: &str, id: impl Display) -> impl FnOnce(Error) -> Error {
    with_detail(Code::NotFound, format!("{item} `{id}` not found."))
}
