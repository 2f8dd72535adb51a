//! CSV files of lists: every list page exports the rows of its filter, with the columns and words of the page.
//!
//! The file is made while it is sent, one page of rows at a time. So it takes constant memory at any length, and a slow
//! client holds neither a thread nor a snapshot. Rows that arrive meanwhile shift the pages, so a page leaves out the lines
//! of the page before.

use std::{collections::HashSet, io, sync::Arc};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, header},
};
use futures_util::stream;

use super::{
    acts,
    request::ConsoleRequest,
    views::{
        cells::Column,
        context::{BASE, ViewContext},
    },
};
use crate::{
    app::App,
    error::{Code, Error, Result},
    http::held_bytes::BodyBytes,
    types::FORMULA_STARTS,
};

/// Rows that are read at once.
pub const ROWS: u32 = 2_000;
/// Tells spreadsheets that the file is UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// The memory that a file holds while it is sent.
const HELD_BYTES: usize = 2 << 20;

/// Returns the next rows of a list; none at its end.
pub type NextRows<R> = Box<dyn FnMut(&App) -> Result<Vec<R>> + Send>;

/// A file that is being sent.
struct CsvFile<R: 'static> {
    console: Arc<ConsoleRequest>,
    cx: ViewContext,
    columns: &'static [Column<R>],
    next: NextRows<R>,
    /// The lines of the last page.
    last: HashSet<String>,
    /// True after the header.
    has_begun: bool,
}

/// Responds with the file of a list, whose address is that of the page and `/export`. The reason is in the audit, because
/// the rows are personal data.
///
/// # Errors
/// Errors of the first page.
pub async fn send<R: Send + 'static>(
    console: Arc<ConsoleRequest>,
    columns: &'static [Column<R>],
    next: NextRows<R>,
) -> Result<Response<Body>> {
    let path = console.page_path().trim_start_matches(BASE).trim_matches('/');
    let name = path.trim_end_matches("/export").replace('/', "-");
    match begin(Arc::clone(&console), name, columns, next).await {
        Err(error) if error.code == Code::InvalidParameters => acts::reject(&console, error).await,
        sent => sent,
    }
}

async fn begin<R: Send + 'static>(
    console: Arc<ConsoleRequest>,
    name: String,
    columns: &'static [Column<R>],
    next: NextRows<R>,
) -> Result<Response<Body>> {
    console.require_reason()?;
    let cx = console.view()?;
    let file = CsvFile { console, cx, columns, next, last: HashSet::new(), has_begun: false };
    // Before the status, so that a list that cannot be read is an error and no broken file.
    let (first, rest) = match file.next_piece().await? {
        Some((first, rest)) => (first, Some(rest)),
        None => (Bytes::new(), None),
    };
    let rest = stream::try_unfold(rest, |file| async move {
        let Some(file) = file else { return Ok(None) };
        let next = file.next_piece().await.map_err(io::Error::other)?;
        Ok::<_, io::Error>(next.map(|(piece, rest)| (piece, Some(rest))))
    });
    let first = stream::iter([Ok::<_, io::Error>(first)]);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    respond(&name, body)
}

/// Responds with a CSV file to save.
///
/// # Errors
/// `internal` for a name that no header can carry.
pub fn respond(name: &str, body: Body) -> Result<Response<Body>> {
    let mut response = Response::new(body);
    response.extensions_mut().insert(BodyBytes(HELD_BYTES));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}.csv\"")).map_err(Error::internal)?;
    headers.insert(header::CONTENT_DISPOSITION, disposition);
    Ok(response)
}

/// Returns lines of cells as a file.
pub fn file(lines: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = String::from(BYTE_ORDER_MARK);
    lines.into_iter().for_each(|cells| push_line(&mut text, &cells));
    text
}

impl<R: Send + 'static> CsvFile<R> {
    /// Returns the next part and the rest, or `None` at the end.
    async fn next_piece(self) -> Result<Option<(Bytes, Self)>> {
        let console = Arc::clone(&self.console);
        console.context.report(move |app| self.read_piece(app)).await
    }

    fn read_piece(mut self, app: &App) -> Result<Option<(Bytes, Self)>> {
        let mut text = String::new();
        if !self.has_begun {
            self.has_begun = true;
            text = file([self.data().map(|column| column.heading.header(&self.cx)).collect()]);
        }
        let rows = (self.next)(app)?;
        if rows.is_empty() {
            return Ok((!text.is_empty()).then(|| (Bytes::from(text), self)));
        }
        let mut lines = HashSet::with_capacity(rows.len());
        for row in &rows {
            let cells: Vec<_> = self.data().map(|column| (column.cell)(row).csv(&self.cx)).collect();
            let mut line = String::new();
            push_line(&mut line, &cells);
            if !self.last.contains(&line) {
                text += &line;
            }
            lines.insert(line);
        }
        self.last = lines;
        Ok(Some((Bytes::from(text), self)))
    }

    fn data(&self) -> impl Iterator<Item = &'static Column<R>> {
        self.columns.iter().filter(|column| column.is_data())
    }
}

fn push_line(text: &mut String, cells: &[String]) {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        push_cell(text, cell.trim());
    }
    text.push_str("\r\n");
}

/// Digits that a spreadsheet shows of a number. It changes those after the fifteenth.
const MAX_DIGITS: usize = 11;

/// Adds a cell. A text that a spreadsheet would run as a formula begins with an apostrophe. One that it would change as a
/// number, such as the number of an order, ends with a tab, as in the files of Alipay.
fn push_cell(text: &mut String, cell: &str) {
    let is_number =
        cell.parse::<f64>().is_ok() && cell.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    let whole = cell.trim_start_matches(['+', '-']).split('.').next().unwrap_or_default();
    let is_changed = is_number && (whole.len() > MAX_DIGITS || whole.len() > 1 && whole.starts_with('0'))
        || cell.starts_with(|first: char| first.is_ascii_digit())
            && cell.contains(['e', 'E'])
            && cell.parse::<f64>().is_ok();
    if is_changed {
        text.push('"');
        text.push_str(cell);
        text.push_str("\t\"");
        return;
    }
    let is_formula = !is_number && cell.starts_with(FORMULA_STARTS);
    let defused = if is_formula { "'" } else { "" };
    if is_formula || cell.contains(['"', ',', ';', '\n', '\r']) {
        text.push('"');
        text.push_str(defused);
        text.push_str(&cell.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_defused() {
        let cells = ["plain", "a,b", "say \"hi\"", "=1+1", "@cmd", "-20", "+86", "-x", "two\nlines", "＝1", "e5"];
        let expected = "\u{feff}plain,\"a,b\",\"say \"\"hi\"\"\",\"'=1+1\",\"'@cmd\",-20,+86,\"'-x\",\"two\nlines\",\
                        \"'＝1\",e5\r\n";
        assert_eq!(file([cells.map(ToOwned::to_owned).to_vec()]), expected);
    }

    #[test]
    fn spreadsheets_keep_long_numbers() {
        let line = |cell: &str| {
            file([vec![cell.to_owned()]]).trim_start_matches(BYTE_ORDER_MARK).trim_end_matches("\r\n").to_owned()
        };
        for kept in
            ["202611290230605136242997", "+8613800138000", "1234567890123456", "00123456", "-001", "12e34", "1E5"]
        {
            assert_eq!(line(kept), format!("\"{kept}\t\""));
        }
        for number in ["0", "0.50", "-20", "+5", "13800138000", "12345678901.55", "1767225600"] {
            assert_eq!(line(number), number);
        }
    }
}
