//! Acquittals of rejected texts that were innocent. The word engine learns from them by allowed phrases.

use super::{
    service::Moderation,
    violations::{self, ViolationRecord},
    words,
};
use crate::{
    core::Core,
    domain::money::ledger::Authority,
    error::{Error, Result},
    store::Pending,
};

/// Marks a violation as wrongly refused, so that suspension rules no longer count it. Allows a phrase if one is given.
/// Blocks.
///
/// # Errors
/// `not_found`; `already_exists` if it is acquitted; `invalid_parameters` for an invalid phrase.
pub fn acquit(moderation: &Moderation, id: i64, phrase: Option<&str>, by: &Authority) -> Result<ViolationRecord> {
    if let Some(phrase) = phrase {
        words::check_phrase(phrase, moderation.core.config.limits.word as usize)
            .map_err(|fault| Error::field("phrase", fault))?;
    }
    let (actor, allowed) = (by.actor.clone(), phrase.map(ToOwned::to_owned));
    let acquitted = moderation.core.store.write(move |tx| {
        let acquitted = violations::acquit_in(tx, id, &actor)?;
        if let Some(phrase) = &allowed {
            words::allow_in(tx, phrase)?;
        }
        Ok(acquitted)
    });
    let acquitted = acquitted.wait()?;
    if phrase.is_some() {
        moderation.word_list.refresh()?;
    }
    Ok(acquitted)
}

/// Undoes an acquittal. Allowed phrases stay.
///
/// # Errors
/// `not_found`; `already_exists` if it is not acquitted.
pub fn undo(core: &Core, id: i64) -> Pending<ViolationRecord> {
    core.store.write(move |tx| violations::undo_acquittal_in(tx, id))
}
