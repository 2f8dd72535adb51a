//! Connections that carry one stream of rare events, such as notifications.
//!
//! hyper keeps two buffers of 8 KiB for each connection, most of what an idle stream costs. Such a stream therefore
//! leaves hyper: the request's future hands its response over and never completes, the task drops hyper's connection,
//! which gives back the [`LentStream`], and [`send`] writes the response.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes},
    http::{Method, Request, Response, Version, header, response::Parts},
};
use futures_util::StreamExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::concurrency::lock::lock_unpoisoned;

/// Marks a response whose events may be hours apart.
#[derive(Clone, Copy)]
pub struct RareEvents;

/// The stream of a connection and a response on their way out of hyper.
pub struct Handover<S> {
    stream: Mutex<Option<S>>,
    response: Mutex<Option<Response<Body>>>,
    is_ready: AtomicBool,
    /// True while the stream takes no more bytes: hyper may hold a part of an earlier response.
    is_blocked: AtomicBool,
}

/// A stream that returns to its [`Handover`] on drop.
pub struct LentStream<S> {
    stream: Option<S>,
    handover: Arc<Handover<S>>,
}

impl<S> Handover<S> {
    /// Lends a stream.
    pub fn lend(stream: S) -> (LentStream<S>, Arc<Self>) {
        let handover = Arc::new(Self {
            stream: Mutex::new(None),
            response: Mutex::new(None),
            is_ready: AtomicBool::new(false),
            is_blocked: AtomicBool::new(false),
        });
        (LentStream { stream: Some(stream), handover: Arc::clone(&handover) }, handover)
    }

    /// Returns true if the response to this request may leave hyper.
    pub fn allows<B>(&self, request: &Request<B>) -> bool {
        request.method() == Method::GET
            && request.version() == Version::HTTP_11
            && !self.is_blocked.load(Ordering::Relaxed)
    }

    /// Hands over a response with [`RareEvents`], after which it never returns. Returns other responses unchanged.
    pub async fn pass(&self, response: Response<Body>) -> Response<Body> {
        if response.extensions().get::<RareEvents>().is_none() {
            return response;
        }
        *lock_unpoisoned(&self.response) = Some(response);
        self.is_ready.store(true, Ordering::Relaxed);
        std::future::pending().await
    }

    /// Waits until hyper's connection ends, or until a response was handed over, and returns the outcome of the former.
    /// The connection polls the requests, so that a response is there as soon as the connection has been polled.
    pub async fn serve<F: Future + Unpin>(&self, mut connection: F) -> Option<F::Output> {
        poll_fn(|context| match Pin::new(&mut connection).poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if self.is_ready.load(Ordering::Relaxed) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Returns stream and response. Both are there once [`Self::serve`] has dropped hyper's connection without an outcome.
    pub fn take(&self) -> Option<(S, Response<Body>)> {
        let response = lock_unpoisoned(&self.response).take();
        lock_unpoisoned(&self.stream).take().zip(response)
    }
}

impl<S> LentStream<S> {
    fn stream(&mut self) -> io::Result<&mut S> {
        self.stream.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S> Drop for LentStream<S> {
    fn drop(&mut self) {
        *lock_unpoisoned(&self.handover.stream) = self.stream.take();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LentStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LentStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(self.stream()?).poll_write(context, bytes);
        self.handover.is_blocked.store(outcome.is_pending(), Ordering::Relaxed);
        outcome
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_shutdown(context)
    }
}

/// Sends a response in chunks as its body yields them, and closes the connection. Returns early if the client closes it.
///
/// # Errors
/// Errors of the stream and of the body. The client sees then that the last chunk is missing.
pub async fn send<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, response: Response<Body>) -> io::Result<()> {
    let (parts, body) = response.into_parts();
    let mut pieces = body.into_data_stream();
    stream.write_all(&head(&parts)).await?;
    loop {
        let piece = tokio::select! {
            biased;
            piece = pieces.next() => piece,
            end = discard_all(&mut stream) => return end,
        };
        match piece {
            Some(Ok(piece)) if piece.is_empty() => {}
            Some(Ok(piece)) => {
                stream.write_all(&chunk(&piece)).await?;
                stream.flush().await?;
            }
            Some(Err(error)) => return Err(io::Error::other(error)),
            None => break,
        }
    }
    stream.write_all(b"0\r\n\r\n").await?;
    stream.shutdown().await
}

/// Reads until the client closes the connection. It has no other request to send here.
async fn discard_all(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut bytes = [0; 64];
    while stream.read(&mut bytes).await? > 0 {}
    Ok(())
}

fn head(parts: &Parts) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
    // These two describe this connection, whatever the response says.
    let headers = parts
        .headers
        .iter()
        .filter(|(name, _)| ![header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH].contains(name));
    for (name, value) in headers {
        head.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend_from_slice(b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
    head
}

fn chunk(piece: &Bytes) -> Vec<u8> {
    [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::io::duplex;

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    fn response(pieces: Vec<Result<&'static str, io::Error>>) -> Response<Body> {
        let mut response = Response::new(Body::from_stream(stream::iter(pieces)));
        response.headers_mut().insert("x-name", "value".parse().unwrap());
        response.extensions_mut().insert(RareEvents);
        response
    }

    #[test]
    fn a_response_is_sent_in_chunks() {
        let (server, mut client) = duplex(1 << 10);
        block_on(send(server, response(vec![Ok("data: 1\n\n"), Ok(""), Ok("data: 2222222\n\n")]))).unwrap();
        let mut received = String::new();
        block_on(client.read_to_string(&mut received)).unwrap();
        let expected = "HTTP/1.1 200 OK\r\nx-name: value\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n\
                        9\r\ndata: 1\n\n\r\nf\r\ndata: 2222222\n\n\r\n0\r\n\r\n";
        assert_eq!(received, expected);
    }

    #[test]
    fn a_failed_body_has_no_last_chunk() {
        let (server, mut client) = duplex(1 << 10);
        block_on(send(server, response(vec![Ok("data: 1\n\n"), Err(io::Error::other("fault"))]))).unwrap_err();
        let mut received = String::new();
        block_on(client.read_to_string(&mut received)).unwrap();
        assert!(received.ends_with("data: 1\n\n\r\n"), "{received}");
    }

    #[test]
    fn a_closed_connection_ends_the_stream() {
        let (server, client) = duplex(1 << 10);
        drop(client);
        let mut endless = Response::new(Body::from_stream(stream::pending::<Result<Bytes, io::Error>>()));
        endless.extensions_mut().insert(RareEvents);
        // The head cannot be written, or the end is read; both end it.
        let _ = block_on(send(server, endless));
    }

    #[test]
    fn a_dropped_stream_returns_with_its_response() {
        let (server, mut client) = duplex(8);
        let (mut lent, handover) = Handover::lend(server);
        let get = Request::new(());
        assert!(handover.allows(&get));
        assert!(handover.take().is_none());
        block_on(async {
            lent.write_all(b"12345678").await.unwrap();
            // The client has not read the earlier response.
            let full = tokio::time::timeout(std::time::Duration::from_millis(10), lent.write_all(b"9"));
            assert!(full.await.is_err());
            assert!(!handover.allows(&get));
            client.read_exact(&mut [0; 8]).await.unwrap();
            lent.write_all(b"9").await.unwrap();
            assert!(handover.allows(&get));
            let other = handover.pass(Response::new(Body::from("text"))).await;
            assert_eq!(other.status(), 200);
            let handed_over = handover.serve(Box::pin(handover.pass(response(vec![])))).await;
            assert!(handed_over.is_none());
        });
        drop(lent);
        let (stream, response) = handover.take().unwrap();
        drop(client);
        block_on(send(stream, response)).unwrap_err();
    }
}
