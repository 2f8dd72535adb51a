//! The one-time link by which the first owner is created in a browser.
//!
//! The server makes it at its start if there are no administrators. It is kept in memory only, so a restart ends it.

use super::{Administrators, roles::Role, valid_name, valid_password};
use crate::{
    error::{Code, Error, Result},
    store::Write,
    types::Secret,
};

/// Makes the link and returns its token. None if there are administrators.
///
/// # Errors
/// Storage errors.
pub fn offer(admins: &Administrators) -> Result<Option<Secret>> {
    let core = &admins.core;
    let has_admins: bool =
        core.store.read(|tx| tx.one("select exists (select 1 from admins)", (), |row| row.get(0)))?;
    if has_admins {
        return Ok(None);
    }
    admins.first_run.issue(core.clock.now()).map(Some)
}

/// Rejects a token that is not that of the link.
///
/// # Errors
/// `not_found` for a wrong, used or expired token.
pub fn require(admins: &Administrators, token: &str) -> Result<()> {
    if admins.first_run.accepts(token, admins.core.clock.now()) { Ok(()) } else { Err(unknown_link()) }
}

/// Creates the first owner and ends the link. Blocks on the hash.
///
/// # Errors
/// `not_found` for a wrong, used or expired link, or if there are administrators by now; `invalid_parameters` for an
/// invalid name or password.
pub fn create_owner(admins: &Administrators, token: &str, name: &str, password: &str) -> Result<()> {
    let core = &admins.core;
    require(admins, token)?;
    let name = valid_name("name", name)?;
    let password_hash = admins.passwords.try_acquire()?.hash(valid_password(password)?)?;
    let insert = move |tx: &Write<'_>| {
        let has_admins: bool = tx.one("select exists (select 1 from admins)", (), |row| row.get(0))?;
        if has_admins {
            return Err(unknown_link());
        }
        tx.execute(
            "insert into admins (name, password_hash, role, created_at) values (?1, ?2, ?3, ?4)",
            (&name, &password_hash, Role::Owner.name(), tx.now.0),
        )
        .map(drop)
    };
    core.store.write(insert).wait()?;
    admins.first_run.end();
    Ok(())
}

fn unknown_link() -> Error {
    Error::new(Code::NotFound).detail((
        "This link is wrong, expired or used. Restart the service, or use `yarrow admin create NAME`.",
        "链接错误、已过期或已使用。请重启服务，或使用 `yarrow admin create NAME`。",
    ))
}
