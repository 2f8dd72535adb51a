//! The link by which the first owner is created in a browser.
//!
//! The server makes it at its start if there are no administrators. It works for an hour and until there is one. The
//! server key proves it, so each copy of the service accepts it.

use subtle::ConstantTimeEq as _;

use super::{Administrators, one_time_link::LIFETIME, passwords::Waiting, roles::Role, valid_name, valid_password};
use crate::{
    core::Core,
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{Read, Write},
    types::{Secret, Timestamp, hex},
};

/// Makes the link and returns its token. None if there are administrators.
///
/// # Errors
/// Storage errors.
pub fn offer(core: &Core) -> Result<Option<Secret>> {
    let expires_at = core.clock.now().plus(LIFETIME);
    Ok(if core.store.read(has_admins_in)? { None } else { Some(token_until(&core.keys, expires_at)) })
}

/// Rejects a token that is not that of a link.
///
/// # Errors
/// `not_found` for a wrong, used or expired token.
pub fn require(core: &Core, token: &str) -> Result<()> {
    if is_genuine(&core.keys, token, core.clock.now()) && !core.store.read(has_admins_in)? {
        Ok(())
    } else {
        Err(unknown_link())
    }
}

fn token_until(keys: &ServerKey, expires_at: Timestamp) -> Secret {
    let expiry = expires_at.0.to_string();
    let seal = hex(&keys.authenticate(&["first run", &expiry]));
    Secret::from_text(format!("{expiry}-{seal}"))
}

fn is_genuine(keys: &ServerKey, token: &str, now: Timestamp) -> bool {
    let expiry = token.split_once('-').and_then(|(expiry, _)| expiry.parse().ok());
    expiry.map(Timestamp).is_some_and(|expires_at| {
        let genuine = token_until(keys, expires_at);
        now < expires_at && bool::from(genuine.reveal().as_bytes().ct_eq(token.as_bytes()))
    })
}

fn has_admins_in(tx: &Read<'_>) -> Result<bool> {
    tx.one("select exists (select 1 from admins)", (), |row| row.get(0))
}

/// Creates the first owner, which ends the link. Blocks on the hash.
///
/// # Errors
/// `not_found` for a wrong, used or expired link, or if there are administrators by now; `invalid_parameters` for an
/// invalid name or password.
pub fn create_owner(admins: &Administrators, token: &str, name: &str, password: &str) -> Result<()> {
    let core = &admins.core;
    require(core, token)?;
    let name = valid_name("name", name)?;
    let password_hash = admins.passwords.acquire(Waiting::Known(&name))?.hash(valid_password(password)?)?;
    let insert = move |tx: &Write<'_>| {
        if has_admins_in(tx)? {
            return Err(unknown_link());
        }
        tx.execute(
            "insert into admins (name, password_hash, role, created_at) values (?1, ?2, ?3, ?4)",
            (&name, &password_hash, Role::Owner.name(), tx.now.0),
        )
        .map(drop)
    };
    core.store.write(insert).wait()
}

fn unknown_link() -> Error {
    Error::new(Code::NotFound).detail((
        "This link is wrong, expired or used. Restart the service, or use `yarrow admin create NAME`.",
        "链接错误、已过期或已使用。请重启服务，或使用 `yarrow admin create NAME`。",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_of_this_key_works_and_for_an_hour() {
        let (keys, now) = (ServerKey::from_bytes(&[1; 32]), Timestamp(1_000));
        let token = token_until(&keys, now.plus(LIFETIME));
        let token = token.reveal();
        assert!(is_genuine(&keys, token, now));
        assert!(!is_genuine(&keys, token, now.plus(LIFETIME)));
        assert!(!is_genuine(&ServerKey::from_bytes(&[2; 32]), token, now));
        let later = token.replacen("3601000-", "9601000-", 1);
        assert_ne!(later, token);
        for wrong in ["", "AAAA", "-", "3601000-", &later, &format!("+{token}"), &token.to_uppercase()] {
            assert!(!is_genuine(&keys, wrong, now), "{wrong}");
        }
    }
}
