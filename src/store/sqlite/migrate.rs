//! Creates and migrates the schema.
//!
//! A schema is a list of SQL steps; `user_version` counts the steps that a database has. A new database gets all of
//! them, an older one those that it lacks, in one transaction and after a copy was written beside it. A step never
//! changes once a release contains it.

use std::{collections::BTreeMap, path::Path};

use rusqlite::{Connection, TransactionBehavior};

use crate::{
    error::{Code, Error, Result},
    store::files,
};

/// Identify the files as the main database ("YARW") and the network log ("YARL"), so that another database is never
/// migrated.
const APPLICATION_ID: i32 = 0x5941_5257;
const NETWORK_LOG_ID: i32 = 0x5941_524c;

/// The schema of the main database. Later steps are files of their own, appended here.
pub(in crate::store) const SCHEMA: Schema =
    Schema { steps: &[include_str!("../../../schema.sql")], application_id: APPLICATION_ID, synchronous: "full" };

/// The schema of the network log. A power cut may undo its last commits, because nothing was promised about them.
pub(in crate::store) const NETWORK_LOG_SCHEMA: Schema = Schema {
    steps: &[include_str!("../../../network-log.sql"), include_str!("../../../network-log-2.sql")],
    application_id: NETWORK_LOG_ID,
    synchronous: "normal",
};

/// The schema version that this program reads and writes.
pub const SCHEMA_VERSION: usize = SCHEMA.version();

/// Permitted changes to a database whose schema is not current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// None: another process holds the lock of the data directory.
    RequireCurrent,
    /// An empty database gets the current schema.
    Create,
    /// An older database is migrated, too.
    Migrate,
}

impl SchemaPolicy {
    /// Checks that a database of version `found` can be used by a program of version `current`.
    ///
    /// # Errors
    /// `data_directory_unusable` for a newer schema, or one that the policy forbids to change.
    pub(in crate::store) fn permit(self, found: usize, current: usize) -> Result<()> {
        if found > current {
            return Err(Error::new(Code::DataDirectoryUnusable).english_detail(format!(
                "The database has schema version {found}; this program supports versions up to {current}. \
                 Use the newer program, or restore a backup made before the upgrade."
            )));
        }
        let can_change = if found == 0 { self != Self::RequireCurrent } else { self == Self::Migrate };
        if found < current && !can_change {
            return Err(Error::new(Code::DataDirectoryUnusable).english_detail(format!(
                "The database has schema version {found}, and this program needs version {current}. \
                 The server migrates it when it starts: start or restart the server with this version first."
            )));
        }
        Ok(())
    }
}

/// A schema as the steps that build it. Step `n` (from 1) takes a database from version `n - 1` to version `n`.
#[derive(Clone, Copy)]
pub(in crate::store) struct Schema {
    steps: &'static [&'static str],
    application_id: i32,
    /// The `synchronous` pragma of the writer's connection.
    pub(super) synchronous: &'static str,
}

impl Schema {
    const fn version(&self) -> usize {
        self.steps.len()
    }

    /// Returns the schema of an earlier version; this one for later versions.
    pub(super) fn at(&self, version: usize) -> Self {
        Self { steps: self.steps.get(..version).unwrap_or(self.steps), ..*self }
    }

    /// Checks that the database can be used under this policy. Changes nothing in it.
    ///
    /// # Errors
    /// `data_directory_unusable` if another program made the file, if its schema is newer, or if it is older and the
    /// policy forbids to change it.
    pub(super) fn check(&self, connection: &Connection, policy: SchemaPolicy) -> Result<()> {
        policy.permit(self.version_of(connection)?, self.version())
    }

    /// Applies the missing steps to a database that [`Self::check`] accepted. A copy of an older database is written
    /// beside it first.
    ///
    /// # Errors
    /// Storage errors; the database then has the version that it had.
    pub(super) fn migrate(&self, connection: &mut Connection, path: &Path) -> Result<()> {
        let (found, current) = (self.version_of(connection)?, self.version());
        if found == current {
            return Ok(());
        }
        if found > 0 {
            // For the copy, and as much again for the write-ahead log of the migration.
            files::ensure_free_space(files::parent_of(path), files::database_size(path).saturating_mul(2))?;
            let copy = path.with_extension(format!("db.before-version-{current}"));
            copy_database(connection, &copy)?;
            tracing::info!(from = found, to = current, copy = %copy.display(), "migrating the database");
        }
        self.apply_from(connection, found)
    }

    /// Applies the steps after version `found` in one transaction.
    pub(super) fn apply_from(&self, connection: &mut Connection, found: usize) -> Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        for step in &self.steps[found..] {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "application_id", self.application_id)?;
        transaction.pragma_update(None, "user_version", i64::try_from(self.version()).map_err(Error::internal)?)?;
        Ok(transaction.commit()?)
    }

    /// Lists tables, indexes, triggers and views that are missing, differ from this schema, or are not part of it.
    ///
    /// # Errors
    /// Storage errors.
    pub(super) fn faults(&self, connection: &Connection) -> Result<Vec<String>> {
        let mut fresh = Connection::open_in_memory()?;
        self.apply_from(&mut fresh, 0)?;
        let (expected, found) = (objects_of(&fresh)?, objects_of(connection)?);
        let wrong = expected.iter().filter_map(|(name, sql)| match found.get(name) {
            None => Some(format!("{name} is missing")),
            Some(other) if other != sql => Some(format!("{name} differs from the schema")),
            Some(_) => None,
        });
        let unknown =
            found.keys().filter(|name| !expected.contains_key(*name)).map(|name| format!("{name} is unknown"));
        Ok(wrong.chain(unknown).collect())
    }

    /// Returns the schema version of a database: 0 for an empty file.
    ///
    /// # Errors
    /// `data_directory_unusable` if another program made the file.
    pub(super) fn version_of(&self, connection: &Connection) -> Result<usize> {
        let foreign =
            || Error::new(Code::DataDirectoryUnusable).english_detail("The database file was not made by Yarrow.");
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let application = pragma("application_id").map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => foreign().caused_by(error),
            _ => error.into(),
        })?;
        let version = pragma("user_version")?;
        let tables: i64 = connection.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
        if application != self.application_id && tables > 0 {
            return Err(foreign());
        }
        usize::try_from(version).map_err(Error::internal)
    }
}

/// Writes a consistent copy under a temporary name, syncs it, and renames it. Replaces the copy of an earlier attempt.
fn copy_database(connection: &Connection, copy: &Path) -> Result<()> {
    let unfinished = copy.with_extension("unfinished");
    files::remove_if_exists(&unfinished).map_err(Error::internal)?;
    let write = || -> Result<()> {
        files::create_private(&unfinished)?;
        connection.execute("vacuum into ?1", [unfinished.to_string_lossy()])?;
        files::sync_and_rename(&unfinished, copy)
    };
    // Half a copy would only fill the disk.
    write().inspect_err(|_| drop(std::fs::remove_file(&unfinished)))
}

/// Returns the SQL of each schema object by type and name. Objects that SQLite makes for itself, and the table that a
/// backup carries, do not count.
fn objects_of(connection: &Connection) -> Result<BTreeMap<String, String>> {
    let sql = "select type || ' ' || name, coalesce(sql, '') from sqlite_schema \
               where name not like 'sqlite!_%' escape '!' and not (type = 'table' and name = 'backup_contents')";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    Ok(rows.map(|row| row.map(|(name, sql)| (name, without_comments(&sql)))).collect::<rusqlite::Result<_>>()?)
}

/// Removes comments and folds white space: SQLite stores the text of a statement as it was written.
fn without_comments(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str =
        "create table items (id integer primary key, name text not null check (name in ('a', 'b'))) strict";
    const ADD_COLUMN: &str = "alter table items add column size integer not null default 7";
    const REWRITE_CHECK: &str = "alter table items rename to items_before; \
        create table items (id integer primary key, name text not null check (name in ('a', 'b', 'c')), \
            size integer not null default 7) strict; \
        insert into items select id, name, size from items_before; \
        drop table items_before";
    const FAILING: &str = "create table extra (id integer primary key); insert into missing values (1)";

    const OLD: Schema = Schema { steps: &[FIRST], ..SCHEMA };
    const NEW: Schema = Schema { steps: &[FIRST, ADD_COLUMN, REWRITE_CHECK], ..SCHEMA };

    /// A database file of the old schema with one row, and the directory that holds it.
    fn old_database() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("yarrow.db");
        let mut connection = Connection::open(&path).unwrap();
        OLD.migrate(&mut connection, &path).unwrap();
        connection.execute("insert into items (name) values ('a')", []).unwrap();
        (directory, path)
    }

    fn names(path: &Path) -> Vec<String> {
        let connection = Connection::open(path).unwrap();
        let mut statement = connection.prepare("select name from items order by id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    fn copy_of(path: &Path, version: usize) -> std::path::PathBuf {
        path.with_extension(format!("db.before-version-{version}"))
    }

    #[test]
    fn creates_the_whole_schema_in_an_empty_file() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(SCHEMA.version_of(&connection).unwrap(), 0);
        SCHEMA.migrate(&mut connection, Path::new("yarrow.db")).unwrap();
        assert_eq!(SCHEMA.version_of(&connection).unwrap(), SCHEMA_VERSION);
        assert_eq!(SCHEMA.faults(&connection).unwrap(), Vec::<String>::new());
        assert!(objects_of(&connection).unwrap().len() > 5);
    }

    #[test]
    fn applies_missing_steps_to_an_older_database() {
        let (_directory, path) = old_database();
        let mut connection = Connection::open(&path).unwrap();
        NEW.migrate(&mut connection, &path).unwrap();
        assert_eq!(SCHEMA.version_of(&connection).unwrap(), 3);
        assert_eq!(NEW.faults(&connection).unwrap(), Vec::<String>::new());
        let sizes: i64 = connection.query_row("select sum(size) from items", [], |row| row.get(0)).unwrap();
        assert_eq!(sizes, 7);
        let insert = |name: &str| connection.execute("insert into items (name) values (?1)", [name]).is_ok();
        assert!(insert("c") && !insert("d"));
        assert_eq!(names(&copy_of(&path, 3)), ["a"]);
    }

    #[test]
    fn keeps_the_old_version_when_a_step_fails() {
        let (_directory, path) = old_database();
        let mut connection = Connection::open(&path).unwrap();
        let broken = Schema { steps: &[FIRST, ADD_COLUMN, FAILING], ..SCHEMA };
        broken.migrate(&mut connection, &path).unwrap_err();
        assert_eq!(SCHEMA.version_of(&connection).unwrap(), 1);
        assert_eq!(OLD.faults(&connection).unwrap(), Vec::<String>::new());
        assert_eq!(names(&path), ["a"]);
    }

    #[test]
    fn replaces_the_copy_of_an_earlier_migration() {
        let (_directory, path) = old_database();
        for name in ["a", "b"] {
            let mut connection = Connection::open(&path).unwrap();
            NEW.migrate(&mut connection, &path).unwrap();
            drop(connection);
            assert_eq!(names(&copy_of(&path, 3)).last().map(String::as_str), Some(name));
            // An operator goes back to the older version for a while.
            std::fs::copy(copy_of(&path, 3), &path).unwrap();
            Connection::open(&path).unwrap().execute("insert into items (name) values ('b')", []).unwrap();
        }
    }

    #[test]
    fn removes_a_copy_that_cannot_be_finished() {
        let (directory, path) = old_database();
        std::fs::create_dir_all(copy_of(&path, 3).join("not empty")).unwrap();
        let mut connection = Connection::open(&path).unwrap();
        NEW.migrate(&mut connection, &path).unwrap_err();
        assert_eq!(SCHEMA.version_of(&connection).unwrap(), 1);
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| name.contains("unfinished")).count(), 0);
    }

    #[test]
    fn refuses_newer_and_foreign_databases() {
        let mut newer = Connection::open_in_memory().unwrap();
        NEW.apply_from(&mut newer, 0).unwrap();
        assert_eq!(OLD.check(&newer, SchemaPolicy::Migrate).unwrap_err().code, Code::DataDirectoryUnusable);
        let foreign = Connection::open_in_memory().unwrap();
        foreign.execute_batch("create table theirs (id integer)").unwrap();
        assert_eq!(OLD.check(&foreign, SchemaPolicy::Migrate).unwrap_err().code, Code::DataDirectoryUnusable);
    }

    #[test]
    fn changes_only_what_the_policy_permits() {
        let empty = Connection::open_in_memory().unwrap();
        let mut older = Connection::open_in_memory().unwrap();
        OLD.apply_from(&mut older, 0).unwrap();
        let accepted = |policy| {
            [NEW.check(&empty, policy), NEW.check(&older, policy), OLD.check(&older, policy)]
                .map(|outcome| outcome.is_ok())
        };
        assert_eq!(accepted(SchemaPolicy::RequireCurrent), [false, false, true]);
        assert_eq!(accepted(SchemaPolicy::Create), [true, false, true]);
        assert_eq!(accepted(SchemaPolicy::Migrate), [true, true, true]);
        let refused = NEW.check(&older, SchemaPolicy::Create).unwrap_err();
        assert!(refused.to_string().contains("The server migrates it when it starts"), "{refused}");
    }

    #[test]
    fn reports_objects_that_differ_from_the_schema() {
        let mut connection = Connection::open_in_memory().unwrap();
        NEW.apply_from(&mut connection, 0).unwrap();
        connection.execute_batch("drop table items; create table other (id integer)").unwrap();
        assert_eq!(NEW.faults(&connection).unwrap(), ["table items is missing", "table other is unknown"]);
        connection.execute_batch("create table items (id integer); drop table other").unwrap();
        assert_eq!(NEW.faults(&connection).unwrap(), ["table items differs from the schema"]);
    }

    /// SQLite builds a temporary tree for each insert into a table whose check lists more than two values with `in`.
    #[test]
    fn inserts_build_no_temporary_trees() {
        let mut fresh = Connection::open_in_memory().unwrap();
        SCHEMA.apply_from(&mut fresh, 0).unwrap();
        let texts = |sql: &str| -> Vec<String> {
            let mut statement = fresh.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let builds_tree = |table: &String| {
            let names = texts(&format!("select name from pragma_table_info('{table}')"));
            let values = vec!["null"; names.len()].join(", ");
            let sql = format!("explain insert into {table} ({}) values ({values})", names.join(", "));
            let mut steps = fresh.prepare(&sql).unwrap();
            steps.query_map([], |row| row.get(1)).unwrap().any(|step| step == Ok("OpenEphemeral".to_owned()))
        };
        fresh.execute_batch("create table other (value text check (value in ('a', 'b', 'c')))").unwrap();
        let tables = texts("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'");
        assert_eq!(tables.into_iter().filter(builds_tree).collect::<Vec<_>>(), ["other"]);
    }
}
