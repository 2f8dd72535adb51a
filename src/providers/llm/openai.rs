//! The driver for all endpoints with `OpenAI`'s chat completions, streamed or not.
//!
//! Owns the request, the limits on time and size, and the single retry before the first byte of a response. It never
//! retries once any byte arrived, follows no redirects, and sends nothing about a user but an opaque reference.
//!
//! Without streaming most servers send nothing until the text is complete, so the only limit of such a call is its
//! total time.

use std::fmt;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::chat::{Assembly, Document, TOO_LARGE, strip_byte_order_mark};
use super::form::StartedResponse;
use super::retry::{self, RetryHints};
use super::streamed::StreamedResponse;
use super::{Completion, Flow, LanguageModel, ModelRequest, OPENAI, OutputChunk, Sampling, form, refusal};
use crate::providers::client::{BaseUrl, CANCELLATION_POLL, Client, HttpResponse, Limits, Post};
use crate::providers::nonce::random_hex;
use crate::providers::{Failure, FailureKind, clean_code};

/// Bytes of a stream that are read at once. Models write a few at a time, and every running stream has this buffer.
const BUFFER_BYTES: usize = 2 * 1024;

/// The endpoint, the model and the limits. `Debug` masks the key.
#[derive(Clone, Debug)]
pub struct OpenAiSettings {
    /// The URL before `/chat/completions`.
    pub base_url: String,
    /// The name of the setting of `base_url`.
    pub setting: &'static str,
    /// Sent as a bearer token. Local servers need none.
    pub api_key: Option<SecretString>,
    /// The model's name at the provider.
    pub model: String,
    /// Timeout for opening a connection.
    pub connect_timeout: Duration,
    /// Timeout for the head of a streamed response.
    pub first_byte_timeout: Duration,
    /// Timeout between two reads of a response; comments reset it. The transport has one timeout for all reads, so a
    /// value below `first_byte_timeout` has no effect.
    pub idle_timeout: Duration,
    /// Timeout of the whole call, including the retry.
    pub total_timeout: Duration,
    /// If the provider asks for a longer delay, the call is not retried.
    pub max_retry_delay: Duration,
    /// Maximum bytes of a whole response, of an event, and of text and reasoning together.
    pub max_response_bytes: usize,
}

/// The parameter names that differ between providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// `max_tokens` and `user`, which all other providers understand or ignore.
    Common,
    /// `OpenAI` itself: `max_completion_tokens` and `safety_identifier`.
    OpenAi,
    /// `DeepSeek`: `max_tokens` and `user_id`.
    DeepSeek,
}

/// Calls an OpenAI-compatible endpoint.
pub struct OpenAi {
    settings: OpenAiSettings,
    client: Client,
}

/// The reason why no response began, with the retry hints of its headers.
struct FailedAttempt {
    failure: Box<Failure>,
    hints: RetryHints,
}

impl Dialect {
    /// Returns the dialect of a host.
    fn of_host(host: &str) -> Self {
        let is_at = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        if is_at("openai.com") {
            Self::OpenAi
        } else if is_at("deepseek.com") {
            Self::DeepSeek
        } else {
            Self::Common
        }
    }

    const fn max_tokens(self) -> &'static str {
        match self {
            Self::OpenAi => "max_completion_tokens",
            Self::Common | Self::DeepSeek => "max_tokens",
        }
    }

    const fn user_reference(self) -> &'static str {
        match self {
            Self::Common => "user",
            Self::OpenAi => "safety_identifier",
            Self::DeepSeek => "user_id",
        }
    }
}

impl OpenAi {
    /// Creates a driver for one endpoint. With an invalid base URL every request fails as `Misconfigured`.
    pub fn new(settings: OpenAiSettings) -> Self {
        let limits = Limits {
            connect: settings.connect_timeout,
            first_byte: settings.first_byte_timeout,
            idle: settings.idle_timeout,
            total: settings.total_timeout,
            reuse_connections: true,
        };
        Self { client: Client::new(OPENAI, settings.setting, limits), settings }
    }

    /// Sends the request, retries it once if that is allowed and may help, and waits for the head of a response.
    fn open(
        &self,
        request: &ModelRequest,
        started: Instant,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> Result<HttpResponse, Failure> {
        let endpoint = BaseUrl::parse(OPENAI, &self.settings.base_url)?;
        let body = self.body(request, &endpoint);
        let first = match self.send(request, &endpoint, &body, started) {
            Ok(answer) => return Ok(answer),
            Err(first) => first,
        };
        let Some(pause) = self.pause_before_retry(&first, request, started)? else {
            return Err(*first.failure);
        };
        wait(pause, sink)?;
        if !first.failure.is_certainly_not_accepted() {
            // The sink was asked just before, so its decision is ignored.
            sink(OutputChunk { has_lost_attempt: true, ..OutputChunk::KEEP_ALIVE });
        }
        self.send(request, &endpoint, &body, started).map_err(|second| *second.failure)
    }

    fn pause_before_retry(
        &self,
        first: &FailedAttempt,
        request: &ModelRequest,
        started: Instant,
    ) -> Result<Option<Duration>, Failure> {
        if !first.hints.allows_retry(&first.failure) {
            return Ok(None);
        }
        let pause = retry::pause(OPENAI, first.hints.retry_after)?;
        let fits = pause <= self.settings.max_retry_delay && pause < self.left(request, started);
        Ok(fits.then_some(pause))
    }

    fn left(&self, request: &ModelRequest, started: Instant) -> Duration {
        let total = self.settings.total_timeout;
        request.time_left.map_or(total, |left| left.min(total)).saturating_sub(started.elapsed())
    }

    fn send(
        &self,
        request: &ModelRequest,
        endpoint: &BaseUrl,
        body: &[u8],
        started: Instant,
    ) -> Result<HttpResponse, FailedAttempt> {
        let answer = self.post(request, endpoint, body, started).map_err(FailedAttempt::without_hints)?;
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        let hints = RetryHints::read(|name| answer.header(name));
        let request_id = request_id(&answer).map(str::to_owned);
        let failure = refusal::of_status(answer.status, &answer.read_error(), request_id.as_deref());
        Err(FailedAttempt { failure: Box::new(failure.with_retry_after(hints.retry_after)), hints })
    }

    fn post(
        &self,
        request: &ModelRequest,
        endpoint: &BaseUrl,
        body: &[u8],
        started: Instant,
    ) -> Result<HttpResponse, Failure> {
        let url = format!("{}/chat/completions", endpoint.base());
        let traceparent = format!("00-{}-{}-01", request.trace_id, random_hex::<8>(OPENAI)?);
        let authorization = self.settings.api_key.as_ref().map(|key| format!("Bearer {}", key.expose_secret()));
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", if request.stream { "text/event-stream" } else { "application/json" }),
            ("traceparent", &traceparent),
        ];
        headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
        let total = Some(self.left(request, started));
        self.client.post(&Post { url: &url, headers: &headers, body, total, is_unstreamed: !request.stream })
    }

    fn body(&self, request: &ModelRequest, endpoint: &BaseUrl) -> Vec<u8> {
        let dialect = Dialect::of_host(endpoint.host());
        let messages: Vec<Value> = request
            .messages
            .iter()
            .map(|message| json!({ "role": message.role.name(), "content": message.content }))
            .collect();
        let mut body = Map::new();
        let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
        set("model", self.settings.model.as_str().into());
        set("messages", messages.into());
        set("stream", request.stream.into());
        if request.stream {
            set("stream_options", json!({ "include_usage": true }));
        }
        let Sampling { temperature, top_p, presence_penalty, frequency_penalty } = request.sampling;
        for (name, value) in [
            ("temperature", temperature),
            ("top_p", top_p),
            ("presence_penalty", presence_penalty),
            ("frequency_penalty", frequency_penalty),
        ] {
            if let Some(value) = value {
                set(name, value.into());
            }
        }
        if let Some(max_tokens) = request.max_tokens {
            set(dialect.max_tokens(), max_tokens.into());
        }
        if !request.user_reference.is_empty() {
            set(dialect.user_reference(), request.user_reference.as_str().into());
        }
        Value::Object(body).to_string().into_bytes()
    }

    fn read_whole(
        &self,
        begun: StartedResponse,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> Result<Completion, Failure> {
        let body = begun.rest.read_all(begun.first, self.settings.max_response_bytes).map_err(|failure| {
            let kind = if failure.code == TOO_LARGE { FailureKind::Unusable } else { failure.kind };
            Failure { kind, ..failure }
        })?;
        let mut assembly = Assembly::new(self.settings.max_response_bytes);
        let taken = assembly.add_whole(Document::parse(&body)?);
        taken.map_err(|failure| failure.with_usage(assembly.usage()))?;
        let completion = assembly.complete(&self.settings.model)?;
        let document = std::str::from_utf8(&body).ok().map(|text| strip_byte_order_mark(text).trim());
        let reasoning = completion.reasoning.as_deref().unwrap_or_default();
        let (text, model) = (completion.text.as_str(), completion.model.as_str());
        match sink(OutputChunk { text, reasoning, document, is_whole: true, model, ..OutputChunk::KEEP_ALIVE }) {
            Flow::Continue => Ok(completion),
            Flow::Stop => Err(Failure::new(FailureKind::Cancelled, OPENAI, "cancelled")),
        }
    }

    fn read_stream(
        &self,
        begun: StartedResponse,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> Result<Completion, Failure> {
        let mut streamed = StreamedResponse::new(self.settings.max_response_bytes);
        match read_into(&mut streamed, begun, sink) {
            Ok(()) => streamed.finish(&self.settings.model, sink),
            Err(failure) => Err(failure.with_usage(streamed.usage())),
        }
    }
}

/// Waits, and checks at intervals if the caller still listens.
fn wait(pause: Duration, sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        std::thread::sleep(pause.saturating_sub(begun.elapsed()).min(CANCELLATION_POLL));
        if sink(OutputChunk::KEEP_ALIVE) == Flow::Stop {
            return Err(Failure::new(FailureKind::Cancelled, OPENAI, "cancelled"));
        }
        if begun.elapsed() >= pause {
            return Ok(());
        }
    }
}

fn read_into(
    streamed: &mut StreamedResponse,
    begun: StartedResponse,
    sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
) -> Result<(), Failure> {
    streamed.take(&begun.first, sink)?;
    let mut chunks = begun.rest;
    let mut buffer = [0_u8; BUFFER_BYTES];
    while !streamed.is_done() {
        match chunks.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => streamed.take(&buffer[..count], sink)?,
            Err(_) if streamed.has_whole_text() => break,
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

impl LanguageModel for OpenAi {
    fn name(&self) -> &'static str {
        OPENAI
    }

    fn model(&self) -> &str {
        &self.settings.model
    }

    fn converse(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> Result<Completion, Failure> {
        let started = Instant::now();
        let answer = self.open(request, started, sink)?;
        let request_id = request_id(&answer).and_then(clean_code);
        let begun = form::detect(answer, request, self.settings.max_response_bytes, sink);
        let result = begun.and_then(|begun| {
            let read = if begun.is_stream { Self::read_stream } else { Self::read_whole };
            read(self, begun, sink)
        });
        match result {
            Ok(completion) => {
                let request_id = request_id.or(completion.request_id);
                Ok(Completion { request_id, ..completion })
            }
            Err(failure) => Err(failure.or_request_id(request_id.as_deref())),
        }
    }

    fn probe(&self) -> Result<(), Failure> {
        let endpoint = BaseUrl::parse(OPENAI, &self.settings.base_url)?;
        let authorization = self.settings.api_key.as_ref().map(|key| format!("Bearer {}", key.expose_secret()));
        let headers: Vec<_> = authorization.as_deref().map(|value| ("authorization", value)).into_iter().collect();
        let url = format!("{}/models", endpoint.base());
        let answer = self.client.send("GET", &url, &headers, b"")?;
        match answer.status {
            // A server without a list of models still works.
            200..=299 | 404 | 405 => Ok(()),
            status => Err(refusal::of_status(status, &answer.read_error(), None)),
        }
    }
}

impl FailedAttempt {
    fn without_hints(failure: Failure) -> Self {
        Self { failure: Box::new(failure), hints: RetryHints::default() }
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OpenAi").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn request_id(answer: &HttpResponse) -> Option<&str> {
    answer.header("x-request-id").or_else(|| answer.header("x-deepseek-request-id"))
}

#[cfg(test)]
mod tests {
    use super::super::{MessageRole, ModelMessage};
    use super::*;

    fn request(stream: bool) -> ModelRequest {
        ModelRequest {
            trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(),
            user_reference: "u-1".into(),
            messages: vec![ModelMessage { role: MessageRole::User, content: "问".into() }],
            stream,
            sampling: Sampling { temperature: Some(0.5), top_p: Some(0.9), ..Sampling::default() },
            max_tokens: Some(800),
            ..ModelRequest::default()
        }
    }

    fn body(settings: OpenAiSettings, request: &ModelRequest) -> Value {
        let endpoint = BaseUrl::parse(OPENAI, &settings.base_url).unwrap();
        serde_json::from_slice(&OpenAi::new(settings).body(request, &endpoint)).unwrap()
    }

    fn settings(base_url: &str) -> OpenAiSettings {
        OpenAiSettings {
            base_url: base_url.into(),
            setting: "llm.base_url",
            api_key: None,
            model: "m".into(),
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_mins(2),
            max_retry_delay: Duration::from_secs(10),
            max_response_bytes: 1 << 20,
        }
    }

    #[test]
    fn builds_a_standard_request() {
        let expected = json!({
            "model": "m",
            "messages": [{ "role": "user", "content": "问" }],
            "stream": true,
            "stream_options": { "include_usage": true },
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 800,
            "user": "u-1",
        });
        assert_eq!(body(settings("http://localhost:11434/v1"), &request(true)), expected);
    }

    #[test]
    fn omits_unset_parameters() {
        let bare = ModelRequest {
            user_reference: String::new(),
            sampling: Sampling::default(),
            max_tokens: None,
            messages: Vec::new(),
            ..request(false)
        };
        let expected = json!({ "model": "m", "messages": [], "stream": false });
        assert_eq!(body(settings("http://localhost/v1"), &bare), expected);
    }

    #[test]
    fn recognises_providers_by_host() {
        let openai = body(settings("https://api.openai.com/v1"), &request(false));
        assert_eq!((&openai["max_completion_tokens"], &openai["safety_identifier"]), (&json!(800), &json!("u-1")));
        let deepseek = body(settings("https://api.deepseek.com"), &request(false));
        assert_eq!((&deepseek["max_tokens"], &deepseek["user_id"]), (&json!(800), &json!("u-1")));
        assert_eq!(Dialect::of_host("notopenai.com"), Dialect::Common);
    }

    #[test]
    fn debug_output_hides_the_key() {
        let settings = OpenAiSettings { api_key: Some("sk-secret".into()), ..settings("https://api.openai.com/v1") };
        assert!(!format!("{:?}", OpenAi::new(settings)).contains("sk-secret"));
    }
}
