//! The prompt: our instructions, and the user's words as data apart from them.

use serde_json::json;

use super::question::Question;
use crate::{
    domain::divination::hexagram::Facts,
    providers::llm::{ChatMessage, Role, builtin::Reading},
    types::{JsonText, Locale},
};

/// The version of the instructions, stored with every record.
pub(super) const VERSION: &str = "1";

const CHINESE: &str = include_str!("../../../../assets/prompts/interpretation.zh.txt");
const ENGLISH: &str = include_str!("../../../../assets/prompts/interpretation.en.txt");

/// Returns the instructions as system message, and question, casting and computed structure as one JSON user message.
pub(super) fn messages(question: &Question, facts: &Facts) -> Vec<ChatMessage> {
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
        ChatMessage { role: Role::System, content: instructions.trim().to_owned() },
        ChatMessage { role: Role::User, content: data.to_string() },
    ]
}

/// Returns the same for the offline interpreter, which reads the structure itself.
pub(super) fn reading(question: &Question, facts: &Facts) -> Reading {
    Reading {
        locale: question.locale,
        question_type: question.question_type.clone(),
        question: question.question.clone(),
        facts: facts.described(question.locale),
    }
}
