//! Under which key the database was filled: a fingerprint of it is kept, so that another key is noticed.
//!
//! What is kept as an HMAC or sealed under one key means nothing under another: parked points are not given back, a
//! bonus is given again, second factors fail. None of that fails loudly, and whoever lost the old key has to go on, so
//! another key stops nothing; it is told by the log and by `yarrow doctor` until somebody takes it for good.

use crate::{
    app::App,
    domain::operations::settings,
    error::Result,
    keys::ServerKey,
    store::{Read, Store},
};

const FINGERPRINT: &str = "auth.key_fingerprint";

/// What a key is to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The one under which it was filled.
    Own,
    /// No server has run on it that would have noted one.
    Unknown,
    /// It was filled under another.
    Other,
}

/// What this key is to the database.
pub fn standing_in(tx: &Read<'_>, key: &ServerKey) -> Result<Standing> {
    Ok(match settings::find_in(tx, FINGERPRINT)? {
        None => Standing::Unknown,
        Some(known) if known == key.fingerprint() => Standing::Own,
        Some(_) => Standing::Other,
    })
}

/// Notes the key of a server that starts, if none was noted before, and warns of another one.
///
/// # Errors
/// Storage errors.
pub fn note_at_start(store: &Store, key: &ServerKey) -> Result<()> {
    match store.read(|tx| standing_in(tx, key))? {
        Standing::Own => Ok(()),
        Standing::Unknown => keep(store, key),
        Standing::Other => {
            tracing::warn!(
                "the server key is not the one under which this database was filled: parked points, spent bonuses, \
                 second factors and live codes of before are not recognised. Put the former key back, or take this \
                 one for good by `yarrow doctor --accept-key`"
            );
            Ok(())
        }
    }
}

/// Takes the key that is there for the one of this database from now on; true if it was another.
///
/// # Errors
/// Storage errors.
pub fn accept(app: &App) -> Result<bool> {
    let standing = app.store.read(|tx| standing_in(tx, &app.keys))?;
    keep(&app.store, &app.keys)?;
    Ok(standing == Standing::Other)
}

fn keep(store: &Store, key: &ServerKey) -> Result<()> {
    let fingerprint = key.fingerprint();
    store.write(move |tx| settings::put_in(tx, FINGERPRINT, &fingerprint)).wait()
}
