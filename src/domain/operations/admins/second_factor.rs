//! The second factor of administrators: time-based one-time codes (RFC 6238) of authenticator apps.
//!
//! The secret is encrypted under the server key, so the database alone does not reveal it. A code signs in once: used
//! time steps are stored, and neither they nor earlier ones are accepted again. Steps used while the clock was ahead
//! block nobody before their time. Confirming an enrolment uses up no code, so the one on the screen also signs in. The
//! command line removes the second factor of an administrator without their device.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;
use subtle::ConstantTimeEq;

use crate::{
    core::Core,
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{Pending, Read, Write},
    types::{Secret, Timestamp, random_bytes},
};

/// The defaults of authenticator apps: SHA-1, six digits, a new code every 30 seconds.
const STEP_MILLISECONDS: i64 = 30_000;
const MODULUS: u32 = 1_000_000;
/// Digits of a code.
pub const DIGITS: usize = 6;
/// Accepted steps before and after the current one, because clocks differ and people type slowly.
const TOLERANCE: i64 = 1;
/// Steps for which a used code is stored: a day, in case the clock is set back.
const USED_RETENTION: i64 = 24 * 60 * 2;
/// The length of the hash, as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
const PURPOSE: &str = "second factor of administrators";

/// A new secret for the administrator's authenticator app.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// Base32, for typing.
    pub secret: Secret,
    /// `otpauth://…`, for a QR code.
    pub uri: Secret,
}

/// A stored second factor.
struct StoredFactor {
    sealed_secret: Vec<u8>,
    confirmed_at: Option<i64>,
}

/// Creates a secret. It takes effect once [`confirm`] accepts a code; until then it can be replaced.
///
/// # Errors
/// `not_found`; `already_exists` when the administrator has a second factor.
pub fn enrol(core: &Core, name: &str) -> Result<Enrolment> {
    let secret = random_bytes::<SECRET_BYTES>()?;
    let (keys, owner) = (core.keys.clone(), name.to_owned());
    let insert = move |tx: &Write<'_>| {
        let admin = super::id_of_in(tx, &owner)?;
        if find_in(tx, admin)?.is_some_and(|factor| factor.confirmed_at.is_some()) {
            return Err(Code::AlreadyExists.into());
        }
        let sealed = keys.seal(PURPOSE, &admin.to_be_bytes(), &secret)?;
        tx.execute(
            "insert into admin_second_factors (admin_id, sealed_secret, created_at) values (?1, ?2, ?3) \
             on conflict (admin_id) do update set sealed_secret = excluded.sealed_secret, \
             created_at = excluded.created_at",
            (admin, &sealed, tx.now.0),
        )
        .map(drop)
    };
    core.store.write(insert).wait()?;
    let text = base32(&secret);
    let label = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let uri = format!("otpauth://totp/Yarrow:{label}?secret={text}&issuer=Yarrow");
    Ok(Enrolment { secret: Secret::from_text(text), uri: Secret::from_text(uri) })
}

/// Confirms an enrolled secret by its first code. From then on every sign-in needs a code. Ends the sessions that began
/// without one.
///
/// # Errors
/// `not_found` when no secret is enrolled; `already_exists` when it is confirmed already; `invalid_code`.
pub fn confirm(core: &Core, name: &str, code: &str) -> Pending<()> {
    let (keys, name, code) = (core.keys.clone(), name.to_owned(), code.trim().to_owned());
    core.store.write(move |tx| {
        let admin = super::id_of_in(tx, &name)?;
        let factor = find_in(tx, admin)?.ok_or(Code::NotFound)?;
        if factor.confirmed_at.is_some() {
            return Err(Code::AlreadyExists.into());
        }
        step_of(&secret_of(&keys, admin, &factor)?, &code, tx.now).ok_or(Code::InvalidCode)?;
        tx.execute("update admin_second_factors set confirmed_at = ?2 where admin_id = ?1", (admin, tx.now.0))?;
        super::sessions::end_all_in(tx, admin)
    })
}

/// Removes the second factor, confirmed or not, of an administrator who has lost the device, and ends their sessions:
/// somebody may have found it.
///
/// # Errors
/// `not_found` when there is none.
pub fn remove(core: &Core, name: &str) -> Pending<()> {
    let name = name.to_owned();
    core.store.write(move |tx| {
        let admin = super::id_of_in(tx, &name)?;
        match tx.execute("delete from admin_second_factors where admin_id = ?1", [admin])? {
            1 => super::sessions::end_all_in(tx, admin),
            _ => Err(Code::NotFound.into()),
        }
    })
}

/// Checks the code and marks it as used. Accepts any code if the administrator has no second factor.
///
/// # Errors
/// `totp_required` without a code; `invalid_credentials` for a wrong or used one.
pub(super) fn verify_in(tx: &Write<'_>, keys: &ServerKey, admin: i64, code: Option<&str>) -> Result<()> {
    let Some(factor) = find_in(tx, admin)?.filter(|factor| factor.confirmed_at.is_some()) else { return Ok(()) };
    let code = code.ok_or(Code::TotpRequired)?;
    match step_of(&secret_of(keys, admin, &factor)?, code, tx.now) {
        Some(step) if !is_used_in(tx, admin, step)? => mark_used_in(tx, admin, step),
        // Reveals no more about the password than `totp_required` does.
        _ => Err(Error::new(Code::InvalidCredentials).detail((
            "The authenticator code is wrong or was already used. Wait for the next one.",
            "动态码错误或已使用，请等待下一个。",
        ))),
    }
}

/// Checks the code of an administrator who has a second factor.
///
/// # Errors
/// `step_up_required` if there is none; `invalid_credentials` for a wrong or used code.
pub(super) fn require_in(tx: &Write<'_>, keys: &ServerKey, admin: i64, code: &str) -> Result<()> {
    if find_in(tx, admin)?.is_none_or(|factor| factor.confirmed_at.is_none()) {
        return Err(Code::StepUpRequired.into());
    }
    verify_in(tx, keys, admin, Some(code))
}

/// Returns true if this step, or a later one that is accepted now, was used.
fn is_used_in(tx: &Read<'_>, admin: i64, step: i64) -> Result<bool> {
    tx.one(
        "select exists (select 1 from admin_used_codes where admin_id = ?1 and step between ?2 and ?3)",
        (admin, step, current_step(tx.now) + TOLERANCE),
        |row| row.get(0),
    )
}

fn mark_used_in(tx: &Write<'_>, admin: i64, step: i64) -> Result<()> {
    tx.execute(
        "delete from admin_used_codes where admin_id = ?1 and step < ?2",
        (admin, current_step(tx.now) - USED_RETENTION),
    )?;
    tx.execute("insert into admin_used_codes (admin_id, step) values (?1, ?2)", (admin, step)).map(drop)
}

fn find_in(tx: &Read<'_>, admin: i64) -> Result<Option<StoredFactor>> {
    tx.first("select sealed_secret, confirmed_at from admin_second_factors where admin_id = ?1", [admin], |row| {
        Ok(StoredFactor { sealed_secret: row.get(0)?, confirmed_at: row.get(1)? })
    })
}

fn secret_of(keys: &ServerKey, admin: i64, factor: &StoredFactor) -> Result<Vec<u8>> {
    keys.unseal(PURPOSE, &admin.to_be_bytes(), &factor.sealed_secret).ok_or_else(|| {
        Error::internal("a second factor cannot be decrypted: was the server key changed? Remove it with `yarrow admin totp remove`")
    })
}

const fn current_step(now: Timestamp) -> i64 {
    now.0 / STEP_MILLISECONDS
}

/// Returns the step of a code, if it is one that is accepted now.
fn step_of(secret: &[u8], code: &str, now: Timestamp) -> Option<i64> {
    let current = current_step(now);
    let is_code = |step: &i64| bool::from(code_at(secret, *step).as_bytes().ct_eq(code.as_bytes()));
    (current - TOLERANCE..=current + TOLERANCE).find(is_code)
}

/// Computes a code by RFC 4226, section 5.3: four bytes of the HMAC, selected by its last one, as decimal digits.
fn code_at(secret: &[u8], step: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let hash = tag.as_ref();
    let offset = usize::from(hash.last().copied().unwrap_or_default() & 0x0f);
    let selected = hash.iter().skip(offset).take(4).fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    format!("{:0DIGITS$}", (selected & 0x7fff_ffff) % MODULUS)
}

/// Encodes by RFC 4648. A multiple of five bytes needs no padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let letters = bytes.chunks(5).flat_map(|chunk| {
        let number = chunk.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        (0..8).rev().map(move |index| char::from(ALPHABET[(number >> (5 * index) & 31) as usize]))
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 6238, appendix B, for SHA-1: seconds, and the last six digits of the code.
    const VECTORS: [(i64, &str); 6] = [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ];
    const SECRET: &[u8] = b"12345678901234567890";

    #[test]
    fn matches_the_test_vectors() {
        for (seconds, code) in VECTORS {
            assert_eq!(code_at(SECRET, seconds / 30), code);
        }
        assert_eq!(base32(SECRET), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    #[test]
    fn accepts_codes_one_step_early_or_late() {
        let at = |seconds: i64| step_of(SECRET, "287082", Timestamp(seconds * 1000));
        assert_eq!(at(59), Some(1));
        assert_eq!((at(29), at(89)), (Some(1), Some(1)));
        assert_eq!((at(119), at(1_111_111_109)), (None, None));
        assert_eq!(step_of(SECRET, "28708", Timestamp(59_000)), None);
        assert_eq!(step_of(SECRET, "", Timestamp(59_000)), None);
    }
}
