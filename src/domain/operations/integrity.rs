//! Integrity checks of the database file.
//!
//! A failing disk or a careless copy can damage pages that nobody reads for months. A background job therefore checks
//! the whole file after the start and once a day, and every backup checks its copy. A request that meets damage is
//! refused and counted; a check then follows within ten minutes.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::settings;
use crate::{
    core::Core,
    error::Result,
    store::{self, Read},
    types::Timestamp,
};

const LAST_CHECK: &str = "database.check";
/// The longest time until the next check once a request has met damage that the last check did not find.
const MAX_WAIT_AFTER_DAMAGE: Duration = Duration::from_mins(10);

/// The result of a check of the whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntegrityCheck {
    /// Milliseconds since 1970.
    at: i64,
    /// The first fault, as the database engine reported it.
    pub fault: Option<String>,
}

impl IntegrityCheck {
    pub fn at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

/// The known state of the database file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntegrityStatus {
    pub last: Option<IntegrityCheck>,
    /// The last check was before this start of the server, so the file may have changed since.
    pub is_before_start: bool,
    /// A request has met damage since the last check.
    pub has_unexplained_damage: bool,
    /// The file or its log was deleted or replaced.
    pub is_file_missing: bool,
}

impl IntegrityStatus {
    pub fn is_damaged(&self) -> bool {
        self.has_unexplained_damage || self.fault().is_some()
    }

    /// The fault, if one is known.
    pub fn fault(&self) -> Option<&str> {
        if self.is_file_missing {
            Some("the file or its log was deleted or replaced")
        } else {
            self.last.as_ref()?.fault.as_deref()
        }
    }

    /// The stable name of the state.
    pub fn name(&self) -> &'static str {
        match self.last {
            _ if self.is_damaged() => "damaged",
            Some(_) if !self.is_before_start => "sound",
            _ => "unchecked",
        }
    }
}

/// The service that checks the database file.
pub struct IntegrityChecker {
    pub core: Core,
    /// False until the first check of a server, because the file may have changed while it was stopped. Commands trust
    /// the check of the server.
    is_check_current: AtomicBool,
    /// The store's count of damaged reads that the last check has explained.
    explained_damage: AtomicU64,
}

impl IntegrityChecker {
    pub fn new(core: Core, is_server: bool) -> Self {
        Self { core, is_check_current: AtomicBool::new(!is_server), explained_damage: AtomicU64::new(0) }
    }

    /// Returns what is known of the file without reading it.
    pub fn status_in(&self, tx: &Read<'_>) -> Result<IntegrityStatus> {
        let store = &self.core.store;
        Ok(IntegrityStatus {
            last: settings::find_json_in(tx, LAST_CHECK)?,
            is_before_start: !self.is_check_current.load(Ordering::Relaxed),
            has_unexplained_damage: store.damage_errors() > self.explained_damage.load(Ordering::Relaxed),
            is_file_missing: !store.has_original_files(),
        })
    }

    /// Checks the file if the last check is older than configured or than this start, or if damage was met since. Returns true if it did.
    ///
    /// # Errors
    /// Storage errors.
    pub fn check_if_due(&self) -> Result<bool> {
        let every = self.core.config.database.check_every;
        if every.is_zero() {
            return Ok(false);
        }
        let status = self.core.store.read(|tx| self.status_in(tx))?;
        let interval = if status.has_unexplained_damage { every.min(MAX_WAIT_AFTER_DAMAGE) } else { every };
        let now = self.core.clock.now();
        if !status.is_before_start && status.last.is_some_and(|last| last.at().is_within(interval, now)) {
            return Ok(false);
        }
        self.check().map(|()| true)
    }

    /// Reads the whole file and stores the result.
    ///
    /// # Errors
    /// Storage errors. Damage is not an error: the result reports it.
    pub fn check(&self) -> Result<()> {
        let store = &self.core.store;
        let met_before = store.damage_errors();
        // Other engines check their pages when they read them.
        let Some(file) = store.file() else { return Ok(()) };
        let faults = match file.structure_faults() {
            Err(error) if store::is_damage(&error) => vec![error.to_string()],
            faults => faults?,
        };
        // A check without faults explains nothing that requests met while it ran.
        let explained = if faults.is_empty() { met_before } else { store.damage_errors() };
        if let Some(fault) = faults.first() {
            tracing::error!(fault, faults = faults.len(), "the database is damaged: restore a backup");
        }
        // If storing the result fails, the damage stays unexplained and so reported.
        self.store_result(faults.into_iter().next())?;
        self.explained_damage.store(explained, Ordering::Relaxed);
        Ok(())
    }

    /// Stores the result of a check made now.
    ///
    /// # Errors
    /// Storage errors.
    pub fn store_result(&self, fault: Option<String>) -> Result<()> {
        let check = IntegrityCheck { at: self.core.clock.now().0, fault };
        self.core.store.write(move |tx| settings::put_json_in(tx, LAST_CHECK, &check)).wait()?;
        self.is_check_current.store(true, Ordering::Relaxed);
        Ok(())
    }
}
