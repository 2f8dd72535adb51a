//! Limits the memory held by large responses, whose lifetime depends on the reader.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::Response,
};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

use super::connection::PIECE;
use crate::{
    app::App,
    concurrency::response_slots::{ResponseSlot, Superseded},
    error::{Code, Error, Result},
    types::UserId,
};

/// Bytes from which on an answer is large.
const LARGE: u64 = 1 << 20;

pub fn is_large(answer: &Response<Body>) -> bool {
    answer.body().size_hint().lower() >= LARGE
}

/// Returns the response, unless the same user is still reading another large one. A response that is no longer read is
/// cut off.
///
/// # Errors
/// `overloaded`.
pub async fn one_at_a_time(app: &App, user: UserId, answer: Response<Body>) -> Result<Response<Body>> {
    let (parts, body) = answer.into_parts();
    let content = body.collect().await.map_err(Error::internal)?.to_bytes();
    let delivery = app.limits.large_answers.begin(user, content.into(), Instant::now()).map_err(is_still_read)?;
    Ok(Response::from_parts(parts, Body::new(Large(delivery))))
}

fn is_still_read(for_at_least: Duration) -> Error {
    let detail = "Another large answer to the same user is still being read.";
    Error::new(Code::Overloaded).detail(detail).retry_after(for_at_least)
}

/// The body of a large answer. It has nothing of what it was to send once another has taken its place, also while the
/// connection has not asked it yet how it goes on.
struct Large(ResponseSlot<UserId>);

impl HttpBody for Large {
    type Data = Bytes;
    type Error = Superseded;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Superseded>>> {
        let piece = self.0.take(PIECE, Instant::now());
        let is_end = piece.as_ref().is_ok_and(Vec::is_empty);
        Poll::Ready((!is_end).then(|| piece.map(|piece| Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.remaining() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.remaining() as u64)
    }
}
