//! One TCP connection: limits on idle time, on the time for a request's head, and on a peer that does not read.
//!
//! The limits are in the stream and not in hyper's header timeout. That timeout also runs while a connection is idle,
//! and cannot distinguish an idle client from a slow one. The timer is armed once and reset only when it fires, so that
//! a busy connection pays nothing for it.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::{
    Response,
    body::{Body, Bytes, Frame, SizeHint},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until},
};

use super::request_meta::RequestMeta;

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const RESPONDING: u8 = 2;
/// As idle, but with HTTP/2: bytes that arrive need not belong to a request.
const QUIET: u8 = 3;

/// The state of a connection, shared between its stream and its service.
#[derive(Clone)]
pub struct Phase(Arc<PhaseState>);

struct PhaseState {
    phase: AtomicU8,
    began: Instant,
    /// The last time when a connection with HTTP/2 became quiet, in milliseconds after `began`.
    quiet_since: AtomicU64,
}

impl Default for Phase {
    fn default() -> Self {
        Self(Arc::new(PhaseState { phase: AtomicU8::new(IDLE), began: Instant::now(), quiet_since: AtomicU64::new(0) }))
    }
}

impl Phase {
    /// Marks the head of a request as complete. Other timeouts apply from here.
    pub fn responding(&self) {
        self.set(RESPONDING);
    }

    /// Marks a connection with HTTP/2 as one without running requests.
    pub fn quiet(&self) {
        let passed = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.quiet_since.store(passed, Ordering::Relaxed);
        self.set(QUIET);
    }

    /// Keeps the connection in the responding phase, and the memory of the request in the ledger, until the body ends: an
    /// event stream may exceed the idle timeout.
    pub fn responding_until_end_of<B>(self, mut response: Response<B>) -> Response<ResponseBody<B, SoleResponse>> {
        let hold = SoleResponse { phase: self, _meta: response.extensions_mut().remove() };
        response.map(|body| ResponseBody::new(body, hold))
    }

    fn set(&self, phase: u8) {
        self.0.phase.store(phase, Ordering::Relaxed);
    }

    fn is(&self, phase: u8) -> bool {
        self.0.phase.load(Ordering::Relaxed) == phase
    }

    fn quiet_since(&self) -> Instant {
        self.0.began + Duration::from_millis(self.0.quiet_since.load(Ordering::Relaxed))
    }
}

/// The hold that a response has on its connection until it is dropped.
pub trait ConnectionHold: Unpin {
    /// Records that the peer can take more of the response.
    fn wants_data(&mut self) {}

    /// Records that a piece of the response waits for the peer, and returns it as the connection is to keep it.
    fn has_data(&mut self, piece: Bytes) -> Bytes {
        piece
    }
}

/// The hold of a response with HTTP/1. When hyper drops it, the next bytes belong to the next request.
pub struct SoleResponse {
    phase: Phase,
    _meta: Option<Arc<RequestMeta>>,
}

impl ConnectionHold for SoleResponse {}

impl Drop for SoleResponse {
    fn drop(&mut self) {
        self.phase.set(IDLE);
    }
}

/// Bytes of a response passed to the connection at once. The connection copies them, and for a slow reader it must not
/// copy the whole response.
pub(super) const CHUNK_BYTES: usize = 32 << 10;

/// The body of a response, which hyper drops after the last chunk.
pub struct ResponseBody<B, H> {
    body: B,
    /// The rest of a long chunk.
    rest: Bytes,
    hold: H,
}

impl<B, H> ResponseBody<B, H> {
    pub fn new(body: B, hold: H) -> Self {
        Self { body, rest: Bytes::new(), hold }
    }
}

impl<B: Body<Data = Bytes> + Unpin, H: ConnectionHold> Body for ResponseBody<B, H> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.hold.wants_data();
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(frame))) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(CHUNK_BYTES);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(self.hold.has_data(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (left, inner) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + left);
        }
        hint.set_lower(inner.lower() + left);
        hint
    }
}

/// A TCP stream that fails with a timeout when its peer is too slow.
pub struct TimedStream {
    stream: TcpStream,
    phase: Phase,
    limits: StreamLimits,
    /// Time of the last byte read or written.
    last_active: Instant,
    /// Time of the current head's first byte.
    head_began: Instant,
    reading: Pin<Box<Sleep>>,
    /// Armed while the peer does not read.
    writing: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy)]
pub struct StreamLimits {
    pub head: Duration,
    pub idle: Duration,
}

impl TimedStream {
    pub fn new(stream: TcpStream, phase: Phase, limits: StreamLimits) -> Self {
        let now = Instant::now();
        // The timeout of the first head starts with the connection.
        phase.set(HEAD);
        let reading = Box::pin(sleep_until(now + limits.head));
        Self { stream, phase, limits, last_active: now, head_began: now, reading, writing: None }
    }

    /// Returns the time by which the peer must send something. `None` while it waits for us.
    fn deadline(&self) -> Option<Instant> {
        if self.phase.is(HEAD) {
            Some(self.head_began + self.limits.head)
        } else if self.phase.is(IDLE) {
            Some(self.last_active + self.limits.idle)
        } else if self.phase.is(QUIET) {
            // Pings do not keep a connection open.
            Some(self.phase.quiet_since() + self.limits.idle)
        } else {
            None
        }
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(deadline) = self.deadline()
            && deadline < self.reading.deadline()
        {
            self.reading.as_mut().reset(deadline);
        }
        while self.reading.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            match self.deadline() {
                Some(deadline) if deadline <= now => return Poll::Ready(()),
                Some(deadline) => self.reading.as_mut().reset(deadline),
                None => self.reading.as_mut().reset(now + self.limits.idle),
            }
        }
        Poll::Pending
    }

    fn record_read(&mut self) {
        self.last_active = Instant::now();
        if self.phase.is(IDLE) {
            self.phase.set(HEAD);
            self.head_began = self.last_active;
        }
    }
}

fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(outcome) => {
                if buffer.filled().len() > before {
                    self.record_read();
                }
                Poll::Ready(outcome)
            }
            Poll::Pending => self.poll_deadline(context).map(|()| Err(timed_out())),
        }
    }
}

impl TimedStream {
    /// Records a write. Flushing does not count, because it is tried at every wakeup, even only to check the deadline.
    fn record_write(&mut self, outcome: &Poll<io::Result<usize>>) {
        if outcome.is_ready() {
            self.last_active = Instant::now();
        }
    }

    /// Limits how long the peer may leave written data unread.
    fn bound_write<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.writing = None;
            return outcome;
        }
        let stall = self.limits.idle;
        let timer = self.writing.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + stall)));
        timer.as_mut().poll(context).map(|()| Err(timed_out()))
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record_write(&outcome);
        self.bound_write(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.record_write(&outcome);
        self.bound_write(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.bound_write(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;

    #[test]
    fn sends_long_bodies_in_pieces_with_exact_size_hints() {
        let content = (0..2 * CHUNK_BYTES + 100).map(|number| u8::try_from(number % 251).unwrap()).collect::<Bytes>();
        let response = Response::new(Full::new(content.clone()));
        let mut body = Phase::default().responding_until_end_of(response).into_body();
        let mut received = Vec::new();
        while !body.is_end_stream() {
            assert_eq!(body.size_hint().exact(), Some((content.len() - received.len()) as u64));
            let chunk = pollster::block_on(body.frame()).unwrap().unwrap().into_data().unwrap();
            assert!(chunk.len() <= CHUNK_BYTES);
            received.extend(chunk);
        }
        assert_eq!(received, content);
        assert!(pollster::block_on(body.frame()).is_none());
    }
}
