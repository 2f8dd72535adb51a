//! The recent proof of identity that sensitive acts of a session need: password or authenticator code. It counts for ten
//! minutes, and for ten more after each such act, up to eight hours.

use std::{sync::Arc, time::Duration};

use super::{Administrators, passwords::Waiting, second_factor};
use crate::{
    core::Core,
    domain::identity::codes::ClientNetworks,
    error::{Code, Result},
    store::{Pending, Write},
    types::{Secret, Timestamp, sha256, sha256_hex},
};

/// The time after which an unused proof no longer counts.
const MAX_IDLE: Duration = Duration::from_mins(10);
/// The age at which a proof no longer counts, however often it is used.
const LIFETIME: Duration = Duration::from_hours(8);
/// The precision of the stored time of a proof's last use.
const USE_INTERVAL: Duration = Duration::from_mins(1);

/// Returns true if the session's last proof of identity is too old.
///
/// # Errors
/// Storage errors.
pub fn is_needed(core: &Core, session: &Secret) -> Result<bool> {
    last_use(core, session).map(|used_at| used_at.is_none())
}

/// Returns the last use of the session's proof of identity, or `None` if the proof no longer counts.
fn last_use(core: &Core, session: &Secret) -> Result<Option<Timestamp>> {
    let (hash, now) = (sha256(session.reveal()), core.clock.now());
    core.store.read(|tx| {
        tx.first(
            "select proved_at from admin_tokens where token_sha256 = ?1 and proved_at > ?2 and proof_began_at > ?3",
            (hash, now.minus(MAX_IDLE).0, now.minus(LIFETIME).0),
            |row| row.get(0).map(Timestamp),
        )
    })
}

/// Requires a recent proof of identity for an act and extends its window, unless that was done within a minute.
///
/// # Errors
/// `step_up_required` without a recent proof.
pub fn use_recent(core: &Core, session: &Secret) -> Result<Option<Pending<()>>> {
    let used_at = last_use(core, session)?.ok_or(Code::StepUpRequired)?;
    if core.clock.now() < used_at.plus(USE_INTERVAL) {
        return Ok(None);
    }
    let hash = sha256(session.reveal());
    let extend = move |tx: &Write<'_>| {
        tx.execute("update admin_tokens set proved_at = ?2 where token_sha256 = ?1", (hash, tx.now.0)).map(drop)
    };
    Ok(Some(core.store.write(extend)))
}

/// A proof of identity: the code of the authenticator if there is one, or else the password.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    pub password: Option<Secret>,
    pub totp: Option<String>,
}

/// Renews the session's proof of identity. Blocks on the hash. Wrong proofs have the limit of failed sign-ins, counted for
/// the session alone: strangers who know the name cannot use it up.
///
/// # Errors
/// `step_up_required` without a proof; `invalid_credentials` for a wrong one; `too_many_requests` after several wrong
/// ones; `overloaded`.
pub fn prove(admins: &Administrators, session: &Secret, name: &str, proof: Proof) -> Result<()> {
    let core = &admins.core;
    if proof.password.is_none() && proof.totp.is_none() {
        return Err(Code::StepUpRequired.into());
    }
    let (config, owned_name) = (Arc::clone(&core.config), name.to_owned());
    let own = format!("session {}", sha256_hex(session.reveal().as_bytes()));
    let reserve = move |tx: &Write<'_>| {
        let counted = ClientNetworks { own: own.clone(), wide: own.clone(), widest: None };
        let attempt = super::reserve_attempt_in(tx, &config.admin, &own, &counted)?;
        Ok((attempt, super::password_of_in(tx, &owned_name)?))
    };
    let (attempt, account) = core.store.write(reserve).wait()?;
    let (admin, hash) = account.ok_or(Code::InvalidCredentials)?;
    if let Some(password) = &proof.password
        && !admins.passwords.acquire(Waiting::Known(name))?.verify(&hash, password.reveal())?
    {
        return Err(Code::InvalidCredentials.into());
    }
    let (keys, token) = (core.keys.clone(), sha256(session.reveal()));
    let renew = move |tx: &Write<'_>| {
        if proof.password.is_none() {
            second_factor::require_in(tx, &keys, admin, proof.totp.as_deref().unwrap_or_default())?;
        }
        tx.execute("delete from admin_attempts where id = ?1", [attempt])?;
        let prove = "update admin_tokens set proved_at = ?2, proof_began_at = ?2 where token_sha256 = ?1";
        tx.execute(prove, (token, tx.now.0)).map(drop)
    };
    core.store.write(renew).wait()
}
