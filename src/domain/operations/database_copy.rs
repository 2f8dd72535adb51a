//! Moves a database between a data directory and a PostgreSQL server.
//!
//! The source is locked while it is read, and is marked as moved once the copy is committed: a server that opened it later
//! would store what the copy lacks. Until then a failure or a kill leaves the target empty and the source as it was.

use std::{
    fs::File,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{
    audit::{self, AuditEvent},
    server_key::{self, KeyMatch},
    settings,
};
use crate::{
    clock::Clock,
    config::Config,
    domain::money::ledger::verification,
    error::{Code, Error, Result},
    keys::{KEYS, SERVER_KEY, ServerKey},
    store::{
        CopiedTable, CopySide, Read, RowProgress, SchemaPolicy, Write, copy_tables, file_has_rows,
        files::{self, DATABASE, with_suffix},
        lock::lock_alone,
        restore, without_password,
    },
    types::Timestamp,
};

/// The mark of a database that was copied to another place.
const MOVED_TO: &str = "database.moved_to";
/// The suffix of a database file that is not complete yet.
const UNFINISHED: &str = ".copied";

/// A database that is copied or is to be filled.
#[derive(Clone, Debug)]
pub enum DatabasePlace {
    Directory(PathBuf),
    Server(SecretString),
}

/// The result of a copy.
#[derive(Clone, Debug)]
pub struct DatabaseMove {
    pub tables: Vec<CopiedTable>,
    /// Entries of the ledger that were verified in the target.
    pub ledger_entries: i64,
    /// Key files that the target directory got.
    pub keys: Vec<&'static str>,
    pub took: Duration,
}

#[derive(Serialize, Deserialize)]
struct MoveMark {
    /// Milliseconds since 1970.
    at: i64,
    to: String,
}

impl DatabasePlace {
    /// Reads a directory, or the URL of a PostgreSQL database.
    pub fn parse(text: &str) -> Self {
        if ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            Self::Server(text.to_owned().into())
        } else {
            Self::Directory(text.into())
        }
    }

    /// Returns the place as text, without a password.
    pub fn describe(&self) -> String {
        match self {
            Self::Directory(directory) => {
                std::path::absolute(directory).as_deref().unwrap_or(directory).display().to_string()
            }
            Self::Server(url) => without_password(url),
        }
    }
}

/// An opened side with what it holds until the end.
struct OpenPlace {
    side: CopySide,
    /// The new file of a target directory.
    new: Option<NewDatabase>,
    /// Declared last, so that it is released after the database.
    _lock: Option<File>,
}

/// A database file under its temporary name, which is deleted unless it is published.
struct NewDatabase {
    unfinished: PathBuf,
    path: PathBuf,
}

impl NewDatabase {
    /// Gives the complete file its name.
    fn publish(&self) -> Result<()> {
        for suffix in ["-wal", "-shm", "-journal"] {
            let path = with_suffix(&self.path, suffix);
            files::remove_if_exists(&path).map_err(|error| files::file_error(&path, error))?;
        }
        files::sync_and_rename(&self.unfinished, &self.path)
    }
}

impl Drop for NewDatabase {
    fn drop(&mut self) {
        if let Err(error) = files::remove_if_exists(&self.unfinished) {
            tracing::warn!(%error, "an unfinished database file remains");
        }
    }
}

/// Copies all rows to an empty database, verifies the copy, and marks the source as moved. Records the event in both. A
/// new directory has none of the backups of the source, so its database forgets them.
///
/// # Errors
/// `invalid_request` for two directories or the same server. `not_found` for a missing source.
/// `data_directory_unusable` while a server runs on either side, for a target with rows, and for a source that was moved
/// already. `configuration` for another server key. `checks_failed` if the copy differs from the source or the ledger is
/// inconsistent. The target is empty after each of them.
pub fn copy(
    config: &Config,
    (from, to): (&DatabasePlace, &DatabasePlace),
    event: &AuditEvent,
    forget_backups: fn(&Write<'_>) -> Result<()>,
    progress: RowProgress<'_>,
) -> Result<DatabaseMove> {
    let (clock, begun) = (Clock::default(), Instant::now());
    ensure_different(from, to)?;
    let source = open_source(from, clock.now())?;
    source.side.read(ensure_not_moved_in)?;
    let keys = keys_of(config, from, &source.side)?;
    let source = source.with_keys(keys.clone());
    let target = open_target(config, to, &keys, clock.now())?.with_keys(keys);
    source.side.write(|tx| audit::record_in(tx, event))?;
    let tables = copy_tables(&source.side, &target.side, progress)?;
    let ledger_entries = verify_ledger(&target.side, progress)?;
    let OpenPlace { side, new, _lock } = target;
    if let DatabasePlace::Directory(directory) = to
        && !directory.join("backups").exists()
    {
        side.write(forget_backups)?;
    }
    side.commit()?;
    let keys = match to {
        DatabasePlace::Directory(directory) => copy_keys(key_directory(config, from), directory)?,
        DatabasePlace::Server(_) => Vec::new(),
    };
    new.as_ref().map_or(Ok(()), NewDatabase::publish)?;
    mark_as_moved(source, to, clock.now())?;
    Ok(DatabaseMove { tables, ledger_entries, keys, took: begun.elapsed() })
}

/// Removes the mark of a copy, so that servers use the database again. Records the event.
///
/// # Errors
/// `not_found` for a missing database or one without the mark. `data_directory_unusable` while a server runs on it.
pub fn unmark(config: &Config, place: &DatabasePlace, event: &AuditEvent) -> Result<()> {
    let opened = open_source(place, Clock::default().now())?;
    let keys = keys_of(config, place, &opened.side)?;
    let opened = opened.with_keys(keys);
    opened.side.write(|tx| {
        if settings::find_in(tx, MOVED_TO)?.is_none() {
            let detail = format!("The database in {} is not marked as moved.", place.describe());
            return Err(Error::new(Code::NotFound).english_detail(detail));
        }
        settings::remove_in(tx, MOVED_TO)?;
        audit::record_in(tx, event)
    })?;
    opened.side.commit()
}

/// Rejects a database that was copied to another place: its changes would be missing there.
pub fn ensure_not_moved_in(tx: &Read<'_>) -> Result<()> {
    let Some(MoveMark { at, to }) = settings::find_json_in(tx, MOVED_TO)? else { return Ok(()) };
    let detail = format!(
        "This database was moved to {to} at {}, and is not used any more. To use it in spite of that, run `yarrow \
         database unmark --from PLACE`; changes made in the copy since then are missing here.",
        Timestamp(at)
    );
    Err(Error::new(Code::DataDirectoryUnusable).english_detail(detail))
}

impl OpenPlace {
    fn with_keys(self, keys: ServerKey) -> Self {
        Self { side: self.side.with_keys(keys), ..self }
    }
}

fn ensure_different(from: &DatabasePlace, to: &DatabasePlace) -> Result<()> {
    let detail = match (from, to) {
        (DatabasePlace::Directory(_), DatabasePlace::Directory(_)) => {
            "One of the two must be the URL of a PostgreSQL database. A data directory is copied by `yarrow backup \
             create` and `yarrow restore`."
        }
        (DatabasePlace::Server(_), DatabasePlace::Server(_)) if from.describe() == to.describe() => {
            "Source and target are the same database."
        }
        _ => return Ok(()),
    };
    Err(Error::new(Code::InvalidRequest).english_detail(detail))
}

fn open_source(place: &DatabasePlace, now: Timestamp) -> Result<OpenPlace> {
    match place {
        DatabasePlace::Directory(directory) => {
            let path = directory.join(DATABASE);
            if !path.exists() && !restore::is_pending(directory).unwrap_or(true) {
                let detail = format!("There is no database in {}.", directory.display());
                return Err(Error::new(Code::NotFound).english_detail(detail));
            }
            let lock = lock_alone(directory)?;
            restore::finish(directory, true)?;
            Ok(OpenPlace { side: CopySide::open_file(&path, now)?, new: None, _lock: Some(lock) })
        }
        DatabasePlace::Server(url) => open_server(place, url, now, SchemaPolicy::RequireCurrent),
    }
}

fn open_server(place: &DatabasePlace, url: &SecretString, now: Timestamp, policy: SchemaPolicy) -> Result<OpenPlace> {
    let side = CopySide::open_server(url, now, policy)?;
    if side.running_servers()? > 0 {
        let detail = format!(
            "A server is running on {}, or was killed less than 15 seconds ago. Stop all copies of the service first.",
            place.describe()
        );
        return Err(Error::new(Code::DataDirectoryUnusable).english_detail(detail));
    }
    Ok(OpenPlace { side, new: None, _lock: None })
}

fn open_target(config: &Config, place: &DatabasePlace, keys: &ServerKey, now: Timestamp) -> Result<OpenPlace> {
    match place {
        DatabasePlace::Directory(directory) => open_new_file(config, place, directory, keys, now),
        DatabasePlace::Server(url) => {
            let opened = open_server(place, url, now, SchemaPolicy::Create)?;
            if opened.side.has_rows()? { Err(not_empty(place)) } else { Ok(opened) }
        }
    }
}

fn open_new_file(
    config: &Config,
    place: &DatabasePlace,
    directory: &Path,
    keys: &ServerKey,
    now: Timestamp,
) -> Result<OpenPlace> {
    let lock = lock_alone(directory)?;
    let path = directory.join(DATABASE);
    if restore::is_pending(directory).unwrap_or(true) || files::database_size(&path) > 0 && file_has_rows(&path)? {
        return Err(not_empty(place));
    }
    let own_key = directory.join(SERVER_KEY);
    if config.auth.secret_key.is_none()
        && own_key.exists()
        && ServerKey::load(None, directory)?.fingerprint() != keys.fingerprint()
    {
        let detail = format!("{} is not the key of the database that is copied. Move it away.", own_key.display());
        return Err(Error::misconfigured(detail));
    }
    let unfinished = with_suffix(&path, UNFINISHED);
    // A killed copy left it.
    files::remove_if_exists(&unfinished).map_err(|error| files::file_error(&unfinished, error))?;
    let new = NewDatabase { unfinished, path };
    let side = CopySide::create_file(&new.unfinished, now)?;
    Ok(OpenPlace { side, new: Some(new), _lock: Some(lock) })
}

fn not_empty(place: &DatabasePlace) -> Error {
    let detail = format!("The database in {} is not empty. The target of a copy must have no rows.", place.describe());
    Error::new(Code::DataDirectoryUnusable).english_detail(detail)
}

/// Returns the directory with the keys of the source.
fn key_directory<'own>(config: &'own Config, from: &'own DatabasePlace) -> &'own Path {
    match from {
        DatabasePlace::Directory(directory) => directory,
        DatabasePlace::Server(_) => config.data_dir(),
    }
}

/// Returns the server key of the source. Creates none.
fn keys_of(config: &Config, from: &DatabasePlace, source: &CopySide) -> Result<ServerKey> {
    let directory = key_directory(config, from);
    let path = directory.join(SERVER_KEY);
    if config.auth.secret_key.is_none() && !path.exists() {
        let detail = format!(
            "{} is missing, and the seals in the database are verified with it. Name the data directory that has it by \
             --data-dir, or set auth.secret_key.",
            path.display()
        );
        return Err(Error::misconfigured(detail));
    }
    let keys = ServerKey::load(config.auth.secret_key.as_ref(), directory)?;
    match source.read(|tx| server_key::compare_in(tx, &keys))? {
        KeyMatch::Same | KeyMatch::Unknown => Ok(keys),
        KeyMatch::Different => {
            let detail = format!(
                "The server key is not the one of the database in {}. Use the right key, or accept this one with \
                 `yarrow doctor --accept-key` first.",
                from.describe()
            );
            Err(Error::misconfigured(detail))
        }
    }
}

fn verify_ledger(target: &CopySide, progress: RowProgress<'_>) -> Result<i64> {
    let mut show = |position: i64, total: i64| progress("verifying", position.unsigned_abs(), total.unsigned_abs());
    let report = target.read(|tx| verification::inspect_in(tx, &mut show))?;
    match report.discrepancies.first() {
        None => Ok(report.entries),
        Some(first) => {
            let detail = format!(
                "The ledger is not consistent: {} ({} in all). Run `yarrow ledger verify` on the source.",
                first.detail, report.discrepancies_found
            );
            Err(Error::new(Code::ChecksFailed).english_detail(detail))
        }
    }
}

/// Copies the key files that the target directory lacks.
fn copy_keys(from: &Path, to: &Path) -> Result<Vec<&'static str>> {
    let mut copied = Vec::new();
    for name in KEYS {
        let (source, target) = (from.join(name), to.join(name));
        if source.exists() && !target.exists() {
            let bytes = std::fs::read(&source).map_err(|error| files::file_error(&source, error))?;
            let unfinished = with_suffix(&target, UNFINISHED);
            files::remove_if_exists(&unfinished).map_err(|error| files::file_error(&unfinished, error))?;
            files::write_private(&unfinished, &bytes)?;
            files::sync_and_rename(&unfinished, &target)?;
            copied.push(name);
        }
    }
    Ok(copied)
}

fn mark_as_moved(source: OpenPlace, to: &DatabasePlace, now: Timestamp) -> Result<()> {
    let mark = MoveMark { at: now.0, to: to.describe() };
    source.side.write(|tx| settings::put_json_in(tx, MOVED_TO, &mark))?;
    source.side.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_urls_or_directories() {
        assert!(matches!(DatabasePlace::parse("postgresql:///yarrow"), DatabasePlace::Server(_)));
        assert!(matches!(DatabasePlace::parse("postgres"), DatabasePlace::Directory(_)));
        assert_eq!(DatabasePlace::parse("postgres://ada:secret@db/yarrow").describe(), "postgres://ada@db/yarrow");
    }
}
