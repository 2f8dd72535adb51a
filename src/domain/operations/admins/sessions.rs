//! The sessions of administrators as somebody looks at them from outside: who is signed in, and an end to it.

use crate::{
    app::App,
    error::{Code, Result},
    store::Pending,
    types::{Timestamp, hex},
};

/// Bytes of a session's hash that name it. They prove nothing.
const NAME_BYTES: u8 = 6;

/// A session that has not expired.
#[derive(Clone, Debug)]
pub struct Session {
    /// Names the session for [`end`]; no credential.
    pub id: String,
    pub admin: String,
    pub created_at: Timestamp,
    pub last_used_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The sessions that are good now, the latest used first.
pub fn list(app: &App) -> Result<Vec<Session>> {
    let idle = app.config.admin.session_idle;
    let now = app.clock.now();
    app.store.read(|tx| {
        tx.all(
            "select admin_tokens.token_sha256, admins.name, admin_tokens.created_at, admin_tokens.last_used_at, \
             admin_tokens.expires_at from admin_tokens join admins on admins.id = admin_tokens.admin_id \
             where admin_tokens.expires_at > ?1 and admin_tokens.last_used_at > ?2 \
             order by admin_tokens.last_used_at desc",
            (now.0, now.minus(idle).0),
            |row| {
                let hash: Vec<u8> = row.get(0)?;
                Ok(Session {
                    id: hex(hash.get(..usize::from(NAME_BYTES)).unwrap_or_default()),
                    admin: row.get(1)?,
                    created_at: Timestamp(row.get(2)?),
                    last_used_at: Timestamp(row.get(3)?),
                    expires_at: Timestamp(row.get(4)?),
                })
            },
        )
    })
}

/// Ends the session of this id, or every session of the administrator of this name, and says how many that were.
///
/// # Errors
/// `not_found` when there is none.
pub fn end(app: &App, which: &str) -> Pending<usize> {
    let which = which.to_owned();
    app.store.write(move |tx| {
        let ended = tx.execute(
            "delete from admin_tokens where lower(hex(substr(token_sha256, 1, ?2))) = ?1 \
             or admin_id = (select id from admins where name = ?1)",
            (&which, NAME_BYTES),
        )?;
        if ended > 0 { Ok(ended) } else { Err(Code::NotFound.into()) }
    })
}
