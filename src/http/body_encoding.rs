//! Unpacks request bodies: gzip, and multipart forms.
//!
//! Later steps see a plain body, either JSON or a form. The limit of the endpoint applies before and after unpacking.

use std::io::Read;

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Multipart, multipart::MultipartError},
    http::{HeaderMap, HeaderValue, Request, header},
};
use flate2::read::MultiGzDecoder;
use serde_json::value::RawValue;
use url::form_urlencoded;

use super::body::{FORM, media_type, too_large};
use crate::error::{Code, Error, Result};

const MULTIPART: &str = "multipart/form-data";
const JSON: &str = "application/json";

/// Returns the body without content coding and multipart boundaries, and makes the headers say so. `is_parameter` tells the
/// endpoint's own fields from parts that hold all parameters as JSON.
///
/// # Errors
/// `unsupported_media_type` for another content coding; `body_too_large` if more than `limit` bytes come out;
/// `invalid_request` for a damaged body; errors of `hold`, which is called before more bytes are kept.
pub async fn unpack(
    body: Bytes,
    headers: &mut HeaderMap,
    limit: usize,
    is_parameter: impl Fn(&str) -> bool,
    hold: impl Fn(usize) -> Result<()>,
) -> Result<Bytes> {
    if body.is_empty() {
        return Ok(body);
    }
    let body = decompress(body, headers, limit, &hold)?;
    if media_type(headers) != MULTIPART {
        return Ok(body);
    }
    // The parts, and the form that is made of them.
    hold(2 * body.len())?;
    let Parts { fields, objects } = Parts::read(body, headers, is_parameter).await?;
    let (body, content_type) = if objects.is_empty() {
        (form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish(), FORM)
    } else {
        (json_of(&fields, &objects)?, JSON)
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(body.into())
}

fn decompress(body: Bytes, headers: &mut HeaderMap, limit: usize, hold: impl Fn(usize) -> Result<()>) -> Result<Bytes> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let coding = codings.next().map_or(&b"identity"[..], HeaderValue::as_bytes).to_ascii_lowercase();
    let body = match coding.trim_ascii() {
        _ if codings.next().is_some() => return Err(unsupported_coding()),
        b"" | b"identity" => body,
        b"gzip" | b"x-gzip" => {
            hold(limit)?;
            gunzip(&body, limit)?
        }
        _ => return Err(unsupported_coding()),
    };
    headers.remove(header::CONTENT_ENCODING);
    Ok(body)
}

fn unsupported_coding() -> Error {
    Error::new(Code::UnsupportedMediaType)
        .detail(("The only content coding that is accepted is gzip.", "只接受 gzip 内容编码。"))
}

fn gunzip(body: &[u8], limit: usize) -> Result<Bytes> {
    let mut unpacked = Vec::new();
    // One byte more tells a body at the limit from a longer one, without unpacking the rest.
    MultiGzDecoder::new(body).take(limit as u64 + 1).read_to_end(&mut unpacked).map_err(|error| {
        Error::new(Code::InvalidRequest)
            .detail(("The body is not valid gzip.", "请求体不是有效的 gzip。"))
            .caused_by(error)
    })?;
    if unpacked.len() > limit { Err(too_large(limit)) } else { Ok(unpacked.into()) }
}

/// The parts of a multipart form.
struct Parts {
    fields: Vec<(String, String)>,
    /// JSON objects that hold parameters: parts whose type is JSON and whose name is no parameter.
    objects: Vec<String>,
}

impl Parts {
    async fn read(body: Bytes, headers: &HeaderMap, is_parameter: impl Fn(&str) -> bool) -> Result<Self> {
        let mut request = Request::new(Body::from(closed(body, headers)));
        if let Some(content_type) = headers.get(header::CONTENT_TYPE) {
            request.headers_mut().insert(header::CONTENT_TYPE, content_type.clone());
        }
        let mut parts = Multipart::from_request(request, &()).await.map_err(|_| invalid_multipart())?;
        let (mut fields, mut objects) = (Vec::new(), Vec::new());
        while let Some(part) = parts.next_field().await.map_err(damaged)? {
            let name = part.name().unwrap_or_default().to_owned();
            let is_file = part.file_name().is_some();
            let is_json = part.content_type().is_some_and(|content_type| content_type.starts_with(JSON));
            let bytes = part.bytes().await.map_err(damaged)?;
            match str::from_utf8(&bytes) {
                Ok(text) if is_json && !is_parameter(&name) && text.trim_start().starts_with('{') => {
                    objects.push(text.trim().to_owned());
                }
                Ok(text) => fields.push((name, text.to_owned())),
                // No endpoint has a parameter that is a file, and unknown parameters are ignored.
                Err(_) if is_file => {}
                Err(_) => {
                    return Err(Error::new(Code::InvalidRequest)
                        .detail(("A part of the body is not UTF-8.", "请求体的一部分不是 UTF-8。")));
                }
            }
        }
        Ok(Self { fields, objects })
    }
}

/// Adds the closing boundary, which some clients leave out. A body that was cut off never gets here, because its length
/// is known.
fn closed(body: Bytes, headers: &HeaderMap) -> Bytes {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = content_type.split(';').find_map(|part| part.trim().strip_prefix("boundary="));
    let Some(boundary) = boundary.map(|boundary| boundary.trim_matches('"')) else { return body };
    let end = format!("--{boundary}--");
    let has = |delimiter: &str| memchr::memmem::find(&body, delimiter.as_bytes()).is_some();
    // A body without any part is no form.
    if has(&end) || !has(&format!("--{boundary}\r\n")) {
        return body;
    }
    [&body[..], b"\r\n", end.as_bytes(), b"\r\n"].concat().into()
}

/// Writes fields and the members of the objects, byte for byte, as one object.
fn json_of(fields: &[(String, String)], objects: &[String]) -> Result<String> {
    let mut members = Vec::with_capacity(fields.len() + objects.len());
    for object in objects {
        let no_json = |error| {
            Error::new(Code::InvalidJson)
                .detail(("A part of the body is not JSON.", "请求体的一部分不是 JSON。"))
                .caused_by(error)
        };
        serde_json::from_str::<&RawValue>(object).map_err(no_json)?;
        let inner = object.strip_prefix('{').and_then(|object| object.strip_suffix('}')).unwrap_or_default().trim();
        members.extend((!inner.is_empty()).then(|| inner.to_owned()));
    }
    for (name, value) in fields {
        let [name, value] = [name, value].map(|text| serde_json::Value::from(text.as_str()));
        members.push(format!("{name}:{value}"));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn invalid_multipart() -> Error {
    Error::new(Code::InvalidRequest)
        .detail(("The body is not a valid multipart form.", "请求体不是有效的 multipart 表单。"))
}

fn damaged(error: MultipartError) -> Error {
    invalid_multipart().caused_by(error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    const LIMIT: usize = 1 << 10;

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(body: &[u8], headers: &[(header::HeaderName, &'static str)]) -> Result<String> {
        let mut headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        let unpacked = unpack(Bytes::copy_from_slice(body), &mut headers, LIMIT, |name| name == "a", |_| Ok(()));
        let body = pollster::block_on(unpacked)?;
        assert!(!headers.contains_key(header::CONTENT_ENCODING));
        Ok(String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn gzip_is_unpacked_up_to_the_limit() {
        for coding in ["gzip", "x-gzip", "GZIP"] {
            assert_eq!(unpacked(&gzip(b"a=1"), &[(header::CONTENT_ENCODING, coding)]).unwrap(), "a=1");
        }
        let gzipped = |body: &[u8]| unpacked(&gzip(body), &[(header::CONTENT_ENCODING, "gzip")]);
        assert_eq!(gzipped(&[b'a'; LIMIT]).unwrap().len(), LIMIT);
        assert_eq!(gzipped(&[b'a'; LIMIT + 1]).unwrap_err().code, Code::BodyTooLarge);
        assert_eq!(gzipped(&vec![b'a'; 1 << 24]).unwrap_err().code, Code::BodyTooLarge);
    }

    #[test]
    fn damaged_and_unknown_codings_are_refused() {
        let code = |body: &[u8], coding| unpacked(body, &[(header::CONTENT_ENCODING, coding)]).unwrap_err().code;
        assert_eq!(code(b"a=1", "gzip"), Code::InvalidRequest);
        let whole = gzip(b"a=1");
        assert_eq!(code(&whole[..whole.len() - 1], "gzip"), Code::InvalidRequest);
        for coding in ["br", "deflate", "gzip, gzip"] {
            assert_eq!(code(&whole, coding), Code::UnsupportedMediaType, "{coding}");
        }
    }

    #[test]
    fn multipart_forms_become_forms() {
        let content_type = [(header::CONTENT_TYPE, "multipart/form-data; boundary=x")];
        let body = "--x\r\nContent-Disposition: form-data; name=\"nickname\"\r\n\r\n青 山&=\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.json\"\r\n\
                    Content-Type: application/json\r\n\r\n[1]\r\n--x--\r\n";
        assert_eq!(unpacked(body.as_bytes(), &content_type).unwrap(), "nickname=%E9%9D%92+%E5%B1%B1%26%3D&a=%5B1%5D");
        let image = b"--x\r\nContent-Disposition: form-data; name=\"i\"; filename=\"i\"\r\n\r\n\xff\xd8\r\n--x--\r\n";
        assert_eq!(unpacked(image, &content_type).unwrap(), "");
        let unclosed = b"--x\r\nContent-Disposition: form-data; name=\"i\"\r\n\r\n1";
        assert_eq!(unpacked(unclosed, &content_type).unwrap(), "i=1");
        let quoted = [(header::CONTENT_TYPE, "multipart/form-data; charset=utf-8; boundary=\"x\"")];
        assert_eq!(unpacked(unclosed, &quoted).unwrap(), "i=1");
        for damaged in [&b"--x\r\nContent-Disposition: form-data; na"[..], b"a=1"] {
            assert_eq!(unpacked(damaged, &content_type).unwrap_err().code, Code::InvalidRequest);
        }
        // A part that is a JSON object holds parameters, unless it is one itself.
        let part = |name: &str, json: &str| {
            format!(
                "--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\nContent-Type: application/json\r\n\r\n{json}\r\n"
            )
        };
        let mixed = format!("{}{}--x--", part("a", "{}"), part("data", "{ \"b\": 1.0,\"c\":null }"));
        assert_eq!(unpacked(mixed.as_bytes(), &content_type).unwrap(), r#"{"b": 1.0,"c":null,"a":"{}"}"#);
        for invalid in ["{\"b\":", "{},{}"] {
            let invalid = format!("{}--x--", part("data", invalid));
            assert_eq!(unpacked(invalid.as_bytes(), &content_type).unwrap_err().code, Code::InvalidJson);
        }
        let without_boundary = [(header::CONTENT_TYPE, "multipart/form-data")];
        assert_eq!(unpacked(body.as_bytes(), &without_boundary).unwrap_err().code, Code::InvalidRequest);
    }
}
