//! A blocking client for services that accept nothing but HTTP/2.
//!
//! All requests of a call share one connection, which is kept for the next call. The library is asynchronous, so this
//! module owns a runtime that runs only during a call, on the caller's thread; nothing asynchronous leaves it.

use std::{
    io::Cursor,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use h2::{
    Reason, RecvStream,
    client::{Builder, ResponseFuture, SendRequest},
};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime::Runtime,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use ureq::http::{HeaderMap, Method, Request};

use super::{
    Failure, FailureKind,
    client::{BaseUrl, CONNECT_TIMEOUT},
};
use crate::concurrency::lock::lock_unpoisoned;

const CONNECT: Duration = Duration::from_secs(5);
const MAX_RESPONSE_BYTES: usize = 16 * 1024;
/// The code of a request whose connection was lost. On a kept connection it is sent again.
const CONNECTION_LOST: &str = "connection_lost";

type Sender = SendRequest<Cursor<Vec<u8>>>;

/// A request of one client.
pub(super) struct Http2Request {
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// A whole response.
#[derive(Debug)]
pub(super) struct Http2Response {
    pub status: u16,
    headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Http2Response {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A client of one server.
pub(super) struct Http2Client {
    provider: &'static str,
    setting: &'static str,
    endpoint: BaseUrl,
    /// None for a server on this machine without TLS.
    tls: Option<TlsConnector>,
    total: Duration,
    state: Mutex<ClientState>,
}

#[derive(Default)]
struct ClientState {
    runtime: Option<Runtime>,
    connection: Option<Sender>,
}

impl Drop for ClientState {
    fn drop(&mut self) {
        // The last owner may be a worker of another runtime, which must not wait for this one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Http2Client {
    /// Creates a client of an `https` address, or of an `http` one for tests on this machine. `total` limits each
    /// request.
    pub(super) fn new(
        provider: &'static str,
        setting: &'static str,
        endpoint: BaseUrl,
        total: Duration,
    ) -> Result<Self, Failure> {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        Self::trusting(roots, (provider, setting), endpoint, total)
    }

    fn trusting(
        roots: RootCertStore,
        (provider, setting): (&'static str, &'static str),
        endpoint: BaseUrl,
        total: Duration,
    ) -> Result<Self, Failure> {
        let is_encrypted = endpoint.base().starts_with("https://");
        let tls = if is_encrypted { Some(TlsConnector::from(Arc::new(tls_config(roots, provider)?))) } else { None };
        Ok(Self { provider, setting, endpoint, tls, total, state: Mutex::default() })
    }

    /// Sends the requests at once and returns their outcomes in the same order. Blocks.
    pub(super) fn send_all(&self, requests: &[Http2Request]) -> Vec<Result<Http2Response, Failure>> {
        let mut state = lock_unpoisoned(&self.state);
        if state.runtime.is_none() {
            match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => state.runtime = Some(runtime),
                Err(_) => return fail_all(requests, &self.failure(FailureKind::Unreachable, "no_runtime")),
            }
        }
        let ClientState { runtime: Some(runtime), connection } = &mut *state else { return Vec::new() };
        runtime.block_on(self.exchange_all(connection, requests))
    }

    async fn exchange_all(
        &self,
        kept: &mut Option<Sender>,
        requests: &[Http2Request],
    ) -> Vec<Result<Http2Response, Failure>> {
        let mut outcomes: Vec<Option<Result<Http2Response, Failure>>> = requests.iter().map(|_| None).collect();
        if let Some(sender) = kept.take() {
            for (outcome, result) in outcomes.iter_mut().zip(self.exchange(&sender, requests).await) {
                // The server may have closed the connection while nobody looked.
                let is_lost = result.as_ref().is_err_and(|failure| failure.code == CONNECTION_LOST);
                *outcome = if is_lost { None } else { Some(result) };
            }
            if outcomes.iter().all(Option::is_some) {
                *kept = Some(sender);
            }
        }
        let missing: Vec<usize> = (0..requests.len()).filter(|index| outcomes[*index].is_none()).collect();
        if !missing.is_empty() {
            let again: Vec<&Http2Request> = missing.iter().map(|index| &requests[*index]).collect();
            let results = match self.connect().await {
                Ok(sender) => {
                    let results = join_all(again.into_iter().map(|request| self.exchange_one(&sender, request))).await;
                    *kept = Some(sender);
                    results
                }
                Err(failure) => again.iter().map(|_| Err(failure.clone())).collect(),
            };
            for (index, result) in missing.into_iter().zip(results) {
                outcomes[index] = Some(result);
            }
        }
        let lost = || Err(self.failure(FailureKind::OutcomeUnknown, CONNECTION_LOST));
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(lost)).collect()
    }

    async fn exchange(&self, sender: &Sender, requests: &[Http2Request]) -> Vec<Result<Http2Response, Failure>> {
        join_all(requests.iter().map(|request| self.exchange_one(sender, request))).await
    }

    async fn exchange_one(&self, sender: &Sender, request: &Http2Request) -> Result<Http2Response, Failure> {
        let answer = timeout(self.total, self.answer(sender.clone(), request)).await;
        answer.unwrap_or_else(|_| Err(self.failure(FailureKind::TimedOut, "total_timeout")))
    }

    async fn answer(&self, sender: Sender, request: &Http2Request) -> Result<Http2Response, Failure> {
        let mut sender = sender.ready().await.map_err(|error| self.lost(&error))?;
        let origin = self.endpoint.base();
        let mut head = Request::builder().method(Method::POST).uri(format!("{origin}{}", request.path));
        for (name, value) in &request.headers {
            head = head.header(*name, value);
        }
        let head = head.body(()).map_err(|_| self.failure(FailureKind::Misconfigured, "request_not_sendable"))?;
        let (answer, mut body) = sender.send_request(head, false).map_err(|error| self.lost(&error))?;
        body.send_data(Cursor::new(request.body.clone()), true).map_err(|error| self.lost(&error))?;
        self.whole(answer).await.map_err(|error| self.lost(&error))
    }

    async fn whole(&self, answer: ResponseFuture) -> Result<Http2Response, h2::Error> {
        let (head, mut body) = answer.await?.into_parts();
        let body = read_body(&mut body).await?;
        Ok(Http2Response { status: head.status.as_u16(), headers: head.headers, body })
    }

    async fn connect(&self) -> Result<Sender, Failure> {
        let connected = timeout(CONNECT, self.open()).await;
        connected.unwrap_or_else(|_| Err(self.failure(FailureKind::TimedOut, CONNECT_TIMEOUT)))
    }

    async fn open(&self) -> Result<Sender, Failure> {
        let host = self.endpoint.host().trim_matches(['[', ']']);
        let default_port = if self.tls.is_some() { 443 } else { 80 };
        let named = self.endpoint.host_header().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let stream = TcpStream::connect((host, named.unwrap_or(default_port))).await;
        let stream = stream.map_err(|_| self.failure(FailureKind::Unreachable, "connect_failed"))?;
        // A small request must not wait for the confirmation of the one before.
        drop(stream.set_nodelay(true));
        let Some(tls) = &self.tls else { return self.shake_hands(stream).await };
        let untrusted = || self.failure(FailureKind::Unreachable, "tls_failed");
        let name = ServerName::try_from(host.to_owned()).map_err(|_| untrusted())?;
        let stream = tls.connect(name, stream).await.map_err(|_| untrusted())?;
        self.shake_hands(stream).await
    }

    async fn shake_hands<T>(&self, stream: T) -> Result<Sender, Failure>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let shaken = Builder::new().enable_push(false).handshake(stream).await;
        let (sender, connection) = shaken.map_err(|_| self.failure(FailureKind::Unreachable, "connect_failed"))?;
        // It makes progress while a call runs, and ends with the runtime or the peer.
        drop(tokio::spawn(connection));
        Ok(sender)
    }

    /// Maps an error of the connection or the stream. A refused stream was certainly not processed.
    fn lost(&self, error: &h2::Error) -> Failure {
        let kind = match error.reason() {
            Some(Reason::REFUSED_STREAM) => FailureKind::Busy,
            _ => FailureKind::OutcomeUnknown,
        };
        self.failure(kind, CONNECTION_LOST)
    }

    fn failure(&self, kind: FailureKind, code: &str) -> Failure {
        Failure::new(kind, self.provider, code).at(self.setting, self.endpoint.base())
    }
}

async fn read_body(body: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut read = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        // A longer answer is an error page; its start is enough.
        let room = MAX_RESPONSE_BYTES.saturating_sub(read.len()).min(chunk.len());
        read.extend_from_slice(&chunk[..room]);
        if room < chunk.len() {
            break;
        }
    }
    Ok(read)
}

fn fail_all(requests: &[Http2Request], failure: &Failure) -> Vec<Result<Http2Response, Failure>> {
    requests.iter().map(|_| Err(failure.clone())).collect()
}

fn tls_config(roots: RootCertStore, provider: &'static str) -> Result<ClientConfig, Failure> {
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(crypto).with_safe_default_protocol_versions();
    let config = config.map_err(|_| Failure::new(FailureKind::Misconfigured, provider, "tls_unavailable"))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests;
