//! The token of a request: `Authorization`, with or without `Bearer`, or one of the headers in `auth.token_headers`.
//!
//! The query string never contains a token, because URLs end up in logs. A value that cannot be a token, such as the
//! `null` of an app without one, is ignored in favour of a header with a token.

use std::{iter, ops::RangeInclusive};

use axum::http::{HeaderMap, HeaderValue, header};

use crate::{
    config::AuthConfig,
    error::{Code, Error},
};

const SCHEME: &str = "bearer";
/// Maximum characters of a token, longer than all kinds in use.
const TOKEN_LENGTH: RangeInclusive<usize> = 32..=128;

/// Returns the token that the client sent, valid or not.
pub fn request_token<'request>(headers: &'request HeaderMap, auth: &AuthConfig) -> Option<&'request str> {
    let names = iter::once(header::AUTHORIZATION.as_str()).chain(auth.token_headers.iter().map(String::as_str));
    let sent = names.filter_map(|name| token_of(headers.get(name)?));
    let mut first = None;
    for token in sent {
        if may_be_token(token) {
            return Some(token);
        }
        first.get_or_insert(token);
    }
    first
}

/// Returns true if the token came in another header than `Authorization`. Shared caches do not know that such a
/// response belongs to a user.
pub fn is_hidden_from_caches(headers: &HeaderMap, auth: &AuthConfig) -> bool {
    !headers.contains_key(header::AUTHORIZATION) && auth.token_headers.iter().any(|name| headers.contains_key(name))
}

/// Returns the error for a caller who must sign in. It says how to send a token, and not why this one is invalid.
#[cold]
pub fn unauthenticated(headers: &HeaderMap, auth: &AuthConfig) -> Error {
    let sent = if request_token(headers, auth).is_some() {
        "The token is unknown, expired or revoked. Sign in again"
    } else {
        "No token was sent. Sign in"
    };
    Error::new(Code::Unauthenticated).detail(format!("{sent} and send the token as {}.", expected(auth)))
}

/// Returns the `WWW-Authenticate` header for a response with status 401.
pub fn challenge(auth: &AuthConfig) -> HeaderValue {
    let challenge = format!("Bearer realm=\"yarrow\", error_description=\"Send the token as {}.\"", expected(auth));
    HeaderValue::from_str(&challenge).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// Describes the headers that carry a token.
fn expected(auth: &AuthConfig) -> String {
    let others = auth.token_headers.iter().map(|name| format!("{name}: <token>"));
    iter::once("Authorization: Bearer <token>".to_owned()).chain(others).collect::<Vec<_>>().join(" or ")
}

/// Returns the token in a header, without its scheme.
fn token_of(value: &HeaderValue) -> Option<&str> {
    let value = str::from_utf8(value.as_bytes()).ok()?.trim();
    let token = match value.split_at_checked(SCHEME.len()) {
        Some((scheme, "")) if scheme.eq_ignore_ascii_case(SCHEME) => "",
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(SCHEME) && token.starts_with(' ') => token.trim_start(),
        _ => value,
    };
    (!token.is_empty()).then_some(token)
}

fn may_be_token(text: &str) -> bool {
    TOKEN_LENGTH.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;
    use crate::config::Config;

    fn sent(pairs: &[(&'static str, &str)]) -> Option<String> {
        let pairs = pairs.iter().map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        });
        let auth = Config::defaults().unwrap().auth;
        request_token(&pairs.collect(), &auth).map(ToOwned::to_owned)
    }

    #[test]
    fn finds_the_token_in_every_accepted_header() {
        let token = "k".repeat(43);
        let bearer = format!("bearer  {token} ");
        for pairs in [
            vec![("authorization", bearer.as_str())],
            vec![("authorization", token.as_str())],
            vec![("token", token.as_str())],
            vec![("satoken", bearer.as_str())],
            vec![("X-Access-Token", token.as_str())],
            vec![("authorization", "Bearer null"), ("token", "undefined"), ("satoken", token.as_str())],
            vec![("authorization", "Basic dXNlcjpwYXNz"), ("token", token.as_str())],
            vec![("authorization", ""), ("token", token.as_str())],
            vec![("authorization", bearer.as_str()), ("token", "x".repeat(43).as_str())],
        ] {
            assert_eq!(sent(&pairs).as_deref(), Some(token.as_str()), "{pairs:?}");
        }
    }

    #[test]
    fn keeps_a_bad_token_and_drops_empty_headers() {
        assert_eq!(sent(&[("authorization", "Bearer null")]).as_deref(), Some("null"));
        assert_eq!(sent(&[("authorization", "Bearerish")]).as_deref(), Some("Bearerish"));
        assert_eq!(sent(&[("authorization", "Bearer"), ("token", " ")]), None);
        assert_eq!(sent(&[("cookie", "k")]), None);
    }
}
