//! The files of a data directory that decide about taking over: the machine's id, the permission to take over, and the
//! mark of a machine that another one has superseded. Backups do not contain them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::term_holder::TermHolder;
use crate::{
    error::{Error, Result},
    store::files::{self, file_error, sync_and_rename, with_suffix, write_private},
    types::random_hex,
};

const ID: &str = "machine.id";
const PERMISSION: &str = "take-over";
const SUPERSEDED: &str = "superseded.json";
const FENCING: &str = "fencing";

/// The permission to take over from the machine that holds a term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TakeOverPermission {
    /// The last term at that time. A later one voids the permission.
    pub(super) after_term: u64,
    /// The system user who gave it.
    pub(super) system_user: String,
}

/// The files of one data directory.
#[derive(Clone, Debug)]
pub struct MachineFiles(PathBuf);

impl MachineFiles {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Returns the machine's id, which is created when it is missing.
    ///
    /// # Errors
    /// Storage errors.
    pub fn id(&self) -> Result<String> {
        if let Some(id) = self.read(ID)?.filter(|id| !id.is_empty()) {
            return Ok(id);
        }
        let id = random_hex::<16>()?;
        self.write(ID, &id)?;
        Ok(id)
    }

    pub(super) fn permission(&self) -> Result<Option<TakeOverPermission>> {
        self.read(PERMISSION)?.map(|json| serde_json::from_str(&json).map_err(Error::internal)).transpose()
    }

    pub(super) fn permit(&self, permission: &TakeOverPermission) -> Result<()> {
        self.write(PERMISSION, &serde_json::to_string(permission).map_err(Error::internal)?)
    }

    /// Returns the holder of the term by which this machine is superseded.
    ///
    /// # Errors
    /// Storage errors.
    pub fn superseded_by(&self) -> Result<Option<TermHolder>> {
        self.read(SUPERSEDED)?.map(|json| serde_json::from_str(&json).map_err(Error::internal)).transpose()
    }

    pub(super) fn mark_superseded(&self, by: &TermHolder) -> Result<()> {
        self.write(SUPERSEDED, &serde_json::to_string(by).map_err(Error::internal)?)
    }

    /// Returns true if the bucket stores a claim only if its key is new, as the last claim found out.
    ///
    /// # Errors
    /// Storage errors.
    pub fn is_exclusive(&self) -> Result<Option<bool>> {
        Ok(self.read(FENCING)?.map(|fencing| fencing == "exclusive"))
    }

    pub(super) fn note_exclusive(&self, is_exclusive: bool) -> Result<()> {
        self.write(FENCING, if is_exclusive { "exclusive" } else { "weak" })
    }

    /// Removes the permission and the mark, once this machine holds the last term.
    pub(super) fn clear(&self) -> Result<()> {
        self.remove(PERMISSION)?;
        self.clear_mark()
    }

    pub(super) fn clear_mark(&self) -> Result<()> {
        self.remove(SUPERSEDED)
    }

    fn read(&self, name: &str) -> Result<Option<String>> {
        let path = self.0.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error(&path, error)),
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.0.join(name);
        let unfinished = with_suffix(&path, ".unfinished");
        files::remove_if_exists(&unfinished).map_err(|error| file_error(&unfinished, error))?;
        write_private(&unfinished, text.as_bytes())?;
        sync_and_rename(&unfinished, &path)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.0.join(name);
        files::remove_if_exists(&path).map_err(|error| file_error(&path, error))
    }
}
