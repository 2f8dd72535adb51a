//! Acquittals of texts that were innocent. The word engine learns from them by allowed phrases, and an operator learns if a
//! phrase does not acquit its text.

use super::{
    check::moderate_locally,
    engine::{ContentType, Engine, Word, contacts, mask},
    phrase_warning::PhraseWarning,
    reviews::{self, ReviewOutcome, ReviewState},
    ruling::LOCAL,
    service::Moderation,
    violations::{self, ViolationRecord},
    word_list, words,
};
use crate::{
    core::Core,
    domain::money::ledger::Authority,
    error::{Error, Result},
    store::Pending,
};

/// An acquitted violation.
#[derive(Clone, Debug)]
pub struct Acquittal {
    pub violation: ViolationRecord,
    /// The reason for which the allowed phrase probably does not do what was wanted.
    pub warning: Option<PhraseWarning>,
}

/// Marks a violation as wrongly refused, so that suspension rules no longer count it. Allows a phrase if one is given.
/// Blocks.
///
/// # Errors
/// `not_found`; `already_exists` if it is acquitted; `invalid_parameters` for an invalid phrase.
pub fn acquit(moderation: &Moderation, id: i64, phrase: Option<&str>, by: &Authority) -> Result<Acquittal> {
    let mut warning = None;
    if let Some(phrase) = phrase {
        words::check_phrase(phrase, moderation.core.config.limits.word as usize)
            .map_err(|fault| Error::field("phrase", fault))?;
        warning = warning_of(moderation, id, phrase)?;
    }
    let (actor, allowed) = (by.actor.clone(), phrase.map(ToOwned::to_owned));
    let acquitted = moderation.core.store.write(move |tx| {
        let acquitted = violations::acquit_in(tx, id, &actor)?;
        let is_new = allowed.map_or(Ok(false), |phrase| words::allow_in(tx, &phrase))?;
        Ok((acquitted, is_new))
    });
    let (violation, is_new) = acquitted.wait()?;
    if phrase.is_some() {
        moderation.word_list.refresh()?;
    }
    let is_of_text = |warning: &PhraseWarning| *warning == PhraseWarning::DoesNotAcquit;
    Ok(Acquittal { violation, warning: warning.filter(|warning| is_new || is_of_text(warning)) })
}

/// Compares a phrase with the masked text of a violation, because the text as written is not stored.
fn warning_of(moderation: &Moderation, id: i64, phrase: &str) -> Result<Option<PhraseWarning>> {
    let violation = violations::find(&moderation.core, id)?;
    let content_type = ContentType::from_name(&violation.content_type).unwrap_or(ContentType::Nickname);
    // The active list may allow the phrase already, so that only the words of the violation tell what it has of them.
    let words = violation.words.iter().map(|text| Word { text: text.clone(), by_sound: true, ..Word::default() });
    let mut found = Engine::build(&words.collect::<Vec<_>>(), &[]).check(content_type, phrase);
    found.extend(contacts(phrase));
    let rest = violation.masked_text.to_lowercase().replace(&mask(phrase, &found).to_lowercase(), "");
    // Phrases concern the word list only.
    let is_acquitted = violation.provider == LOCAL && !rest.contains('*');
    if is_acquitted { word_list::warning_of(moderation, phrase) } else { Ok(Some(PhraseWarning::DoesNotAcquit)) }
}

/// Applies a phrase that was allowed with decisions of reviews, and adds a warning to the texts that it does not acquit.
/// Blocks.
pub fn apply_phrase(moderation: &Moderation, mut outcomes: Vec<ReviewOutcome>) -> Result<Vec<ReviewOutcome>> {
    moderation.word_list.refresh()?;
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.result == Ok(ReviewState::Acquitted)) {
        let Some(review) = reviews::find(&moderation.core, outcome.id)? else { continue };
        let content_type = ContentType::from_name(&review.content_type).unwrap_or(ContentType::Question);
        let ruling = moderate_locally(moderation, content_type, &review.excerpt)?;
        outcome.warning = (!ruling.matches.is_empty()).then_some(PhraseWarning::DoesNotAcquit);
    }
    Ok(outcomes)
}

/// Undoes an acquittal. Allowed phrases stay.
///
/// # Errors
/// `not_found`; `already_exists` if it is not acquitted.
pub fn undo(core: &Core, id: i64) -> Pending<ViolationRecord> {
    core.store.write(move |tx| violations::undo_acquittal_in(tx, id))
}
