//! Cross-origin resource sharing: lets pages of `server.allowed_origins` call the API and read its responses.
//!
//! Apps send their token in a header, so that cookies and other credentials of the browser are never allowed.
//! Administrators' endpoints and the console are not shared with any page.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header},
};

use crate::config::{Config, ServerConfig};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// Two hours, the most that Chromium accepts.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
/// Request headers that pages may set, besides those in `auth.token_headers`.
const REQUEST_HEADERS: &str = "Authorization, Content-Type, Content-Encoding, Accept-Language, Cache-Control, \
                               Idempotency-Key, If-None-Match, Last-Event-ID, X-Request-Id, X-Requested-With";
/// Response headers that pages may read besides the few that are always readable.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Disposition, Content-Language, Date, Deprecation, ETag, Idempotency-Replayed, Link, RateLimit, \
     RateLimit-Policy, Retry-After, Sunset, WWW-Authenticate, X-Request-Id",
);

/// The CORS headers of a configuration.
pub struct Cors {
    is_on: bool,
    request_headers: HeaderValue,
}

impl Cors {
    pub fn new(config: &Config) -> Self {
        let headers = [REQUEST_HEADERS].into_iter().chain(config.auth.token_headers.iter().map(String::as_str));
        let request_headers = HeaderValue::from_str(&headers.collect::<Vec<_>>().join(", "));
        Self {
            is_on: !config.server.allowed_origins.is_empty(),
            request_headers: request_headers.unwrap_or(HeaderValue::from_static(REQUEST_HEADERS)),
        }
    }

    /// Returns the origin of the request's page if that page may read the response.
    pub fn origin_of<B>(&self, request: &Request<B>, server: &ServerConfig) -> Option<HeaderValue> {
        if !self.is_on || !serves(request.uri().path()) {
            return None;
        }
        let origin = request.headers().get(header::ORIGIN)?;
        origin.to_str().is_ok_and(|origin| allows(server, origin)).then(|| origin.clone())
    }

    /// Returns the response to a preflight request of a page that may call the API, without its origin.
    pub fn preflight<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let is_preflight = request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !is_preflight {
            return None;
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, self.request_headers.clone());
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        Some(response)
    }

    /// Adds the headers of a response. `origin` is the page that may read it.
    pub fn add_to(&self, headers: &mut HeaderMap, path_is_shared: bool, origin: Option<HeaderValue>) {
        if !self.is_on || !path_is_shared {
            return;
        }
        // Also without an origin: a cache must not give that response to a page.
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            if !headers.contains_key(header::ACCESS_CONTROL_MAX_AGE) {
                headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
            }
        }
    }
}

/// Returns true if the setting allows pages of this origin. `null` never is: sandboxed pages of all sites have it.
pub fn allows(server: &ServerConfig, origin: &str) -> bool {
    server.allowed_origins.iter().any(|allowed| allowed.matches(origin))
}

/// Returns true for paths that pages of other origins may call.
pub fn serves(path: &str) -> bool {
    !path.trim_start_matches('/').starts_with("admin")
}
