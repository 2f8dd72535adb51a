//! `/llm`: conversations with the language model, in the format of OpenAI's chat completions.

mod messages;

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    http::{Response, header},
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use messages::{Bounded, MaxTokens, Messages};

use crate::{
    app::App,
    domain::divination::{
        chat::{self, ChatAnswer, Conversation, PreparedChat},
        help::HelpOccasion,
        model_calls::CallPermit,
    },
    error::{Error, Result},
    http::{
        claims::Claims,
        content_negotiation::language_tag,
        interpretation_response::acquire_permit,
        openapi::schemas::reference_to,
        params::{Fields, Flag, Parameters, parameters},
        reply::{JSON, Json, Problem, Reply, ReplyDescription, retry_after_seconds},
        request_context::RequestContext,
        request_meta::RequestMeta,
        sse::{
            FinalEvent, SseResponse, SseSender, StartSignal, event_stream, shutting_down, stream_from_blocking_thread,
        },
    },
    providers::{
        client::with_cancellation,
        llm::{Flow, OutputChunk, Sampling, TokenUsage},
    },
    types::{PhoneNumber, UserId},
};

/// Parameters that clients must not send. `model`, `n` and `user`, which every library sends, are ignored instead.
const REJECTED_PARAMETERS: [&str; 9] =
    ["tools", "tool_choice", "functions", "function_call", "response_format", "base_url", "api_base", "api_key", "url"];

parameters! {
    ChatParams(fields) {
        messages: Messages = fields.required("messages", "The conversation, oldest first: turns of `user` and `assistant`, the last one the user's.");
        stream: Option<Flag> = fields.optional("stream", "True for an event stream. Default: as `Accept` asks.");
        temperature: Option<Bounded<0, 2>> = fields.optional("temperature", "From 0 to 2.");
        top_p: Option<Bounded<0, 1>> = fields.optional("top_p", "From 0 to 1. Like both penalties, for models that take it.");
        presence_penalty: Option<Bounded<-2, 2>> = fields.optional("presence_penalty", "From -2 to 2.");
        frequency_penalty: Option<Bounded<-2, 2>> = fields.optional("frequency_penalty", "From -2 to 2.");
        max_tokens: Option<MaxTokens> = fields.optional("max_tokens", "Maximum tokens of the response. The server has its own limit.");
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        phone_number: Option<PhoneNumber> = fields.optional("phoneNumber", "The caller's own number.");
    }
}

/// A chat completion request with the parameters allowed to clients.
pub struct AllowedChatParams(ChatParams);

impl Parameters for AllowedChatParams {
    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        for name in REJECTED_PARAMETERS {
            fields.reject(name);
        }
        ChatParams::read(fields).map(Self)
    }
}

/// A chat completion as the provider sent it; it may have more members.
#[derive(Serialize, ToSchema)]
pub struct ChatCompletion {
    #[schema(example = "chatcmpl-4bf92f3577b34da6a3ce929d0e0e4736")]
    id: String,
    #[schema(example = "chat.completion")]
    object: &'static str,
    /// Seconds since 1970.
    #[schema(example = 1_767_225_600)]
    created: i64,
    #[schema(example = "deepseek-chat")]
    model: String,
    choices: Vec<ChatChoice>,
    /// Omitted if the provider did not report usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    usage: Option<ChatUsage>,
}

/// Tokens as reported by the provider.
#[derive(Serialize, ToSchema)]
pub struct ChatUsage {
    #[serde(rename = "prompt_tokens")]
    #[schema(example = 180)]
    prompt: u64,
    /// Including reasoning tokens.
    #[serde(rename = "completion_tokens")]
    #[schema(example = 420)]
    completion: u64,
    #[serde(rename = "total_tokens")]
    #[schema(example = 600)]
    total: u64,
}

impl From<TokenUsage> for ChatUsage {
    fn from(usage: TokenUsage) -> Self {
        let TokenUsage { prompt_tokens, completion_tokens, total_tokens } = usage;
        Self { prompt: prompt_tokens, completion: completion_tokens, total: total_tokens }
    }
}

/// The only choice of a chat completion.
#[derive(Serialize, ToSchema)]
pub struct ChatChoice {
    #[schema(example = 0)]
    index: u32,
    message: ChatMessage,
    /// `stop`, or `length` if the token limit cut the text.
    #[schema(example = "stop")]
    finish_reason: String,
}

/// The model's message.
#[derive(Serialize, ToSchema)]
pub struct ChatMessage {
    #[schema(example = "assistant")]
    role: &'static str,
    #[schema(example = "屯卦讲的是万事起头难。")]
    content: String,
}

/// A response passed on as the provider sent it: a JSON document, or events.
pub enum Relayed {
    Json(Bytes),
    Stream(SseResponse),
}

impl Reply for Relayed {
    fn into_response(self) -> Result<Response<Body>, Error> {
        match self {
            Self::Json(document) => {
                let mut response = Response::new(Body::from(document));
                response.headers_mut().insert(header::CONTENT_TYPE, JSON);
                Ok(response)
            }
            Self::Stream(listening) => Ok(listening.into_response()),
        }
    }

    fn describe() -> ReplyDescription {
        let mut document = Json::<ChatCompletion>::describe();
        let events = "chunks of a chat completion without a name, then `[DONE]`; an object with `error` if the call \
                      fails midway";
        let data = Map::from_iter([("message".to_owned(), reference_to(CHUNK))]);
        document.contents.push(("text/event-stream", event_stream(events, &data)));
        document.schemas.push((CHUNK.to_owned(), chunk_schema()));
        document
    }
}

/// The schema of a chunk.
const CHUNK: &str = "ChatCompletionChunk";

/// Returns the schema of the chunks that most providers send. Their own members are passed on.
fn chunk_schema() -> Value {
    let text = |example: &str| json!({ "type": "string", "example": example });
    let delta = json!({
        "type": "object",
        "description": "The next piece of the reply.",
        "properties": { "role": text("assistant"), "content": text("万事起头难"), "reasoning_content": text("屯卦在问什么？") },
    });
    json!({
        "type": "object",
        "description": "A chunk of a chat completion, as OpenAI's API sends it.",
        "required": ["id", "object", "created", "model", "choices"],
        "properties": {
            "id": text("chatcmpl-4bf92f3577b34da6a3ce929d0e0e4736"),
            "object": text("chat.completion.chunk"),
            "created": { "type": "integer", "format": "int64", "example": 1_767_225_600 },
            "model": text("builtin-1"),
            "choices": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["index", "delta"],
                    "properties": {
                        "index": { "type": "integer", "format": "int32", "example": 0 },
                        "delta": delta,
                        "finish_reason": { "type": ["string", "null"], "example": "stop" },
                    },
                },
            },
        },
    })
}

pub async fn chat(context: RequestContext, AllowedChatParams(asked): AllowedChatParams) -> Result<Relayed> {
    let user = context.acting_for(&Claims { user_id: asked.user_id, phone_number: asked.phone_number, id: None })?;
    let stream = asked.stream.map_or_else(|| context.wants_stream(), |Flag(stream)| stream);
    let (locale, tag) = (context.locale(), language_tag(&context.headers));
    let risk = chat::risk_of(&asked.messages.0);
    let permit = acquire_permit(&context.app, user, risk.as_ref().map(|found| found.risk), HelpOccasion::Chat).await?;
    let meta = Arc::clone(&context.meta);
    let prepare = move |app: &App| {
        let conversation = Conversation {
            messages: asked.messages.0,
            stream,
            sampling: Sampling {
                temperature: asked.temperature.map(|Bounded(value)| value),
                top_p: asked.top_p.map(|Bounded(value)| value),
                presence_penalty: asked.presence_penalty.map(|Bounded(value)| value),
                frequency_penalty: asked.frequency_penalty.map(|Bounded(value)| value),
            },
            max_tokens: asked.max_tokens.map(|MaxTokens(tokens)| tokens),
            locale,
            tag,
        };
        let prepared = chat::prepare(&app.model_calls, user, conversation, risk)?;
        prepared.budget_use.into_iter().for_each(|budget_use| meta.show_budget(budget_use));
        Ok(prepared)
    };
    if stream { relay(&context, prepare, permit).await } else { answer(&context, prepare, permit).await }
}

async fn answer(
    context: &RequestContext,
    prepare: impl FnOnce(&App) -> Result<PreparedChat> + Send + 'static,
    permit: Option<CallPermit>,
) -> Result<Relayed> {
    let document = context.blocking(move |app| {
        let _permit = permit;
        let prepared = prepare(app)?;
        let mut document = None;
        let answered = chat::run(&app.model_calls, &prepared, &mut |output| {
            if let Some(whole) = output.document.filter(|_| output.is_whole && !prepared.is_of_service) {
                document = Some(Bytes::from(whole.to_owned()));
            }
            Flow::Continue
        })?;
        Ok(document.unwrap_or_else(|| build_completion(&prepared.trace_id, answered)))
    });
    Ok(Relayed::Json(document.await?))
}

/// Builds a completion, for models that send no document or only those of a stream.
fn build_completion(trace_id: &str, answered: ChatAnswer) -> Bytes {
    let message = ChatMessage { role: "assistant", content: answered.text };
    let completion = ChatCompletion {
        id: format!("chatcmpl-{trace_id}"),
        object: "chat.completion",
        created: answered.finished_at.0 / 1000,
        model: answered.model,
        choices: vec![ChatChoice { index: 0, message, finish_reason: answered.finish_reason }],
        usage: answered.usage.map(Into::into),
    };
    serde_json::to_vec(&completion).unwrap_or_default().into()
}

/// Streams the response. Failures before its first event become problem documents.
async fn relay(
    context: &RequestContext,
    prepare: impl FnOnce(&App) -> Result<PreparedChat> + Send + 'static,
    permit: Option<CallPermit>,
) -> Result<Relayed> {
    let last_event = FinalEvent::unnamed(&error_document(&shutting_down(), &context.meta));
    let response =
        stream_from_blocking_thread(context, permit, last_event, prepare, |app, meta, events, prepared, begun| {
            send_chunks(app, meta, events, &prepared, begun);
        });
    Ok(Relayed::Stream(response.await?))
}

fn send_chunks(app: &App, meta: &RequestMeta, events: &SseSender, prepared: &PreparedChat, begun: StartSignal) {
    let mut begun = Some(begun);
    let mut chunks =
        ChunkWriter { trace_id: &prepared.trace_id, created: app.core.clock.now().0 / 1000, has_own_chunks: false };
    let mut sink = |output: OutputChunk<'_>| {
        let is_keep_alive = output.text.is_empty() && output.document.is_none();
        let is_sent = match &begun {
            _ if !events.is_open() => false,
            Some(begun) if is_keep_alive => !begun.is_closed(),
            None if is_keep_alive => events.send_keep_alive(),
            _ => {
                // The receiver is gone if the request was cancelled.
                let was_wanted = begun.take().is_none_or(|begun| begun.send(Ok(())).is_ok());
                was_wanted && events.send_data(&chunks.of(app, output))
            }
        };
        if is_sent { Flow::Continue } else { Flow::Stop }
    };
    let outcome = with_cancellation(events.cancellation_check(), || chat::run(&app.model_calls, prepared, &mut sink));
    match (events.unless_revoked(outcome), begun) {
        (Ok(answered), _) => {
            if chunks.has_own_chunks {
                events.send_data(&chunks.last(&answered).to_string());
            }
            events.send_data("[DONE]");
        }
        (Err(error), Some(begun)) => drop(begun.send(Err(error))),
        (Err(error), None) => {
            events.send_data(&error_document(&error, meta).to_string());
        }
    }
}

/// Returns an error in the format of the protocol.
fn error_document(error: &Error, meta: &RequestMeta) -> Value {
    let problem = Problem::of(error, meta);
    json!({ "error": {
        "message": problem.detail,
        "userMessage": problem.message,
        "status": problem.status,
        "type": problem.code,
        "code": problem.code,
        "param": null,
        "traceId": problem.trace_id,
        "retryAfter": retry_after_seconds(error),
        "requestId": problem.request_id,
    } })
}

/// The chunks of a stream: the provider's own if it sends any, else built here.
struct ChunkWriter<'call> {
    trace_id: &'call str,
    created: i64,
    has_own_chunks: bool,
}

impl ChunkWriter<'_> {
    fn of(&mut self, app: &App, output: OutputChunk<'_>) -> String {
        match output.document {
            Some(document) if !output.is_whole => {
                // The provider's last chunk ends the stream, also after words of the service.
                self.has_own_chunks = false;
                document.to_owned()
            }
            _ => {
                self.has_own_chunks = true;
                let model = if output.model.is_empty() { app.model_calls.models.model() } else { output.model };
                let mut delta = json!({ "role": "assistant", "content": output.text });
                if !output.reasoning.is_empty() {
                    delta["reasoning_content"] = json!(output.reasoning);
                }
                self.own(model, &delta, &Value::Null).to_string()
            }
        }
    }

    fn last(&self, answered: &ChatAnswer) -> Value {
        let mut chunk = self.own(&answered.model, &json!({}), &json!(answered.finish_reason));
        if let Some(usage) = answered.usage {
            chunk["usage"] = json!(ChatUsage::from(usage));
        }
        chunk
    }

    fn own(&self, model: &str, delta: &Value, finish_reason: &Value) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.trace_id),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": model,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }],
        })
    }
}
