//! The input of the offline interpreter.

use super::question::CastingQuestion;
use crate::{
    domain::divination::{
        chart::chart_of,
        hexagram::{Cast, Facts},
    },
    providers::llm::builtin::{AskerGender, Reading, Written},
};

/// Returns all that is known about the question and its casting. Of a hexagram whose changing lines are unknown, the chart
/// is that of its lines at rest.
pub(super) fn reading(
    question: &CastingQuestion,
    facts: &Facts,
    asker: Option<AskerGender>,
    (written, is_about_missing_person): (Written, bool),
) -> Reading {
    let charted = facts.cast.or_else(|| facts.primary.map(|primary| Cast::from_hexagram(primary, &[])));
    Reading {
        written,
        question_type: question.question_type.clone(),
        question: question.question.clone(),
        asker,
        facts: facts.clone(),
        method: question.method,
        chart: charted.map(|cast| chart_of(&cast, question.cast_time.as_ref())),
        view: question.view,
        is_about_missing_person,
    }
}
