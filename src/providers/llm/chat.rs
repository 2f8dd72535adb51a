//! The answer of a chat completion, put together from one JSON document or from the chunks of a stream.
//!
//! It owns which members count and when an answer is complete. Members are read leniently, because every server
//! leaves out, adds and renames some; what must be there is a text and a reason for its end.

use serde_json::{Map, Value, json};

use super::openai::NAME;
use super::{Completion, TokenUsage, refusal, surrogates};
use crate::providers::{Failure, FailureKind, clean_code};

/// The code of an answer that is longer than what is read.
pub(super) const TOO_LARGE: &str = "answer_too_large";

/// One document: a whole answer, a chunk of one, or an error.
pub(super) struct Document {
    identifier: Option<String>,
    model: Option<String>,
    /// The first choice; others are ignored.
    choice: Option<Choice>,
    usage: Option<TokenUsage>,
    error: Option<Value>,
    /// It has what a chunk or an answer has.
    is_of_answer: bool,
}

#[derive(Default)]
struct Choice {
    /// With the halves of characters marked.
    text: String,
    reasoning: String,
    is_refused: bool,
    finish_reason: Option<String>,
}

/// The part of a response received so far.
pub(super) struct Assembly {
    max_response_bytes: usize,
    text: String,
    reasoning: String,
    /// A high surrogate whose low surrogate has not arrived.
    half_of_text: Option<char>,
    half_of_reasoning: Option<char>,
    refused: bool,
    done: bool,
    finish_reason: Option<String>,
    model: Option<String>,
    identifier: Option<String>,
    usage: Option<TokenUsage>,
}

/// The contribution of one event to a response.
#[derive(Default)]
pub(super) struct Added {
    pub text: String,
    pub reasoning: String,
    /// It was a chunk of an answer, and not the mark at the end or something that only looks like a chunk.
    pub is_document: bool,
}

impl Document {
    /// Parses a document. Blank lines around it are allowed, since providers send them to keep a connection alive.
    /// Members of an unexpected type are ignored.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Failure> {
        let text = without_mark(std::str::from_utf8(text).map_err(|_| nonsense("not_json"))?);
        let Ok(document @ Value::Object(_)) = serde_json::from_str(&surrogates::marked(text)) else {
            return Err(nonsense("not_json"));
        };
        Ok(Self {
            identifier: text_in(&document["request_id"]).or_else(|| text_in(&document["id"])),
            model: text_in(&document["model"]),
            choice: first_choice(&document).map(Choice::read),
            usage: counted(&document["usage"]),
            error: error_of(&document).cloned(),
            is_of_answer: is_of_answer(&document),
        })
    }
}

/// Strips a leading UTF-8 byte order mark.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn is_of_answer(document: &Value) -> bool {
    document["choices"].is_array() || !document["usage"].is_null()
}

/// Returns the error in a document. Some providers report one without an `error` member.
fn error_of(document: &Value) -> Option<&Value> {
    let is_bare = || {
        let has_any = ["message", "code", "detail"].iter().any(|name| !document[*name].is_null());
        !is_of_answer(document) && (has_any || document["type"] == "error")
    };
    match &document["error"] {
        Value::Null => is_bare().then_some(document),
        error => Some(error),
    }
}

/// Maps the data of an event named `error` to a failure. Its text is not passed on.
pub(super) fn error_in(data: &str) -> Failure {
    let document: Value = serde_json::from_str(data).unwrap_or_default();
    let error = if document["error"].is_null() { &document } else { &document["error"] };
    refusal::inside_answer(error)
}

impl Choice {
    fn read(choice: &Value) -> Self {
        let words = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        let reasoning = content(&words["reasoning_content"]);
        Self {
            text: content(&words["content"]),
            reasoning: if reasoning.is_empty() { content(&words["reasoning"]) } else { reasoning },
            is_refused: words["refusal"].as_str().is_some_and(|refusal| !refusal.is_empty()),
            finish_reason: text_in(&choice["finish_reason"]),
        }
    }
}

fn first_choice(document: &Value) -> Option<&Value> {
    document["choices"].as_array()?.iter().find(|choice| count(&choice["index"]).unwrap_or(0) == 0)
}

/// A text, or the texts among parts.
fn content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.as_str().or(part["text"].as_str())).collect(),
        _ => String::new(),
    }
}

/// Returns a non-empty text. Some providers write identifiers as numbers.
fn text_in(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A whole number from 0, however it is written.
fn count(value: &Value) -> Option<u64> {
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0).then(|| format!("{number:.0}").parse().ok());
    value.as_u64().or_else(|| whole(value.as_f64()?)?)
}

/// Returns the usage if all of it is readable; partial counts are dropped.
fn counted(usage: &Value) -> Option<TokenUsage> {
    let (prompt, completion) = (count(&usage["prompt_tokens"])?, count(&usage["completion_tokens"])?);
    Some(TokenUsage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: count(&usage["total_tokens"]).unwrap_or(prompt.saturating_add(completion)),
    })
}

/// Strips from the provider's document every text except the answer and its reasoning: no second choice, no member of
/// the provider's own.
pub fn with_the_answer_only(document: &str) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str(&surrogates::marked(document)) else {
        return String::new();
    };
    members.retain(|name, _| {
        matches!(name.as_str(), "id" | "object" | "created" | "model" | "choices" | "usage" | "request_id")
    });
    if let Some(Value::Array(choices)) = members.get_mut("choices") {
        let answer = choices.drain(..).find(|choice| count(&choice["index"]).unwrap_or(0) == 0);
        choices.extend(answer.as_ref().map(answer_of));
    }
    surrogates::unmarked(&Value::Object(members).to_string())
}

fn answer_of(choice: &Value) -> Value {
    let name = if choice["delta"].is_null() { "message" } else { "delta" };
    let words = &choice[name];
    let reasoning = if words["reasoning_content"].is_null() { "reasoning" } else { "reasoning_content" };
    let as_read = |told: &Value| if told.is_null() { Value::Null } else { Value::String(content(told)) };
    let told: Map<String, Value> = ["role", "content", reasoning]
        .into_iter()
        .filter_map(|member| Some((member.to_owned(), as_read(words.get(member)?))))
        .collect();
    json!({ "index": 0, name: told, "finish_reason": choice["finish_reason"] })
}

impl Assembly {
    /// Creates an empty response, limited to `max_response_bytes` bytes of text and reasoning together.
    pub(super) fn new(max_response_bytes: usize) -> Self {
        Self {
            max_response_bytes,
            text: String::new(),
            reasoning: String::new(),
            half_of_text: None,
            half_of_reasoning: None,
            refused: false,
            done: false,
            finish_reason: None,
            model: None,
            identifier: None,
            usage: None,
        }
    }

    /// Adds the data of one stream event and returns its contribution.
    pub(super) fn take_event(&mut self, data: &str) -> Result<Added, Failure> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(Added::default());
        }
        self.take(Document::parse(data.as_bytes())?)
    }

    /// Adds a whole response in one document, which is then complete.
    pub(super) fn take_whole(&mut self, document: Document) -> Result<(), Failure> {
        self.done = true;
        self.take(document).map(|_| ())
    }

    fn take(&mut self, document: Document) -> Result<Added, Failure> {
        // The last count is final.
        self.usage = document.usage.or(self.usage);
        if let Some(error) = document.error {
            return Err(refusal::inside_answer(&error).with_request_id(document.identifier.as_deref()));
        }
        self.identifier = self.identifier.take().or(document.identifier);
        self.model = document.model.or(self.model.take());
        let (text, reasoning) = self.take_choice(document.choice.unwrap_or_default())?;
        Ok(Added { text, reasoning, is_document: document.is_of_answer })
    }

    /// Returns true if the stream has ended.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Returns true if the text is complete, although the usage may still follow.
    pub(super) fn has_whole_text(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    /// Returns the usage received so far.
    pub(super) fn usage(&self) -> Option<TokenUsage> {
        self.usage
    }

    /// The answer, if it is one: ended for a reason that leaves the text whole, and not blank.
    pub(super) fn complete(self, model_asked_for: &str) -> Result<Completion, Failure> {
        let identifier = self.identifier.as_deref().and_then(clean_code);
        match self.fault() {
            Some(fault) => Err(fault.with_request_id(identifier.as_deref()).with_usage(self.usage)),
            None => Ok(Completion {
                text: self.text,
                reasoning: Some(self.reasoning).filter(|reasoning| !reasoning.is_empty()),
                model: self.model.unwrap_or_else(|| model_asked_for.to_owned()),
                finish_reason: self.finish_reason.unwrap_or_else(|| "stop".to_owned()),
                usage: self.usage,
                request_id: identifier,
            }),
        }
    }

    fn take_choice(&mut self, choice: Choice) -> Result<(String, String), Failure> {
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        self.refused |= choice.is_refused;
        let text = surrogates::joined(&mut self.half_of_text, &choice.text);
        let reasoning = surrogates::joined(&mut self.half_of_reasoning, &choice.reasoning);
        let size = self.text.len() + self.reasoning.len() + text.len() + reasoning.len();
        if size > self.max_response_bytes {
            return Err(unusable(TOO_LARGE));
        }
        self.text.push_str(&text);
        self.reasoning.push_str(&reasoning);
        Ok((text, reasoning))
    }

    fn fault(&self) -> Option<Failure> {
        let blank = self.text.trim().is_empty();
        match self.finish_reason.as_deref() {
            None if !self.done => Some(nonsense("truncated")),
            Some("content_filter") => Some(Failure::new(FailureKind::ContentRefused, NAME, "content_filter")),
            Some(reason @ "insufficient_system_resource") => Some(Failure::new(FailureKind::Busy, NAME, reason)),
            None | Some("stop" | "length") if blank && self.refused => {
                Some(Failure::new(FailureKind::ContentRefused, NAME, "refusal"))
            }
            // No choice that ended: nothing that anybody could have asked for.
            None => blank.then(|| nonsense("empty_answer")),
            Some("stop" | "length") => blank.then(|| unusable("empty_answer")),
            Some(unknown) => Some(unusable(&clean_code(unknown).unwrap_or_else(|| "unknown_finish_reason".to_owned()))),
        }
    }
}

fn nonsense(code: &str) -> Failure {
    Failure::new(FailureKind::InvalidResponse, NAME, code)
}

fn unusable(code: &str) -> Failure {
    Failure::new(FailureKind::Unusable, NAME, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_answer_is_left_of_a_document() {
        let document = json!({
            "id": "1", "object": "chat.completion", "created": 1, "model": "m", "notice": "unread", "prompt": [1],
            "choices": [
                { "index": 1, "message": { "content": "second" } },
                { "index": 0, "finish_reason": "stop", "logprobs": { "content": [] }, "message": {
                    "role": "assistant", "content": "吉", "reasoning_content": "counted", "reasoning": "not counted",
                    "refusal": "unread", "annotations": ["unread"],
                } },
            ],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1 },
        });
        let expected = json!({
            "id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{ "index": 0, "finish_reason": "stop", "message": {
                "role": "assistant", "content": "吉", "reasoning_content": "counted",
            } }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1 },
        });
        assert_eq!(serde_json::from_str::<Value>(&with_the_answer_only(&document.to_string())).unwrap(), expected);
    }

    #[test]
    fn a_content_in_parts_is_told_as_it_was_read() {
        let parts = json!([{ "type": "text", "text": "吉" }, { "type": "refusal", "refusal": "unread" }]);
        let in_parts = json!({ "choices": [{ "message": { "content": parts } }] }).to_string();
        let told: Value = serde_json::from_str(&with_the_answer_only(&in_parts)).unwrap();
        assert_eq!(told["choices"][0]["message"], json!({ "content": "吉" }));
    }

    #[test]
    fn a_chunk_without_choices_keeps_its_count() {
        let chunk = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"details":{"cached":0}}}"#;
        assert_eq!(
            serde_json::from_str::<Value>(&with_the_answer_only(chunk)).unwrap(),
            serde_json::from_str::<Value>(chunk).unwrap()
        );
    }
}
