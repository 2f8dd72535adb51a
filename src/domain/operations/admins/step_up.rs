//! The recent proof of identity that dangerous actions of the console need: password or authenticator code, at most ten
//! minutes ago.

use std::{sync::Arc, time::Duration};

use super::{Administrators, passwords::Waiting, second_factor};
use crate::{
    core::Core,
    domain::identity::codes::ClientNetworks,
    error::{Code, Result},
    store::Write,
    types::{Secret, sha256, sha256_hex},
};

/// The age at which a proof no longer counts.
const LIFETIME: Duration = Duration::from_mins(10);

/// Returns true if the session's last proof of identity is too old.
///
/// # Errors
/// Storage errors.
pub fn is_needed(core: &Core, session: &Secret) -> Result<bool> {
    let hash = sha256(session.reveal());
    let proved_at: Option<i64> = core
        .store
        .read(|tx| tx.first("select proved_at from admin_tokens where token_sha256 = ?1", [hash], |row| row.get(0)))?;
    Ok(proved_at.is_none_or(|at| at <= core.clock.now().minus(LIFETIME).0))
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
        tx.execute("update admin_tokens set proved_at = ?2 where token_sha256 = ?1", (token, tx.now.0)).map(drop)
    };
    core.store.write(renew).wait()
}
