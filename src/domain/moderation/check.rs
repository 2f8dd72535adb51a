//! Checks texts: limits, the decision by the active policy, and the refusal of rejected texts.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    engine::{ContentType, contacts, is_assigned_nickname},
    external_moderator::{self, NO_PERMIT},
    policy::{self, Policy, Service},
    ruling::Ruling,
    service::Moderation,
    suspension_rules,
    violations::{self, Violation},
};
use crate::{
    core::Core,
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    providers::Failure,
    store::Pending,
    types::UserId,
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
    let Moderation { core, external_quota, .. } = moderation;
    // A limit of zero turns model calls off; other texts must still be checked.
    let allowed = core.config.llm.calls_per_user_hour.max(1);
    core.store.read(|tx| violations::check_rate_limit_in(tx, user, allowed))?;
    if !is_external_active(core) {
        return Ok(());
    }
    external_quota.consume(user, texts, core.config.moderation.texts_per_user_hour, Instant::now())
}

/// Checks a user's texts. Returns `None` if all are allowed. A rejection stands even if a later text cannot be decided.
///
/// Blocks if [`Moderation::may_block`] is true.
pub fn check_fields(moderation: &Moderation, user: UserId, fields: &[ScreenedField<'_>]) -> Option<Refusal> {
    if fields.is_empty() {
        return None;
    }
    if let Err(error) = check_rate_limits(moderation, user, fields.len()) {
        return Some(Refusal::without_violation(error));
    }
    let mut rejections = Vec::new();
    for field in fields {
        match moderate(moderation, field.content_type, field.text, Some(user)) {
            Err(error) if rejections.is_empty() => return Some(Refusal::without_violation(error)),
            Err(_) => break,
            Ok(ruling) if ruling.allowed => {}
            Ok(ruling) => rejections.push((field, ruling)),
        }
    }
    if rejections.is_empty() {
        return None;
    }
    let fields = rejections.iter().map(|(field, _)| rejected(field.name)).collect();
    let violations = rejections.into_iter().map(|(field, ruling)| ruling.into_violation(user, field.content_type));
    Some(Refusal { violations: violations.collect(), error: Error::new(Code::ContentRejected).in_fields(fields) })
}

/// Returns the error of a rejected field.
pub fn rejected(field: &'static str) -> FieldError {
    Fault::new(FieldCode::Rejected, "was rejected by content moderation").in_field(field)
}

/// Checks a part of a model's answer, if screening of answers is on. Returns `None` if it may be shown.
///
/// `text` includes the context of the part, and `part` is its range in bytes: matches before it were checked earlier,
/// those after it will be checked later.
///
/// Blocks if [`Moderation::may_block`] is true.
pub fn check_answer(moderation: &Moderation, user: UserId, text: &str, part: Range<usize>) -> Option<Refusal> {
    if !moderation.core.config.moderation.screen_answers {
        return None;
    }
    let ruling = moderate(moderation, ContentType::Answer, text, Some(user));
    match ruling.map(|ruling| ruling.restricted_to(text, &part)) {
        Err(error) => Some(Refusal::without_violation(error)),
        Ok(ruling) if ruling.allowed => None,
        Ok(ruling) => {
            let error = Error::new(Code::ContentRejected).in_fields(vec![rejected("answer")]);
            Some(Refusal { violations: vec![ruling.into_violation(user, ContentType::Answer)], error })
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
    let policy = policy::current(&moderation.core)?;
    let account = user.map(|user| external_moderator::account_of(&moderation.core, user));
    // The external moderator rejects blank texts as invalid requests.
    let is_blank = text.trim().is_empty();
    let ruling = match policy.service {
        Service::External if !is_blank => {
            moderate_externally(moderation, policy, content_type, text, account.as_deref())?
        }
        _ => moderate_locally(moderation, content_type, text)?,
    };
    if !is_blank && !ruling.degraded && moderation.external.is_configured() {
        moderation.shadow_sampler.offer(policy.service, content_type, text, user, &ruling);
    }
    Ok(ruling)
}

/// Records the rejection of a user's text.
pub fn record_violation(core: &Core, user: UserId, content_type: ContentType, ruling: &Ruling) -> Pending<()> {
    let violation = ruling.clone().into_violation(user, content_type);
    let config = Arc::clone(&core.config);
    core.store.write(move |tx| suspension_rules::record_in(tx, &config, &violation))
}

/// Decides about a text by the word list.
pub fn moderate_locally(moderation: &Moderation, content_type: ContentType, text: &str) -> Result<Ruling> {
    let mut matches = moderation.word_list.get()?.check(content_type, text);
    matches.retain(|found| found.way.is_certain());
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
        matches.extend(contacts(text));
    }
    Ok(Ruling::from_matches(text, matches))
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
