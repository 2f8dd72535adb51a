//! Limits the memory of responses that their clients have not read yet: per user, per client network and in total.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{Response, header},
};
use hyper::body::{Frame, SizeHint};

use super::{
    content_negotiation::COMPRESSED_ABOVE,
    held_bytes::{HeldBytes, Receiver},
    large_response::{self, limit_to_one},
    precompressed::ContentCoding,
    request_meta::RequestMeta,
    state::HttpState,
};
use crate::{
    concurrency::byte_budget::ByteShare,
    domain::identity::codes::client_network,
    error::{Code, Error, Result},
};

/// Maximum size of a response that is not counted. It fits into the buffer of a connection.
const UNCOUNTED: u64 = 16 << 10;
/// Memory of an encoder, which lives until the whole response is compressed. Brotli's also holds a block of the response
/// with its compressed form.
const GZIP_ENCODER: u64 = 320 << 10;
const BROTLI_ENCODER: u64 = 1 << 20;
const BROTLI_BLOCK: u64 = 4 << 20;

/// Returns the response if the unread responses leave room for it.
///
/// # Errors
/// `overloaded` if the user, the client network or all clients together have too many bytes unread.
pub async fn limit(
    state: &HttpState,
    meta: &RequestMeta,
    coding: Option<ContentCoding>,
    response: Response<Body>,
) -> Result<Response<Body>> {
    let large_for = meta.user.get().copied().filter(|_| large_response::is_large(&response));
    if let Some(user) = large_for {
        large_response::discard_stalled(state, user)?;
    }
    let held = held_bytes(&response, coding);
    let share = if held > 0 { Some(take(state, meta, held)?) } else { None };
    match (large_for, share) {
        (Some(user), Some(share)) => Box::pin(limit_to_one(state, user, response, share)).await,
        (None, Some(share)) => Ok(response.map(|body| Body::new(CountedBody { body, _share: share }))),
        (_, None) => Ok(response),
    }
}

fn held_bytes(response: &Response<Body>, coding: Option<ContentCoding>) -> u64 {
    let size = response.body().size_hint().lower();
    let held = match response.extensions().get() {
        Some(HeldBytes(held)) => *held,
        None if size > UNCOUNTED => size,
        None => 0,
    };
    let is_packed = response.headers().contains_key(header::CONTENT_ENCODING);
    let encoder = match coding.filter(|_| !is_packed && size > COMPRESSED_ABOVE) {
        Some(ContentCoding::Gzip) => GZIP_ENCODER,
        Some(ContentCoding::Brotli) => BROTLI_ENCODER + 2 * size.min(BROTLI_BLOCK),
        None => 0,
    };
    held + encoder
}

fn take(state: &HttpState, meta: &RequestMeta, bytes: u64) -> Result<ByteShare<Receiver>> {
    let limits = &state.app.core.config.limits;
    let user = meta.user.get().map(|user| (Receiver::User(*user), limits.unread_bytes_per_user.0));
    let network = (Receiver::Network(client_network(meta.client)), limits.unread_bytes_per_client.0);
    state.unread.try_take([user, Some(network)], bytes).ok_or_else(|| {
        let detail =
            ("Too many responses to this user or network are still being read.", "该用户或网络尚未读取的响应过多。");
        Error::new(Code::Overloaded).detail(detail).retry_after(Duration::from_secs(1))
    })
}

/// A body that counts as unread until it is dropped.
struct CountedBody {
    body: Body,
    _share: ByteShare<Receiver>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
