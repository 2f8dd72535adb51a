//! Restore tests: a restore into a temporary directory that is checked and deleted.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use secrecy::ExposeSecret;

use super::{
    BackupProgress, ensure_known_schema, lock_backups,
    manifest::{self, Checksum},
    restoring::{blame_backup, unpack},
};
use crate::{
    clock::Clock,
    config::Config,
    domain::money::ledger::verification,
    error::Result,
    keys::{SERVER_KEY, ServerKey},
    store::{
        SchemaPolicy, Store, Tuning,
        backup::{DatabaseCopy, Faults},
        files::DATABASE,
    },
};

/// The result of a restore test.
#[derive(Clone, Debug)]
pub struct RestoreTest {
    /// Faults reported by the database engine.
    pub faults: Faults,
    pub checksum: Checksum,
    pub ledger_entries: i64,
    pub ledger_accounts: i64,
    pub ledger_discrepancies: u64,
    /// The time that a restore would take.
    pub restored_in: Duration,
    /// The time with all checks.
    pub took: Duration,
}

impl RestoreTest {
    pub fn is_sound(&self) -> bool {
        self.faults == Faults::default() && self.checksum != Checksum::Wrong && self.ledger_discrepancies == 0
    }
}

/// Returns the server key under which a backup was filled: the configured one, or the one that it carries.
pub(super) fn key_of(config: &Config, copy: &DatabaseCopy) -> Result<Option<ServerKey>> {
    if let Some(configured) = &config.auth.secret_key {
        return Ok(Some(ServerKey::from_bytes(configured.expose_secret().as_bytes())));
    }
    Ok(copy.contents()?.get(SERVER_KEY).map(|key| ServerKey::from_bytes(key)))
}

/// Restores a backup into a temporary directory, opens it as a server would, and checks it.
///
/// # Errors
/// `not_found`; `data_directory_unusable` for a newer schema; `backup_unusable` for a file that is not a backup and for
/// damage that stops the checks; storage errors. Other faults are part of the result.
pub fn test_restore(config: &Config, path: &Path, clock: &Clock, progress: BackupProgress<'_>) -> Result<RestoreTest> {
    test_copy(config, path, clock, progress).map_err(|error| blame_backup(path, error))
}

fn test_copy(config: &Config, path: &Path, clock: &Clock, progress: BackupProgress<'_>) -> Result<RestoreTest> {
    let started = Instant::now();
    let copy = DatabaseCopy::open(path, clock.now())?;
    ensure_known_schema(path, &copy)?;
    let _lock = lock_backups(&config.backup_directory())?;
    progress("reading", 0, 1);
    let checksum = manifest::verify(path)?;
    let directory = unpack(config, path, &copy, progress)?;
    let tuning = Tuning { cache_kib: 8192, slow: Duration::MAX, ..Tuning::SMALL };
    let database = directory.path().join(DATABASE);
    let store = Store::open(&database, &tuning, clock.clone(), SchemaPolicy::Migrate)?;
    if let Some(key) = key_of(config, &copy)? {
        store.set_keys(key);
    }
    let restored_in = started.elapsed();
    let report = verification::inspect(&store, &mut |done, total| {
        progress("verifying", u64::try_from(done).unwrap_or(0), u64::try_from(total).unwrap_or(0));
    })?;
    store.close();
    drop(store);
    let faults = DatabaseCopy::open(&database, clock.now())?.faults()?;
    Ok(RestoreTest {
        faults,
        checksum,
        ledger_entries: report.entries,
        ledger_accounts: report.accounts,
        ledger_discrepancies: report.discrepancies_found,
        restored_in,
        took: started.elapsed(),
    })
}
