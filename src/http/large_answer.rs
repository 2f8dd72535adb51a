//! Answers that are so large that it matters how many are held: how long one is, is up to whoever reads it.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, HttpBody},
    http::Response,
};
use http_body_util::BodyExt;

use crate::{
    app::App,
    error::{Code, Error, Result},
    ops::slots::Own,
    types::UserId,
};

/// Bytes from which on an answer is large.
const LARGE: u64 = 1 << 20;

/// What is sent, and the place that it takes until all of it is.
struct Sent {
    bytes: Bytes,
    _own: Own<UserId>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

pub fn is_large(answer: &Response<Body>) -> bool {
    answer.body().size_hint().lower() >= LARGE
}

/// The answer, if none is being sent to the same user that is as large.
///
/// # Errors
/// `overloaded`.
pub async fn one_at_a_time(app: &App, user: UserId, answer: Response<Body>) -> Result<Response<Body>> {
    let own = app.large_answers.enter(user).map_err(|_| is_still_sending())?;
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.map_err(Error::internal)?.to_bytes();
    Ok(Response::from_parts(parts, Body::from(Bytes::from_owner(Sent { bytes, _own: own }))))
}

fn is_still_sending() -> Error {
    let detail = "Another large answer to the same user is still being sent.";
    Error::new(Code::Overloaded).detail(detail).retry_after(Duration::from_secs(1))
}
