//! Imports users, balances and history records of a former backend from CSV or NDJSON.
//!
//! Users are known by the name of the former backend and their id there, so that importing a file again changes nothing.
//! That also resumes an interrupted import. Invalid rows are reported and left out. Imported texts are not moderated,
//! imported users get no signup bonus, and imported balances are ledger entries of their own kind.

mod reader;
mod rows;

use std::{collections::HashMap, io::BufRead};

use serde_json::json;

use self::rows::{ImportRow, ImportedBalance, ImportedUser, RowParser};
use crate::{
    core::Core,
    domain::{
        Each,
        divination::history::{self, HistoryQuota},
        identity::users::{self, Address},
        money::ledger::{self, Asset, EntryKind, Posting},
        operations::steps,
    },
    error::{Code, Error, Result},
    store::{Read, Write},
    types::{UserId, named_enum},
};

/// Rows that are held in memory, and written in one or several transactions.
const BATCH_SIZE: usize = 1000;

/// An import stops after this many faults: the file is probably of another kind.
const MAX_FAULTS: usize = 100_000;

named_enum! {
    /// The content of an imported file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ImportKind {
        Users = "users",
        Balances = "balances",
        History = "history",
    }
}

named_enum! {
    /// The format of an imported file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ImportFormat {
        /// With a header line that names the columns.
        Csv = "csv",
        /// A JSON object on each line.
        Ndjson = "ndjson",
    }
}

impl ImportKind {
    /// Returns the columns that a file may have.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Users => &["id", "phoneNumber", "email", "nickname", "gender", "birthday", "signature", "createdAt"],
            Self::Balances => &["id", "coins", "points"],
            Self::History => &[
                "userId",
                "localRecordId",
                "questionType",
                "question",
                "jsonData",
                "aiResult",
                "timestamp",
                "createdAt",
            ],
        }
    }
}

/// A file to import.
#[derive(Clone, Debug)]
pub struct ImportFile {
    pub kind: ImportKind,
    pub format: ImportFormat,
    /// The name of the former backend. Ids are unique within it.
    pub source: String,
}

/// A fault of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportFault {
    /// The line in the file, from 1.
    pub line: u64,
    /// The column, or an empty string for the whole row.
    pub column: String,
    pub message: String,
}

/// The outcome of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportReport {
    pub rows: u64,
    /// Rows that were added, or would be.
    pub added: u64,
    /// Rows of users whose phone number or email address already had an account, which is used.
    pub linked: u64,
    /// Rows that had been imported before.
    pub known: u64,
    /// Rows that were left out.
    pub invalid: u64,
    pub faults: Vec<ImportFault>,
}

/// The effect of one row.
enum Outcome {
    Added,
    Linked,
    Known,
    Invalid(ImportFault),
}

/// The account that a row of a user belongs to.
enum Target {
    New,
    Linked(UserId),
    Known,
    Invalid(ImportFault),
}

impl ImportReport {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Added => self.added += 1,
            Outcome::Linked => self.linked += 1,
            Outcome::Known => self.known += 1,
            Outcome::Invalid(fault) => self.reject(vec![fault]),
        }
    }

    /// Counts a row that is left out.
    fn reject(&mut self, faults: Vec<ImportFault>) {
        self.invalid += 1;
        self.faults.extend(faults);
    }

    fn require_few_faults(&self) -> Result<()> {
        if self.faults.len() < MAX_FAULTS {
            return Ok(());
        }
        let first = self.faults.iter().take(3).map(|fault| format!("line {}: {}", fault.line, fault.message));
        let detail = format!(
            "The import stopped after {MAX_FAULTS} faults. Is this the right kind of file? {}",
            first.collect::<Vec<_>>().join("; ")
        );
        Err(Error::new(Code::ChecksFailed).english_detail(detail))
    }
}

/// Imports all valid rows of a file. `progress` receives the bytes read so far.
///
/// # Errors
/// `invalid_request` for an invalid source name or an unknown column; `checks_failed` after too many faults. Rows before
/// the error stay imported.
pub fn import(
    core: &Core,
    file: &ImportFile,
    input: &mut dyn BufRead,
    progress: &mut dyn FnMut(u64),
) -> Result<ImportReport> {
    let mut batch = Vec::with_capacity(BATCH_SIZE);
    let mut report = ImportReport::default();
    parse(core, file, input, progress, &mut report, &mut |row, report| {
        batch.push(row);
        if batch.len() == BATCH_SIZE {
            write(core, &file.source, std::mem::take(&mut batch), report)?;
        }
        Ok(())
    })?;
    write(core, &file.source, batch, &mut report)?;
    Ok(report)
}

/// Finds all faults of a file and changes nothing.
///
/// # Errors
/// As for [`import`].
pub fn check(
    core: &Core,
    file: &ImportFile,
    input: &mut dyn BufRead,
    progress: &mut dyn FnMut(u64),
) -> Result<ImportReport> {
    let mut report = ImportReport::default();
    let mut lines = HashMap::new();
    parse(core, file, input, progress, &mut report, &mut |row, report| {
        let line = row.line();
        let repeated = row.unique_values().into_iter().find_map(|(column, value)| {
            let first = lines.insert((column, value), line)?;
            Some(ImportFault { line, column: column.to_owned(), message: format!("is the same as in line {first}") })
        });
        let outcome = match repeated {
            Some(fault) => Outcome::Invalid(fault),
            None => core.store.read(|tx| check_in(tx, &file.source, &row))?,
        };
        report.count(outcome);
        Ok(())
    })?;
    Ok(report)
}

/// Passes each valid row to `each` and records the faults of the others.
fn parse(
    core: &Core,
    file: &ImportFile,
    input: &mut dyn BufRead,
    progress: &mut dyn FnMut(u64),
    report: &mut ImportReport,
    each: &mut dyn FnMut(ImportRow, &mut ImportReport) -> Result<()>,
) -> Result<()> {
    require_source_name(&file.source)?;
    let parser = RowParser::new(core, file.kind);
    reader::each_row(file, input, &mut |position, row| {
        report.rows += 1;
        match row.map_err(|fault| vec![fault]).and_then(|row| parser.parse(row)) {
            Ok(row) => each(row, report)?,
            Err(faults) => report.reject(faults),
        }
        report.require_few_faults()?;
        progress(position);
        Ok(())
    })
}

fn require_source_name(source: &str) -> Result<()> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    if (1..=32).contains(&source.len()) && source.bytes().all(is_allowed) {
        return Ok(());
    }
    let detail = "The name of the source must have 1 to 32 lower-case letters, digits, hyphens and underscores.";
    Err(Error::new(Code::InvalidRequest).english_detail(detail))
}

fn write(core: &Core, source: &str, rows: Vec<ImportRow>, report: &mut ImportReport) -> Result<()> {
    let source = source.to_owned();
    let quota = HistoryQuota::of(&core.config.limits);
    let import = move |tx: &Write<'_>, row: &ImportRow| import_row_in(tx, &source, quota, row);
    for outcome in steps::for_each(core, &|| true, rows, import)? {
        report.count(outcome);
    }
    Ok(())
}

fn import_row_in(tx: &Write<'_>, source: &str, quota: HistoryQuota, row: &ImportRow) -> Result<Outcome> {
    match row {
        ImportRow::User(row) => import_user_in(tx, source, row),
        ImportRow::Balances(row) => match find_user_in(tx, source, &row.user)? {
            None => Ok(unknown_user(row.line, "id", source)),
            Some(user) => post_in(tx, source, user, row),
        },
        ImportRow::Record(row) => match find_user_in(tx, source, &row.user)? {
            None => Ok(unknown_user(row.line, "userId", source)),
            Some(user) => match history::import_in(tx, quota, user, &row.draft, row.created_at) {
                Ok(true) => Ok(Outcome::Added),
                Ok(false) => Ok(Outcome::Known),
                Err(error) => refused(row.line, error),
            },
        },
    }
}

/// Converts the refusal of a row by a rule; other errors end the import.
fn refused(line: u64, error: Error) -> Result<Outcome> {
    match error.code {
        Code::HistoryFull | Code::HistoryTooLarge | Code::BalanceTooLarge | Code::AccountInconsistent => {
            Ok(Outcome::Invalid(ImportFault { line, column: String::new(), message: error.describe() }))
        }
        _ => Err(error),
    }
}

fn unknown_user(line: u64, column: &str, source: &str) -> Outcome {
    let message = format!("no user with this id was imported from `{source}`; import users first");
    Outcome::Invalid(ImportFault { line, column: column.to_owned(), message })
}

/// Determines the effect of a row.
fn check_in(tx: &Read<'_>, source: &str, row: &ImportRow) -> Result<Outcome> {
    Ok(match row {
        ImportRow::User(row) => match target_in(tx, source, row)? {
            Target::New => Outcome::Added,
            Target::Linked(_) => Outcome::Linked,
            Target::Known => Outcome::Known,
            Target::Invalid(fault) => Outcome::Invalid(fault),
        },
        ImportRow::Balances(row) => match find_user_in(tx, source, &row.user)? {
            None => unknown_user(row.line, "id", source),
            Some(user) if missing_postings_in(tx, source, user, &row.amounts())?.is_empty() => Outcome::Known,
            Some(_) => Outcome::Added,
        },
        ImportRow::Record(row) => match find_user_in(tx, source, &row.user)? {
            None => unknown_user(row.line, "userId", source),
            Some(user) if history::exists_in(tx, user, &row.draft.local_record_id)? => Outcome::Known,
            Some(_) => Outcome::Added,
        },
    })
}

fn import_user_in(tx: &Write<'_>, source: &str, row: &ImportedUser) -> Result<Outcome> {
    let (user, outcome) = match target_in(tx, source, row)? {
        Target::Known => return Ok(Outcome::Known),
        Target::Invalid(fault) => return Ok(Outcome::Invalid(fault)),
        Target::Linked(user) => (user, Outcome::Linked),
        Target::New => (users::insert_in(tx, &row.user)?, Outcome::Added),
    };
    tx.execute(
        "insert into imported_users (source, external_id, user_id) values (?1, ?2, ?3)",
        (source, &row.external_id, user.0),
    )?;
    Ok(outcome)
}

/// Finds the account of a row: that of an earlier import, or else that of an address.
fn target_in(tx: &Read<'_>, source: &str, row: &ImportedUser) -> Result<Target> {
    if find_user_in(tx, source, &row.external_id)?.is_some() {
        return Ok(Target::Known);
    }
    let addresses = [
        ("phoneNumber", row.user.phone_number.clone().map(Address::Phone)),
        ("email", row.user.email.clone().map(Address::Email)),
    ];
    let mut owner = None;
    for (column, address) in addresses {
        let Some(address) = address else { continue };
        let Some(found) = users::find_by_address_in(tx, &address)? else { continue };
        let fault = |message: String| ImportFault { line: row.line, column: column.to_owned(), message };
        if owner.is_some_and(|owner| owner != found.id) {
            return Ok(Target::Invalid(fault("belongs to another user than the phone number".into())));
        }
        if let Some(known) = external_id_in(tx, source, found.id)? {
            return Ok(Target::Invalid(fault(format!("belongs to the user who was imported with the id {known}"))));
        }
        owner = Some(found.id);
    }
    Ok(owner.map_or(Target::New, Target::Linked))
}

/// Finds the user with this id in the former backend.
fn find_user_in(tx: &Read<'_>, source: &str, external_id: &str) -> Result<Option<UserId>> {
    let sql = "select user_id from imported_users where source = ?1 and external_id = ?2";
    tx.first(sql, (source, external_id), |row| row.get(0).map(UserId))
}

fn external_id_in(tx: &Read<'_>, source: &str, user: UserId) -> Result<Option<String>> {
    let sql = "select external_id from imported_users where user_id = ?1 and source = ?2";
    tx.first(sql, (user.0, source), |row| row.get(0))
}

fn post_in(tx: &Write<'_>, source: &str, user: UserId, row: &ImportedBalance) -> Result<Outcome> {
    let postings = missing_postings_in(tx, source, user, &row.amounts())?;
    if postings.is_empty() {
        return Ok(Outcome::Known);
    }
    // Checked before the first posting, so that a row is posted completely or not at all.
    for posting in &postings {
        if let Err(error) = ledger::account_in(tx, user, posting.asset)?.after(posting.asset, posting.delta) {
            return refused(row.line, error);
        }
    }
    for posting in postings {
        ledger::post_in(tx, posting)?;
    }
    Ok(Outcome::Added)
}

/// Returns the postings of a row that were not made by an earlier import.
fn missing_postings_in(tx: &Read<'_>, source: &str, user: UserId, amounts: &[(Asset, i64)]) -> Result<Vec<Posting>> {
    let reference = format!("import:{source}:{user}");
    let mut postings = Vec::new();
    for (asset, delta) in amounts.iter().copied().filter(|(_, amount)| *amount > 0) {
        if ledger::find_by_reference_in(tx, asset, EntryKind::Import, &reference)?.is_none() {
            let reference = Some(reference.clone());
            postings.push(Posting { user, asset, delta, kind: EntryKind::Import, reference });
        }
    }
    Ok(postings)
}

/// Exports the ids that the user had in former backends.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let sql = "select source, external_id from imported_users where user_id = ?1 order by source";
    tx.each(sql, [user.0], |row| {
        let (source, id): (String, String) = (row.get(0)?, row.get(1)?);
        each(json!({ "source": source, "id": id }))
    })
}

/// Forgets that the user was imported.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from imported_users where user_id = ?1", [user.0]).map(drop)
}
