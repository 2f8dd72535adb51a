//! One real call that nobody asked for but the operator, to see whether the model answers and how fast.

use super::{Asker, ModelCalls, Outcome, Ran, new_trace_id, run};
use crate::{
    domain::divination::hexagram,
    error::{Error, Result},
    providers::llm::{Flow, Message, Request, Role, builtin::Reading},
    types::Locale,
};

const QUESTION: &str = "In one sentence: what does hexagram 11 of the I Ching stand for?";
const HEXAGRAM: &str = "11";
/// Enough for a sentence, and for the reasoning before it.
const MOST_TOKENS: u32 = 500;

/// What came of it, and what is wrong if something is.
pub struct Rehearsal {
    pub outcome: Outcome,
    pub failure: Option<Error>,
}

/// Asks, and counts the call as a test: it takes no place among the users' calls and nothing of their budgets.
/// Blocks on the provider.
pub fn ask(calls: &ModelCalls) -> Result<Rehearsal> {
    let (locale, settings) = (Locale::English, &calls.core.config.llm);
    let request = Request {
        trace_id: new_trace_id()?,
        messages: vec![Message { role: Role::User, content: QUESTION.to_owned() }],
        stream: true,
        temperature: settings.temperature,
        max_tokens: Some(settings.max_tokens.min(MOST_TOKENS)),
        reading: Some(Reading {
            locale,
            question_type: None,
            question: QUESTION.to_owned(),
            facts: hexagram::read(HEXAGRAM).described(locale),
        }),
        ..Request::default()
    };
    let asker = Asker { user: None, kind: "test" };
    let Ran { outcome, failure } = run(calls, asker, request, &mut |_| Flow::Continue);
    let (counted, zone) = (outcome.clone(), calls.core.config.limits.time_zone.clone());
    calls.core.store.write(move |tx| counted.count_in(tx, &zone.today(tx.now).to_string())).wait()?;
    Ok(Rehearsal { outcome, failure })
}
