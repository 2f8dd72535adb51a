//! Screens every text that a user writes for others or for a model.
//!
//! A switch selects the local word list or an external service. When the external service fails, the local list decides
//! if the fallback is on, and the ruling is marked as degraded; otherwise the text is refused for now. No text passes
//! unchecked. A refusal names the field and never the word, and leaves a violation record.

pub mod compare;
pub mod engine;
pub mod external;
pub mod hourly;
pub mod listing;
pub mod policy;
pub mod screen;
pub mod shadow;
pub mod state;
pub mod violations;
pub mod words;

use std::{ops::Range, time::Instant};

use engine::{ContentType, Match, contact_number, mask};
use external::External;
use hourly::Hours;
use policy::{Policy, Service};
use screen::Screen;
use shadow::Shadow;

use crate::{
    core::Core,
    domain::moderation::violations::Violation,
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    providers::{
        Failure,
        moderation::{Finding, Judgement},
    },
    store::Pending,
    types::UserId,
};

pub const LOCAL: &str = "local";
/// The type of a refusal that neither a word nor a label explains.
const UNEXPLAINED: &str = "other";
/// Characters of a refused text, and words found in it, that are remembered.
const LONGEST_EXCERPT: usize = 1_000;
const MOST_WORDS: usize = 50;

/// The moderation service with its state.
pub struct Moderation {
    pub core: Core,
    /// The local word list, ready to match.
    pub screen: Screen,
    /// The outside service.
    pub external: External,
    /// Texts of each user sent to it in the current hour.
    pub hours: Hours,
    /// Texts on which the service that does not decide is asked as well.
    pub shadow: Shadow,
}

impl Moderation {
    /// Returns true if screening may block: on an external service, or just after a start on compiling the word list.
    pub fn may_block(&self) -> bool {
        self.external.is_configured() || !self.screen.is_compiled()
    }
}

/// A text under the name of the field in which it came.
#[derive(Clone, Copy, Debug)]
pub struct Field<'text> {
    pub name: &'static str,
    pub content_type: ContentType,
    pub text: &'text str,
}

impl<'text> Field<'text> {
    /// Returns the parts of a question that a model sees: the question and its type.
    pub fn of_question(question: &'text str, question_type: Option<&'text str>) -> Vec<Self> {
        let asked = Some(("question", question));
        let about = question_type.map(|question_type| ("questionType", question_type));
        let fields = asked.into_iter().chain(about);
        fields.map(|(name, text)| Self { name, content_type: ContentType::Question, text }).collect()
    }
}

/// The decision about one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub allowed: bool,
    /// The service that decided: `local`, or the external service's name.
    pub provider: &'static str,
    /// The outside service was to decide and could not.
    pub degraded: bool,
    /// The type of the first thing found; empty if the text is allowed.
    pub violation_type: String,
    /// The listed words that were found, or the labels of the outside service.
    pub found: Vec<String>,
    /// The positions of the matches.
    pub matches: Vec<Match>,
    /// The text with its matches masked, or entirely masked if their positions are unknown.
    pub masked_text: String,
}

/// The refusal of one or more texts: the violation records, and the errors for the user.
pub struct Refusal {
    violations: Vec<Violation>,
    error: Error,
}

impl Refusal {
    /// Remembers the refusal, then answers it.
    pub fn record<T: Send + 'static>(self, core: &Core) -> Pending<T> {
        if self.violations.is_empty() {
            return Pending::ready(Err(self.error));
        }
        let kept = core.config.records_kept();
        core.store.write(move |tx| {
            for violation in &self.violations {
                violations::record_in(tx, violation, kept)?;
            }
            Err(self.error.keeping_changes())
        })
    }
}

/// Rejects a user who had too many texts refused, or sent to the external service, in the last hour. Violation records
/// take space, and each external call is billed.
///
/// # Errors
/// `too_many_requests`.
pub fn require_open(moderation: &Moderation, user: UserId, texts: usize) -> Result<()> {
    // Texts are screened even where no model may be called.
    let allowed = moderation.core.config.llm.calls_per_user_hour.max(1);
    moderation.core.store.read(|tx| violations::require_open_in(tx, user, allowed))?;
    if !asks_outside(&moderation.core) {
        return Ok(());
    }
    moderation.hours.take(user, texts, moderation.core.config.moderation.texts_per_user_hour, Instant::now())
}

/// Screens a user's texts. `None` if all are allowed. A refusal stands even if a later text cannot be judged.
///
/// Blocks if [`Moderation::may_block`] returns true.
pub fn screen(moderation: &Moderation, user: UserId, fields: &[Field<'_>]) -> Option<Refusal> {
    if fields.is_empty() {
        return None;
    }
    if let Err(error) = require_open(moderation, user, fields.len()) {
        return Some(Refusal { violations: Vec::new(), error });
    }
    let mut refused = Vec::new();
    for field in fields {
        match judge(moderation, field.content_type, field.text, Some(user)) {
            Err(error) if refused.is_empty() => return Some(Refusal { violations: Vec::new(), error }),
            Err(_) => break,
            Ok(ruling) if ruling.allowed => {}
            Ok(ruling) => refused.push((field, ruling)),
        }
    }
    if refused.is_empty() {
        return None;
    }
    let fields = refused.iter().map(|(field, _)| rejected(field.name)).collect();
    let violations = refused.into_iter().map(|(field, ruling)| ruling.violation(user, field.content_type)).collect();
    Some(Refusal { violations, error: Error::new(Code::ContentRejected).in_fields(fields) })
}

/// Returns the error for a refused field.
pub fn rejected(field: &'static str) -> FieldError {
    Fault::new(FieldCode::Rejected, "was refused by content moderation").in_field(field)
}

/// Screens a part of a model's output, if the operator enabled that. `None` if it may be shown.
///
/// `text` includes the context of the part, and `part` is its byte range. Matches that end before the part were judged
/// earlier; those that begin after it are judged later.
///
/// Blocks if [`Moderation::may_block`] returns true.
pub fn check_answer(moderation: &Moderation, user: UserId, text: &str, part: Range<usize>) -> Option<Refusal> {
    if !moderation.core.config.moderation.screen_answers {
        return None;
    }
    match judge(moderation, ContentType::Answer, text, Some(user)).map(|ruling| ruling.of_part(text, &part)) {
        Err(error) => Some(Refusal { violations: Vec::new(), error }),
        Ok(ruling) if ruling.allowed => None,
        Ok(ruling) => {
            let error = Error::new(Code::ContentRejected).in_fields(vec![rejected("answer")]);
            Some(Refusal { violations: vec![ruling.violation(user, ContentType::Answer)], error })
        }
    }
}

/// Returns true if the external service decides now, which costs a call per text.
pub fn asks_outside(core: &Core) -> bool {
    policy::current(core).is_ok_and(|policy| policy.service == Service::External)
}

/// Decides about a text by the current policy.
///
/// Blocks if [`Moderation::may_block`] returns true.
///
/// # Errors
/// `moderation_unavailable` if the external service should decide, fails, and the fallback is off.
pub fn judge(moderation: &Moderation, content_type: ContentType, text: &str, user: Option<UserId>) -> Result<Ruling> {
    let policy = policy::current(&moderation.core)?;
    let account = user.map(|user| external::account_of(&moderation.core, user));
    // Blank text is always allowed; the external service would reject the request.
    let is_blank = text.trim().is_empty();
    let ruling = match policy.service {
        Service::External if !is_blank => judge_outside(moderation, policy, content_type, text, account.as_deref())?,
        _ => judge_locally(moderation, content_type, text)?,
    };
    if !is_blank && !ruling.degraded && moderation.external.is_configured() {
        moderation.shadow.offer(policy.service, content_type, text, user, &ruling);
    }
    Ok(ruling)
}

/// Remembers that this text of a user was refused.
pub fn remember(core: &Core, user: UserId, content_type: ContentType, ruling: &Ruling) -> Pending<()> {
    let violation = ruling.clone().violation(user, content_type);
    let kept = core.config.records_kept();
    core.store.write(move |tx| violations::record_in(tx, &violation, kept))
}

/// Decides by the local list.
pub fn judge_locally(moderation: &Moderation, content_type: ContentType, text: &str) -> Result<Ruling> {
    let mut matches = moderation.screen.in_force()?.check(content_type, text).matches;
    let presumes_contacts = matches!(content_type, ContentType::Nickname | ContentType::Signature);
    if presumes_contacts && moderation.core.config.moderation.contact_numbers {
        matches.extend(contact_number(text));
    }
    Ok(Ruling::of_matches(text, matches))
}

fn judge_outside(
    moderation: &Moderation,
    policy: Policy,
    content_type: ContentType,
    text: &str,
    account: Option<&str>,
) -> Result<Ruling> {
    match moderation.external.ask(content_type, text, account) {
        Ok(judged) => Ok(Ruling::of_judgement(moderation.external.name(), text, &judged)),
        Err(failure) if policy.falls_back => {
            tracing::warn!(%failure, "the local word list decides in place of the outside service");
            Ok(Ruling { degraded: true, ..judge_locally(moderation, content_type, text)? })
        }
        Err(failure) => Err(unavailable(failure)),
    }
}

fn unavailable(failure: Failure) -> Error {
    let error = Error::new(Code::ModerationUnavailable);
    let wait = failure.retry_after.unwrap_or(std::time::Duration::from_secs(5));
    error.retry_after(wait).caused_by(failure)
}

impl Ruling {
    fn of_matches(text: &str, matches: Vec<Match>) -> Self {
        let mut found: Vec<String> = Vec::new();
        for matched in &matches {
            if !found.contains(&matched.word) {
                found.push(matched.word.clone());
            }
        }
        Self {
            allowed: matches.is_empty(),
            provider: LOCAL,
            degraded: false,
            violation_type: matches.first().map(|found| found.kind.clone()).unwrap_or_default(),
            found,
            masked_text: mask(text, &matches),
            matches,
        }
    }

    fn of_judgement(provider: &'static str, text: &str, judged: &Judgement) -> Self {
        if !judged.is_refused {
            let masked_text = text.to_owned();
            let (violation_type, found, matches) = (String::new(), Vec::new(), Vec::new());
            return Self { allowed: true, provider, degraded: false, violation_type, found, matches, masked_text };
        }
        let (matches, are_all) = places(text, &judged.findings);
        let masked_text = if are_all { mask(text, &matches) } else { "*".repeat(text.chars().count()) };
        Self {
            allowed: false,
            provider,
            degraded: false,
            violation_type: judged.findings.first().map_or(UNEXPLAINED, |found| found.kind).to_owned(),
            found: judged.findings.iter().map(|found| found.label.clone()).collect(),
            matches,
            masked_text,
        }
    }

    /// Restricts the ruling to a byte range, entirely masked. External services do not report all positions, so their
    /// refusal covers every part.
    fn of_part(self, text: &str, part: &Range<usize>) -> Self {
        if self.allowed || self.provider != LOCAL {
            return self;
        }
        let (begin, end) = (text[..part.start].chars().count(), text[..part.end].chars().count());
        let is_within = |found: &Match| found.end > begin && found.start < end;
        let matches = self.matches.into_iter().filter(is_within).collect();
        Self { degraded: self.degraded, masked_text: self.masked_text, ..Self::of_matches(text, matches) }
    }

    fn violation(mut self, user: UserId, content_type: ContentType) -> Violation {
        let first = self.matches.iter().map(|found| found.start).min().unwrap_or(0);
        self.found.truncate(MOST_WORDS);
        Violation {
            user,
            content_type: content_type.name(),
            violation_type: self.violation_type,
            words: self.found,
            masked_text: excerpt(self.masked_text, first),
            provider: self.provider,
        }
    }
}

/// Returns the stored excerpt of a masked text around a character position.
fn excerpt(masked_text: String, around: usize) -> String {
    let length = masked_text.chars().count();
    if length <= LONGEST_EXCERPT {
        return masked_text;
    }
    let begin = around.saturating_sub(LONGEST_EXCERPT / 2).min(length - LONGEST_EXCERPT);
    let (before, after) = (begin > 0, begin + LONGEST_EXCERPT < length);
    let kept = masked_text.chars().skip(begin).take(LONGEST_EXCERPT);
    let cut = |is_cut: bool| is_cut.then_some('…');
    cut(before).into_iter().chain(kept).chain(cut(after)).collect()
}

/// Finds the words of the external service in the text, ignoring case. The flag is true if that explains all findings:
/// every finding names words, and every word occurs in the text.
fn places(text: &str, findings: &[Finding]) -> (Vec<Match>, bool) {
    let letters: Vec<char> = text.chars().collect();
    let folded: Vec<char> = letters.iter().copied().map(lower).collect();
    let (mut places, mut are_all) = (Vec::new(), !findings.is_empty());
    for finding in findings {
        are_all &= !finding.words.is_empty();
        for word in &finding.words {
            let word: Vec<char> = word.chars().map(lower).collect();
            let starts = starts_of(&word, &folded);
            are_all &= !starts.is_empty();
            places.extend(starts.into_iter().map(|start| Match {
                word: finding.label.clone(),
                kind: finding.kind.to_owned(),
                start,
                end: start + word.len(),
                text: letters[start..start + word.len()].iter().collect(),
            }));
        }
    }
    places.sort_by_key(|place| (place.start, place.end));
    (places, are_all)
}

/// One character for one, so that places stay what they are.
fn lower(character: char) -> char {
    character.to_lowercase().next().unwrap_or(character)
}

fn starts_of(word: &[char], text: &[char]) -> Vec<usize> {
    if word.is_empty() {
        return Vec::new();
    }
    text.windows(word.len()).enumerate().filter(|(_, part)| *part == word).map(|(start, _)| start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(words: &[&str]) -> Judgement {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        let finding = Finding { label: "contraband_gambling".into(), kind: "gambling", confidence: None, words };
        Judgement { is_refused: true, findings: vec![finding] }
    }

    #[test]
    fn a_refusal_masks_what_the_service_names_or_everything() {
        let named = Ruling::of_judgement("aliyun", "一起赌博吧，赌博", &judged(&["赌博"]));
        assert_eq!((named.masked_text.as_str(), named.matches.len()), ("一起**吧，**", 2));
        assert_eq!((named.violation_type.as_str(), named.found), ("gambling", vec!["contraband_gambling".to_owned()]));
        let other_case = Ruling::of_judgement("aliyun", "坏词 SecretWord 高危", &judged(&["坏词", "SECRETWORD"]));
        assert_eq!((other_case.masked_text.as_str(), other_case.matches.len()), ("** ********** 高危", 2));
        for words in [&[][..], &[""], &["赌博", "没有"], &["赌愽"]] {
            let unnamed = Ruling::of_judgement("aliyun", "一起赌博吧", &judged(words));
            assert_eq!(unnamed.masked_text, "*****", "{words:?}");
        }
        let mut partly = judged(&["赌博"]);
        partly.findings.extend(judged(&[]).findings);
        assert_eq!(Ruling::of_judgement("aliyun", "一起赌博吧", &partly).masked_text, "*****");
        let unexplained = Ruling::of_judgement("aliyun", "x", &Judgement { is_refused: true, findings: Vec::new() });
        assert!(!unexplained.allowed && unexplained.violation_type == "other" && unexplained.masked_text == "*");
    }
    #[test]
    fn of_a_long_text_is_remembered_what_stands_around_the_first_match() {
        let (head, tail) = ("卦".repeat(600), "象".repeat(900));
        for (text, around, expected) in [
            (format!("{head}**{tail}"), 600, format!("…{}**{}…", "卦".repeat(500), "象".repeat(498))),
            (format!("**{tail}{tail}"), 0, format!("**{tail}{}…", "象".repeat(98))),
            (format!("{tail}**"), 900, format!("{tail}**")),
            (format!("{tail}{tail}**"), 1_800, format!("…{tail}{}**", "象".repeat(98))),
        ] {
            assert_eq!(excerpt(text, around), expected);
        }
    }
}
