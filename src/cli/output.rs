//! Prints results as text or JSON, and builds the errors that commands share.

use std::{borrow::Cow, fmt::Display, io, path::Path};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Common, json_text::text_of};
use crate::{
    error::{Code, Error, Result},
    types::PageRequest,
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

    /// Prints the result: as JSON with `--json`, else as tables of its members.
    pub fn show(&self, result: &impl Serialize) -> Result<()> {
        self.show_json(&serde_json::to_string(result).map_err(Error::internal)?)
    }

    /// Prints a result that is JSON.
    pub fn show_json(&self, json: &str) -> Result<()> {
        if self.json {
            let value: Value = serde_json::from_str(json).map_err(Error::internal)?;
            return self.output(&value, String::new);
        }
        self.print(&text_of(json).map_err(Error::internal)?)
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
