//! The bearer token of the `Authorization` header.

use axum::http::{HeaderMap, header};

use crate::error::{Code, Result};

const SCHEME: &[u8] = b"bearer ";

/// Returns the token of the `Authorization` header, or `None` without one.
///
/// # Errors
/// `unauthenticated` for a header that is not `Bearer <token>`.
pub fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let token = value.as_bytes().split_at_checked(SCHEME.len()).and_then(|(scheme, token)| {
        scheme.eq_ignore_ascii_case(SCHEME).then(|| str::from_utf8(token.trim_ascii()).ok()).flatten()
    });
    match token {
        Some(token) if !token.is_empty() => Ok(Some(token)),
        _ => Err(Code::Unauthenticated.into()),
    }
}
