//! The one place that builds HTTP clients: limits on time and size, no redirects, no proxy from the environment, and
//! the translation of transport errors into [`Failure`].
//!
//! It follows no redirects, because a provider that redirects a signed request is not the one that was configured.
//! Plain `http://` is allowed: a model server on the same host may speak nothing else.
//!
//! The same I/O error means "certainly not accepted" before the request was written and "outcome unknown" after it. So
//! `connecting` marks errors that occur before.

mod connecting;
mod endpoint;
mod trust;
mod cancellation;

use std::io::{self, Read};
use std::time::Duration;

use ureq::config::Config;
use ureq::http::{HeaderMap, Request, Response};
use ureq::{Agent, Body, Error, Timeout};

pub use self::cancellation::{CANCELLATION_POLL, CancellationCheck, uncancellable, with_cancellation};
use self::cancellation::{Cancelled, inherit_cancellation};
use self::connecting::{MarkingConnector, MarkingResolver, NotConnected};
pub use self::endpoint::BaseUrl;
pub use self::trust::Trust;
use super::{Failure, FailureKind};

/// The failure code of the only timeout after which the provider certainly has not acted.
pub const CONNECT_TIMEOUT: &str = "connect_timeout";

const USER_AGENT: &str = concat!("yarrow/", env!("CARGO_PKG_VERSION"));
const MAX_RESPONSE_HEAD: usize = 8 * 1024;
/// Bytes of a response that a connection buffers. It must exceed the longest head: a full buffer without a complete
/// head looks like a lost connection, whose outcome is unknown. Every running stream has one.
const INPUT_BUFFER: usize = MAX_RESPONSE_HEAD + 2 * 1024;
/// Bytes of a request that a connection buffers. The head must fit; bodies are written in parts.
const OUTPUT_BUFFER: usize = 6 * 1024;
/// Error responses have a few hundred bytes; anything beyond this is not read.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// The time limits of a call, and whether its connection is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Name resolution, and separately connecting including TLS.
    pub connect: Duration,
    /// From the sent request to the complete head of the response.
    pub first_byte: Duration,
    /// Between two reads of the body. The transport has one timeout for all reads, so it is never below `first_byte`.
    pub idle: Duration,
    /// The whole call.
    pub total: Duration,
    /// True to reuse connections. A reused connection may turn out dead only after the request was written, which
    /// leaves the outcome unknown; calls that must not be repeated use a fresh one.
    pub reuse_connections: bool,
}

impl Limits {
    /// Returns the limits of calls whose response comes as a whole: one for the call, and one for connecting.
    pub fn for_whole_calls(connect: Duration, total: Duration, reuse_connections: bool) -> Self {
        Self { connect: connect.min(total), first_byte: total, idle: total, total, reuse_connections }
    }
}

/// A POST request.
pub struct Post<'a> {
    /// The complete URL.
    pub url: &'a str,
    /// Names in lower case.
    pub headers: &'a [(&'a str, &'a str)],
    /// May be empty.
    pub body: &'a [u8],
    /// A shorter total timeout, for the second attempt of a call with one time budget.
    pub total: Option<Duration>,
    /// True if the provider sends nothing before its response is complete. Then only the total timeout applies.
    pub is_unstreamed: bool,
}

/// An HTTP client for one provider.
pub struct Client {
    provider: &'static str,
    /// The setting that names the address, for messages.
    setting: &'static str,
    agent: Agent,
    limits: Limits,
}

/// The head of a response, and its body still to be read.
pub struct HttpResponse {
    /// The HTTP status.
    pub status: u16,
    provider: &'static str,
    headers: HeaderMap,
    body: Body,
}

/// The body of a response, read incrementally.
pub struct BodyReader {
    provider: &'static str,
    reader: ureq::BodyReader<'static>,
}

/// Sends a GET to an address of this machine and returns the status, within a few seconds. The certificate is not
/// verified, because it names the service and not the machine.
pub fn status_of(url: &str) -> Result<u16, Failure> {
    let wait = Duration::from_secs(5);
    let limits = Limits { connect: wait, first_byte: wait, idle: wait, total: wait, reuse_connections: false };
    let client = Client::trusting("service", "server.listen", limits, Trust::Anybody);
    let response = client.agent.get(url).call().map_err(|error| client.failure_before_body(url, &error))?;
    Ok(response.status().as_u16())
}

impl Client {
    /// Creates a client for `provider`, whose address is in `setting`, with these timeouts.
    pub fn new(provider: &'static str, setting: &'static str, limits: Limits) -> Self {
        Self::trusting(provider, setting, limits, Trust::Web)
    }

    /// Creates a client with an explicit set of trusted authorities.
    pub fn trusting(provider: &'static str, setting: &'static str, limits: Limits, trust: Trust) -> Self {
        let config = Config::builder()
            .tls_config(trust.config())
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(USER_AGENT)
            // Compression would delay the chunks of a stream and could expand a small response into a huge one.
            .accept_encoding("identity")
            .max_response_header_size(MAX_RESPONSE_HEAD)
            // The library's defaults are many times larger.
            .input_buffer_size(INPUT_BUFFER)
            .output_buffer_size(OUTPUT_BUFFER)
            .max_idle_connections(if limits.reuse_connections { 8 } else { 0 })
            .max_idle_connections_per_host(if limits.reuse_connections { 8 } else { 0 })
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_recv_response(Some(limits.first_byte))
            .timeout_per_read(Some(limits.idle.max(limits.first_byte)))
            .timeout_per_write(Some(limits.first_byte))
            .timeout_global(Some(limits.total))
            .build();
        let agent = Agent::with_parts(config, MarkingConnector::default(), MarkingResolver::default());
        Self { provider, setting, agent, limits }
    }

    /// Sends the request and returns the head of the response, whatever its status.
    pub fn post(&self, post: &Post<'_>) -> Result<HttpResponse, Failure> {
        let total = post.total.map_or(self.limits.total, |total| total.min(self.limits.total));
        let mut config = self.agent.post(post.url).config().timeout_global(Some(total));
        if post.is_unstreamed {
            config = config.timeout_recv_response(Some(total)).timeout_per_read(Some(total));
        }
        let mut builder = config.build();
        for (name, value) in post.headers {
            builder = builder.header(*name, *value);
        }
        let work = || if post.body.is_empty() { builder.send_empty() } else { builder.send(post.body) };
        let sent = if post.is_unstreamed { work() } else { run_on_own_thread(work) };
        self.answer(post.url, sent)
    }

    /// Sends a request with another method and returns the head of the response, whatever its status. Only GET and
    /// DELETE have no body.
    pub fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<HttpResponse, Failure> {
        self.send_within(self.limits.total, method, url, headers, body)
    }

    /// Like [`Self::send`], with a timeout for the whole call, including the response body.
    pub fn send_within(
        &self,
        total: Duration,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<HttpResponse, Failure> {
        let total = Some(total.min(self.limits.total));
        let sent = if ["GET", "DELETE"].contains(&method) {
            let request = self.agent.configure_request(self.request(method, url, headers, ())?);
            self.agent.run(request.timeout_global(total).build())
        } else {
            let request = self.agent.configure_request(self.request(method, url, headers, body)?);
            self.agent.run(request.timeout_global(total).build())
        };
        self.answer(url, sent)
    }

    /// Sends a large body. Much of it may still be in flight when all is written, so only the total limit applies to
    /// the response. A stalled write fails as in any request.
    pub fn upload(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<HttpResponse, Failure> {
        let total = Some(self.limits.total);
        let request = self.agent.configure_request(self.request(method, url, headers, body)?);
        let request = request.timeout_recv_response(total).timeout_per_read(total).build();
        self.answer(url, self.agent.run(request))
    }

    /// Sends a request unchanged and returns the whole response, whatever its status.
    pub fn exchange(&self, request: Request<Vec<u8>>, limit: usize) -> Result<Response<Vec<u8>>, Failure> {
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string();
        let sent = if body.is_empty() {
            self.agent.run(Request::from_parts(parts, ()))
        } else {
            self.agent.run(Request::from_parts(parts, body))
        };
        let (parts, body) = sent.map_err(|error| self.failure_before_body(&url, &error))?.into_parts();
        // The caller gets the complete head; [`HttpResponse`] holds only a part of it.
        let headers = parts.headers.clone();
        let answer = HttpResponse { status: parts.status.as_u16(), provider: self.provider, headers, body };
        Ok(Response::from_parts(parts, answer.read_all(limit)?))
    }

    fn request<B>(&self, method: &str, url: &str, headers: &[(&str, &str)], body: B) -> Result<Request<B>, Failure> {
        let builder = Request::builder().method(method).uri(url);
        let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
        let unsendable = |_| Failure::new(FailureKind::Misconfigured, self.provider, "request_not_sendable");
        builder.body(body).map_err(unsendable)
    }

    fn answer(&self, url: &str, sent: Result<Response<Body>, Error>) -> Result<HttpResponse, Failure> {
        let (parts, body) = sent.map_err(|error| self.failure_before_body(url, &error))?.into_parts();
        Ok(HttpResponse { status: parts.status.as_u16(), provider: self.provider, headers: parts.headers, body })
    }

    /// Maps a failure before the body. Until then every timeout is one for the first byte.
    fn failure_before_body(&self, url: &str, error: &Error) -> Failure {
        let failure = match error {
            Error::Timeout(Timeout::PerRead) => {
                Failure::new(FailureKind::TimedOut, self.provider, "first_byte_timeout")
            }
            other => failure_of(self.provider, other),
        };
        failure.at(self.setting, url)
    }
}

/// Runs the work on a thread of its own. Opening a connection uses a deep stack, and a thread never returns stack
/// memory, which adds up over many long streams.
fn run_on_own_thread<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let work = inherit_cancellation(work);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("connect".into()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl HttpResponse {
    /// Returns a header's value if it is present and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the whole body, or fails with code `answer_too_large` if it exceeds `limit` bytes.
    pub fn read_all(self, limit: usize) -> Result<Vec<u8>, Failure> {
        self.into_reader().read_all(Vec::new(), limit)
    }

    /// Returns the start of an error body, as far as it arrives.
    pub fn read_error(self) -> Vec<u8> {
        let mut body = Vec::new();
        // A truncated error body is good enough.
        drop(self.into_reader().read_up_to(&mut body, MAX_ERROR_BODY));
        body
    }

    /// Returns the body for incremental reading.
    pub fn into_reader(self) -> BodyReader {
        BodyReader { provider: self.provider, reader: self.body.into_reader() }
    }
}

impl BodyReader {
    /// Waits for the next bytes and returns their number; 0 is the end of the body.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failure_of(self.provider, &Error::from(error))),
                Ok(count) => return Ok(count),
            }
        }
    }

    /// Returns the whole body, with `body` already read, or fails with code `answer_too_large` if it exceeds `limit`
    /// bytes.
    pub fn read_all(mut self, mut body: Vec<u8>, limit: usize) -> Result<Vec<u8>, Failure> {
        let is_complete = self.read_up_to(&mut body, limit)?;
        if is_complete {
            Ok(body)
        } else {
            Err(Failure::new(FailureKind::InvalidResponse, self.provider, "answer_too_large"))
        }
    }

    /// Appends to the body. Returns false if it exceeds `limit` bytes.
    fn read_up_to(&mut self, body: &mut Vec<u8>, limit: usize) -> Result<bool, Failure> {
        let mut buffer = [0_u8; 8 * 1024];
        loop {
            let count = self.read(&mut buffer)?;
            if count == 0 {
                return Ok(true);
            }
            let room = limit.saturating_sub(body.len());
            body.extend_from_slice(&buffer[..count.min(room)]);
            if count > room {
                return Ok(false);
            }
        }
    }
}

/// Maps a transport error to a failure. The error's text may hold the address with its query, so it is dropped.
fn failure_of(provider: &'static str, error: &Error) -> Failure {
    let (kind, code) = match error {
        Error::Other(other) if other.is::<Cancelled>() => (FailureKind::Cancelled, "cancelled"),
        Error::Other(other) => match other.downcast_ref::<NotConnected>() {
            Some(NotConnected::TimedOut) => (FailureKind::TimedOut, CONNECT_TIMEOUT),
            Some(NotConnected::NameNotFound) => (FailureKind::Unreachable, "name_not_found"),
            Some(NotConnected::Refused) => (FailureKind::Unreachable, "connect_failed"),
            Some(NotConnected::Untrusted) => (FailureKind::Unreachable, "tls_failed"),
            None => (FailureKind::OutcomeUnknown, "transport"),
        },
        Error::Timeout(Timeout::RecvResponse) => (FailureKind::TimedOut, "first_byte_timeout"),
        Error::Timeout(Timeout::PerRead) => (FailureKind::TimedOut, "idle_timeout"),
        Error::Timeout(_) => (FailureKind::TimedOut, "total_timeout"),
        Error::Http(_) | Error::BadUri(_) => (FailureKind::Misconfigured, "request_not_sendable"),
        Error::Protocol(_) | Error::LargeResponseHeader(..) | Error::Decompress(..) | Error::BodyStalled => {
            (FailureKind::InvalidResponse, "not_http")
        }
        _ => (FailureKind::OutcomeUnknown, "connection_lost"),
    };
    Failure::new(kind, provider, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_transport_errors() {
        let cases = [
            (NotConnected::mark(&Error::HostNotFound), FailureKind::Unreachable, "name_not_found"),
            (NotConnected::mark(&Error::Timeout(Timeout::Global)), FailureKind::TimedOut, CONNECT_TIMEOUT),
            (Error::Timeout(Timeout::Global), FailureKind::TimedOut, "total_timeout"),
            (Error::Io(io::ErrorKind::ConnectionReset.into()), FailureKind::OutcomeUnknown, "connection_lost"),
            (
                NotConnected::mark(&Error::Io(io::ErrorKind::ConnectionReset.into())),
                FailureKind::Unreachable,
                "connect_failed",
            ),
            (Error::LargeResponseHeader(9, 8), FailureKind::InvalidResponse, "not_http"),
        ];
        for (error, kind, code) in cases {
            let failure = failure_of("x", &error);
            assert_eq!((failure.kind, failure.code.as_str()), (kind, code));
        }
    }
}
