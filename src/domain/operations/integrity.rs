//! Whether the database file is whole: what was found when all of it was last looked through.
//!
//! A file is damaged by a disk, or by somebody who copied over it, and a start reads only a little of it. So the pages
//! that nobody asks for are looked through once a day, away from everybody else, and by every backup in its copy.
//! Whoever meets damage while serving is refused, is counted, and causes a check.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::settings;
use crate::{
    app::App,
    error::Result,
    store::{self, Read},
    types::Timestamp,
};

const LAST: &str = "database.check";
/// How long a check is good for once somebody has met damage that it did not see.
const GOOD_FOR_AFTER_DAMAGE: Duration = Duration::from_mins(10);

/// What was found when the whole file was last looked through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Milliseconds since 1970.
    at: i64,
    /// The first fault, in the words of the database engine.
    pub fault: Option<String>,
}

impl Check {
    pub fn at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

/// How often damage was met in this process, as of its last check.
#[derive(Debug, Default)]
pub struct Watch(AtomicU64);

/// What is known of the database file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub last: Option<Check>,
    /// Damage was met that no check has explained yet.
    pub is_unexplained: bool,
    /// The file or its log was deleted, or another has its name.
    pub is_gone: bool,
}

impl Standing {
    pub fn is_damaged(&self) -> bool {
        self.is_unexplained || self.fault().is_some()
    }

    /// What is wrong, as far as that was looked for.
    pub fn fault(&self) -> Option<&str> {
        if self.is_gone {
            Some("the file or its log is not in its place")
        } else {
            self.last.as_ref()?.fault.as_deref()
        }
    }

    /// The stable name of what is known.
    pub fn name(&self) -> &'static str {
        match self.last {
            _ if self.is_damaged() => "damaged",
            None => "unchecked",
            Some(_) => "sound",
        }
    }
}

/// What is known of the file.
pub fn standing_in(tx: &Read<'_>, app: &App) -> Result<Standing> {
    let last = settings::find_json_in(tx, LAST)?;
    let is_unexplained = app.store.damage_errors() > app.damage_explained.0.load(Ordering::Relaxed);
    Ok(Standing { last, is_unexplained, is_gone: !app.store.has_original_files() })
}

/// Checks the file if that was not done for as long as is configured, or since somebody met damage.
///
/// # Errors
/// Storage errors.
pub fn check_if_due(app: &App) -> Result<()> {
    let every = app.config.database.check_every;
    if every.is_zero() {
        return Ok(());
    }
    let Standing { last, is_unexplained, .. } = app.store.read(|tx| standing_in(tx, app))?;
    let good_for = if is_unexplained { every.min(GOOD_FOR_AFTER_DAMAGE) } else { every };
    if last.is_some_and(|last| last.at().is_within(good_for, app.clock.now())) {
        return Ok(());
    }
    check(app)
}

/// Looks through the whole file and remembers what was found. Blocks for as long as that takes.
///
/// # Errors
/// Storage errors. Damage is none: it is what is looked for.
pub fn check(app: &App) -> Result<()> {
    let met_before = app.store.damage_errors();
    let faults = match app.store.structure_faults() {
        Err(error) if store::is_damage(&error) => vec![error.to_string()],
        faults => faults?,
    };
    // What was found is told now. What somebody met in what had already been looked through is not.
    let explained = if faults.is_empty() { met_before } else { app.store.damage_errors() };
    if let Some(fault) = faults.first() {
        tracing::error!(fault, faults = faults.len(), "the database is damaged: restore a backup");
    }
    // What cannot be written down stays unexplained, and so told.
    remember(app, faults.into_iter().next())?;
    app.damage_explained.0.store(explained, Ordering::Relaxed);
    Ok(())
}

/// Remembers that the file was looked through, and what was wrong with it.
///
/// # Errors
/// Storage errors.
pub fn remember(app: &App, fault: Option<String>) -> Result<()> {
    let found = Check { at: app.clock.now().0, fault };
    app.store.write(move |tx| settings::put_json_in(tx, LAST, &found)).wait()
}
