//! API keys for programs, managed by the command line under a label.

use super::{KEY_PREFIX, random_credential, valid_name};
use crate::{
    core::Core,
    error::{Code, Result},
    store::{Pending, Write},
    types::{Secret, Timestamp, sha256},
};

/// An API key, without its secret.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub id: i64,
    pub label: String,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// Creates a key and returns its secret, which is not stored.
///
/// # Errors
/// `invalid_parameters` for an invalid label; `already_exists`, also for a revoked key.
pub fn create(core: &Core, label: &str) -> Result<Secret> {
    let label = valid_name("label", label)?;
    let key = random_credential(KEY_PREFIX)?;
    let hash = sha256(key.reveal());
    let insert = move |tx: &Write<'_>| {
        let inserted = tx.execute(
            "insert into api_keys (label, key_sha256, created_at) values (?1, ?2, ?3) \
             on conflict (label) do nothing",
            (&label, hash, tx.now.0),
        )?;
        if inserted == 1 { Ok(()) } else { Err(Code::AlreadyExists.into()) }
    };
    core.store.write(insert).wait()?;
    Ok(key)
}

/// Lists the keys by label, including revoked ones.
pub fn list(core: &Core) -> Result<Vec<ApiKey>> {
    core.store.read(|tx| {
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

/// Revokes a key as soon as the write is on disk.
///
/// # Errors
/// `not_found` when no active key has the label.
pub fn revoke(core: &Core, label: &str) -> Pending<()> {
    let label = label.to_owned();
    core.store.write(move |tx| {
        let revoked = tx.execute(
            "update api_keys set revoked_at = ?2 where label = ?1 and revoked_at is null",
            (&label, tx.now.0),
        )?;
        if revoked == 1 { Ok(()) } else { Err(Code::NotFound.into()) }
    })
}
