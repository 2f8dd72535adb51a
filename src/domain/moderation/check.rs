//! Checks texts: limits, the decision by the active policy, and the refusal of rejected texts.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    engine::{AcquittedWord, ContentType, contacts, is_assigned_nickname},
    external_moderator::{self, NO_PERMIT},
    match_actions::MatchActions,
    policy::{self, Policy, Service},
    reviews::{self, ReviewDraft},
    risk::Risk,
    ruling::Ruling,
    service::Moderation,
    suspension_rules,
    violations::{self, Violation},
};
use crate::{
    core::Core,
    domain::identity::suspensions,
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    providers::Failure,
    store::{Pending, Read},
    types::{SuspensionScope, UserId},
};

/// The time after which a client may retry if the external moderator names none.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(5);

/// A text, and the name of the request field that contained it.
#[derive(Clone, Copy, Debug)]
pub struct ScreenedField<'text> {
    pub name: &'static str,
    pub content_type: ContentType,
    pub text: &'text str,
}

impl<'text> ScreenedField<'text> {
    /// The fields of a question to a model: the question and its type.
    pub fn of_question(question: &'text str, question_type: Option<&'text str>) -> Vec<Self> {
        let fields = std::iter::once(("question", question)).chain(question_type.map(|text| ("questionType", text)));
        fields.map(|(name, text)| Self { name, content_type: ContentType::Question, text }).collect()
    }
}

/// A refusal of texts: the violations to record, and the error for the user.
pub struct Refusal {
    violations: Vec<Violation>,
    error: Error,
}

impl Refusal {
    fn without_violation(error: Error) -> Self {
        Self { violations: Vec::new(), error }
    }

    /// Records the violations, then fails with the error.
    pub fn record<T: Send + 'static>(self, core: &Core) -> Pending<T> {
        if self.violations.is_empty() {
            return Pending::ready(Err(self.error));
        }
        let config = Arc::clone(&core.config);
        core.store.write(move |tx| {
            for violation in &self.violations {
                suspension_rules::record_in(tx, &config, violation)?;
            }
            Err(self.error.keeping_changes())
        })
    }
}

/// Rejects a user with too many violations, or too many texts for the external moderator, in the last hour. Violations
/// use storage, and each external call is billed.
///
/// # Errors
/// `too_many_requests`.
pub fn check_rate_limits(moderation: &Moderation, user: UserId, texts: usize) -> Result<()> {
    let policy = moderation.core.store.read(|tx| {
        check_violations_in(tx, moderation, user)?;
        policy::current_in(tx)
    })?;
    consume_external_quota(moderation, policy, user, texts)
}

fn check_violations_in(tx: &Read<'_>, moderation: &Moderation, user: UserId) -> Result<()> {
    // A limit of zero turns model calls off; other texts must still be checked.
    violations::check_rate_limit_in(tx, user, moderation.core.config.llm.calls_per_user_hour.max(1))
}

fn consume_external_quota(moderation: &Moderation, policy: Policy, user: UserId, texts: usize) -> Result<()> {
    let Moderation { core, external_quota, .. } = moderation;
    match policy.service {
        Service::External => {
            external_quota.consume(user, texts, core.config.moderation.texts_per_user_hour, Instant::now())
        }
        Service::Local => Ok(()),
    }
}

/// The allowed texts of a user: what to store of them, and what moderators review.
#[derive(Debug, Default)]
pub struct Screening {
    /// Field names with the texts to store instead.
    replacements: Vec<(&'static str, String)>,
    reviews: Vec<ReviewDraft>,
}

impl Screening {
    /// Returns the text to store and show instead of a field, if a part of it has to be masked.
    pub fn replacement(&self, field: &str) -> Option<String> {
        self.replacements.iter().find(|(name, _)| *name == field).map(|(_, text)| text.clone())
    }

    /// Takes the reviews, which the caller stores in the transaction that stores the texts: see [`reviews::add_in`].
    pub fn take_reviews(&mut self) -> Vec<ReviewDraft> {
        std::mem::take(&mut self.reviews)
    }
}

/// Checks a user's texts. A rejection stands even if a later text cannot be decided.
///
/// Blocks if [`Moderation::may_block`] is true.
///
/// # Errors
/// The refusal, if a text is rejected or undecided.
pub fn screen(moderation: &Moderation, user: UserId, fields: &[ScreenedField<'_>]) -> Result<Screening, Refusal> {
    if fields.is_empty() {
        return Ok(Screening::default());
    }
    let standing = moderation.core.store.read(|tx| {
        check_violations_in(tx, moderation, user)?;
        Ok((policy::current_in(tx)?, is_watched_in(tx, user)?))
    });
    let (policy, is_watched) = standing.map_err(Refusal::without_violation)?;
    consume_external_quota(moderation, policy, user, fields.len()).map_err(Refusal::without_violation)?;
    let (mut rejections, mut screening) = (Vec::new(), Screening::default());
    for field in fields {
        match moderate_by(moderation, policy, field.content_type, field.text, Some(user)) {
            Err(error) if rejections.is_empty() => return Err(Refusal::without_violation(error)),
            Err(_) => break,
            Ok(ruling) if ruling.allowed => {
                let is_reviewed = ruling.needs_review || is_watched && !field.text.trim().is_empty();
                if is_reviewed {
                    let stored = ruling.replacement.as_deref().unwrap_or(field.text);
                    screening.reviews.push(ruling.to_review(user, field.content_type, stored));
                }
                screening.replacements.extend(ruling.replacement.map(|text| (field.name, text)));
            }
            Ok(ruling) => rejections.push((field, ruling)),
        }
    }
    if rejections.is_empty() {
        return Ok(screening);
    }
    let fields = rejections.iter().map(|(field, _)| rejected(field.name)).collect();
    let violations = rejections.into_iter().map(|(field, ruling)| ruling.into_violation(user, field.content_type));
    Err(Refusal { violations: violations.collect(), error: Error::new(Code::ContentRejected).in_fields(fields) })
}

/// Checks a question whose risk is known. Some classes are never refused, so that a call for help gets an answer and
/// leaves no violation. The words of a question at risk are not masked, because the answer follows them.
///
/// # Errors
/// Those of [`screen`].
pub fn screen_question(
    moderation: &Moderation,
    user: UserId,
    risk: Option<Risk>,
    fields: &[ScreenedField<'_>],
) -> Result<Screening, Refusal> {
    match risk {
        Some(risk) if risk.class.is_exempt_from_moderation() => Ok(Screening::default()),
        Some(_) => Ok(Screening { replacements: Vec::new(), ..screen(moderation, user, fields)? }),
        None => screen(moderation, user, fields),
    }
}

/// Returns true if moderators review every text of the user.
fn is_watched_in(tx: &Read<'_>, user: UserId) -> Result<bool> {
    Ok(suspensions::scope_in_force_in(tx, user, SuspensionScope::Review)?.is_some())
}

/// Returns the error of a rejected field.
pub fn rejected(field: &'static str) -> FieldError {
    Fault::new(FieldCode::Rejected, ("was rejected by content moderation", "未通过内容审核")).in_field(field)
}

/// The ruling about a part of a model's answer.
pub enum AnswerRuling {
    Shown,
    /// The part may be shown once these byte ranges of the text are masked. They are in order and lie in the part.
    Masked(Vec<Range<usize>>),
    Refused(Refusal),
}

/// Checks a part of a model's answer, if screening of answers is on.
///
/// `text` includes the context of the part, and `part` is its range in bytes: matches before it were checked earlier,
/// those after it will be checked later.
///
/// Blocks if [`Moderation::may_block`] is true.
pub fn check_answer(moderation: &Moderation, user: UserId, text: &str, part: Range<usize>) -> AnswerRuling {
    if !moderation.core.config.moderation.screen_answers {
        return AnswerRuling::Shown;
    }
    let ruling = moderate(moderation, ContentType::Answer, text, Some(user));
    let actions = actions(&moderation.core, ContentType::Answer);
    match ruling.map(|ruling| ruling.restricted_to(text, &part, actions)) {
        Err(error) => AnswerRuling::Refused(Refusal::without_violation(error)),
        Ok(ruling) if ruling.allowed => {
            let shown = ruling.replacement.as_deref().unwrap_or(text);
            // The stream does not wait for the review.
            drop(record(&moderation.core, user, ContentType::Answer, shown, &ruling));
            let masked = ruling.masked_ranges(text, &part, actions);
            if masked.is_empty() { AnswerRuling::Shown } else { AnswerRuling::Masked(masked) }
        }
        Ok(ruling) => {
            let error = Error::new(Code::ContentRejected).in_fields(vec![rejected("answer")]);
            let violations = vec![ruling.into_violation(user, ContentType::Answer)];
            AnswerRuling::Refused(Refusal { violations, error })
        }
    }
}

/// Returns true if the external moderator decides now, which costs a call for each text.
pub fn is_external_active(core: &Core) -> bool {
    policy::current(core).is_ok_and(|policy| policy.service == Service::External)
}

/// Decides about a text by the current policy.
///
/// Blocks if [`Moderation::may_block`] is true.
///
/// # Errors
/// `moderation_unavailable` if the external moderator fails and the fallback is off, or if too many texts are being
/// moderated.
pub fn moderate(
    moderation: &Moderation,
    content_type: ContentType,
    text: &str,
    user: Option<UserId>,
) -> Result<Ruling> {
    moderate_by(moderation, policy::current(&moderation.core)?, content_type, text, user)
}

fn moderate_by(
    moderation: &Moderation,
    policy: Policy,
    content_type: ContentType,
    text: &str,
    user: Option<UserId>,
) -> Result<Ruling> {
    // The external moderator rejects blank texts as invalid requests.
    let is_blank = text.trim().is_empty();
    let ruling = match policy.service {
        Service::External if !is_blank => {
            let account = user.map(|user| external_moderator::account_of(&moderation.core, user));
            moderate_externally(moderation, policy, content_type, text, account.as_deref())?
        }
        _ => moderate_locally(moderation, content_type, text)?,
    };
    if !is_blank && !ruling.degraded && moderation.external.is_configured() {
        moderation.shadow_sampler.offer(policy.service, content_type, text, user, &ruling);
    }
    Ok(ruling)
}

/// Records the rejection of a user's text, or queues it for review.
pub fn record(core: &Core, user: UserId, content_type: ContentType, text: &str, ruling: &Ruling) -> Pending<()> {
    if ruling.allowed {
        let review = ruling.needs_review.then(|| ruling.to_review(user, content_type, text));
        return review.map_or_else(
            || Pending::ready(Ok(())),
            |review| core.store.write(move |tx| reviews::add_in(tx, &[review])),
        );
    }
    let violation = ruling.clone().into_violation(user, content_type);
    let config = Arc::clone(&core.config);
    core.store.write(move |tx| suspension_rules::record_in(tx, &config, &violation).map(drop))
}

fn actions(core: &Core, content_type: ContentType) -> MatchActions<'_> {
    MatchActions { rules: &core.config.moderation.match_rules, content_type }
}

/// Returns the listed words that a text seems to have, and that the words around them acquit. Blocks if the list has to be
/// compiled.
pub fn acquitted_words(moderation: &Moderation, content_type: ContentType, text: &str) -> Result<Vec<AcquittedWord>> {
    Ok(moderation.word_list.get()?.acquitted(content_type, text))
}

/// Decides about a text by the word list.
pub fn moderate_locally(moderation: &Moderation, content_type: ContentType, text: &str) -> Result<Ruling> {
    let list = moderation.word_list.get()?;
    let mut matches = list.check(content_type, text);
    let config = &moderation.core.config;
    let may_have_contacts = match content_type {
        ContentType::Nickname => {
            let words = config.moderation.assigned_nicknames.iter().chain([&config.brand.name]);
            !is_assigned_nickname(text, words)
        }
        ContentType::Signature => true,
        _ => false,
    };
    if may_have_contacts && config.moderation.contact_numbers {
        let mut found = contacts(text);
        list.drop_allowed(text, &mut found);
        matches.extend(found);
    }
    Ok(Ruling::from_matches(text, matches, actions(&moderation.core, content_type)))
}

fn moderate_externally(
    moderation: &Moderation,
    policy: Policy,
    content_type: ContentType,
    text: &str,
    account: Option<&str>,
) -> Result<Ruling> {
    match moderation.external.moderate(content_type, text, account) {
        Ok(verdict) => Ok(Ruling::from_verdict(moderation.external.name(), text, &verdict)),
        Err(failure) if policy.falls_back && failure.code != NO_PERMIT => {
            tracing::warn!(%failure, "the word list decides because the external moderator failed");
            Ok(Ruling { degraded: true, ..moderate_locally(moderation, content_type, text)? })
        }
        Err(failure) => Err(unavailable(failure)),
    }
}

fn unavailable(failure: Failure) -> Error {
    let retry_after = failure.retry_after.unwrap_or(DEFAULT_RETRY_AFTER);
    Error::new(Code::ModerationUnavailable).retry_after(retry_after).caused_by(failure)
}
