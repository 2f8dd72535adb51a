//! The session cookie, the token against cross-site requests, and signed messages that survive one redirect.

use axum::http::{HeaderMap, HeaderValue, header};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use subtle::ConstantTimeEq as _;

use super::views::{
    context::{BASE, Flash},
    texts::Tone,
};
use crate::{
    error::{Error, Result},
    keys::ServerKey,
    types::Secret,
};

/// The prefix makes browsers accept the cookie from this host and path `/` only, and over TLS or from loopback.
const SESSION: &str = "__Host-yarrow-console";
const FLASH: &str = "yarrow-console-flash";
const YEAR: u32 = 365 * 24 * 60 * 60;

/// Returns the value of a cookie.
pub fn cookie<'headers>(headers: &'headers HeaderMap, name: &str) -> Option<&'headers str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Returns the session token that a browser sent.
pub fn token(headers: &HeaderMap) -> Option<Secret> {
    cookie(headers, SESSION).map(|token| Secret::from_text(token.to_owned()))
}

/// Returns the header that starts a session.
pub fn start(token: &Secret) -> Result<HeaderValue> {
    value(format!("{SESSION}={}; Path=/; Secure; HttpOnly; SameSite=Strict", token.reveal()))
}

/// Returns the header that ends a session in the browser.
pub fn end() -> HeaderValue {
    HeaderValue::from_static("__Host-yarrow-console=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0")
}

/// Returns the header that keeps a preference for a year.
pub fn preference(name: &str, chosen: &str) -> Result<HeaderValue> {
    value(format!("{name}={chosen}; Path={BASE}; HttpOnly; SameSite=Strict; Max-Age={YEAR}"))
}

/// Returns the token that forms of a session carry.
pub fn cross_site_token(keys: &ServerKey, session: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(keys.authenticate(&["console form", session.reveal()]))
}

/// Returns true if a form carries the token of its session.
pub fn is_own_form(keys: &ServerKey, session: &Secret, sent: &str) -> bool {
    cross_site_token(keys, session).as_bytes().ct_eq(sent.as_bytes()).into()
}

/// Returns the header that shows a message on the next page. Signed, so that no other program can plant one.
pub fn flash(keys: &ServerKey, flash: &Flash) -> Result<HeaderValue> {
    let text = utf8_percent_encode(&flash.text, NON_ALPHANUMERIC);
    let signed = format!("{}.{text}", flash.tone.class());
    let signature = URL_SAFE_NO_PAD.encode(keys.authenticate(&["console flash", &signed]));
    value(format!("{FLASH}={signature}.{signed}; Path={BASE}; HttpOnly; SameSite=Strict; Max-Age=60"))
}

/// Returns the message of the last redirect.
pub fn read_flash(keys: &ServerKey, headers: &HeaderMap) -> Option<Flash> {
    let (signature, signed) = cookie(headers, FLASH)?.split_once('.')?;
    let expected = URL_SAFE_NO_PAD.encode(keys.authenticate(&["console flash", signed]));
    if !bool::from(expected.as_bytes().ct_eq(signature.as_bytes())) {
        return None;
    }
    let (class, text) = signed.split_once('.')?;
    let tone = [Tone::Neutral, Tone::Good, Tone::Notice, Tone::Bad].into_iter().find(|tone| tone.class() == class)?;
    Some(Flash { tone, text: percent_decode_str(text).decode_utf8().ok()?.into_owned() })
}

/// Returns the header that removes the message once it is shown.
pub fn forget_flash() -> Result<HeaderValue> {
    value(format!("{FLASH}=; Path={BASE}; HttpOnly; SameSite=Strict; Max-Age=0"))
}

fn value(text: String) -> Result<HeaderValue> {
    HeaderValue::try_from(text).map_err(Error::internal)
}
