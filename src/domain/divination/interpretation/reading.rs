//! The input of the offline interpreter.

use super::question::CastingQuestion;
use crate::{
    domain::divination::{
        chart::{BodyAndUse, TextSelection, chart_of},
        hexagram::{Cast, Facts},
    },
    providers::llm::builtin::{AskerGender, BodyAndUseFacts, ClassicFacts, Reading},
    types::Locale,
};

/// Returns all that is known about the question and its casting.
pub(super) fn reading(question: &CastingQuestion, facts: &Facts, asker: Option<AskerGender>) -> Reading {
    Reading {
        locale: question.locale,
        question_type: question.question_type.clone(),
        question: question.question.clone(),
        asker,
        facts: facts.described(question.locale),
        classic: classic(facts, question.locale),
        method: question.method,
        chart: charted_cast(facts).map(|cast| chart_of(&cast, question.cast_time.as_ref()).described()),
        body_and_use: body_and_use(question, facts),
        missing_person: None,
    }
}

/// Returns the texts to read; only the judgement if the changing lines are unknown.
pub(super) fn classic(facts: &Facts, locale: Locale) -> Option<ClassicFacts> {
    match facts.cast {
        Some(cast) => Some(TextSelection::of(&cast).described(locale)),
        None => facts.primary.map(|primary| TextSelection::described_judgement(primary, locale)),
    }
}

/// Returns the cast; of a hexagram whose changing lines are unknown, the cast of its lines at rest.
fn charted_cast(facts: &Facts) -> Option<Cast> {
    facts.cast.or_else(|| facts.primary.map(|primary| Cast::from_hexagram(primary, &[])))
}

/// Returns body and use of a casting by time or numbers, in which exactly one line changes.
fn body_and_use(question: &CastingQuestion, facts: &Facts) -> Option<BodyAndUseFacts> {
    let cast = facts.cast.filter(|_| matches!(question.method, Some("time" | "numbers")))?;
    let [changing] = cast.changing().try_into().ok()?;
    Some(BodyAndUse::new(cast.primary(), changing).described())
}

#[cfg(test)]
mod tests;
