//! Text tables.

use comfy_table::{ContentArrangement, Table, presets::UTF8_HORIZONTAL_ONLY};
use terminal_size::Width;

use super::terminal_escape::escape_line;
use crate::http::console::views::{cells::Column, texts::Language};

/// Formats the cells of a row with `Display`.
macro_rules! row {
    ($($cell:expr),+ $(,)?) => {
        [$($cell.to_string()),+]
    };
}

pub(super) use row;

pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    format(header, rows)
}

/// A table of rows with the columns that the console shows of them.
pub fn list_of<'rows, R: 'static>(columns: &[Column<R>], rows: impl IntoIterator<Item = &'rows R>) -> String {
    let data = || columns.iter().filter(|column| column.is_data());
    let header = data().map(|column| column.heading.title.in_language(Language::English).to_lowercase());
    format(header, rows.into_iter().map(|row| data().map(|column| (column.cell)(row).plain()).collect::<Vec<_>>()))
}

/// A table of these cells.
pub fn format<H, R>(header: impl IntoIterator<Item = H>, rows: impl IntoIterator<Item = R>) -> String
where
    H: Into<String>,
    R: IntoIterator<Item = String>,
{
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    // Without a terminal a row stays one line, for the program that reads it.
    if let Some((Width(columns), _)) = terminal_size::terminal_size_of(std::io::stdout()) {
        table.set_width(columns);
    }
    table.set_header(header.into_iter().map(H::into));
    let cells = |row: R| row.into_iter().map(|cell| escape_line(&cell).into_owned()).collect::<Vec<_>>();
    table.add_rows(rows.into_iter().map(cells));
    table.to_string()
}

/// A table of two columns: keys and values.
pub fn key_values<'key>(title: &str, pairs: impl IntoIterator<Item = (&'key str, String)>) -> String {
    table([title, ""], pairs.into_iter().map(|(key, value)| [key.to_owned(), value]))
}

/// Formats an optional value, as an empty text if it is missing.
pub fn or_empty(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
