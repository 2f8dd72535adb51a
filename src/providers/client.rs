//! The one place that builds HTTP clients: limits on time and size, no redirects, no proxy from the environment, and
//! the translation of transport errors into [`Failure`].
//!
//! It follows no redirects, because a provider that redirects a signed request is not the one that was configured.
//! Plain `http://` is allowed: a model server on the same host may speak nothing else.
//!
//! The same kind of I/O error means "certainly not accepted" before the request was written and "outcome unknown" after
//! it, which is why `connecting` marks its own.

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
use self::cancellation::{Cancelled, pass_on};
use self::connecting::{MarkingConnector, MarkingResolver, NotConnected};
pub use self::endpoint::BaseUrl;
pub use self::trust::Trust;
use super::{Failure, FailureKind};

/// The code of the only time limit after which the provider certainly has not acted.
pub const CONNECT_TIMEOUT: &str = "connect_timeout";

const USER_AGENT: &str = concat!("yarrow/", env!("CARGO_PKG_VERSION"));
const LONGEST_RESPONSE_HEAD: usize = 8 * 1024;
/// Bytes of a response that a connection buffers. It must exceed the longest head: a full buffer without a complete
/// head looks like a lost connection, whose outcome is unknown. Every running stream has one.
const INPUT_BUFFER: usize = LONGEST_RESPONSE_HEAD + 2 * 1024;
/// Bytes of a request that a connection buffers. The head must fit; bodies are written in pieces.
const OUTPUT_BUFFER: usize = 6 * 1024;
/// Error responses have a few hundred bytes; anything beyond this is not read.
const LONGEST_ERROR_BODY: usize = 64 * 1024;

/// The time limits of a call, and whether its connection is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Looking up the name, and again opening the connection including TLS.
    pub connect: Duration,
    /// From the sent request to the complete head of the response.
    pub first_byte: Duration,
    /// Between two pieces of the body. The transport knows one limit for every read, so this never goes below
    /// `first_byte`.
    pub idle: Duration,
    /// The whole call.
    pub total: Duration,
    /// True to reuse connections. A reused connection may turn out dead only after the request was written, which
    /// leaves the outcome unknown; calls that must not be repeated use a fresh one.
    pub reuse_connections: bool,
}

/// One request to be sent by POST.
pub struct Post<'a> {
    /// The complete address.
    pub url: &'a str,
    /// Names in lower case.
    pub headers: &'a [(&'a str, &'a str)],
    /// May be empty.
    pub body: &'a [u8],
    /// A shorter limit for the whole call, for the second attempt of a call that has one budget.
    pub total: Option<Duration>,
    /// The answer is not begun before it is complete, so that only the limit of the whole call has a meaning.
    pub comes_whole: bool,
}

/// An HTTP client for one provider.
pub struct Client {
    provider: &'static str,
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

/// The body of a response, piece by piece.
pub struct Pieces {
    provider: &'static str,
    reader: ureq::BodyReader<'static>,
}

/// The status with which this address of this machine answers a GET, within a few seconds. Its certificate is not
/// looked at, because it names the service and not the machine.
pub fn status_of(url: &str) -> Result<u16, Failure> {
    let wait = Duration::from_secs(5);
    let limits = Limits { connect: wait, first_byte: wait, idle: wait, total: wait, reuse_connections: false };
    let client = Client::trusting("service", limits, Trust::Anybody);
    let response = client.agent.get(url).call().map_err(|error| client.failure_before_body(&error))?;
    Ok(response.status().as_u16())
}

impl Client {
    /// A client for `provider` that keeps to `limits`.
    pub fn new(provider: &'static str, limits: Limits) -> Self {
        Self::trusting(provider, limits, Trust::Web)
    }

    /// Creates a client with an explicit set of trusted authorities.
    pub fn trusting(provider: &'static str, limits: Limits, trust: Trust) -> Self {
        let config = Config::builder()
            .tls_config(trust.config())
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(USER_AGENT)
            // Compression would hold back the pieces of a stream and let a small answer unfold into a huge one.
            .accept_encoding("identity")
            .max_response_header_size(LONGEST_RESPONSE_HEAD)
            // The library's own are many times as large.
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
        Self { provider, agent, limits }
    }

    /// Sends the request and waits for the head of the response, whatever its status.
    pub fn post(&self, post: &Post<'_>) -> Result<HttpResponse, Failure> {
        let total = post.total.map_or(self.limits.total, |total| total.min(self.limits.total));
        let mut config = self.agent.post(post.url).config().timeout_global(Some(total));
        if post.comes_whole {
            config = config.timeout_recv_response(Some(total)).timeout_per_read(Some(total));
        }
        let mut builder = config.build();
        for (name, value) in post.headers {
            builder = builder.header(*name, *value);
        }
        let work = || if post.body.is_empty() { builder.send_empty() } else { builder.send(post.body) };
        let sent = if post.comes_whole { work() } else { on_its_own_stack(work) };
        self.answer(sent)
    }

    /// Sends a request by another method and waits for the head of the response, whatever its status. Only GET and
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

    /// Like [`Self::send`], with a limit for the whole call, the body of the response included.
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
        self.answer(sent)
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
        self.answer(self.agent.run(request))
    }

    /// Sends a request as it is, and reads the whole answer, whatever its status.
    pub fn exchange(&self, request: Request<Vec<u8>>, limit: usize) -> Result<Response<Vec<u8>>, Failure> {
        let (parts, body) = request.into_parts();
        let sent = if body.is_empty() {
            self.agent.run(Request::from_parts(parts, ()))
        } else {
            self.agent.run(Request::from_parts(parts, body))
        };
        let (parts, body) = sent.map_err(|error| self.failure_before_body(&error))?.into_parts();
        // The caller gets the head as it came, of which [`Self::answer`] would keep a part only.
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

    fn answer(&self, sent: Result<Response<Body>, Error>) -> Result<HttpResponse, Failure> {
        let (parts, body) = sent.map_err(|error| self.failure_before_body(&error))?.into_parts();
        Ok(HttpResponse { status: parts.status.as_u16(), provider: self.provider, headers: parts.headers, body })
    }

    /// Before the body every wait is a wait for the first byte, whichever limit of the transport noticed it.
    fn failure_before_body(&self, error: &Error) -> Failure {
        match error {
            Error::Timeout(Timeout::PerRead) => {
                Failure::new(FailureKind::TimedOut, self.provider, "first_byte_timeout")
            }
            other => failure_of(self.provider, other),
        }
    }
}

/// Opening a connection uses a deep stack, and a thread keeps the stack it once used. A separate thread leaves nothing
/// behind in a long-running stream.
fn on_its_own_stack<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let work = pass_on(work);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("dial".into()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl HttpResponse {
    /// A header's value, when there is one and it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the whole body, or fails with code `answer_too_large` if it exceeds `limit` bytes.
    pub fn read_all(self, limit: usize) -> Result<Vec<u8>, Failure> {
        self.into_pieces().read_all(Vec::new(), limit)
    }

    /// The beginning of an error's body, as much of it as arrives: a broken error message is still an error.
    pub fn read_error(self) -> Vec<u8> {
        let mut body = Vec::new();
        // A truncated error body is good enough.
        drop(self.into_pieces().read_up_to(&mut body, LONGEST_ERROR_BODY));
        body
    }

    /// The body piece by piece.
    pub fn into_pieces(self) -> Pieces {
        Pieces { provider: self.provider, reader: self.body.into_reader() }
    }
}

impl Pieces {
    /// Waits for the next bytes; 0 is the end of the body.
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
    fn transport_errors_are_told_apart() {
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
