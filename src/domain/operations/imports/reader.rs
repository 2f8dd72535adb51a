//! Reads rows of CSV and NDJSON files, whatever their columns contain.

use std::{
    collections::HashMap,
    io::{BufRead, Read},
};

use serde_json::{Map, Value};

use super::{ImportFault, ImportFile, ImportFormat};
use crate::error::{Code, Error, Result};

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
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
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
    while reader.read_byte_record(&mut record).map_err(unreadable)? {
        let line = record.position().map_or(0, csv::Position::line);
        each(reader.position().byte(), csv_row(&columns, &record, line))?;
    }
    Ok(())
}

fn csv_row(columns: &[&'static str], record: &csv::ByteRecord, line: u64) -> Result<SourceRow, ImportFault> {
    if record.as_slice().len() > MAX_ROW {
        return Err(row_fault(line, "is longer than 1 MiB; is a quotation mark not closed?"));
    }
    if record.len() != columns.len() {
        let message = format!("has {} fields, and the header has {}", record.len(), columns.len());
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
