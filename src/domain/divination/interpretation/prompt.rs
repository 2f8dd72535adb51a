//! The prompt: our instructions, and separately the user's words as data.

use serde_json::json;

use super::question::Question;
use crate::{
    domain::divination::hexagram::Facts,
    providers::llm::{ModelMessage, Role, builtin::Reading},
    types::{JsonText, Locale},
};

/// The version of the instructions, stored with every record.
pub(super) const VERSION: &str = "1";

const CHINESE: &str = include_str!("../../../../assets/prompts/interpretation.zh.txt");
const ENGLISH: &str = include_str!("../../../../assets/prompts/interpretation.en.txt");

/// Returns the instructions as system message, and question, casting and computed structure as one JSON user message.
pub(super) fn messages(question: &Question, facts: &Facts) -> Vec<ModelMessage> {
    let instructions = match question.locale {
        Locale::Chinese => CHINESE,
        Locale::English => ENGLISH,
    };
    let data = json!({
        "questionType": question.question_type,
        "question": (!question.question.is_empty()).then_some(&question.question),
        "divinationData": question.divination_data.as_ref().map(JsonText::content),
        "structure": facts.described(question.locale),
    });
    vec![
        ModelMessage { role: Role::System, content: instructions.trim().to_owned() },
        ModelMessage { role: Role::User, content: data.to_string() },
    ]
}

/// Returns the same data for the offline interpreter, which computes the structure itself.
pub(super) fn reading(question: &Question, facts: &Facts) -> Reading {
    Reading {
        locale: question.locale,
        question_type: question.question_type.clone(),
        question: question.question.clone(),
        facts: facts.described(question.locale),
    }
}
