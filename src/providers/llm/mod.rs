//! Language models: one request with its context, one text as the response, at once or in pieces.
//!
//! One trait, with one driver per protocol. A driver owns the encoding of the request and the meaning of the response.
//! It does not compose prompts, screen content or keep records, and knows the user only by an opaque reference.
//!
//! A failure after some pieces returns no text: the pieces passed on so far are not a complete answer.

pub mod builtin;
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

pub use chat::with_the_answer_only;

use super::Failure;
use crate::types::named_enum;

/// Answers requests.
pub trait LanguageModel: Send + Sync {
    /// The driver's name in the configuration.
    fn name(&self) -> &'static str;

    /// The model that is asked for; the answer names the one that answered.
    fn model(&self) -> &str;

    /// Sends the request to the model and blocks until its response is complete.
    ///
    /// `sink` receives the response: in pieces if `stream` is set, otherwise as one piece. A piece without text and
    /// document only checks whether the caller still listens while the model thinks or the driver waits. When `sink`
    /// returns [`Flow::Stop`] the call is dropped and fails as `Cancelled`; most providers then stop billing.
    fn converse(&self, request: &Request, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Result<Completion, Failure>;

    /// Checks at no cost that the provider responds and accepts our key.
    fn probe(&self) -> Result<(), Failure>;
}

/// Something that arrived of an answer.
#[derive(Clone, Copy)]
pub struct Piece<'answer> {
    /// The text that it adds; empty for a sign of life, for reasoning and for the end.
    pub text: &'answer str,
    /// The model's reasoning, if its provider sends it. The document holds it too.
    pub reasoning: &'answer str,
    /// The provider's own JSON (a chunk of a stream, or the whole response) for callers that pass it on.
    pub document: Option<&'answer str>,
    /// The document is a whole answer and no chunk of one.
    pub is_whole: bool,
    /// The model that produced it; empty if only the document names it.
    pub model: &'answer str,
    /// True if the fallback model produced it.
    pub is_of_second: bool,
    /// True if the call is being retried and the outcome of the lost first attempt is unknown.
    pub is_after_lost_try: bool,
}

impl Piece<'_> {
    /// A piece that only checks whether the caller still listens.
    pub const SIGN_OF_LIFE: Piece<'static> = Piece {
        text: "",
        reasoning: "",
        document: None,
        is_whole: false,
        model: "",
        is_of_second: false,
        is_after_lost_try: false,
    };
}

/// The decision of a sink to continue or stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// More, please.
    Continue,
    /// The caller no longer listens.
    Stop,
}

/// A model request. It has no `Debug`, because it holds the user's text.
#[derive(Clone, Default)]
pub struct Request {
    /// The 32 lower-case hexadecimal digits of a W3C trace identifier, sent on as `traceparent`.
    pub trace_id: String,
    /// An opaque, stable reference to the user for the provider's abuse control; empty for none.
    pub user_reference: String,
    /// The conversation, oldest first.
    pub messages: Vec<ChatMessage>,
    /// True to receive the text in pieces.
    pub stream: bool,
    /// True to receive the provider's documents, and with them the model's reasoning.
    pub is_told_documents: bool,
    /// From 0 to 2; `None` leaves it to the model.
    pub temperature: Option<f64>,
    /// The most tokens that the answer may have; `None` leaves it to the model.
    pub max_tokens: Option<u32>,
    /// The time that is left for the call, where that is less than the driver's own limit.
    pub time_left: Option<Duration>,
    /// The cast hexagram for the driver that reads it without a model; other drivers ignore it.
    pub reading: Option<builtin::Reading>,
}

/// One turn of a conversation.
#[derive(Clone)]
pub struct ChatMessage {
    /// The speaker.
    pub role: Role,
    /// The text.
    pub content: String,
}

named_enum! {
    /// The speaker of a message, under the protocols' names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Role {
        /// The service itself, setting the rules.
        System = "system",
        /// The user.
        User = "user",
        /// The model, earlier.
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
    /// `stop`, or `length` when the limit of tokens cut the text.
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
    /// Of both.
    pub total_tokens: u64,
}

impl TokenUsage {
    /// Returns the tokens of request and response.
    pub fn sum(self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}
