//! Reads request bodies and splits query strings, forms and JSON objects into named values.

use std::{borrow::Cow, time::Duration};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{HeaderMap, header},
};
use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;
use serde::{
    Deserialize,
    de::{MapAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue as JsonValue};

use crate::error::{Code, Error, Result};

/// Maximum nesting of JSON, which protects recursive parsers.
const MAX_DEPTH: usize = 64;
/// Maximum number of fields of a query, a form or a JSON object. A field takes much more memory than its shortest form.
pub const MAX_FIELDS: usize = 1000;

/// Bytes of a rejected body that are still read, and the time limit. A client that is disconnected while it sends sees
/// a broken connection instead of the response.
const DISCARDED_BYTES: usize = 1 << 20;
const DISCARDED_FOR: Duration = Duration::from_secs(2);

/// The media type of forms.
pub const FORM: &str = "application/x-www-form-urlencoded";
/// Some editors and libraries begin a text with it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A value of a request before it is parsed.
#[derive(Clone, Debug)]
pub enum RawValue<'request> {
    Text(Cow<'request, str>),
    /// Owned if it was inside a text, such as a form field.
    Json(Cow<'request, JsonValue>),
}

/// A name and its value.
pub type Pair<'request> = (Cow<'request, str>, RawValue<'request>);

/// Reads the whole body. `hold` is called with the bytes that will be kept, before they are.
///
/// # Errors
/// `body_too_large` past `limit`, before that much is buffered; `invalid_request` if the client disconnects; errors of
/// `hold`.
pub async fn read(
    mut body: Body,
    headers: &HeaderMap,
    limit: usize,
    hold: impl Fn(usize) -> Result<()>,
) -> Result<Bytes> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let read = match announced {
        Some(length) if length > limit as u64 => Err(too_large(limit)),
        _ => collect(&mut body, limit, hold).await,
    };
    if read.as_ref().is_err_and(|error| error.code == Code::BodyTooLarge) {
        Box::pin(discard(body, headers)).await;
    }
    read
}

/// Collects the chunks of a body. A body of one chunk is returned unchanged. Others are copied: a chunk keeps the whole
/// buffer of its connection in memory.
async fn collect(body: &mut Body, limit: usize, hold: impl Fn(usize) -> Result<()>) -> Result<Bytes> {
    let mut collected = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Error::new(Code::InvalidRequest).detail(("The body is incomplete.", "请求体不完整。")).caused_by(error)
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        if collected.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        if collected.is_empty() && body.is_end_stream() {
            hold(piece.len())?;
            return Ok(piece);
        }
        if piece.len() > collected.capacity() - collected.len() {
            let more = piece.len().max(collected.capacity());
            hold(more)?;
            collected.reserve_exact(more);
        }
        collected.extend_from_slice(&piece);
    }
    Ok(collected.into())
}

/// Returns the error of a body that is larger than the endpoint allows.
pub fn too_large(limit: usize) -> Error {
    Error::new(Code::BodyTooLarge)
        .detail((format!("The body is larger than {limit} bytes."), format!("请求体超过 {limit} 字节。")))
}

/// Reads and drops the rest of a rejected body, so that the client reads the response. A client that sent `Expect:
/// 100-continue` has sent nothing yet.
pub fn discard(mut body: Body, headers: &HeaderMap) -> impl Future<Output = ()> + use<> {
    let is_announced = headers.contains_key(header::EXPECT);
    let discarding = async move {
        let mut left = if is_announced { 0 } else { DISCARDED_BYTES };
        while left > 0
            && let Some(Ok(frame)) = body.frame().await
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        }
    };
    // Slower clients are disconnected.
    async { drop(tokio::time::timeout(DISCARDED_FOR, discarding).await) }
}

/// Splits a body into named values by its content type, after `body_encoding` has unpacked it. A bare JSON array
/// becomes the list named `bare_list`.
///
/// Some clients send JSON with the content type that their library sets by default. A body that begins like JSON is
/// therefore JSON under every type that does not say what it is: read as a form, all its parameters would be ignored.
///
/// # Errors
/// `unsupported_media_type`, `invalid_json` or `invalid_request`.
pub fn pairs<'request>(
    body: &'request [u8],
    headers: &HeaderMap,
    bare_list: Option<&'static str>,
) -> Result<Vec<Pair<'request>>> {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii();
    if body.is_empty() {
        return Ok(Vec::new());
    }
    match media_type(headers).as_str() {
        "application/json" | "text/json" | "application/x-json" => json_pairs(body, bare_list),
        structured if structured.ends_with("+json") => json_pairs(body, bare_list),
        FORM | "" | "text/plain" | "application/octet-stream" if body.starts_with(b"{") || body.starts_with(b"[") => {
            json_pairs(body, bare_list)
        }
        FORM => form_pairs(utf8(body, Code::InvalidRequest)?),
        _ => Err(Code::UnsupportedMediaType.into()),
    }
}

/// Returns the media type of the content type, without parameters and in lower case. Empty if there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Splits a form into named values.
fn form_pairs(form: &str) -> Result<Vec<Pair<'_>>> {
    let pairs = encoded_pairs(form)?;
    // Percent-encoded JSON is one long name without a value.
    if pairs.iter().any(|(name, _)| name.starts_with(['{', '"'])) {
        let detail = (
            "The form holds JSON. Send it as it is, with the content type application/json.",
            "表单中是 JSON，请以 application/json 类型直接发送。",
        );
        return Err(Error::new(Code::InvalidRequest).detail(detail));
    }
    Ok(pairs)
}

/// Splits a query string or a form into named values.
///
/// # Errors
/// `invalid_request` for a name or value that is not UTF-8 when decoded.
pub fn encoded_pairs(text: &str) -> Result<Vec<Pair<'_>>> {
    let pair = |pair| {
        let (name, value) = str::split_once(pair, '=').unwrap_or((pair, ""));
        Ok((decoded(name)?, RawValue::Text(decoded(value)?)))
    };
    require_few_fields(text)?;
    text.split('&').filter(|pair| !pair.is_empty()).map(pair).collect()
}

/// Rejects a query or form with too many fields before it is split.
///
/// # Errors
/// `invalid_request`.
pub fn require_few_fields(encoded: impl AsRef<[u8]>) -> Result<()> {
    match memchr::memchr_iter(b'&', encoded.as_ref()).nth(MAX_FIELDS) {
        Some(_) => Err(too_many_fields()),
        None => Ok(()),
    }
}

fn too_many_fields() -> Error {
    Error::new(Code::InvalidRequest).detail((
        format!("The request has more than {MAX_FIELDS} fields."),
        format!("请求的字段超过 {MAX_FIELDS} 个。"),
    ))
}

fn decoded(text: &str) -> Result<Cow<'_, str>> {
    let not_utf8 = |_| Error::new(Code::InvalidRequest).detail(("A parameter is not UTF-8.", "参数不是 UTF-8。"));
    if text.contains('+') {
        let text = text.replace('+', " ");
        return percent_decode_str(&text).decode_utf8().map(|text| Cow::Owned(text.into_owned())).map_err(not_utf8);
    }
    percent_decode_str(text).decode_utf8().map_err(not_utf8)
}

fn json_pairs<'request>(body: &'request [u8], bare_list: Option<&'static str>) -> Result<Vec<Pair<'request>>> {
    let text = utf8(body, Code::InvalidJson)?;
    if is_too_deep(text) {
        return Err(Error::new(Code::InvalidJson).detail((
            format!("The body is nested deeper than {MAX_DEPTH} levels."),
            format!("请求体嵌套超过 {MAX_DEPTH} 层。"),
        )));
    }
    if let Some(name) = bare_list
        && let Ok(items) = serde_json::from_str::<&JsonValue>(text)
        && items.get().starts_with('[')
    {
        return Ok(vec![(Cow::Borrowed(name), RawValue::Json(Cow::Borrowed(items)))]);
    }
    let Members(pairs) = serde_json::from_str(text).map_err(|error| no_object(&error))?;
    if pairs.len() > MAX_FIELDS { Err(too_many_fields()) } else { Ok(pairs) }
}

/// Returns the members of a text that is a JSON object, or `None` for any other text.
pub fn object_members(text: &str) -> Option<Vec<Pair<'static>>> {
    let text = text.trim();
    if !text.starts_with('{') || is_too_deep(text) {
        return None;
    }
    let Members(pairs) = serde_json::from_str(text).ok()?;
    let owned = |(name, value): Pair<'_>| match value {
        RawValue::Json(json) => (Cow::Owned(name.into_owned()), RawValue::Json(Cow::Owned(json.into_owned()))),
        RawValue::Text(text) => (Cow::Owned(name.into_owned()), RawValue::Text(Cow::Owned(text.into_owned()))),
    };
    Some(pairs.into_iter().map(owned).collect())
}

/// Reports the position where a body is no longer an object. Unlike the parser's message, it does not repeat the input.
fn no_object(error: &serde_json::Error) -> Error {
    let what = match error.classify() {
        Category::Eof => ("unexpected end of input", "内容提前结束"),
        Category::Syntax => ("syntax error", "语法错误"),
        Category::Data | Category::Io => ("a value of another type", "值的类型不同"),
    };
    let ((english, chinese), line, column) = (what, error.line(), error.column());
    Error::new(Code::InvalidJson).detail((
        format!("The body is not a JSON object: {english}, at line {line} and column {column}."),
        format!("请求体不是 JSON 对象：{chinese}，位于第 {line} 行第 {column} 列。"),
    ))
}

fn utf8(bytes: &[u8], code: Code) -> Result<&str> {
    str::from_utf8(bytes).map_err(|_| Error::new(code).detail(("The body is not UTF-8.", "请求体不是 UTF-8。")))
}

/// Counts brackets outside of strings, because the parser below skips over nested values without counting.
fn is_too_deep(text: &str) -> bool {
    // A quick check: nearly every body has fewer brackets than that in total.
    if memchr::memchr2_iter(b'[', b'{', text.as_bytes()).nth(MAX_DEPTH).is_none() {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// A name, borrowed unless it has escapes.
#[derive(Deserialize)]
struct Name<'request>(#[serde(borrow)] Cow<'request, str>);

/// The members of a JSON object in order, with names that come twice kept twice.
struct Members<'request>(Vec<Pair<'request>>);

impl<'request> Deserialize<'request> for Members<'request> {
    fn deserialize<D: serde::Deserializer<'request>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'request> Visitor<'request> for MembersVisitor {
            type Value = Members<'request>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'request>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some((Name(name), value)) = map.next_entry::<Name<'request>, &'request JsonValue>()? {
                    // One more tells that there are too many.
                    if members.len() <= MAX_FIELDS {
                        members.push((name, RawValue::Json(Cow::Borrowed(value))));
                    }
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(body: &str) -> Result<Vec<(String, String)>> {
        let shown = |(name, given): Pair<'_>| match given {
            RawValue::Json(raw) => (name.into_owned(), raw.get().to_owned()),
            RawValue::Text(text) => (name.into_owned(), text.into_owned()),
        };
        json_pairs(body.as_bytes(), None).map(|pairs| pairs.into_iter().map(shown).collect())
    }

    #[test]
    fn keeps_members_in_order_and_unparsed() {
        let pairs = json(r#"{"a": {"b" : [1, 2]}, "c\u0064": "x", "a": 1}"#).unwrap();
        assert_eq!(pairs[0], ("a".into(), r#"{"b" : [1, 2]}"#.into()));
        assert_eq!(pairs[1].0, "cd");
        assert_eq!(pairs.len(), 3);
    }

    #[test]
    fn rejects_bodies_that_are_not_objects() {
        for body in ["[]", "1", "{", "{\"a\":}", "{} {}", "null"] {
            assert_eq!(json(body).unwrap_err().code, Code::InvalidJson, "{body}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(json(&deep).unwrap_err().code, Code::InvalidJson);
        let brackets_in_text = format!("{{\"a\":\"{}\"}}", "[".repeat(10_000));
        assert!(json(&brackets_in_text).is_ok());
    }

    fn names(body: &str, content_type: Option<&'static str>) -> Result<Vec<String>> {
        let content_type =
            content_type.map(|value| (header::CONTENT_TYPE, axum::http::HeaderValue::from_static(value)));
        let pairs = pairs(body.as_bytes(), &HeaderMap::from_iter(content_type), None)?;
        Ok(pairs.into_iter().map(|(name, _)| name.into_owned()).collect())
    }

    #[test]
    fn json_is_read_under_every_type_that_does_not_say_what_it_is() {
        let types = [
            None,
            Some("application/json;charset=UTF-8"),
            Some("text/json"),
            Some("application/vnd.app+json"),
            Some("text/plain; charset=utf-8"),
            Some("application/octet-stream"),
            Some(FORM),
        ];
        for content_type in types {
            for body in [r#"{"a":1}"#, " \n{\"a\":1}\n", "\u{feff}{\"a\":1}"] {
                assert_eq!(names(body, content_type).unwrap(), ["a"], "{content_type:?} {body:?}");
            }
            assert_eq!(names(r#"{"a":"#, content_type).unwrap_err().code, Code::InvalidJson, "{content_type:?}");
            assert_eq!(names(" \n", content_type).unwrap(), [""; 0], "{content_type:?}");
        }
        assert_eq!(names("a=1", None).unwrap_err().code, Code::UnsupportedMediaType);
        assert_eq!(names("a=1", Some("text/plain")).unwrap_err().code, Code::UnsupportedMediaType);
        assert_eq!(names(r#"{"a":1}"#, Some("text/xml")).unwrap_err().code, Code::UnsupportedMediaType);
    }

    #[test]
    fn encoded_json_in_a_form_is_refused() {
        for form in ["%7B%22a%22%3A1%7D", "%7B%22a%22%3A1%7D="] {
            assert_eq!(names(form, Some(FORM)).unwrap_err().code, Code::InvalidRequest, "{form}");
        }
    }

    #[test]
    fn forms_are_decoded_once() {
        let pairs = encoded_pairs("a=1+2&b=%2B%E4%B9%BE&c&=d").unwrap();
        let texts: Vec<_> = pairs
            .iter()
            .map(|(name, given)| match given {
                RawValue::Text(text) => format!("{name}:{text}"),
                RawValue::Json(_) => unreachable!(),
            })
            .collect();
        assert_eq!(texts, ["a:1 2", "b:+乾", "c:", ":d"]);
        assert_eq!(encoded_pairs("a=%ff").unwrap_err().code, Code::InvalidRequest);
    }
}

#[cfg(test)]
mod properties {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    use super::*;

    fn headers(content_type: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_TYPE, axum::http::HeaderValue::from_static(content_type))])
    }

    proptest! {
        #[test]
        fn reads_or_rejects_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in ".*") {
            for content_type in ["application/json", "application/x-www-form-urlencoded", "text/plain"] {
                for body in [&bytes[..], text.as_bytes()] {
                    let _ = pairs(body, &headers(content_type), Some("items"));
                }
            }
        }

        #[test]
        fn parses_written_forms(members in proptest::collection::vec((".+", ".*"), 0..6)) {
            let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            let written: Vec<_> = members.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
            let written = written.join("&");
            let read = encoded_pairs(&written).unwrap();
            prop_assert_eq!(read.len(), members.len());
            for ((name, value), (read_name, read_value)) in members.iter().zip(&read) {
                prop_assert_eq!(name, read_name);
                prop_assert!(matches!(read_value, RawValue::Text(text) if text == value));
            }
        }

        /// Faults name the position and never repeat the input.
        #[test]
        fn rejections_do_not_repeat_the_input(secret in "[a-z]{24}") {
            for body in [format!("\"{secret}\""), format!("{{\"{secret}\":"), format!("[\"{secret}\"]"), secret.clone()] {
                let refused = pairs(body.as_bytes(), &headers("application/json"), None).unwrap_err();
                prop_assert!(!format!("{refused:?}").contains(&secret), "{:?}", refused);
            }
        }
    }
}
