//! Public content: cached by clients and proxies, and confirmed by its `ETag` with 304.

use std::marker::PhantomData;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    openapi::headers::Header,
    precompressed::{Precompressed, SelectedEncoding},
    reply::{JSON, Json, Reply, ReplyDescription},
};
use crate::{
    error::{Error, Result},
    types::{hex, sha256_of_parts},
};

/// For content that changes with the program alone. Clients ask again after a day: a new release may correct a text.
const DAY: HeaderValue = HeaderValue::from_static("public, max-age=86400");
/// For content that administrators change.
const MINUTE: HeaderValue = HeaderValue::from_static("public, max-age=60");
/// For content that must fit the running program. Clients ask each time.
const REVALIDATED: HeaderValue = HeaderValue::from_static("public, no-cache");
/// Texts of our own follow the language.
const VARY: HeaderValue = HeaderValue::from_static("accept-encoding, accept-language");

/// Headers of all responses with public content.
pub const PUBLIC_HEADERS: &[Header] = &[Header::CACHE_CONTROL, Header::ETAG];
/// The status of a client that has the content already.
pub const CONFIRMED: (StatusCode, &str) =
    (StatusCode::NOT_MODIFIED, "The client's copy, named in `If-None-Match`, is current.");

/// Content with its `ETag`, built once. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct PublicContent {
    content: Precompressed,
    tag: HeaderValue,
}

/// The response to one request: the content, or the confirmation that the client has it already.
pub struct PublicResponse {
    content: Option<ContentForm>,
    tag: HeaderValue,
    cache: HeaderValue,
}

enum ContentForm {
    Precompressed(SelectedEncoding),
    Plain(Bytes),
}

/// A public resource of type `T` (200), or the confirmation that the client has it already (304).
pub struct PublicJson<T> {
    response: PublicResponse,
    resource: PhantomData<fn() -> T>,
}

impl PublicContent {
    pub fn new(resource: &impl Serialize) -> Result<Self> {
        Self::of(Precompressed::new(serde_json::to_string(resource).map_err(Error::internal)?)?)
    }

    pub fn of(content: Precompressed) -> Result<Self> {
        let tag = tag_of(content.plain())?;
        Ok(Self { content, tag })
    }

    /// Selects the response to a request with these headers.
    pub fn choose<T>(&self, headers: &HeaderMap) -> PublicJson<T> {
        PublicJson { response: self.response(headers, DAY), resource: PhantomData }
    }

    /// Selects the response for content that clients confirm each time.
    pub fn choose_revalidated(&self, headers: &HeaderMap) -> PublicResponse {
        self.response(headers, REVALIDATED)
    }

    fn response(&self, headers: &HeaderMap, cache: HeaderValue) -> PublicResponse {
        let is_needed = !is_known(headers, &self.tag);
        let content = is_needed.then(|| ContentForm::Precompressed(self.content.choose(headers)));
        PublicResponse { content, tag: self.tag.clone(), cache }
    }
}

impl<T: Serialize> PublicJson<T> {
    /// Builds the response with a resource that administrators may change at any time.
    pub fn changing(resource: &T, headers: &HeaderMap) -> Result<Self> {
        let text = serde_json::to_vec(resource).map_err(Error::internal)?;
        let tag = tag_of(&text)?;
        let content = (!is_known(headers, &tag)).then(|| ContentForm::Plain(text.into()));
        Ok(Self { response: PublicResponse { content, tag, cache: MINUTE }, resource: PhantomData })
    }
}

/// Returns the tag of a content. It is weak, because the plain and the compressed forms differ in bytes.
fn tag_of(content: &[u8]) -> Result<HeaderValue> {
    let tag = format!("W/\"{}\"", hex(&sha256_of_parts(&[content])[..16]));
    HeaderValue::try_from(tag).map_err(Error::internal)
}

impl PublicResponse {
    pub fn into_response(self, content_type: HeaderValue) -> Response<Body> {
        let mut response = match self.content {
            Some(ContentForm::Precompressed(content)) => content.into_response(content_type),
            Some(ContentForm::Plain(bytes)) => {
                let mut response = Response::new(Body::from(bytes));
                response.headers_mut().insert(header::CONTENT_TYPE, content_type);
                response
            }
            None => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, self.cache);
        headers.insert(header::VARY, VARY);
        headers.insert(header::ETAG, self.tag);
        response
    }
}

/// A resource with an example for the API document.
pub trait PublicResource: Serialize + ToSchema + Sized + Send + 'static {
    /// Returns the example, or `None` for the one that the schema gives.
    fn example() -> Option<Self> {
        None
    }
}

impl<T: PublicResource> Reply for PublicJson<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        Ok(self.response.into_response(JSON))
    }

    fn describe() -> ReplyDescription {
        let mut description = Json::<T>::describe();
        if let Some(example) = T::example() {
            let example = serde_json::to_value(example).unwrap_or_default();
            let own = description.schemas.iter_mut().filter(|(name, _)| *name == T::name());
            own.for_each(|(_, schema)| schema["example"] = example.clone());
        }
        description.statuses.push(CONFIRMED);
        ReplyDescription { headers: PUBLIC_HEADERS, ..description }
    }
}

/// Returns true if `If-None-Match` names the tag. Tags are compared without their mark as weak.
pub fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let Ok(tag) = tag.to_str().map(opaque) else { return false };
    let sent = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    sent.flat_map(|list| list.split(',')).any(|one| one.trim() == "*" || opaque(one) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly_and_in_lists() {
        let tag = HeaderValue::from_static("W/\"ab\"");
        for (sent, expected) in [
            ("W/\"ab\"", true),
            ("\"ab\"", true),
            ("\"x\", W/\"ab\"", true),
            ("*", true),
            ("ab", false),
            ("\"AB\"", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(sent))]);
            assert_eq!(is_known(&headers, &tag), expected, "{sent}");
        }
        assert!(!is_known(&HeaderMap::new(), &tag));
    }
}
