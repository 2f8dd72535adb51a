//! The answer of a chat completion, put together from one JSON document or from the chunks of a stream.
//!
//! It owns which members count and when an answer is complete. Members are read leniently, because every server
//! leaves out, adds and renames some; what must be there is a text and a reason for its end.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::openai::NAME;
use super::{Completion, Usage, refusal};
use crate::providers::{Failure, FailureKind, clean_code};

/// One document: a whole answer, a chunk of one, or an error.
#[derive(Deserialize)]
pub(super) struct Document {
    id: Option<String>,
    request_id: Option<String>,
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u32>,
    /// In a chunk.
    delta: Option<Words>,
    /// In a whole answer.
    message: Option<Words>,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Words {
    content: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(rename = "prompt_tokens")]
    prompt: Option<u64>,
    #[serde(rename = "completion_tokens")]
    completion: Option<u64>,
    #[serde(rename = "total_tokens")]
    total: Option<u64>,
}

/// What has arrived of an answer so far.
pub(super) struct Assembly {
    largest_answer: usize,
    text: String,
    reasoning: String,
    refused: bool,
    done: bool,
    finish_reason: Option<String>,
    model: Option<String>,
    identifier: Option<String>,
    usage: Option<Usage>,
}

/// What one event adds to an answer.
#[derive(Default)]
pub(super) struct Added {
    pub text: String,
    pub reasoning: String,
}

impl Document {
    /// Reads a document; blank lines around it are allowed, since vendors send them to keep a connection alive.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Failure> {
        serde_json::from_slice(text).map_err(|_| nonsense("not_json"))
    }
}

/// The vendor's document with nothing in it that a listener could read but what [`Assembly`] takes as the answer and
/// its reasoning: no second choice, no member of the vendor's own.
pub fn with_the_answer_only(document: &str) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str(document) else { return String::new() };
    members.retain(|name, _| {
        matches!(name.as_str(), "id" | "object" | "created" | "model" | "choices" | "usage" | "request_id")
    });
    if let Some(Value::Array(choices)) = members.get_mut("choices") {
        let answer = choices.drain(..).find(|choice| choice["index"].as_u64().unwrap_or(0) == 0);
        choices.extend(answer.as_ref().map(answer_of));
    }
    Value::Object(members).to_string()
}

fn answer_of(choice: &Value) -> Value {
    let name = if choice["delta"].is_null() { "message" } else { "delta" };
    let words = &choice[name];
    let reasoning = if words["reasoning_content"].is_null() { "reasoning" } else { "reasoning_content" };
    let told: Map<String, Value> = ["role", "content", reasoning]
        .into_iter()
        .filter_map(|member| Some((member.to_owned(), words.get(member)?.clone())))
        .collect();
    json!({ "index": 0, name: told, "finish_reason": choice["finish_reason"] })
}

impl Assembly {
    /// Nothing yet, and never more than `largest_answer` bytes of text and reasoning together.
    pub(super) fn new(largest_answer: usize) -> Self {
        Self {
            largest_answer,
            text: String::new(),
            reasoning: String::new(),
            refused: false,
            done: false,
            finish_reason: None,
            model: None,
            identifier: None,
            usage: None,
        }
    }

    /// Takes the data of one event of a stream and gives back what it adds.
    pub(super) fn take_event(&mut self, data: &str) -> Result<Added, Failure> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(Added::default());
        }
        self.take(Document::parse(data.as_bytes())?)
    }

    /// Takes a whole answer in one document, whose own end is the end of the answer.
    pub(super) fn take_whole(&mut self, document: Document) -> Result<(), Failure> {
        self.done = true;
        self.take(document).map(|_| ())
    }

    fn take(&mut self, document: Document) -> Result<Added, Failure> {
        let identifier = document.request_id.or(document.id);
        // The last count that is there is the final one.
        self.usage = document.usage.and_then(Tokens::counted).or(self.usage);
        if let Some(error) = document.error.filter(|error| !error.is_null()) {
            return Err(refusal::inside_answer(&error).with_request_id(identifier.as_deref()));
        }
        self.identifier = self.identifier.take().or(identifier);
        self.model = document.model.filter(|model| !model.is_empty()).or(self.model.take());
        let choices = document.choices.unwrap_or_default();
        match choices.into_iter().find(|choice| choice.index.unwrap_or(0) == 0) {
            Some(choice) => self.take_choice(choice),
            None => Ok(Added::default()),
        }
    }

    /// Whether the stream has said its last word.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the text is complete, though the stream may go on with the usage.
    pub(super) fn has_whole_text(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    /// What the vendor has counted so far.
    pub(super) fn usage(&self) -> Option<Usage> {
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
                first_token_after: None,
            }),
        }
    }

    fn take_choice(&mut self, choice: Choice) -> Result<Added, Failure> {
        self.finish_reason = choice.finish_reason.filter(|reason| !reason.is_empty()).or(self.finish_reason.take());
        let words = choice.delta.or(choice.message).unwrap_or_default();
        self.refused |= words.refusal.is_some_and(|refusal| !refusal.is_empty());
        let text = words.content.unwrap_or_default();
        let reasoning = words.reasoning_content.or(words.reasoning).unwrap_or_default();
        let size = self.text.len() + self.reasoning.len() + text.len() + reasoning.len();
        if size > self.largest_answer {
            return Err(nonsense("answer_too_large"));
        }
        self.text.push_str(&text);
        self.reasoning.push_str(&reasoning);
        Ok(Added { text, reasoning })
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
            None | Some("stop" | "length") => blank.then(|| nonsense("empty_answer")),
            Some(unknown) => Some(nonsense(&clean_code(unknown).unwrap_or_else(|| "unknown_finish_reason".to_owned()))),
        }
    }
}

impl Tokens {
    fn counted(self) -> Option<Usage> {
        let (prompt, completion) = (self.prompt?, self.completion?);
        Some(Usage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: self.total.unwrap_or(prompt.saturating_add(completion)),
        })
    }
}

fn nonsense(code: &str) -> Failure {
    Failure::new(FailureKind::Nonsense, NAME, code)
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
    fn a_chunk_without_choices_keeps_its_count() {
        let chunk = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"details":{"cached":0}}}"#;
        assert_eq!(
            serde_json::from_str::<Value>(&with_the_answer_only(chunk)).unwrap(),
            serde_json::from_str::<Value>(chunk).unwrap()
        );
    }
}
