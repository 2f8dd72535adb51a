//! Public JSON that changes only with the program: built once, cached by clients and proxies, and confirmed by its
//! `ETag` with 304.

use std::marker::PhantomData;

use axum::{
    body::Body,
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
    types::{hex, sha256},
};

/// Clients ask again after a day. A new release may correct a text.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=86400");
/// Texts of our own follow the language.
const VARY: HeaderValue = HeaderValue::from_static("accept-encoding, accept-language");

/// A serialised resource with its `ETag`. Clones share the bytes.
#[derive(Clone)]
pub struct PublicContent {
    content: Precompressed,
    tag: HeaderValue,
}

/// A public resource of type `T` (200), or the confirmation that the client has it already (304).
pub struct PublicJson<T> {
    /// `None` if the client has it.
    content: Option<SelectedEncoding>,
    tag: HeaderValue,
    resource: PhantomData<fn() -> T>,
}

impl PublicContent {
    pub fn new(resource: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_string(resource).map_err(Error::internal)?;
        // Weak, because the plain and the compressed form differ in bytes.
        let tag = format!("W/\"{}\"", hex(&sha256(&text)[..16]));
        let tag = HeaderValue::try_from(tag).map_err(Error::internal)?;
        Ok(Self { content: Precompressed::new(text)?, tag })
    }

    /// Selects the response to a request with these headers.
    pub fn choose<T>(&self, headers: &HeaderMap) -> PublicJson<T> {
        let content = (!is_known(headers, &self.tag)).then(|| self.content.choose(headers));
        PublicJson { content, tag: self.tag.clone(), resource: PhantomData }
    }
}

/// A resource with an example for the API document.
pub trait PublicResource: Serialize + ToSchema + Send + 'static {
    fn example() -> Self;
}

impl<T: PublicResource> Reply for PublicJson<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let mut response = if let Some(content) = self.content {
            content.into_response(JSON)
        } else {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        headers.insert(header::VARY, VARY);
        headers.insert(header::ETAG, self.tag);
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        let mut description = Json::<T>::describe();
        let example = serde_json::to_value(T::example()).unwrap_or_default();
        let own = description.schemas.iter_mut().filter(|(name, _)| *name == T::name());
        own.for_each(|(_, schema)| schema["example"] = example.clone());
        description
            .statuses
            .push((StatusCode::NOT_MODIFIED, "The client's copy, named in `If-None-Match`, is current."));
        ReplyDescription { headers: &[Header::CACHE_CONTROL, Header::ETAG], ..description }
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
