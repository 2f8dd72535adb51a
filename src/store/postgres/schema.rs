//! Creates and migrates the schema, once among all copies of the service.

use std::{thread::sleep, time::Duration};

use tokio_postgres::error::SqlState;

use super::session::Session;
use crate::{
    error::{Code, Error, Result},
    store::{SchemaPolicy, transaction::Access},
};

/// The steps of the schema. Step `n` (from 1) takes a database from version `n - 1` to version `n`; the versions are those
/// of the SQLite schema.
const STEPS: &[&str] = &[include_str!("../../../schema.postgres.sql")];

/// The version that this program reads and writes.
pub(super) const VERSION: usize = STEPS.len();

/// Attempts to create the schema while another copy does.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(200);

/// Brings the schema to the version of this program, as the policy permits.
///
/// # Errors
/// `data_directory_unusable` for a newer schema, or one that the policy forbids to change. Storage errors.
pub(super) fn prepare(session: &Session, policy: SchemaPolicy) -> Result<()> {
    let mut attempts = 0;
    loop {
        match prepare_once(session, policy) {
            // Another copy creates the same tables, or they belong to another program.
            Err(Failure::Taken) if attempts < ATTEMPTS => {
                attempts += 1;
                session.run("rollback")?;
                ensure_no_foreign_table(session)?;
                sleep(PAUSE);
            }
            Err(Failure::Taken) => return Err(Error::internal("another copy does not finish the schema")),
            Err(Failure::Other(error)) => {
                // The error matters; the connection is dropped with it.
                drop(session.run("rollback"));
                return Err(error);
            }
            Ok(()) => return Ok(()),
        }
    }
}

enum Failure {
    Taken,
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&(SqlState::DUPLICATE_TABLE | SqlState::UNIQUE_VIOLATION | SqlState::DUPLICATE_OBJECT)) => Self::Taken,
            _ => Self::Other(error.into()),
        }
    }
}

fn prepare_once(session: &Session, policy: SchemaPolicy) -> Result<(), Failure> {
    session.run("begin")?;
    let found = version(session)?;
    if found == 0 && policy == SchemaPolicy::RequireCurrent {
        let detail =
            "There is no installation in the database. `yarrow serve` creates one there; database.url names it.";
        return Err(Error::new(Code::NotFound).english_detail(detail).into());
    }
    policy.permit(found, VERSION)?;
    for step in &STEPS[found..] {
        session.run(step)?;
    }
    if found < VERSION {
        session.run(&format!("update store_state set schema_version = {VERSION} where id = 0"))?;
    }
    session.run("commit")?;
    Ok(())
}

/// Rejects a database that has a table of the schema but not the schema: it belongs to another program.
fn ensure_no_foreign_table(session: &Session) -> Result<()> {
    let names = STEPS.iter().flat_map(|step| step.lines()).filter_map(|line| line.strip_prefix("create table "));
    for name in names.filter_map(|rest| rest.split([' ', '(']).next()) {
        let find = "select cast(count(to_regclass(cast(?1 as text))) as bigint) \
                    where to_regclass('store_state') is null";
        if Access::Server(session).first(find, &[name], |row| row.get::<i64>(0))?.unwrap_or(0) > 0 {
            return Err(Error::new(Code::DataDirectoryUnusable).english_detail(format!(
                "The database has a table `{name}` of another program. Give the service a database of its own."
            )));
        }
    }
    Ok(())
}

/// Returns the version of the schema, 0 for an empty database. Locks it until the end of the transaction.
fn version(session: &Session) -> Result<usize> {
    let access = Access::Server(session);
    let count = |sql| Ok::<_, Error>(access.first(sql, &(), |row| row.get::<u32>(0))?.unwrap_or(0));
    if count("select cast(count(to_regclass('store_state')) as bigint)")? == 0 {
        return Ok(0);
    }
    Ok(count("select schema_version from store_state where id = 0 for update")? as usize)
}

/// Lists tables, indexes and triggers that the schema has and the database lacks or has switched off. Others may be the
/// operator's.
pub(super) fn faults(session: &Session) -> Result<Vec<String>> {
    const RELATION: &str = "select cast(count(to_regclass(cast(?1 as text))) as bigint)";
    const TRIGGER: &str =
        "select cast(count(*) as bigint) from pg_trigger where cast(tgname as text) = ?1 and tgenabled <> 'D'";
    let kinds = [
        ("create table ", "table", RELATION),
        ("create index ", "index", RELATION),
        ("create unique index ", "index", RELATION),
        ("create trigger ", "trigger", TRIGGER),
    ];
    let mut faults = Vec::new();
    for line in STEPS.iter().flat_map(|step| step.lines()) {
        let declared = kinds.iter().find_map(|(start, kind, find)| Some((line.strip_prefix(start)?, kind, find)));
        let Some((rest, kind, find)) = declared else { continue };
        let name = rest.split([' ', '(']).next().unwrap_or_default();
        if Access::Server(session).first(find, &[name], |row| row.get::<i64>(0))?.unwrap_or(0) == 0 {
            faults.push(format!("{kind} {name} is missing"));
        }
    }
    Ok(faults)
}
