//! Cross-origin resource sharing: lets pages of `server.allowed_origins` call the API and read its responses.
//!
//! Apps send their token in a header, so that cookies and other credentials of the browser are never allowed.
//! Administrators' endpoints and the console are not shared with any page.

use std::sync::Mutex;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header},
};

use crate::{
    concurrency::lock::lock_unpoisoned,
    config::{Config, ServerConfig},
    error::{Code, Error, Result},
    types::OriginPattern,
};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// Two hours, the most that Chromium accepts.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
/// Request headers that pages may set, besides those in `auth.token_headers` and `server.allowed_headers`.
const REQUEST_HEADERS: &str = "Authorization, Content-Type, Content-Encoding, Accept-Language, Cache-Control, \
                               Idempotency-Key, If-None-Match, Last-Event-ID, X-Request-Id, X-Requested-With";
/// The most warnings about pages that may not call the API, because their origins are the clients' words.
const MAX_WARNINGS: usize = 16;
/// Response headers that pages may read besides the few that are always readable.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Disposition, Content-Language, Date, Deprecation, ETag, Idempotency-Replayed, Link, RateLimit, \
     RateLimit-Policy, Retry-After, Sunset, WWW-Authenticate, X-Request-Id",
);

/// The CORS headers of a configuration.
pub struct Cors {
    is_on: bool,
    request_headers: HeaderValue,
    /// The warnings that were logged.
    warnings: Mutex<Vec<String>>,
}

impl Cors {
    pub fn new(config: &Config) -> Self {
        let others = config.auth.token_headers.iter().chain(&config.server.allowed_headers).map(String::as_str);
        let headers = [REQUEST_HEADERS].into_iter().chain(others).collect::<Vec<_>>();
        let request_headers = HeaderValue::from_str(&headers.join(", "));
        Self {
            is_on: !config.server.allowed_origins.is_empty(),
            request_headers: request_headers.unwrap_or(HeaderValue::from_static(REQUEST_HEADERS)),
            warnings: Mutex::default(),
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

    /// Returns the response to a preflight request, without its origin; none to other requests, and for paths that are
    /// not shared.
    ///
    /// # Errors
    /// `forbidden` for a page that may not call the API.
    pub fn preflight<B>(&self, request: &Request<B>, server: &ServerConfig) -> Result<Option<Response<Body>>> {
        let (headers, text) = (request.headers(), |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned());
        let is_preflight =
            request.method() == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        let origin = headers.get(header::ORIGIN).map(text).filter(|_| is_preflight && serves(request.uri().path()));
        let Some(origin) = origin else { return Ok(None) };
        if !allows(server, &origin) {
            if is_own(&origin, headers, server) {
                return Ok(None);
            }
            if origin.parse::<OriginPattern>().is_err() {
                return Err(Error::new(Code::Forbidden).detail((
                    "Pages without an origin, such as files and sandboxed frames, may not call the API.",
                    "没有来源的页面（如本地文件、沙盒框架）不能调用此接口。",
                )));
            }
            self.warn_once(&origin, "a page of another site may not call the API: server.allowed_origins can allow it");
            return Err(Error::new(Code::Forbidden).detail((
                format!(
                    "Pages of {origin} may not call the API. The operator can allow them in server.allowed_origins."
                ),
                format!("{origin} 的页面不能调用此接口。运营方可在 server.allowed_origins 中允许其来源。"),
            )));
        }
        let allowed = text(&self.request_headers).to_ascii_lowercase();
        for names in headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS).iter().map(text) {
            for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                if allowed.split(", ").all(|other| !other.eq_ignore_ascii_case(name)) {
                    self.warn_once(name, "a page may not send this header: server.allowed_headers can allow it");
                }
            }
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, self.request_headers.clone());
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        Ok(Some(response))
    }

    fn warn_once(&self, subject: &str, warning: &str) {
        let mut warnings = lock_unpoisoned(&self.warnings);
        if warnings.len() < MAX_WARNINGS && !warnings.iter().any(|known| known == subject) {
            tracing::warn!(subject, "{warning}");
            warnings.push(subject.to_owned());
        }
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

/// Returns true if the origin is that of the request's host, or of the public address: a proxy may replace `Host`.
pub fn is_own(origin: &str, headers: &HeaderMap, server: &ServerConfig) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let of_host = origin.split_once("://").is_some_and(|(_, authority)| host == Some(authority));
    let public = server.public_url.as_deref().and_then(|url| url::Url::parse(url).ok());
    of_host || public.is_some_and(|url| url.origin().ascii_serialization() == origin)
}
