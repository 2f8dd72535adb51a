//! Tables, for people.

use comfy_table::{ContentArrangement, Table, presets::UTF8_HORIZONTAL_ONLY};
use terminal_size::Width;

use super::terminal_escape::tamed_line;

/// The cells of a row, each as it is displayed.
macro_rules! row {
    ($($cell:expr),+ $(,)?) => {
        [$($cell.to_string()),+]
    };
}

pub(super) use row;

pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    // Where no terminal shows it, a line stays one line, for the next program.
    if let Some((Width(columns), _)) = terminal_size::terminal_size_of(std::io::stdout()) {
        table.set_width(columns);
    }
    table.set_header(header);
    table.add_rows(rows.into_iter().map(|row| row.map(|cell| tamed_line(&cell).into_owned())));
    table.to_string()
}

/// A table of facts under a name, each with its own.
pub fn facts<'name>(name: &str, facts: impl IntoIterator<Item = (&'name str, String)>) -> String {
    table([name, ""], facts.into_iter().map(|(name, fact)| [name.to_owned(), fact]))
}

/// What may be missing, and then leaves its place empty.
pub fn blank(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
