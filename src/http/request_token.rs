//! The tokens of a request: `Authorization`, with or without `Bearer`, or one of the headers in `auth.token_headers`.
//!
//! The query string never proves who calls, because URLs end up in logs. A value that cannot be a token, such as the
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

/// Returns the different tokens that the client sent, valid or not, in the order of the headers. If none can be a token,
/// returns only the first text.
pub fn request_tokens<'request>(headers: &'request HeaderMap, auth: &AuthConfig) -> Vec<&'request str> {
    let others = auth.token_headers.iter().filter_map(|name| value_of(headers, name));
    let values = headers.get(header::AUTHORIZATION).into_iter().chain(others);
    let mut tokens: Vec<&str> = Vec::new();
    let mut other = None;
    for token in values.filter_map(text_of) {
        if !may_be_token(token) {
            other.get_or_insert(token);
        } else if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    if tokens.is_empty() {
        tokens.extend(other);
    }
    tokens
}

/// Returns the first value of a header. Comparing a few names takes less time than parsing one for a look-up.
fn value_of<'request>(headers: &'request HeaderMap, name: &str) -> Option<&'request HeaderValue> {
    headers.iter().find(|(sent, _)| sent.as_str().eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns true if the token came in another header than `Authorization`. Shared caches do not know that such a
/// response belongs to a user.
pub fn is_hidden_from_caches(headers: &HeaderMap, auth: &AuthConfig) -> bool {
    !headers.contains_key(header::AUTHORIZATION) && auth.token_headers.iter().any(|name| headers.contains_key(name))
}

/// Returns the error for a caller who must sign in. It says how to send a token, and not why this one is invalid.
#[cold]
pub fn unauthenticated(headers: &HeaderMap, auth: &AuthConfig) -> Error {
    let sent = if request_tokens(headers, auth).is_empty() {
        ("No token was sent. Sign in", "未发送令牌，请登录")
    } else {
        ("The token is unknown, expired or revoked. Sign in again", "令牌未知、已过期或已吊销，请重新登录")
    };
    let ((english, chinese), expected) = (sent, expected(auth));
    Error::new(Code::Unauthenticated).detail((
        format!("{english} and send the token as {expected}."),
        format!("{chinese}，并以 {expected} 发送令牌。"),
    ))
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

/// Returns the text of a header without its scheme, or `None` if nothing is left.
fn text_of(value: &HeaderValue) -> Option<&str> {
    let token = without_scheme(str::from_utf8(value.as_bytes()).ok()?);
    (!token.is_empty()).then_some(token)
}

/// Removes `Bearer` from a token, in any case, and blanks around both.
pub fn without_scheme(text: &str) -> &str {
    let text = text.trim();
    match text.split_at_checked(SCHEME.len()) {
        Some((scheme, "")) if scheme.eq_ignore_ascii_case(SCHEME) => "",
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(SCHEME) && token.starts_with(' ') => token.trim_start(),
        _ => text,
    }
}

/// Returns true if a text has the form of a token.
pub fn may_be_token(text: &str) -> bool {
    TOKEN_LENGTH.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;
    use crate::config::Config;

    fn sent(pairs: &[(&'static str, &str)]) -> Vec<String> {
        let pairs = pairs.iter().map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        });
        let auth = Config::defaults().unwrap().auth;
        request_tokens(&pairs.collect(), &auth).into_iter().map(ToOwned::to_owned).collect()
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
            vec![("authorization", bearer.as_str()), ("token", token.as_str())],
        ] {
            assert_eq!(sent(&pairs), [token.as_str()], "{pairs:?}");
        }
        let other = "x".repeat(43);
        assert_eq!(sent(&[("token", other.as_str()), ("authorization", bearer.as_str())]), [token, other]);
    }

    #[test]
    fn keeps_a_bad_token_and_drops_empty_headers() {
        assert_eq!(sent(&[("authorization", "Bearer null"), ("token", "undefined")]), ["null"]);
        assert_eq!(sent(&[("authorization", "Bearerish")]), ["Bearerish"]);
        assert_eq!(sent(&[("authorization", "Bearer"), ("token", " ")]), [""; 0]);
        assert_eq!(sent(&[("cookie", "k")]), [""; 0]);
    }
}
