//! Runs of which one goes on at a time, whichever process it runs in.

use std::time::Duration;

use super::settings;
use crate::{
    app::App,
    error::{Code, Result},
    store::{Read, Write},
    types::{Timestamp, random_hex},
};

/// A run that has not gone on for so long was killed.
const STALLED_AFTER: Duration = Duration::from_mins(1);

/// A run that goes on. The mark under its name says which one that is, and when it last went on.
#[derive(Clone)]
pub struct SoleRun {
    name: &'static str,
    id: String,
}

impl SoleRun {
    /// Has `work` done unless another run of this name goes on. Blocks for as long as that takes.
    ///
    /// # Errors
    /// `already_running`, and those of `work`.
    pub fn of<T>(app: &App, name: &'static str, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let run = Self { name, id: random_hex::<8>()? };
        run.go_on(app)?;
        let outcome = work(&run);
        app.store.write(move |tx| run.end_in(tx)).wait()?;
        outcome
    }

    /// Like [`Self::go_on_in`], in a write of its own that is waited for.
    ///
    /// # Errors
    /// Those of [`Self::go_on_in`], and storage errors.
    pub fn go_on(&self, app: &App) -> Result<()> {
        let run = self.clone();
        app.store.write_without_savepoint(move |tx| run.go_on_in(tx)).wait()
    }

    /// Moves the mark.
    ///
    /// # Errors
    /// `already_running` if another run has it: this one stood still for so long that it was taken for killed.
    pub fn go_on_in(&self, tx: &Write<'_>) -> Result<()> {
        let taken = find_in(tx, self.name)?.filter(|(_, id)| *id != self.id);
        if taken.is_some_and(|(moved_at, _)| moved_at.is_near(STALLED_AFTER, tx.now)) {
            return Err(Code::AlreadyRunning.into());
        }
        settings::put_in(tx, self.name, &format!("{} {}", tx.now.0, self.id))
    }

    fn end_in(&self, tx: &Write<'_>) -> Result<()> {
        match find_in(tx, self.name)? {
            Some((_, id)) if id == self.id => settings::remove_in(tx, self.name),
            _ => Ok(()),
        }
    }
}

/// When the run that has the mark last went on, and which one it is.
fn find_in(tx: &Read<'_>, name: &str) -> Result<Option<(Timestamp, String)>> {
    let mark = settings::find_in(tx, name)?;
    Ok(mark.and_then(|mark| {
        let (moved_at, id) = mark.split_once(' ')?;
        Some((Timestamp(moved_at.parse().ok()?), id.to_owned()))
    }))
}
