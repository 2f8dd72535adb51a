//! Copies of the database: making, checking and reading them.
//!
//! A copy is made page by page from one read snapshot, so it does not block writes. Meanwhile the WAL cannot be reused; it
//! is truncated when the writer is idle. `vacuum into` needs several times the CPU for a slightly smaller copy.
//!
//! The surprise: a backup also contains the keys of the data directory, in a table of its own, because HMACs in the
//! database are useless without them. A restore extracts them again.

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

use super::{FileStore, migrate::SCHEMA, snapshot};
use crate::{
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{
        Read,
        files::{create_private, file_error, size_of, with_suffix},
        tables::quoted,
        transaction::Access,
    },
    types::Timestamp,
};

/// Pages copied in one step: about a megabyte, after which other work gets its turn.
const PAGES: i32 = 256;
/// Steps between two syncs, so that commits never wait for a large amount of unsynced data.
const STEPS_PER_SYNC: u32 = 4;
/// Maximum pause between two steps.
const MAX_PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of faults listed.
const MAX_FAULTS: usize = 20;

/// Called now and then with the number of copied pages and of all pages.
pub type CopyProgress<'watcher> = &'watcher mut dyn FnMut(u64, u64);

/// A complete copy, open for reading.
pub struct DatabaseCopy {
    connection: Connection,
    now: Timestamp,
    keys: Option<ServerKey>,
}

/// Faults of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Structural faults reported by SQLite.
    pub structure: Vec<String>,
    /// Rows whose foreign key refers to no row.
    pub dangling: u64,
}

impl FileStore {
    /// Writes a copy of the current database to a new file. Blocks until it is done, and uses about half of the disk's
    /// time.
    ///
    /// # Errors
    /// Storage errors; the file is then incomplete.
    pub(in crate::store) fn copy_to(&self, path: &Path, progress: CopyProgress<'_>) -> Result<()> {
        let _running = self.shared.full_reads.begin();
        let connection = self.shared.reader()?;
        let transaction = snapshot::ReadTransaction::begin(&connection)?;
        // The first read takes the snapshot from which all pages must come.
        transaction.connection().query_row("select count(*) from sqlite_schema", [], |row| row.get::<_, i64>(0))?;
        copy_pages(transaction.connection(), path, progress)
    }
}

impl DatabaseCopy {
    /// Opens a database file that no process writes to.
    ///
    /// # Errors
    /// `not_found` for a missing file, `backup_unusable` for another program's file, storage errors.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self> {
        if !path.is_file() {
            return Err(Error::new(Code::NotFound).english_detail(format!("There is no file {}.", path.display())));
        }
        // SQLite would not report why it cannot open the file.
        File::open(path).map_err(|error| file_error(path, error))?;
        // A WAL beside the file is part of it. Without one the file is immutable, so that SQLite creates none.
        let is_at_rest = size_of(&with_suffix(path, "-wal")) == 0;
        let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let uri = format!("file:{escaped}{}", if is_at_rest { "?immutable=1" } else { "" });
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri, flags)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        // A newer version of this program may have made the copy, but no other program.
        let version = SCHEMA.version_of(&connection);
        version.map_err(|error| if error.code == Code::DataDirectoryUnusable { not_a_backup(path) } else { error })?;
        Ok(Self { connection, now, keys: None })
    }

    /// Returns the copy with the server key under which its rows are sealed.
    #[must_use]
    pub fn with_keys(self, keys: ServerKey) -> Self {
        Self { keys: Some(keys), ..self }
    }

    pub fn read<T>(&self, operation: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        operation(&Read::new(Access::File(&self.connection), self.now).with_keys(self.keys.as_ref()))
    }

    /// Checks the whole file.
    ///
    /// # Errors
    /// Storage errors.
    pub fn faults(&self) -> Result<Faults> {
        faults_of(&self.connection)
    }

    /// Returns the schema version.
    ///
    /// # Errors
    /// Storage errors.
    pub fn schema_version(&self) -> Result<usize> {
        SCHEMA.version_of(&self.connection)
    }

    /// Lists objects that differ from the schema of the copy's version. A foreign trigger would act in the restored
    /// database.
    ///
    /// # Errors
    /// Storage errors.
    pub fn schema_faults(&self) -> Result<Vec<String>> {
        SCHEMA.at(self.schema_version()?).faults(&self.connection)
    }

    /// Returns the files stored in the backup by name: none for a plain database.
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

    /// Writes the database to a new file, without the files stored in the backup.
    pub(super) fn extract(&self, path: &Path, progress: CopyProgress<'_>) -> Result<()> {
        copy_pages(&self.connection, path, progress)?;
        let connection = open_for_change(path)?;
        connection.pragma_update(None, "secure_delete", true)?;
        Ok(connection.execute_batch("drop table if exists backup_contents")?)
    }
}

fn not_a_backup(path: &Path) -> Error {
    Error::new(Code::BackupUnusable).english_detail(format!("{} is not a backup made by Yarrow.", path.display()))
}

/// Stores files in a backup by name.
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

/// Returns the structural faults of a table and its indexes, or of the whole database.
pub(super) fn structure_faults_of(connection: &Connection, table: Option<&str>) -> Result<Vec<String>> {
    let what = table.map_or_else(|| MAX_FAULTS.to_string(), quoted);
    let mut statement = connection.prepare(&format!("pragma integrity_check({what})"))?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    // If damage prevents further checks, the error itself is the fault.
    let mut faults: Vec<_> = found.map(|line| line.unwrap_or_else(|error| error.to_string())).collect();
    faults.retain(|line| line != "ok");
    Ok(faults)
}

/// Copies all pages of the source's snapshot into one file without a WAL.
fn copy_pages(source: &Connection, path: &Path, progress: CopyProgress<'_>) -> Result<()> {
    let file = create_private(path)?;
    let mut target = Connection::open(path)?;
    // An incomplete file is never used, so it needs no journal.
    target.pragma_update(None, "journal_mode", "off")?;
    target.pragma_update(None, "synchronous", "off")?;
    let backup = Backup::new(source, &mut target)?;
    for step in 1_u32.. {
        let begun = Instant::now();
        match backup.step(PAGES)? {
            StepResult::Done => break,
            StepResult::Busy | StepResult::Locked => {
                return Err(Error::new(Code::Overloaded)
                    .detail(("The database could not be read for a copy.", "无法读取数据库以制作副本。")));
            }
            _ => {}
        }
        if step % STEPS_PER_SYNC == 0 {
            file.sync_data().map_err(|error| file_error(path, error))?;
        }
        let pages = backup.progress();
        let total = u64::try_from(pages.pagecount).unwrap_or(0);
        progress(total - u64::try_from(pages.remaining).unwrap_or(0).min(total), total);
        std::thread::sleep(begun.elapsed().min(MAX_PAUSE));
    }
    drop(backup);
    drop(target);
    // The copied header requires a WAL until the journal mode changes.
    open_for_change(path).map(drop)
}

fn open_for_change(path: &Path) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    connection.pragma_update(None, "journal_mode", "delete")?;
    Ok(connection)
}
