//! Leases: a job under a name runs once at a time, in whichever process.

use std::time::Duration;

use super::settings;
use crate::{
    core::Core,
    error::{Code, Result},
    store::{Read, Write},
    types::{Timestamp, random_hex},
};

/// A lease that is not renewed for this long belongs to a killed process.
const EXPIRES_AFTER: Duration = Duration::from_mins(1);

/// A lease held by this process. The setting under its name stores its id and the time of the last renewal.
#[derive(Clone)]
pub struct Lease {
    name: &'static str,
    id: String,
}

impl Lease {
    /// Runs `work` while holding the lease. `work` must renew it.
    ///
    /// # Errors
    /// `already_running` if another process holds the lease; those of `work`.
    pub fn hold<T>(core: &Core, name: &'static str, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let lease = Self { name, id: random_hex::<8>()? };
        lease.renew(core)?;
        let outcome = work(&lease);
        core.store.write(move |tx| lease.release_in(tx)).wait()?;
        outcome
    }

    /// Renews the lease in a write of its own.
    ///
    /// # Errors
    /// Those of [`Self::renew_in`]; storage errors.
    pub fn renew(&self, core: &Core) -> Result<()> {
        let lease = self.clone();
        core.store.write_without_savepoint(move |tx| lease.renew_in(tx)).wait()
    }

    /// Acquires or renews the lease.
    ///
    /// # Errors
    /// `already_running` if another process took the lease because this one did not renew it in time.
    pub fn renew_in(&self, tx: &Write<'_>) -> Result<()> {
        let other = find_in(tx, self.name)?.filter(|(_, id)| *id != self.id);
        if other.is_some_and(|(renewed_at, _)| renewed_at.is_near(EXPIRES_AFTER, tx.now)) {
            return Err(Code::AlreadyRunning.into());
        }
        settings::put_in(tx, self.name, &format!("{} {}", tx.now.0, self.id))
    }

    fn release_in(&self, tx: &Write<'_>) -> Result<()> {
        match find_in(tx, self.name)? {
            Some((_, id)) if id == self.id => settings::remove_in(tx, self.name),
            _ => Ok(()),
        }
    }
}

/// Returns the time of the last renewal and the id of the stored lease.
fn find_in(tx: &Read<'_>, name: &str) -> Result<Option<(Timestamp, String)>> {
    let stored = settings::find_in(tx, name)?;
    Ok(stored.and_then(|stored| {
        let (renewed_at, id) = stored.split_once(' ')?;
        Some((Timestamp(renewed_at.parse().ok()?), id.to_owned()))
    }))
}
