//! Reads rows of CSV and NDJSON files, whatever their columns contain.

use std::{
    collections::{HashMap, VecDeque},
    io::{BufRead, Read},
};

use serde_json::{Map, Value};

use super::{ImportFault, ImportFile, ImportFormat};
use crate::{
    error::{Code, Error, Result},
    types::plain_number,
};

/// The most bytes of a row. Every field that the service accepts fits.
const MAX_ROW: usize = 1 << 20;

/// Passes the bytes read so far and a row, or the fault that makes it unreadable.
pub type EachRow<'each> = &'each mut dyn FnMut(u64, Result<SourceRow, ImportFault>) -> Result<()>;

/// A row as it stands in the file: texts by column. Absent, empty and null columns are left out.
#[derive(Debug)]
pub struct SourceRow {
    pub line: u64,
    values: HashMap<&'static str, String>,
}

impl SourceRow {
    /// Removes and returns the text of a column.
    pub fn take(&mut self, column: &str) -> Option<String> {
        self.values.remove(column)
    }
}

/// Reads all rows of a file.
pub fn each_row(file: &ImportFile, input: &mut dyn BufRead, each: EachRow<'_>) -> Result<()> {
    match file.format {
        ImportFormat::Csv => each_csv_row(file, input, each),
        ImportFormat::Ndjson => each_json_row(file, input, each),
    }
}

fn each_csv_row(file: &ImportFile, input: &mut dyn BufRead, each: EachRow<'_>) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(LineCounter::new(input));
    let header = reader.byte_headers().map_err(unreadable)?.clone();
    let columns = header
        .iter()
        .map(|name| {
            let name = String::from_utf8_lossy(name);
            known_column(file, name.trim()).ok_or_else(|| unknown_column(file, name.trim()))
        })
        .collect::<Result<Vec<_>>>()?;
    if let Some(column) = columns.iter().enumerate().find_map(|(at, name)| columns[..at].contains(name).then_some(name))
    {
        return Err(
            Error::new(Code::InvalidRequest).english_detail(format!("The header names the column `{column}` twice."))
        );
    }
    let mut record = csv::ByteRecord::new();
    loop {
        let begin = reader.position().byte();
        match reader.read_byte_record(&mut record) {
            Ok(true) => {
                let line = reader.get_mut().line_at(record.position().map_or(begin, csv::Position::byte));
                each(reader.position().byte(), csv_row(&columns, &record, line))?;
            }
            Ok(false) => return Ok(()),
            // The rest of the file belongs to this row.
            Err(_) if reader.get_ref().is_row_too_long => {
                let line = reader.get_mut().line_at(begin);
                let message = "is longer than 1 MiB; is a quotation mark not closed? The rows after it were not read";
                return each(begin, Err(row_fault(line, message)));
            }
            Err(error) => return Err(unreadable(error)),
        }
    }
}

/// Counts the lines of a file with any line ends, and limits the bytes of a row. The CSV library counts line feeds and
/// reads a row of any length.
struct LineCounter<'input> {
    input: &'input mut dyn BufRead,
    /// The bytes read so far.
    position: u64,
    line_start: u64,
    is_after_return: bool,
    /// The position of the end of each line that was read since the last row, and whether the line is empty.
    ends: VecDeque<(u64, bool)>,
    /// The lines before those.
    lines: u64,
    row_start: u64,
    is_row_too_long: bool,
}

impl<'input> LineCounter<'input> {
    fn new(input: &'input mut dyn BufRead) -> Self {
        Self {
            input,
            position: 0,
            line_start: 0,
            is_after_return: false,
            ends: VecDeque::new(),
            lines: 0,
            row_start: 0,
            is_row_too_long: false,
        }
    }

    /// Returns the line of the row that begins at this position, after empty lines. Rows must come in their order.
    fn line_at(&mut self, position: u64) -> u64 {
        self.row_start = position;
        while self.ends.front().is_some_and(|(end, is_empty)| *end < position || *is_empty) {
            self.ends.pop_front();
            self.lines += 1;
        }
        self.lines + 1
    }

    fn count(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let is_second_half = *byte == b'\n' && self.is_after_return;
            if matches!(byte, b'\n' | b'\r') && !is_second_half {
                self.ends.push_back((self.position, self.position == self.line_start));
            }
            self.is_after_return = *byte == b'\r';
            self.position += 1;
            if matches!(byte, b'\n' | b'\r') {
                self.line_start = self.position;
            }
        }
    }
}

impl Read for LineCounter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        // Quotation marks inside of a field are doubled, and the next rows are read ahead.
        if self.position - self.row_start > 2 * MAX_ROW as u64 + buffer.len() as u64 {
            self.is_row_too_long = true;
            return Err(std::io::Error::other("a row is too long"));
        }
        let read = self.input.read(buffer)?;
        self.count(&buffer[..read]);
        Ok(read)
    }
}

fn csv_row(columns: &[&'static str], record: &csv::ByteRecord, line: u64) -> Result<SourceRow, ImportFault> {
    if record.as_slice().len() > MAX_ROW {
        return Err(row_fault(line, "is longer than 1 MiB; is a quotation mark not closed?"));
    }
    if record.len() != columns.len() {
        let has_lines = record.as_slice().iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        let hint = if has_lines { "; is a quotation mark not closed?" } else { "" };
        let message = format!("has {} fields, and the header has {}{hint}", record.len(), columns.len());
        return Err(row_fault(line, &message));
    }
    let mut values = HashMap::new();
    for (column, bytes) in columns.iter().zip(record) {
        let Ok(text) = std::str::from_utf8(bytes) else {
            let message = "is not valid UTF-8".to_owned();
            return Err(ImportFault { line, column: (*column).to_owned(), message });
        };
        // Databases write null as `\N` or `NULL`.
        if !matches!(text.trim(), "" | "\\N" | "NULL") {
            values.insert(*column, text.to_owned());
        }
    }
    Ok(SourceRow { line, values })
}

fn each_json_row(file: &ImportFile, mut input: &mut dyn BufRead, each: EachRow<'_>) -> Result<()> {
    let (mut line, mut position) = (0, 0);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = (&mut input).take(MAX_ROW as u64 + 1).read_until(b'\n', &mut bytes).map_err(unreadable)?;
        if read == 0 {
            return Ok(());
        }
        line += 1;
        position += read as u64;
        let is_too_long = read > MAX_ROW;
        if is_too_long && bytes.last() != Some(&b'\n') {
            position += input.skip_until(b'\n').map_err(unreadable)? as u64;
        }
        let row = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes).trim_ascii();
        if row.is_empty() {
            continue;
        }
        let row = if is_too_long { Err(row_fault(line, "is longer than 1 MiB")) } else { json_row(file, row, line) };
        each(position, row)?;
    }
}

fn json_row(file: &ImportFile, row: &[u8], line: u64) -> Result<SourceRow, ImportFault> {
    let members: Map<String, Value> =
        serde_json::from_slice(row).map_err(|error| row_fault(line, &format!("is not a JSON object: {error}")))?;
    let mut values = HashMap::new();
    for (name, value) in members {
        let Some(column) = known_column(file, &name) else {
            return Err(row_fault(line, &format!("has an unknown member `{name}`; {}", expected(file))));
        };
        let text = match value {
            Value::Null => continue,
            Value::String(text) if text.trim().is_empty() => continue,
            Value::String(text) => text,
            Value::Number(number) => plain_number(&number.to_string()).into_owned(),
            other => other.to_string(),
        };
        values.insert(column, text);
    }
    Ok(SourceRow { line, values })
}

fn known_column(file: &ImportFile, name: &str) -> Option<&'static str> {
    file.kind.columns().iter().copied().find(|column| *column == name)
}

fn unknown_column(file: &ImportFile, name: &str) -> Error {
    let detail = format!("The header has an unknown column `{name}`; {}.", expected(file));
    Error::new(Code::InvalidRequest).english_detail(detail)
}

fn expected(file: &ImportFile) -> String {
    format!("the columns of {} are {}", file.kind.name(), file.kind.columns().join(", "))
}

fn row_fault(line: u64, message: &str) -> ImportFault {
    ImportFault { line, column: String::new(), message: message.to_owned() }
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::new(Code::InvalidRequest).english_detail(format!("The file cannot be read: {error}"))
}
