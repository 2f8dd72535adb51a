//! `yarrow import`: users, balances and history of a former backend.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;

use super::{
    Common, check, choice::choice, cli_authority, progress_bar, record_audit, record_audit_start, row, table,
    unreadable_file,
};
use crate::{
    app::App,
    domain::operations::imports::{self, ImportFile, ImportFormat, ImportKind, ImportReport},
    error::{Code, Error, Result},
    types::pluralize,
};

/// Bytes that are read from the file at once.
const BUFFER: usize = 1 << 20;

/// Import users, balances and history of another backend
///
/// The file is CSV with a header line, or NDJSON with an object on each line. Importing a file again changes nothing, so
/// an interrupted import is resumed by repeating it. Invalid rows are reported with their lines and left out; exit 5 if
/// there are any. docs/moving-in.md lists the columns. Words are imported by `yarrow words import`.
///
/// Example: yarrow import users users.csv --source legacy --dry-run
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Content of the file. Import users first: balances and history name them
    #[arg(value_parser = choice!(ImportKind))]
    kind: ImportKind,
    /// File to read; `-` is standard input
    file: PathBuf,
    /// Name of the former backend; ids are unique within it
    #[arg(long, default_value = "import", value_name = "NAME")]
    source: String,
    /// Format of the file. By default its name decides: `.csv`, or `.ndjson` and `.jsonl`
    #[arg(long, value_parser = choice!(ImportFormat))]
    format: Option<ImportFormat>,
    /// Report all faults of the file, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(common: &Common, args: ImportArgs) -> Result<()> {
    let app = common.open()?;
    let (size, mut input) = open(common, &args.file)?;
    let file = ImportFile {
        kind: args.kind,
        format: match args.format {
            Some(format) => format,
            None => format_of(&args.file)?,
        },
        source: args.source,
    };
    let bar = progress_bar(common, size, "{bar:40} {percent} %, {eta} left");
    let progress = &mut |position| bar.set_position(position);
    let report = if args.dry_run {
        imports::check(&app.core, &file, &mut input, progress)
    } else {
        import(&app, &file, &mut input, progress)
    };
    bar.finish_and_clear();
    show(common, &file, args.dry_run, &report?)
}

fn import(
    app: &App,
    file: &ImportFile,
    input: &mut dyn BufRead,
    progress: &mut dyn FnMut(u64),
) -> Result<ImportReport> {
    let command = format!("import {}", file.kind.name());
    record_audit_start(app, &command, None, cli_authority(Some(format!("from {}", file.source))))?;
    let report = imports::import(&app.core, file, input, progress)?;
    let added = format!("from {}: {} added, {} linked", file.source, report.added, report.linked);
    record_audit(app, &command, None, cli_authority(Some(added)))?;
    Ok(report)
}

fn show(common: &Common, file: &ImportFile, dry_run: bool, report: &ImportReport) -> Result<()> {
    let faults = report
        .faults
        .iter()
        .map(|fault| json!({ "line": fault.line, "column": fault.column, "message": fault.message }));
    let json = json!({
        "kind": file.kind.name(), "source": file.source, "dryRun": dry_run, "rows": report.rows,
        "added": report.added, "linked": report.linked, "known": report.known, "invalid": report.invalid,
        "faults": faults.collect::<Vec<_>>(),
    });
    common.output(&json, || {
        let added = if dry_run { "would be added" } else { "added" };
        let counts = [
            row!["rows", report.rows],
            row![added, report.added],
            row!["linked to existing accounts", report.linked],
            row!["imported before", report.known],
            row!["invalid, left out", report.invalid],
        ];
        let counts = table([file.kind.name(), ""], counts);
        if report.faults.is_empty() {
            return counts;
        }
        let faults = report.faults.iter().map(|fault| row![fault.line, fault.column, fault.message]);
        format!("{counts}\n{}", table(["line", "column", "fault"], faults))
    })?;
    let rows = pluralize(report.invalid, "row is", "rows are");
    check(
        report.invalid == 0,
        format!("{rows} invalid. Correct the file and import it again; valid rows are not repeated."),
    )
}

/// Opens a file and returns its size, or 0 for standard input.
fn open(common: &Common, path: &Path) -> Result<(u64, Box<dyn BufRead>)> {
    if path == Path::new("-") {
        return Ok((0, Box::new(BufReader::with_capacity(BUFFER, common.streams.input()))));
    }
    let file = File::open(path).map_err(unreadable_file(path))?;
    let size = file.metadata().map_err(unreadable_file(path))?.len();
    Ok((size, Box::new(BufReader::with_capacity(BUFFER, file))))
}

fn format_of(path: &Path) -> Result<ImportFormat> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok(ImportFormat::Csv),
        Some("ndjson" | "jsonl") => Ok(ImportFormat::Ndjson),
        _ => Err(Error::new(Code::InvalidRequest).english_detail("Say the format of the file with --format.")),
    }
}
