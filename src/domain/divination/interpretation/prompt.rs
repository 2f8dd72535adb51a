//! The prompt: our instructions, and separately the user's words and the facts of the casting as data.
//!
//! Classical texts, chart, method and time are facts of their own. The structure has our own prose, which a model must not
//! take for the classical text.

use serde_json::json;

use super::{question::CastingQuestion, reading::classic};
use crate::{
    domain::divination::{
        chart::{Chart, chart_of},
        help::{self, HelpAnswer},
        hexagram::Facts,
        prompts::Prompts,
    },
    providers::llm::{MessageRole, ModelMessage},
    types::JsonText,
};

/// Returns the instructions as system message, and question, casting and computed facts as one JSON user message.
pub(super) fn messages(
    prompts: &Prompts,
    question: &CastingQuestion,
    facts: &Facts,
    help: Option<&HelpAnswer>,
) -> Vec<ModelMessage> {
    let data = json!({
        "questionType": question.question_type,
        "question": (!question.question.is_empty()).then_some(&question.question),
        "divinationData": question.divination_data.as_ref().map(JsonText::content),
        "method": question.method,
        "classic": classic(facts, question.locale),
        "chart": chart(question, facts),
        "structure": facts.described(question.locale),
    });
    let instructions = help::with_rule(prompts.interpretation(question.locale), help, question.locale);
    vec![
        ModelMessage { role: MessageRole::System, content: instructions },
        ModelMessage { role: MessageRole::User, content: data.to_string() },
    ]
}

fn chart(question: &CastingQuestion, facts: &Facts) -> Option<Chart> {
    facts.cast.map(|cast| chart_of(&cast, question.cast_time.as_ref()))
}
