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

use super::{
    connection::CHUNK_BYTES,
    held_bytes::{ChargedContent, Receiver},
    state::HttpState,
};
use crate::{
    concurrency::{
        byte_budget::ByteShare,
        response_slots::{ResponseSlot, Superseded},
    },
    error::{Code, Error, Result},
    types::UserId,
};

/// Size from which a response is large, in bytes.
const LARGE: u64 = 1 << 20;

pub fn is_large(response: &Response<Body>) -> bool {
    response.body().size_hint().lower() >= LARGE
}

/// Cuts off a large response that its user has stopped reading.
///
/// # Errors
/// `overloaded` while one is being read.
pub fn discard_stalled(state: &HttpState, user: UserId) -> Result<()> {
    state.large_responses.discard_stalled(&user, Instant::now()).map_err(still_being_read)
}

/// Returns the response if no other large response to this user is still being read.
///
/// # Errors
/// `overloaded` while another one is being read.
pub async fn limit_to_one(
    state: &HttpState,
    user: UserId,
    response: Response<Body>,
    share: ByteShare<Receiver>,
) -> Result<Response<Body>> {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.map_err(Error::internal)?.to_bytes();
    let content = ChargedContent::new(bytes, share);
    let slot = state.large_responses.begin(user, content, Instant::now()).map_err(still_being_read)?;
    Ok(Response::from_parts(parts, Body::new(LargeBody(slot))))
}

fn still_being_read(retry_after: Duration) -> Error {
    let detail = ("Another large response to the same user is still being read.", "同一用户的另一个大响应仍在读取。");
    Error::new(Code::Overloaded).detail(detail).retry_after(retry_after)
}

/// The body of a large response. Its content belongs to the slot, which frees it when another response supersedes it.
struct LargeBody(ResponseSlot<UserId, ChargedContent>);

impl HttpBody for LargeBody {
    type Data = Bytes;
    type Error = Superseded;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Superseded>>> {
        let chunk = self.0.take(CHUNK_BYTES, Instant::now());
        let is_end = chunk.as_ref().is_ok_and(Vec::is_empty);
        Poll::Ready((!is_end).then(|| chunk.map(|chunk| Frame::data(chunk.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.remaining() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.remaining() as u64)
    }
}
