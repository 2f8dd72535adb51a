//! Language models: a request with its context, and a text as the response, complete or in chunks.
//!
//! One trait, with one driver per protocol. A driver owns the encoding of the request and the meaning of the response.
//! It does not compose prompts, screen content or keep records, and knows the user only by an opaque reference.
//!
//! A failure after some chunks returns no text, because the chunks passed on so far are no complete answer.

mod chat;
mod end_reason;
pub mod event_stream;
mod form;
mod surrogates;
pub mod models;
pub mod offline;
pub mod openai;
mod refusal;
mod retry;
mod streamed;
mod thinking;
mod usage;

use std::time::Duration;

pub use chat::{keep_answer_only, with_answer};

pub use liuyao::interpreter as builtin;

use super::Failure;
use crate::types::named_enum;

/// The name of the driver for OpenAI-compatible servers, in failures and records.
pub const OPENAI: &str = "openai";

/// A language model.
pub trait LanguageModel: Send + Sync {
    /// The driver's name in the configuration.
    fn name(&self) -> &'static str;

    /// Returns the requested model. The response names the model that answered.
    fn model(&self) -> &str;

    /// Sends the request to the model and blocks until its response is complete.
    ///
    /// `sink` gets the response: in chunks if `stream` is set, otherwise as one chunk. An empty chunk only checks that
    /// the caller still listens while the model thinks or the driver waits. If `sink` returns [`Flow::Stop`], the call
    /// fails as `Cancelled`; most providers then stop billing.
    fn converse(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> Result<Completion, Failure>;

    /// Checks at no cost that the provider responds and accepts our key.
    fn probe(&self) -> Result<(), Failure>;
}

/// A chunk of the model's output.
#[derive(Clone, Copy)]
pub struct OutputChunk<'answer> {
    /// The text to append; empty in a keep-alive, with reasoning only, and at the end.
    pub text: &'answer str,
    /// The model's reasoning, if its provider sends it. The document holds it too.
    pub reasoning: &'answer str,
    /// The provider's own JSON (a chunk of a stream, or the whole response) for callers that pass it on.
    pub document: Option<&'answer str>,
    /// True if the document is a whole response and not a chunk.
    pub is_whole: bool,
    /// The model that produced it; empty if only the document names it.
    pub model: &'answer str,
    /// True if the fallback model produced it.
    pub is_from_fallback: bool,
    /// True if the call is being retried and the outcome of the lost first attempt is unknown.
    pub has_lost_attempt: bool,
}

impl OutputChunk<'_> {
    /// A chunk without content, which only checks that the caller still listens.
    pub const KEEP_ALIVE: OutputChunk<'static> = OutputChunk {
        text: "",
        reasoning: "",
        document: None,
        is_whole: false,
        model: "",
        is_from_fallback: false,
        has_lost_attempt: false,
    };
}

/// The decision of a sink to continue or stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue the call.
    Continue,
    /// The caller no longer listens; cancel the call.
    Stop,
}

/// A model request. Has no `Debug`, because it contains the user's text.
#[derive(Clone, Default)]
pub struct ModelRequest {
    /// The trace id: 32 lower-case hexadecimal digits, sent as `traceparent`.
    pub trace_id: String,
    /// An opaque, stable reference to the user for the provider's abuse control; empty for none.
    pub user_reference: String,
    /// The conversation, oldest first.
    pub messages: Vec<ModelMessage>,
    /// True to receive the text in chunks.
    pub stream: bool,
    /// True to receive the provider's documents, and with them the model's reasoning.
    pub with_documents: bool,
    pub sampling: Sampling,
    /// The maximum number of tokens of the answer; `None` leaves it to the model.
    pub max_tokens: Option<u32>,
    /// The remaining time for the call, if it is less than the driver's timeout.
    pub time_left: Option<Duration>,
    /// The cast hexagram, for the built-in interpreter. Other drivers ignore it.
    pub reading: Option<builtin::Reading>,
    /// The language of a conversation, for the built-in interpreter.
    pub written: builtin::Written,
    /// Words of the service that come before the model's, or instead of them.
    pub service_answer: Option<ServiceAnswer>,
}

/// The parameters by which a model chooses its words. `None` leaves one to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// From 0 to 2.
    pub temperature: Option<f64>,
    /// From 0 to 1.
    pub top_p: Option<f64>,
    /// From -2 to 2.
    pub presence_penalty: Option<f64>,
    /// From -2 to 2.
    pub frequency_penalty: Option<f64>,
}

/// An answer that the service gives itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAnswer {
    pub text: String,
    /// True if no model is called.
    pub is_whole: bool,
}

/// A message of a conversation.
#[derive(Clone)]
pub struct ModelMessage {
    /// The author.
    pub role: MessageRole,
    /// The text.
    pub content: String,
}

named_enum! {
    /// The author of a message, under the protocols' names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MessageRole {
        /// The service, which sets the rules.
        System = "system",
        /// The user.
        User = "user",
        /// The model, in an earlier turn.
        Assistant = "assistant",
    }
}

/// A complete answer; its text is never blank.
#[derive(Clone, PartialEq)]
pub struct Completion {
    /// The answer.
    pub text: String,
    /// The model's reasoning, if it was sent.
    pub reasoning: Option<String>,
    /// The model that answered.
    pub model: String,
    /// `stop`, or `length` if the token limit cut the text.
    pub finish_reason: String,
    /// The provider's usage count, if it was sent.
    pub usage: Option<TokenUsage>,
    /// The identifier to quote to the provider's support.
    pub request_id: Option<String>,
}

/// Tokens, as counted by the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the request.
    pub prompt_tokens: u64,
    /// Tokens of the response, its reasoning included.
    pub completion_tokens: u64,
    /// The sum of both.
    pub total_tokens: u64,
}

impl TokenUsage {
    /// Returns the tokens of request and response.
    pub fn sum(self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}
