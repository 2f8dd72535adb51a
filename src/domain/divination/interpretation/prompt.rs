//! The prompt: our instructions, and separately the user's words and the facts of the casting as data.
//!
//! Classical texts, chart, method and time are facts of their own. The structure has our own prose, which a model must not
//! take for the classical text. The reading is what the offline interpreter makes of question and chart. Members that say
//! nothing are left out.

use serde_json::{Value, json};

use crate::{
    domain::divination::{
        chart::{SelectedText, TextSelection},
        help::{self, HelpAnswer},
        hexagram::{Hexagram, LineClassic},
        prompts::Prompts,
    },
    providers::llm::{
        MessageRole, ModelMessage,
        builtin::{self, Reading, Written},
    },
    types::{ChineseScript, JsonText},
};

use super::question::CastingQuestion;

/// Returns the instructions as system message, and question, casting and computed facts as one JSON user message.
pub(super) fn messages(
    prompts: &Prompts,
    question: &CastingQuestion,
    reading: &Reading,
    help: Option<&HelpAnswer>,
) -> Vec<ModelMessage> {
    let (written, facts) = (reading.written, &reading.facts);
    let locale = written.locale();
    let mut data = json!({
        "questionType": question.question_type,
        "question": (!question.question.is_empty()).then_some(&question.question),
        "script": written.script().map(ChineseScript::name),
        "gender": reading.asker,
        "class": help.map(|help| help.class.name()),
        "divinationData": question.divination_data.as_ref().map(JsonText::content),
        "method": question.method,
        "classic": classic(reading),
        "chart": facts.cast.and(reading.chart.as_ref()),
        "reading": facts.cast.and_then(|_| builtin::analysis(reading)),
        "structure": json!({
            "primary": facts.primary.map(|primary| hexagram(primary, written)),
            "relating": facts.relating.map(|relating| hexagram(relating, written)),
            "nuclear": facts.primary.map(|primary| hexagram(primary.nuclear(), written)),
            "evidence": facts.has_assumptions().then(|| facts.found.iter().map(|found| found.sentence(locale)).collect::<Vec<_>>()),
            "conflicts": facts.conflicts.iter().map(|conflict| conflict.sentence(locale)).collect::<Vec<_>>(),
        }),
    });
    // A chart says much by what it lacks, and a model needs none of it.
    for member in ["chart", "reading", "structure"] {
        drop_empty(&mut data[member]);
    }
    let instructions = help::with_rule(prompts.interpretation(locale), help, locale);
    vec![
        ModelMessage { role: MessageRole::System, content: written.convert(&instructions) },
        ModelMessage { role: MessageRole::User, content: data.to_string() },
    ]
}

/// Drops members that are null, false or empty.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(drop_empty);
            members.retain(|_, member| !is_empty(member));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Returns the texts to read in the asker's script; only the judgement if the changing lines are unknown.
fn classic(reading: &Reading) -> Option<Value> {
    let rule = |selection: &TextSelection| reading.facts.cast.map(|_| selection.rule.name());
    let selection = match reading.facts.cast {
        Some(cast) => TextSelection::of(&cast),
        None => TextSelection::of_judgement(reading.facts.primary?),
    };
    let texts: Vec<Value> = selection.texts.iter().map(|text| passage(*text, reading.written)).collect();
    Some(json!({ "rule": rule(&selection), "texts": texts }))
}

fn passage(selected: SelectedText, written: Written) -> Value {
    let text = selected.text();
    json!({
        "hexagram": selected.hexagram.number(),
        "chineseName": name(selected.hexagram, written),
        "englishName": selected.hexagram.english_name(),
        "label": selected.line_classic().map(LineClassic::label),
        "position": selected.position,
        "isMain": selected.is_main,
        "text": if written == Written::Traditional { text.traditional } else { text.simplified },
        "judgement": selected.judgement_of().map(|(judgement, _)| judgement.name()),
        "plain": written.convert(selected.plain(written.locale())),
    })
}

fn name(hexagram: Hexagram, written: Written) -> &'static str {
    if written == Written::Traditional { hexagram.traditional_name() } else { hexagram.chinese_name() }
}

fn hexagram(hexagram: Hexagram, written: Written) -> Value {
    let locale = written.locale();
    json!({
        "number": hexagram.number(),
        "chineseName": name(hexagram, written),
        "chineseFullName": written.convert(hexagram.chinese_full_name()),
        "englishName": hexagram.english_name(),
        "upper": hexagram.upper().chinese_name(),
        "lower": hexagram.lower().chinese_name(),
        "counsel": written.convert(hexagram.counsel(locale)),
        "image": written.convert(hexagram.image(locale)),
    })
}
