//! API keys, for programs: made by the command line, known by a label, and ended there.

use super::{KEY_PREFIX, fit_name, random_credential};
use crate::{
    app::App,
    error::{Code, Result},
    store::{Pending, Write},
    types::{Secret, Timestamp, sha256},
};

#[derive(Clone, Debug)]
pub struct ApiKey {
    pub id: i64,
    pub label: String,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// Makes a key for a program. It is shown this once.
///
/// # Errors
/// `invalid_parameters` for an unfit label; `already_exists`, also when the key of this label was revoked.
pub fn create(app: &App, label: &str) -> Result<Secret> {
    let label = fit_name("label", label)?;
    let key = random_credential(KEY_PREFIX)?;
    let hash = sha256(key.reveal());
    let insert = move |tx: &Write<'_>| {
        let made = tx.execute(
            "insert into api_keys (label, key_sha256, created_at) values (?1, ?2, ?3) \
             on conflict (label) do nothing",
            (&label, hash, tx.now.0),
        )?;
        if made == 1 { Ok(()) } else { Err(Code::AlreadyExists.into()) }
    };
    app.store.write(insert).wait()?;
    Ok(key)
}

/// The keys by label, revoked ones too.
pub fn list(app: &App) -> Result<Vec<ApiKey>> {
    app.store.read(|tx| {
        tx.all("select id, label, created_at, last_used_at, revoked_at from api_keys order by label", (), |row| {
            Ok(ApiKey {
                id: row.get(0)?,
                label: row.get(1)?,
                created_at: Timestamp(row.get(2)?),
                last_used_at: row.get::<Option<i64>>(3)?.map(Timestamp),
                revoked_at: row.get::<Option<i64>>(4)?.map(Timestamp),
            })
        })
    })
}

/// Ends a key. It works for nothing from the moment this is on disk.
///
/// # Errors
/// `not_found` when no live key has the label.
pub fn revoke(app: &App, label: &str) -> Pending<()> {
    let label = label.to_owned();
    app.store.write(move |tx| {
        let revoked = tx.execute(
            "update api_keys set revoked_at = ?2 where label = ?1 and revoked_at is null",
            (&label, tx.now.0),
        )?;
        if revoked == 1 { Ok(()) } else { Err(Code::NotFound.into()) }
    })
}
