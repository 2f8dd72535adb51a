//! A model call by the operator, to test the model and its speed.

use super::{CallReport, ModelCaller, ModelCalls, new_trace_id, run};
use crate::{
    domain::divination::hexagram,
    error::Result,
    providers::llm::{
        Flow, MessageRole, ModelMessage, ModelRequest, Sampling,
        builtin::{Reading, View, Written},
    },
};

const QUESTION: &str = "In one sentence: what does hexagram 11 of the I Ching stand for?";
const HEXAGRAM: &str = "11";
/// Enough for a sentence and the reasoning before it.
const MAX_TOKENS: u32 = 500;

/// Makes the call and counts it as a test. It needs no permit and no budget of the users' calls. Blocks on the provider.
pub fn make(calls: &ModelCalls) -> Result<CallReport> {
    let settings = &calls.core.config.llm;
    let request = ModelRequest {
        trace_id: new_trace_id()?,
        messages: vec![ModelMessage { role: MessageRole::User, content: QUESTION.to_owned() }],
        stream: true,
        sampling: Sampling { temperature: settings.temperature, ..Sampling::default() },
        max_tokens: Some(settings.max_tokens.min(MAX_TOKENS)),
        reading: Some(Reading {
            written: Written::English,
            question_type: None,
            question: QUESTION.to_owned(),
            asker: None,
            facts: hexagram::read(HEXAGRAM),
            method: None,
            chart: None,
            view: View::default(),
            is_about_missing_person: false,
        }),
        ..ModelRequest::default()
    };
    run_test(calls, request)
}

/// Calls the model with a request of the operator and counts it as a test. Like [`make`], it needs no permit and no budget.
///
/// # Errors
/// Storage errors. The report has those of the provider.
pub fn run_test(calls: &ModelCalls, request: ModelRequest) -> Result<CallReport> {
    let caller = ModelCaller { user: None, kind: "test" };
    let report = run(calls, caller, request, &mut |_| Flow::Continue);
    let (outcome, zone) = (report.outcome.clone(), calls.core.config.limits.time_zone.clone());
    calls.core.store.write(move |tx| outcome.count_in(tx, &zone.today(tx.now).to_string())).wait()?;
    Ok(report)
}
