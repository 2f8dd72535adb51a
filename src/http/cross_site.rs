//! Rejects changes that a browser sends on behalf of another web site.
//!
//! Such a page can post forms to every address that its visitor can reach, with the visitor's network and limits. The
//! rules are those of Go's `http.CrossOriginProtection`: `Sec-Fetch-Site` decides, or else `Origin` compared with
//! `Host`. Requests without either do not come from a browser.

use axum::http::{HeaderName, HeaderValue, Method, Request, header};

use super::cors;
use crate::config::ServerConfig;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns true if the request comes from a page of another site that is not allowed. No page of another site is allowed
/// to send changes to administrators' endpoints.
pub fn is_foreign<B>(request: &Request<B>, server: &ServerConfig) -> bool {
    let headers = request.headers();
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return false;
    }
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    let is_foreign = match headers.get(FETCH_SITE).map(HeaderValue::as_bytes) {
        Some(b"same-origin" | b"none") => false,
        Some(_) => true,
        None => origin.is_some_and(|origin| !cors::is_own(origin, headers, server)),
    };
    is_foreign && !(cors::serves(request.uri().path()) && origin.is_some_and(|origin| cors::allows(server, origin)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn rejects_other_sites_only() {
        let mut server = Config::defaults().unwrap().server;
        server.public_url = Some("https://api.example.com/".into());
        server.allowed_origins = vec!["https://app.example.com".parse().unwrap()];
        let is_foreign = |method: Method, path: &str, site: &str, origin: &str| {
            let mut request = Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1:8080");
            for (name, value) in [(FETCH_SITE, site), (header::ORIGIN, origin)] {
                if !value.is_empty() {
                    request = request.header(name, value);
                }
            }
            super::is_foreign(&request.body(()).unwrap(), &server)
        };
        for (site, origin, expected) in [
            ("", "", false),
            ("same-origin", "", false),
            ("same-origin", "https://proxied.example", false),
            ("none", "", false),
            ("cross-site", "", true),
            ("cross-site", "https://evil.example", true),
            ("same-site", "https://other.example.com", true),
            ("cross-site", "https://app.example.com", false),
            ("", "https://evil.example", true),
            ("", "http://127.0.0.1:8080", false),
            ("", "http://127.0.0.1:80801", true),
            ("", "https://api.example.com", false),
            ("cross-site", "null", true),
        ] {
            assert_eq!(is_foreign(Method::POST, "/feedback", site, origin), expected, "{site} {origin}");
            assert!(!is_foreign(Method::GET, "/feedback", site, origin));
        }
        for path in ["/admin/login", "/admin/console/sign-in"] {
            assert!(is_foreign(Method::POST, path, "cross-site", "https://app.example.com"), "{path}");
            assert!(!is_foreign(Method::POST, path, "", "https://api.example.com"), "{path}");
        }
    }
}
