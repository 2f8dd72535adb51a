//! API keys for programs, identified by a label. A key has a role, may expire, and can be suspended and resumed.

use serde::Serialize;
use utoipa::ToSchema;

use super::{KEY_PREFIX, random_credential, roles::Role, valid_name};
use crate::{
    core::Core,
    error::{Code, Error, Fault, FieldCode, Result},
    store::Pending,
    types::{Secret, Timestamp, sha256},
};

/// An API key, without its secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    #[serde(skip)]
    pub id: i64,
    #[schema(example = "billing")]
    pub label: String,
    pub role: Role,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    /// Set while the key is suspended.
    pub suspended_at: Option<Timestamp>,
    /// Set once the key is revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A change of an API key. Absent parts stay as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApiKeyChange {
    pub role: Option<Role>,
    /// The new time of expiry; the inner `None` removes it.
    pub expires_at: Option<Option<Timestamp>>,
    pub is_suspended: Option<bool>,
}

/// Creates a key and returns its secret, which is not stored.
///
/// # Errors
/// `invalid_parameters` for an invalid label or a time of expiry that has passed; `already_exists`, also for a revoked
/// key.
pub fn create(core: &Core, label: &str, role: Role, expires_at: Option<Timestamp>) -> Result<Pending<Secret>> {
    let label = valid_name("label", label)?;
    let key = random_credential(KEY_PREFIX)?;
    let hash = sha256(key.reveal());
    Ok(core.store.write(move |tx| {
        require_future(expires_at, tx.now)?;
        let inserted = tx.execute(
            "insert into api_keys (label, key_sha256, role, created_at, expires_at) values (?1, ?2, ?3, ?4, ?5) \
             on conflict (label) do nothing",
            (&label, hash, role.name(), tx.now.0, expires_at.map(|at| at.0)),
        )?;
        if inserted == 1 { Ok(key) } else { Err(Code::AlreadyExists.into()) }
    }))
}

/// Lists the keys by label, including revoked ones.
pub fn list(core: &Core) -> Result<Vec<ApiKey>> {
    core.store.read(|tx| {
        tx.all(
            "select id, label, role, created_at, expires_at, last_used_at, suspended_at, revoked_at \
             from api_keys order by label",
            (),
            |row| {
                let time = |column: usize| row.get::<Option<i64>>(column).map(|at| at.map(Timestamp));
                Ok(ApiKey {
                    id: row.get(0)?,
                    label: row.get(1)?,
                    role: row.get_parsed(2, Role::from_name)?,
                    created_at: Timestamp(row.get(3)?),
                    expires_at: time(4)?,
                    last_used_at: time(5)?,
                    suspended_at: time(6)?,
                    revoked_at: time(7)?,
                })
            },
        )
    })
}

/// Returns a key by its label.
///
/// # Errors
/// `not_found`.
pub fn find(core: &Core, label: &str) -> Result<ApiKey> {
    let found = list(core)?.into_iter().find(|key| key.label == label);
    found.ok_or_else(|| Code::NotFound.into())
}

/// Changes role, expiry or suspension of a key. It applies from the next request on.
///
/// # Errors
/// `not_found` when no active key has the label; `invalid_parameters` for a time of expiry that has passed.
pub fn change(core: &Core, label: &str, change: ApiKeyChange) -> Pending<()> {
    let label = label.to_owned();
    core.store.write(move |tx| {
        let id: Option<i64> =
            tx.first("select id from api_keys where label = ?1 and revoked_at is null", [&label], |row| row.get(0))?;
        let id = id.ok_or(Code::NotFound)?;
        if let Some(role) = change.role {
            tx.execute("update api_keys set role = ?2 where id = ?1", (id, role.name()))?;
        }
        if let Some(expires_at) = change.expires_at {
            require_future(expires_at, tx.now)?;
            tx.execute("update api_keys set expires_at = ?2 where id = ?1", (id, expires_at.map(|at| at.0)))?;
        }
        if let Some(is_suspended) = change.is_suspended {
            let suspended_at = is_suspended.then_some(tx.now.0);
            tx.execute("update api_keys set suspended_at = ?2 where id = ?1", (id, suspended_at))?;
        }
        Ok(())
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

fn require_future(expires_at: Option<Timestamp>, now: Timestamp) -> Result<()> {
    if expires_at.is_none_or(|at| at > now) {
        return Ok(());
    }
    Err(Error::field("expiresAt", Fault::new(FieldCode::OutOfRange, ("must be in the future", "须为将来的时间"))))
}
