//! Terms: numbered claims in the bucket, of which the last names the machine that may ship and take writes.
//!
//! A claim is stored only if its key is new, so of simultaneous claims one wins. A server that cannot do that is asked
//! before and after instead, which leaves a gap of a second.

use std::{io::Write as _, time::Duration};

use super::{
    super::{offsite::Bucket, origin::Origin},
    machine_files::{MachineFiles, TakeOverPermission},
    term_holder::{TermClaim, TermHolder},
};
use crate::{
    error::{Code, Error, Result},
    keys::ServerKey,
    providers::object_storage::NewObject,
    types::{Timestamp, random_hex},
};

const TERMS: &str = "terms/";
/// A claim is much smaller.
const MAX_BYTES: u64 = 4 << 10;
/// The time after which a claim is read again on a server that overwrites objects.
const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClaimOutcome {
    Claimed {
        holder: TermHolder,
        /// True if the server stores an object only if its key is new.
        is_exclusive: bool,
        taken_over: Option<TakeOver>,
    },
    Superseded(TermHolder),
}

/// The machine from which a claim took over, and the system user who permitted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TakeOver {
    pub(super) from: TermHolder,
    pub(super) system_user: Option<String>,
}

/// Returns the last term of a bucket.
///
/// # Errors
/// Those of the provider; `provider_failed` for a claim that is unreadable, or not sealed with the key if there is one.
pub fn last_term(bucket: &Bucket, key: Option<&ServerKey>) -> Result<Option<TermHolder>> {
    let objects = bucket.storage.list(&bucket.key(TERMS))?;
    let number = |key: &str| key.strip_prefix(&bucket.key(TERMS))?.parse().ok();
    let Some(term) = objects.iter().filter_map(|object| number(&object.key)).max() else { return Ok(None) };
    let missing =
        || Error::new(Code::ProviderFailed).english_detail(format!("The bucket lists {TERMS}{term:08} but has none."));
    Ok(Some(find_term(bucket, key, term)?.ok_or_else(missing)?))
}

/// Returns a term of a bucket. Errors as [`last_term`].
pub(super) fn find_term(bucket: &Bucket, key: Option<&ServerKey>, term: u64) -> Result<Option<TermHolder>> {
    let Some(json) = bucket.storage.get(&key_of(bucket, term), MAX_BYTES)? else { return Ok(None) };
    let failed = |cause: &str| Error::new(Code::ProviderFailed).english_detail(format!("{TERMS}{term:08} {cause}."));
    let claim = serde_json::from_slice(&json).map_err(|_| failed("cannot be read"))?;
    let holder = TermHolder { term, claim };
    if key.is_some_and(|key| holder.claim.seal != Some(holder.seal_under(key))) {
        return Err(failed(
            "is not sealed with the server key of this installation. Find out who stored it, and remove it",
        ));
    }
    Ok(Some(holder))
}

/// Permits the next start, or the running server, to take over from the machine that holds the last term. Returns it.
///
/// # Errors
/// Those of the provider; storage errors.
pub fn take_over(
    bucket: &Bucket,
    origin: &Origin,
    files: &MachineFiles,
    system_user: String,
) -> Result<Option<TermHolder>> {
    let last = last_term(bucket, origin.key())?;
    let after_term = last.as_ref().map_or(0, |last| last.term);
    files.permit(&TakeOverPermission { after_term, system_user })?;
    Ok(last)
}

/// Claims the next term, if the last one is this machine's or it may take over from it.
pub(super) fn claim_next(
    bucket: &Bucket,
    key: &ServerKey,
    files: &MachineFiles,
    now: Timestamp,
) -> Result<ClaimOutcome> {
    let (machine, last, permission) = (files.id()?, last_term(bucket, Some(key))?, files.permission()?);
    let other = last.clone().filter(|last| last.claim.machine != machine);
    let permission =
        permission.filter(|permission| last.as_ref().is_some_and(|last| last.term == permission.after_term));
    if let Some(other) = other.as_ref().filter(|_| permission.is_none()) {
        return Ok(ClaimOutcome::Superseded(other.clone()));
    }
    let taken_over = other.map(|from| TakeOver { from, system_user: permission.map(|given| given.system_user) });
    let from = last.map_or(0, |last| last.term);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let claim = TermClaim { machine, at: now.0, version, from, nonce: random_hex::<16>()?, seal: None };
    let after_last = || {
        Error::new(Code::ProviderFailed).english_detail(format!("{TERMS}{from:08} leaves no number for another term."))
    };
    let mut holder = TermHolder { term: from.checked_add(1).ok_or_else(after_last)?, claim };
    holder.claim.seal = Some(holder.seal_under(key));
    match store_claim(bucket, key, &holder)? {
        Err(other) => Ok(ClaimOutcome::Superseded(other)),
        Ok(is_exclusive) => {
            files.clear()?;
            files.note_exclusive(is_exclusive)?;
            Ok(ClaimOutcome::Claimed { holder, is_exclusive, taken_over })
        }
    }
}

/// Returns true if the server keeps the condition, or the holder of an earlier claim.
fn store_claim(bucket: &Bucket, server_key: &ServerKey, holder: &TermHolder) -> Result<Result<bool, TermHolder>> {
    let key = key_of(bucket, holder.term);
    // A server may ignore the condition and overwrite.
    if let Some(other) = find_term(bucket, Some(server_key), holder.term)? {
        return Ok(Err(other));
    }
    let mut file = tempfile::NamedTempFile::new().map_err(Error::internal)?;
    serde_json::to_writer(&mut file, &holder.claim).map_err(Error::internal)?;
    file.flush().map_err(Error::internal)?;
    let is_exclusive = match bucket.storage.put_new(&key, file.path())? {
        NewObject::Exists => true,
        // The same bytes again: a server that keeps the condition refuses them.
        NewObject::Stored => bucket.storage.put_new(&key, file.path())? == NewObject::Exists,
        NewObject::Unsupported => {
            bucket.storage.put(&key, file.path(), &mut |_, _| ())?;
            false
        }
    };
    if !is_exclusive {
        std::thread::sleep(RECHECK_AFTER);
    }
    let missing = || Error::new(Code::ProviderFailed).english_detail("The bucket did not store the claim of a term.");
    let stored = find_term(bucket, Some(server_key), holder.term)?.ok_or_else(missing)?;
    Ok(if stored == *holder { Ok(is_exclusive) } else { Err(stored) })
}

fn key_of(bucket: &Bucket, term: u64) -> String {
    bucket.key(&format!("{TERMS}{term:08}"))
}
