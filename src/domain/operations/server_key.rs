//! The fingerprint of the server key with which the database was filled.
//!
//! HMACs and encrypted values of one key are useless with another: parked points are not returned, a bonus is paid
//! twice, second factors fail. None of these failures is obvious. A different key still does not stop the server,
//! because the old one may be lost; the log and `yarrow doctor` report it until an operator accepts the new key.

use crate::{
    core::Core,
    domain::operations::settings,
    error::{Error, Result},
    keys::ServerKey,
    store::{Read, Store},
};

const FINGERPRINT: &str = "auth.key_fingerprint";

/// The result of comparing a key with the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMatch {
    Same,
    /// No server has recorded a key yet.
    Unknown,
    Different,
}

/// Compares a key with the recorded fingerprint.
pub fn compare_in(tx: &Read<'_>, key: &ServerKey) -> Result<KeyMatch> {
    Ok(match settings::find_in(tx, FINGERPRINT)? {
        None => KeyMatch::Unknown,
        Some(recorded) if recorded == key.fingerprint() => KeyMatch::Same,
        Some(_) => KeyMatch::Different,
    })
}

/// Records the key of the first server, and warns if a later one has another.
///
/// # Errors
/// Storage errors.
pub fn check_at_start(store: &Store, key: &ServerKey) -> Result<()> {
    match store.read(|tx| compare_in(tx, key))? {
        KeyMatch::Same => Ok(()),
        KeyMatch::Unknown => record(store, key),
        // The copies of the service would not recognise what the others store.
        KeyMatch::Different if store.file().is_none() => Err(Error::misconfigured(
            "The server key is not the one of this database. Set auth.secret_key to the key of the other copies, or copy \
             their key file into the data directory.",
        )),
        KeyMatch::Different => {
            tracing::warn!(
                "the server key is not the one of this database: parked points, spent bonuses, second factors and \
                 pending codes are not recognised. Restore the former key, or accept this one with \
                 `yarrow doctor --accept-key`"
            );
            Ok(())
        }
    }
}

/// Records the current key as the database's. Returns true if another one was recorded.
///
/// # Errors
/// Storage errors.
pub fn accept(core: &Core) -> Result<bool> {
    let matching = core.store.read(|tx| compare_in(tx, &core.keys))?;
    record(&core.store, &core.keys)?;
    core.store.set_keys(core.keys.clone());
    Ok(matching == KeyMatch::Different)
}

fn record(store: &Store, key: &ServerKey) -> Result<()> {
    let fingerprint = key.fingerprint();
    store.write(move |tx| settings::put_in(tx, FINGERPRINT, &fingerprint)).wait()
}
