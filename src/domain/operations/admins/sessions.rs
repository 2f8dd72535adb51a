//! Lists and ends the sessions of administrators.

use crate::{
    core::Core,
    error::{Code, Result},
    store::{Pending, Write},
    types::{Secret, Timestamp, hex, sha256},
};

/// Bytes of the token's hash that form the session's id.
const ID_BYTES: usize = 6;

/// An active session.
#[derive(Clone, Debug)]
pub struct AdminSession {
    /// Identifies the session for [`end`]. It is not a credential.
    pub id: String,
    pub admin: String,
    pub created_at: Timestamp,
    pub last_used_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Lists active sessions, most recently used first.
pub fn list(core: &Core) -> Result<Vec<AdminSession>> {
    let idle = core.config.admin.session_idle;
    let now = core.clock.now();
    core.store.read(|tx| {
        tx.all(
            "select admin_tokens.token_sha256, admins.name, admin_tokens.created_at, admin_tokens.last_used_at, \
             admin_tokens.expires_at from admin_tokens join admins on admins.id = admin_tokens.admin_id \
             where admin_tokens.expires_at > ?1 and admin_tokens.last_used_at > ?2 \
             order by admin_tokens.last_used_at desc",
            (now.0, now.minus(idle).0),
            |row| {
                let hash: Vec<u8> = row.get(0)?;
                Ok(AdminSession {
                    id: id_of_hash(&hash),
                    admin: row.get(1)?,
                    created_at: Timestamp(row.get(2)?),
                    last_used_at: Timestamp(row.get(3)?),
                    expires_at: Timestamp(row.get(4)?),
                })
            },
        )
    })
}

/// Returns the id of the session with this token.
pub fn id_of(token: &Secret) -> String {
    id_of_hash(&sha256(token.reveal()))
}

fn id_of_hash(hash: &[u8]) -> String {
    hex(hash.get(..ID_BYTES).unwrap_or_default())
}

/// Ends all sessions of an administrator.
pub(super) fn end_all_in(tx: &Write<'_>, admin: i64) -> Result<()> {
    tx.execute("delete from admin_tokens where admin_id = ?1", [admin]).map(drop)
}

/// Ends the session with this id, or all sessions of the administrator with this name. Returns their number.
///
/// # Errors
/// `not_found` when there is none.
pub fn end(core: &Core, id_or_name: &str) -> Pending<usize> {
    let id_or_name = id_or_name.to_owned();
    core.store.write(move |tx| {
        let mut tokens: Vec<(Vec<u8>, String)> = tx.all(
            "select admin_tokens.token_sha256, admins.name from admin_tokens \
             join admins on admins.id = admin_tokens.admin_id",
            (),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        tokens.retain(|(hash, admin)| *admin == id_or_name || id_of_hash(hash) == id_or_name);
        let ended =
            tx.execute_each("delete from admin_tokens where token_sha256 = ?1", tokens.iter().map(|(hash, _)| [hash]))?;
        if ended > 0 { Ok(ended) } else { Err(Code::NotFound.into()) }
    })
}
