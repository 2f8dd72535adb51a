//! The second factor of administrators: one-time codes by time (RFC 6238), as authenticator apps make them.
//!
//! The secret must be readable to be compared with, so it is kept sealed under the server key: the database alone does
//! not give it away. A code is worth one sign-in: the step of time that it belongs to is remembered, and neither that
//! one nor an earlier one counts again. What was used under a clock that was ahead shuts nobody out until then, and
//! counts no more when its time has come. An administrator who has lost their device is let in by the command line.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;
use subtle::ConstantTimeEq;

use crate::{
    app::App,
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{Pending, Read, Write},
    types::{Secret, Timestamp, random_bytes},
};

/// What authenticator apps assume when they are told nothing else: SHA-1, six digits, a new code every 30 seconds.
const STEP_MILLISECONDS: i64 = 30_000;
const MODULUS: u32 = 1_000_000;
/// How long a code is.
pub const DIGITS: usize = 6;
/// Steps before and after the present one that count too, because clocks differ and people type slowly.
const TOLERANCE: i64 = 1;
/// How many steps a code that was used is remembered: a day, for a clock that is put back.
const REMEMBERED: i64 = 24 * 60 * 2;
/// As many bytes as the hash has, which RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
const PURPOSE: &str = "second factor of administrators";

/// A secret that was just made, for its owner's authenticator app.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// Base32, to be typed.
    pub secret: Secret,
    /// `otpauth://…`, to be shown as a QR code.
    pub uri: Secret,
}

struct Kept {
    sealed_secret: Vec<u8>,
    confirmed_at: Option<i64>,
}

/// Makes a secret. It counts once a code of it was confirmed; until then it may be made anew.
///
/// # Errors
/// `not_found`; `already_exists` when the administrator has a second factor.
pub fn enrol(app: &App, name: &str) -> Result<Enrolment> {
    let secret = random_bytes::<SECRET_BYTES>()?;
    let (keys, owner) = (app.keys.clone(), name.to_owned());
    let insert = move |tx: &Write<'_>| {
        let admin = super::id_of_in(tx, &owner)?;
        if kept_in(tx, admin)?.is_some_and(|kept| kept.confirmed_at.is_some()) {
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
    app.store.write(insert).wait()?;
    let text = base32(&secret);
    let label = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let uri = format!("otpauth://totp/Yarrow:{label}?secret={text}&issuer=Yarrow");
    Ok(Enrolment { secret: Secret::from_text(text), uri: Secret::from_text(uri) })
}

/// Takes the first code of an enrolled secret. From then on no sign-in goes without one.
///
/// # Errors
/// `not_found` when nothing is enrolled; `already_exists` when it was confirmed before; `invalid_code`.
pub fn confirm(app: &App, name: &str, code: &str) -> Pending<()> {
    let (keys, name, code) = (app.keys.clone(), name.to_owned(), code.trim().to_owned());
    app.store.write(move |tx| {
        let admin = super::id_of_in(tx, &name)?;
        let kept = kept_in(tx, admin)?.ok_or(Code::NotFound)?;
        if kept.confirmed_at.is_some() {
            return Err(Code::AlreadyExists.into());
        }
        let step = step_of(&opened(&keys, admin, &kept)?, &code, tx.now).ok_or(Code::InvalidCode)?;
        tx.execute("update admin_second_factors set confirmed_at = ?2 where admin_id = ?1", (admin, tx.now.0))?;
        use_up_in(tx, admin, step)
    })
}

/// Takes the second factor away, confirmed or not: the way back in for who has lost the device.
///
/// # Errors
/// `not_found` when there is none.
pub fn remove(app: &App, name: &str) -> Pending<()> {
    let name = name.to_owned();
    app.store.write(move |tx| {
        let admin = super::id_of_in(tx, &name)?;
        match tx.execute("delete from admin_second_factors where admin_id = ?1", [admin])? {
            1 => Ok(()),
            _ => Err(Code::NotFound.into()),
        }
    })
}

/// Says whether the code proves the second factor, and uses it up. Whoever has none needs no code.
///
/// # Errors
/// `totp_required` without a code; `invalid_credentials` for one that is wrong or was used.
pub(super) fn prove_in(tx: &Write<'_>, keys: &ServerKey, admin: i64, code: Option<&str>) -> Result<()> {
    let Some(kept) = kept_in(tx, admin)?.filter(|kept| kept.confirmed_at.is_some()) else { return Ok(()) };
    let code = code.ok_or(Code::TotpRequired)?;
    let step = step_of(&opened(keys, admin, &kept)?, code, tx.now).ok_or(Code::InvalidCredentials)?;
    if is_used_in(tx, admin, step)? {
        return Err(Code::InvalidCredentials.into());
    }
    use_up_in(tx, admin, step)
}

/// Whether the code of this step was used, or a later one that counts now.
fn is_used_in(tx: &Read<'_>, admin: i64, step: i64) -> Result<bool> {
    tx.one(
        "select exists (select 1 from admin_used_codes where admin_id = ?1 and step between ?2 and ?3)",
        (admin, step, present(tx.now) + TOLERANCE),
        |row| row.get(0),
    )
}

fn use_up_in(tx: &Write<'_>, admin: i64, step: i64) -> Result<()> {
    tx.execute(
        "delete from admin_used_codes where admin_id = ?1 and step < ?2",
        (admin, present(tx.now) - REMEMBERED),
    )?;
    tx.execute("insert into admin_used_codes (admin_id, step) values (?1, ?2)", (admin, step)).map(drop)
}

fn kept_in(tx: &Read<'_>, admin: i64) -> Result<Option<Kept>> {
    tx.first("select sealed_secret, confirmed_at from admin_second_factors where admin_id = ?1", [admin], |row| {
        Ok(Kept { sealed_secret: row.get(0)?, confirmed_at: row.get(1)? })
    })
}

fn opened(keys: &ServerKey, admin: i64, kept: &Kept) -> Result<Vec<u8>> {
    keys.unseal(PURPOSE, &admin.to_be_bytes(), &kept.sealed_secret).ok_or_else(|| {
        Error::internal("a second factor cannot be read: was the server key changed? `yarrow admin totp remove` helps")
    })
}

const fn present(now: Timestamp) -> i64 {
    now.0 / STEP_MILLISECONDS
}

/// The step of time that the code belongs to, if it belongs to one that counts now.
fn step_of(secret: &[u8], code: &str, now: Timestamp) -> Option<i64> {
    let present = present(now);
    let is_code = |step: &i64| bool::from(code_at(secret, *step).as_bytes().ct_eq(code.as_bytes()));
    (present - TOLERANCE..=present + TOLERANCE).find(is_code)
}

/// RFC 4226, section 5.3: four bytes of the HMAC, chosen by its last one, as decimal digits.
fn code_at(secret: &[u8], step: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let hash = tag.as_ref();
    let offset = usize::from(hash.last().copied().unwrap_or_default() & 0x0f);
    let chosen = hash.iter().skip(offset).take(4).fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    format!("{:0DIGITS$}", (chosen & 0x7fff_ffff) % MODULUS)
}

/// RFC 4648, without padding: a multiple of five bytes needs none.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let letters = bytes.chunks(5).flat_map(|chunk| {
        let number = chunk.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        (0..8).rev().map(move |place| char::from(ALPHABET[(number >> (5 * place) & 31) as usize]))
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
    fn codes_are_those_of_the_standard() {
        for (seconds, code) in VECTORS {
            assert_eq!(code_at(SECRET, seconds / 30), code);
        }
        assert_eq!(base32(SECRET), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    #[test]
    fn a_code_counts_a_step_before_and_after_its_own_and_no_longer() {
        let at = |seconds: i64| step_of(SECRET, "287082", Timestamp(seconds * 1000));
        assert_eq!(at(59), Some(1));
        assert_eq!((at(29), at(89)), (Some(1), Some(1)));
        assert_eq!((at(119), at(1_111_111_109)), (None, None));
        assert_eq!(step_of(SECRET, "28708", Timestamp(59_000)), None);
        assert_eq!(step_of(SECRET, "", Timestamp(59_000)), None);
    }
}
