//! Language models: one question with its context in, one text out, at once or piece by piece.
//!
//! One trait, one driver a protocol. A driver owns how the question is put and what the answer means; it refuses
//! to compose prompts, to screen content, to keep records and to know who asks beyond an opaque reference.
//!
//! The surprise: a failure after pieces were handed out gives no text back at all. What the caller has passed on
//! by then was a beginning, and nobody may take it for an answer.

pub mod builtin;
mod chat;
pub mod event_stream;
mod form;
mod surrogates;
pub mod models;
pub mod offline;
pub mod openai;
mod refusal;
mod retry;
mod streamed;

use std::time::Duration;

pub use chat::with_the_answer_only;

use super::Failure;
use crate::types::named;

/// Answers requests.
pub trait LanguageModel: Send + Sync {
    /// The driver's name in the configuration.
    fn name(&self) -> &'static str;

    /// The model that is asked for; the answer names the one that answered.
    fn model(&self) -> &str;

    /// Puts the request to the model and blocks until its answer is complete.
    ///
    /// `sink` receives what arrives: with `stream` set piece by piece, without it the whole answer as one piece. A
    /// piece without text and document only asks whether the caller is still there while the model thinks or the
    /// driver waits. Once `sink` answers [`Flow::Stop`] the call is dropped, which ends the vendor's billing at most
    /// vendors, and fails as `Cancelled`.
    fn converse(&self, request: &Request, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Result<Completion, Failure>;

    /// Asks the vendor something that costs nothing: whether it answers and takes our key.
    fn probe(&self) -> Result<(), Failure>;
}

/// Something that arrived of an answer.
#[derive(Clone, Copy)]
pub struct Piece<'answer> {
    /// The text that it adds; empty for a sign of life, for reasoning and for the end.
    pub text: &'answer str,
    /// What the model thought meanwhile, where its vendor tells. It stands in the document, too.
    pub reasoning: &'answer str,
    /// The vendor's own JSON (a chunk of a stream, or the whole answer) for callers who pass it on.
    pub document: Option<&'answer str>,
    /// The document is a whole answer and no chunk of one.
    pub is_whole: bool,
    /// The model that says it; empty where only the document tells.
    pub model: &'answer str,
    /// It came from the model that stands in for the first.
    pub is_of_second: bool,
    /// The vendor is asked once more: what it did for the try before, which was lost on its way, nobody knows.
    pub is_after_lost_try: bool,
}

impl Piece<'_> {
    /// Nothing but the question whether anybody is still there.
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

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// More, please.
    Continue,
    /// Nobody is listening any more.
    Stop,
}

/// What is asked. It has no `Debug`, because it holds what a user typed.
#[derive(Clone, Default)]
pub struct Request {
    /// The 32 lower-case hexadecimal digits of a W3C trace identifier, sent on as `traceparent`.
    pub trace_id: String,
    /// An opaque, stable reference to the user for the vendor's abuse control; empty for none.
    pub user_reference: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// Whether the text is wanted piece by piece.
    pub stream: bool,
    /// Whether the vendor's documents are passed on, and with them what the model thought.
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
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

named! {
    /// Who speaks in a conversation, as the protocols name them.
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
    /// What the model thought before, if it tells.
    pub reasoning: Option<String>,
    /// The model that answered.
    pub model: String,
    /// `stop`, or `length` when the limit of tokens cut the text.
    pub finish_reason: String,
    /// What the vendor counted, if it told.
    pub usage: Option<Usage>,
    /// The identifier to name to the vendor's support.
    pub request_id: Option<String>,
}

/// Tokens, as counted by the vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Of the request.
    pub prompt_tokens: u64,
    /// Of the answer, its reasoning included.
    pub completion_tokens: u64,
    /// Of both.
    pub total_tokens: u64,
}
