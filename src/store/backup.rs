//! Copies of the database: how one is made while everybody goes on writing, how it is judged, and what else it carries.
//!
//! A copy is taken page by page from one read snapshot, so writers are never held up and the copy is of one instant.
//! While it is taken the log cannot be reused from its start; it is truncated again once the writer is idle. `vacuum
//! into` would do the same with several times the CPU, for a copy that is only a little smaller.
//!
//! The surprise: a copy is one file at rest, without a log, and carries the installation's keys in a table of its own,
//! because what the database keeps under HMACs is worth nothing without them. Restoring takes them out again.

use std::{
    collections::BTreeMap,
    fs::File,
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};

use super::{
    Read, Store,
    files::{create_private, file_error, size_of, with_suffix},
    migrate, snapshot,
    tables::quoted,
};
use crate::{
    error::{Code, Error, Result},
    types::Timestamp,
};

/// Pages copied at once: a megabyte or so, after which others get their turn.
const PAGES: i32 = 256;
/// Steps after which what was written is synced, so that the disk never gets it all at once while commits wait.
const STEPS_SYNCED: u32 = 4;
/// The longest pause between two steps.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// Faults that are listed; more do not help anybody to understand.
const FAULTS_LISTED: usize = 20;

/// Told now and then how many of how many pages are copied.
pub type Progress<'watcher> = &'watcher mut dyn FnMut(u64, u64);

/// A finished copy, open for reading.
pub struct DatabaseCopy {
    connection: Connection,
    now: Timestamp,
}

/// What is wrong with a copy as a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// What the database engine found in its structure.
    pub structure: Vec<String>,
    /// Rows that refer to something that is not there.
    pub dangling: u64,
}

impl Store {
    /// Writes a copy of the database, as it is now, to a file that does not exist yet. Blocks for as long as it takes,
    /// and leaves about half of the disk's time to others.
    ///
    /// # Errors
    /// Storage errors; the file is then of no use.
    pub fn copy_to(&self, path: &Path, progress: Progress<'_>) -> Result<()> {
        let _running = self.shared.full_reads.begin();
        let connection = self.shared.reader()?;
        let view = snapshot::Once::begin(&connection)?;
        // A snapshot is taken by the first read, and the pages must all come from one.
        view.connection().query_row("select count(*) from sqlite_schema", [], |row| row.get::<_, i64>(0))?;
        copy_pages(view.connection(), path, progress)
    }
}

impl DatabaseCopy {
    /// Opens a database file that nobody writes to.
    ///
    /// # Errors
    /// `not_found` when there is no file, `backup_unusable` when it is none of ours; storage errors.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self> {
        if !path.is_file() {
            return Err(Error::new(Code::NotFound).detail(format!("There is no file {}.", path.display())));
        }
        // The database engine would not say why it may not.
        File::open(path).map_err(|error| file_error(path, error))?;
        // What stands in a log beside the file belongs to it; where there is none, nothing is made beside the file.
        let is_at_rest = size_of(&with_suffix(path, "-wal")) == 0;
        let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let uri = format!("file:{escaped}{}", if is_at_rest { "?immutable=1" } else { "" });
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri, flags)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        // A copy may be made by a newer program, but never by another one.
        let version = migrate::version_of(&connection);
        version.map_err(|error| if error.code == Code::DataDirectoryUnusable { no_backup(path) } else { error })?;
        Ok(Self { connection, now })
    }

    pub fn read<T>(&self, operation: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        operation(&Read::new(&self.connection, self.now))
    }

    /// Looks through the whole file for what is wrong with it.
    ///
    /// # Errors
    /// Storage errors.
    pub fn faults(&self) -> Result<Faults> {
        faults_of(&self.connection)
    }

    /// The version of its schema.
    ///
    /// # Errors
    /// Storage errors.
    pub fn schema_version(&self) -> Result<usize> {
        migrate::version_of(&self.connection)
    }

    /// What the copy carries beside the database, by name. A database that is no copy carries nothing.
    ///
    /// # Errors
    /// Storage errors.
    pub fn contents(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let known = "select count(*) from sqlite_schema where type = 'table' and name = 'backup_contents'";
        if self.connection.query_row(known, [], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(BTreeMap::new());
        }
        let mut statement = self.connection.prepare("select name, value from backup_contents")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Writes the database to a file that does not exist yet, without what the copy carries.
    pub(super) fn extract(&self, path: &Path, progress: Progress<'_>) -> Result<()> {
        copy_pages(&self.connection, path, progress)?;
        let connection = open_for_change(path)?;
        connection.pragma_update(None, "secure_delete", true)?;
        Ok(connection.execute_batch("drop table if exists backup_contents")?)
    }
}

fn no_backup(path: &Path) -> Error {
    Error::new(Code::BackupUnusable).detail(format!("{} is no backup: Yarrow did not make it.", path.display()))
}

/// Puts something beside the database into a copy, under a name each.
///
/// # Errors
/// Storage errors.
pub fn add_contents(path: &Path, contents: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let connection = open_for_change(path)?;
    connection.execute_batch(
        "create table if not exists backup_contents (name text primary key, value blob not null) strict, without rowid",
    )?;
    for (name, value) in contents {
        connection.execute(
            "insert into backup_contents (name, value) values (?1, ?2) \
             on conflict (name) do update set value = excluded.value",
            (name, value),
        )?;
    }
    Ok(())
}

pub(super) fn faults_of(connection: &Connection) -> Result<Faults> {
    let structure = structure_faults_of(connection, None)?;
    if !structure.is_empty() {
        return Ok(Faults { structure, dangling: 0 });
    }
    let mut statement = connection.prepare("pragma foreign_key_check")?;
    let mut rows = statement.query([])?;
    let mut dangling = 0;
    while rows.next()?.is_some() {
        dangling += 1;
    }
    Ok(Faults { structure, dangling })
}

/// What is wrong with the structure of a table and its indexes, or of the whole database.
pub(super) fn structure_faults_of(connection: &Connection, table: Option<&str>) -> Result<Vec<String>> {
    let what = table.map_or_else(|| FAULTS_LISTED.to_string(), quoted);
    let mut statement = connection.prepare(&format!("pragma integrity_check({what})"))?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    // Where the damage is such that looking on is impossible, that is what was found.
    let mut faults: Vec<_> = found.map(|line| line.unwrap_or_else(|error| error.to_string())).collect();
    faults.retain(|line| line != "ok");
    Ok(faults)
}

/// Copies all pages that `source` sees, and leaves one file that needs no log.
fn copy_pages(source: &Connection, path: &Path, progress: Progress<'_>) -> Result<()> {
    let file = create_private(path)?;
    let mut target = Connection::open(path)?;
    // Nobody relies on the file before it is whole and synced as a whole, so it needs no journal of its own.
    target.pragma_update(None, "journal_mode", "off")?;
    target.pragma_update(None, "synchronous", "off")?;
    let backup = Backup::new(source, &mut target)?;
    for step in 1_u32.. {
        let begun = Instant::now();
        match backup.step(PAGES)? {
            StepResult::Done => break,
            StepResult::Busy | StepResult::Locked => {
                return Err(Error::new(Code::Overloaded).detail("The database could not be read for a copy."));
            }
            _ => {}
        }
        if step % STEPS_SYNCED == 0 {
            file.sync_data().map_err(|error| file_error(path, error))?;
        }
        let pages = backup.progress();
        let total = u64::try_from(pages.pagecount).unwrap_or(0);
        progress(total - u64::try_from(pages.remaining).unwrap_or(0).min(total), total);
        std::thread::sleep(begun.elapsed().min(LONGEST_PAUSE));
    }
    drop(backup);
    drop(target);
    // The copied header says that there is a log.
    open_for_change(path).map(drop)
}

fn open_for_change(path: &Path) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    connection.pragma_update(None, "journal_mode", "delete")?;
    Ok(connection)
}
