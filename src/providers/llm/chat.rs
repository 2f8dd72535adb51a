//! The response of a chat completion, assembled from one JSON document or from the chunks of a stream.
//!
//! Decides which members count and when a response is complete. Members are read leniently, because every server omits,
//! adds and renames some. A text and an end reason are required.

use serde_json::{Map, Value, json};

use super::end_reason::EndReason;
use super::thinking::{Separated, ThinkingFilter, separate};
use super::usage::{count, usage_in};
use super::{Completion, OPENAI, TokenUsage, refusal, surrogates};
use crate::providers::{Failure, FailureKind, clean_code};

/// The failure code of a response above the size limit.
pub(super) const TOO_LARGE: &str = "answer_too_large";
/// Maximum characters of a model's name.
const MAX_MODEL_LENGTH: usize = 128;
/// A shorter answer may repeat itself by chance.
const MIN_REPEATED_LENGTH: usize = 16;

/// One document: a whole response, a chunk of one, or an error.
pub(super) struct Document {
    identifier: Option<String>,
    model: Option<String>,
    /// The first choice. Others are ignored.
    choice: Option<Choice>,
    usage: Option<TokenUsage>,
    error: Option<Value>,
    /// It has the members of a chunk or a response.
    is_response: bool,
}

#[derive(Default)]
struct Choice {
    /// With unpaired surrogates marked.
    text: String,
    /// The text is a whole message and not a chunk.
    is_message: bool,
    reasoning: String,
    is_refused: bool,
    finish_reason: Option<String>,
}

/// The part of a response received so far.
pub(super) struct Assembly {
    max_response_bytes: usize,
    text: String,
    reasoning: String,
    filter: ThinkingFilter,
    /// Chunks that added text.
    text_chunks: u32,
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

/// The content that one event adds to a response.
#[derive(Default)]
pub(super) struct AddedContent {
    pub text: String,
    pub reasoning: String,
    /// True for a chunk of a response; false for the end mark and other documents.
    pub is_document: bool,
}

impl Document {
    /// Parses a document. Blank lines around it are allowed, since providers send them to keep a connection alive.
    /// Members of an unexpected type are ignored.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Failure> {
        let text = strip_byte_order_mark(std::str::from_utf8(text).map_err(|_| invalid_response("not_json"))?);
        let Ok(document @ Value::Object(_)) = serde_json::from_str(&surrogates::mark_unpaired(text)) else {
            return Err(invalid_response("not_json"));
        };
        Ok(Self {
            identifier: text_in(&document["request_id"]).or_else(|| text_in(&document["id"])),
            model: text_in(&document["model"]).map(|model| model.chars().take(MAX_MODEL_LENGTH).collect()),
            choice: first_choice(&document).map(Choice::read),
            usage: usage_in(&document),
            error: error_of(&document),
            is_response: is_response(&document),
        })
    }
}

/// Strips a leading UTF-8 byte order mark.
pub(super) fn strip_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn is_response(document: &Value) -> bool {
    document["choices"].is_array() || !document["usage"].is_null()
}

/// Returns the error in a document. Some providers report one without an `error` member, and some send an empty one
/// with every successful response.
fn error_of(document: &Value) -> Option<Value> {
    let is_bare = || {
        let has_any = ["message", "code", "detail"].iter().any(|name| !document[*name].is_null());
        !is_response(document) && (has_any || document["type"] == "error")
    };
    let in_choice = first_choice(document).map(|choice| &choice["error"]);
    let members = [Some(&document["error"]), in_choice, Some(&document["x_groq"]["error"])];
    if let Some(error) = members.into_iter().flatten().find(|error| !is_blank(error)) {
        return Some(error.clone());
    }
    match count(&document["base_resp"]["status_code"]) {
        None | Some(0) => is_bare().then(|| document.clone()),
        Some(status) => Some(json!({ "code": format!("base_resp_{status}") })),
    }
}

/// Returns true if a value is empty: null, false, zero, or composed of such values.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.iter().all(is_blank),
        Value::Object(members) => members.values().all(is_blank),
    }
}

/// Maps the data of an event named `error` to a failure. Its text is not passed on.
pub(super) fn error_in(data: &str) -> Failure {
    let document: Value = serde_json::from_str(data).unwrap_or_default();
    let error = if document["error"].is_null() { &document } else { &document["error"] };
    refusal::in_response(error)
}

impl Choice {
    fn read(choice: &Value) -> Self {
        let is_message = !choice["delta"].is_object();
        let words = if is_message { &choice["message"] } else { &choice["delta"] };
        let reasoning = content(&words["reasoning_content"]);
        Self {
            text: content(&words["content"]),
            is_message,
            reasoning: if reasoning.is_empty() { content(&words["reasoning"]) } else { reasoning },
            is_refused: words["refusal"].as_str().is_some_and(|refusal| !refusal.is_empty()),
            finish_reason: text_in(&choice["finish_reason"]),
        }
    }
}

fn first_choice(document: &Value) -> Option<&Value> {
    document["choices"].as_array()?.iter().find(|choice| count(&choice["index"]).unwrap_or(0) == 0)
}

/// Returns a text, or the joined texts of content parts.
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

/// Removes every text from the provider's document except the answer and its reasoning: other choices and the
/// provider's own members.
pub fn keep_answer_only(document: &str) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str(&surrogates::mark_unpaired(document)) else {
        return String::new();
    };
    members.retain(|name, _| {
        matches!(name.as_str(), "id" | "object" | "created" | "model" | "choices" | "usage" | "request_id")
    });
    if let Some(Value::Array(choices)) = members.get_mut("choices") {
        let answer = choices.drain(..).find(|choice| count(&choice["index"]).unwrap_or(0) == 0);
        choices.extend(answer.as_ref().map(answer_of));
    }
    surrogates::restore_escapes(&Value::Object(members).to_string())
}

/// Replaces the answer and the reasoning in a document of [`keep_answer_only`].
pub fn with_answer(document: &str, text: &str, reasoning: &str) -> String {
    let Ok(mut document) = serde_json::from_str::<Value>(&surrogates::mark_unpaired(document)) else {
        return String::new();
    };
    let choice = document.pointer_mut("/choices/0").and_then(Value::as_object_mut);
    let told =
        choice.and_then(|choice| choice.iter_mut().find(|(name, _)| matches!(name.as_str(), "delta" | "message")));
    if let Some((_, Value::Object(words))) = told {
        for (member, value) in words {
            match member.as_str() {
                "content" if !value.is_null() => *value = text.into(),
                "reasoning_content" | "reasoning" if !value.is_null() => *value = reasoning.into(),
                _ => {}
            }
        }
    }
    surrogates::restore_escapes(&document.to_string())
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
            filter: ThinkingFilter::default(),
            text_chunks: 0,
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

    /// Adds the data of one stream event and returns the added content.
    pub(super) fn add_event(&mut self, data: &str) -> Result<AddedContent, Failure> {
        if data.trim().eq_ignore_ascii_case("[DONE]") {
            self.end();
            return Ok(AddedContent::default());
        }
        self.take(Document::parse(data.as_bytes())?)
    }

    /// Adds a whole response in one document, which completes it.
    pub(super) fn add_whole(&mut self, document: Document) -> Result<(), Failure> {
        self.done = true;
        self.take(document)?;
        self.flush();
        Ok(())
    }

    /// Adds the text that was held back until the end.
    pub(super) fn flush(&mut self) -> AddedContent {
        let Separated { answer, thinking } = self.filter.finish();
        self.text.push_str(&answer);
        self.reasoning.push_str(&thinking);
        AddedContent { text: answer, reasoning: thinking, is_document: false }
    }

    fn take(&mut self, document: Document) -> Result<AddedContent, Failure> {
        // The last reported usage is final.
        self.usage = document.usage.or(self.usage);
        if let Some(error) = document.error {
            return Err(refusal::in_response(&error).with_request_id(document.identifier.as_deref()));
        }
        self.identifier = self.identifier.take().or(document.identifier);
        self.model = document.model.or(self.model.take());
        let (text, reasoning) = self.take_choice(document.choice.unwrap_or_default())?;
        Ok(AddedContent { text, reasoning, is_document: document.is_response })
    }

    /// Ends the stream.
    pub(super) fn end(&mut self) {
        self.done = true;
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

    /// Returns the completion, if the response ended for a reason that leaves the text whole, and if it is not blank.
    pub(super) fn complete(mut self, requested_model: &str) -> Result<Completion, Failure> {
        if self.reasoning.is_empty() {
            // Finds a closing tag whose opening tag is in the prompt. That is too late for a stream but not for the
            // record.
            Separated { answer: self.text, thinking: self.reasoning } = separate(&self.text);
        }
        let identifier = self.identifier.as_deref().and_then(clean_code);
        match self.fault() {
            Some(fault) => Err(fault.with_request_id(identifier.as_deref()).with_usage(self.usage)),
            None => Ok(Completion {
                text: self.text,
                reasoning: Some(self.reasoning).filter(|reasoning| !reasoning.is_empty()),
                model: self.model.unwrap_or_else(|| requested_model.to_owned()),
                finish_reason: self.finish_reason.as_deref().map_or(EndReason::Stop, EndReason::of).name().to_owned(),
                usage: self.usage,
                request_id: identifier,
            }),
        }
    }

    fn take_choice(&mut self, choice: Choice) -> Result<(String, String), Failure> {
        let rest = self.rest_of_repetition(&choice);
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        self.refused |= choice.is_refused;
        let is_repetition = rest.is_some();
        let text = rest.unwrap_or_else(|| surrogates::join(&mut self.half_of_text, &choice.text));
        let mut reasoning = surrogates::join(&mut self.half_of_reasoning, &choice.reasoning);
        if is_repetition && !self.reasoning.is_empty() {
            reasoning.clear();
        }
        let Separated { answer: text, thinking } = self.filter.push(&text);
        reasoning.push_str(&thinking);
        let size = self.text.len() + self.reasoning.len() + text.len() + reasoning.len();
        if size > self.max_response_bytes {
            return Err(unusable(TOO_LARGE));
        }
        self.text_chunks += u32::from(!text.is_empty());
        self.text.push_str(&text);
        self.reasoning.push_str(&reasoning);
        Ok((text, reasoning))
    }

    /// Returns the new text of a chunk that repeats all text before it: some servers end with the whole message. Only a
    /// long text counts as a repetition, because a short chunk may equal it by chance.
    fn rest_of_repetition(&self, choice: &Choice) -> Option<String> {
        let is_end = choice.finish_reason.is_some() || self.finish_reason.is_some();
        if !is_end || self.text.is_empty() || choice.text.is_empty() {
            return None;
        }
        let whole = separate(&surrogates::join(&mut None, &choice.text)).answer;
        if choice.is_message {
            return whole.trim_start().strip_prefix(self.text.trim()).map(str::to_owned);
        }
        let is_long = self.text_chunks > 1 && self.text.len() >= MIN_REPEATED_LENGTH;
        (is_long && whole.trim() == self.text.trim()).then(String::new)
    }

    fn fault(&self) -> Option<Failure> {
        let blank = self.text.trim().is_empty();
        let code = |reason: &str| clean_code(reason).unwrap_or_else(|| "unknown_finish_reason".to_owned());
        let Some(reason) = self.finish_reason.as_deref() else {
            return match () {
                () if !self.done => Some(invalid_response("truncated")),
                () if blank && self.refused => Some(content_refused("refusal")),
                // No choice ended. No request can cause that.
                () => blank.then(|| invalid_response("empty_answer")),
            };
        };
        match EndReason::of(reason) {
            EndReason::Filtered => Some(content_refused(&code(reason))),
            EndReason::Failed => Some(Failure::new(FailureKind::Busy, OPENAI, code(reason))),
            EndReason::Stop | EndReason::Length if blank && self.refused => Some(content_refused("refusal")),
            EndReason::Stop | EndReason::Length => blank.then(|| unusable("empty_answer")),
            EndReason::Unknown => Some(unusable(&code(reason))),
        }
    }
}

fn content_refused(code: &str) -> Failure {
    Failure::new(FailureKind::ContentRefused, OPENAI, code)
}

fn invalid_response(code: &str) -> Failure {
    Failure::new(FailureKind::InvalidResponse, OPENAI, code)
}

fn unusable(code: &str) -> Failure {
    Failure::new(FailureKind::Unusable, OPENAI, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_the_answer_of_a_document() {
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
        assert_eq!(serde_json::from_str::<Value>(&keep_answer_only(&document.to_string())).unwrap(), expected);
    }

    #[test]
    fn replaces_the_answer_of_a_document() {
        let document = |name: &str, content: &str, reasoning: &str| {
            json!({ "model": "m", "choices": [{ "index": 0, "finish_reason": "stop", name: {
                "role": "assistant", "content": content, "reasoning_content": reasoning } }] })
        };
        for name in ["message", "delta"] {
            let masked = with_answer(&document(name, "去赌博", "想赌博").to_string(), "去＊＊", "想＊＊");
            assert_eq!(serde_json::from_str::<Value>(&masked).unwrap(), document(name, "去＊＊", "想＊＊"));
        }
        let usage = json!({ "choices": [], "usage": { "prompt_tokens": 1 } });
        assert!(with_answer(&usage.to_string(), "去＊＊", "").contains("prompt_tokens"));
        assert_eq!(with_answer("no JSON", "", ""), "");
    }

    #[test]
    fn joins_content_parts() {
        let parts = json!([{ "type": "text", "text": "吉" }, { "type": "refusal", "refusal": "unread" }]);
        let in_parts = json!({ "choices": [{ "message": { "content": parts } }] }).to_string();
        let told: Value = serde_json::from_str(&keep_answer_only(&in_parts)).unwrap();
        assert_eq!(told["choices"][0]["message"], json!({ "content": "吉" }));
    }

    #[test]
    fn keeps_the_usage_of_a_chunk_without_choices() {
        let chunk = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"details":{"cached":0}}}"#;
        assert_eq!(
            serde_json::from_str::<Value>(&keep_answer_only(chunk)).unwrap(),
            serde_json::from_str::<Value>(chunk).unwrap()
        );
    }
}
