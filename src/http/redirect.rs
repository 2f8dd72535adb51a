//! The plain listener beside TLS: it redirects to HTTPS and answers ACME challenges.
//!
//! It serves nothing else and reads no body, because data sent without encryption must not be used.

use std::net::SocketAddr;

use axum::{
    body::Body,
    http::{HeaderValue, Request, Response, StatusCode, header},
};

use super::tls::Challenges;
use crate::config::ServerConfig;

const CHALLENGE: &str = "/.well-known/acme-challenge/";
const HTTPS: u16 = 443;

/// The redirect target, and the ACME challenges.
#[derive(Clone)]
pub struct Redirect {
    challenges: Challenges,
    base: Option<String>,
    port: u16,
}

impl Redirect {
    /// `target` is the address of the TLS listener.
    pub fn new(server: &ServerConfig, target: SocketAddr, challenges: Challenges) -> Self {
        let public = server.public_url.as_ref().filter(|url| url.starts_with("https://"));
        let public = public.map(|url| url.trim_end_matches('/').to_owned());
        let named = server.domain.first().map(|name| address(name, target.port()));
        Self { challenges, base: public.or(named), port: target.port() }
    }

    pub fn respond<B>(&self, request: &Request<B>) -> Response<Body> {
        if let Some(token) = request.uri().path().strip_prefix(CHALLENGE) {
            return match self.challenges.answer(token) {
                Some(answer) => with(StatusCode::OK, header::CONTENT_TYPE, "application/octet-stream", answer.into()),
                None => with(StatusCode::NOT_FOUND, header::CACHE_CONTROL, "no-store", Body::empty()),
            };
        }
        let rest = request.uri().path_and_query().map_or("/", |rest| rest.as_str());
        match self.base.clone().or_else(|| self.base_of(request)) {
            Some(base) => {
                with(StatusCode::PERMANENT_REDIRECT, header::LOCATION, &format!("{base}{rest}"), Body::empty())
            }
            None => with(StatusCode::BAD_REQUEST, header::CACHE_CONTROL, "no-store", Body::empty()),
        }
    }

    /// Returns the base URL from the client's `Host`, used without a configured name.
    fn base_of<B>(&self, request: &Request<B>) -> Option<String> {
        let host = request.headers().get(header::HOST)?.to_str().ok()?;
        let authority: axum::http::uri::Authority = host.parse().ok()?;
        let is_plain = !authority.host().is_empty() && !authority.as_str().contains('@');
        is_plain.then(|| address(authority.host(), self.port))
    }
}

fn address(name: &str, port: u16) -> String {
    if port == HTTPS { format!("https://{name}") } else { format!("https://{name}:{port}") }
}

/// Builds a response that closes the connection.
fn with(status: StatusCode, name: header::HeaderName, value: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    match HeaderValue::from_str(value) {
        Ok(value) => drop(response.headers_mut().insert(name, value)),
        Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn sent(server: &ServerConfig, port: u16, host: &str, uri: &str) -> (u16, Option<String>) {
        let redirect = Redirect::new(server, SocketAddr::from(([127, 0, 0, 1], port)), Challenges::default());
        let request = Request::builder().uri(uri).header("host", host).body(()).unwrap();
        let answer = redirect.respond(&request);
        let location = answer.headers().get(header::LOCATION).map(|location| location.to_str().unwrap().to_owned());
        (answer.status().as_u16(), location)
    }

    #[test]
    fn redirects_to_the_configured_name_or_the_requested_host() {
        let mut server = Config::defaults().unwrap().server;
        let to = |location: &str| (308, Some(location.to_owned()));
        assert_eq!(sent(&server, 443, "a.test:80", "/x?y=1"), to("https://a.test/x?y=1"));
        assert_eq!(sent(&server, 8443, "[::1]:80", "/"), to("https://[::1]:8443/"));
        for host in ["", "user@a.test", "a b", "a.test/evil"] {
            assert_eq!(sent(&server, 443, host, "/"), (400, None), "{host}");
        }
        server.domain = vec!["b.test".into()];
        assert_eq!(sent(&server, 443, "a.test", "/x"), to("https://b.test/x"));
        server.public_url = Some("https://c.test:444/".into());
        assert_eq!(sent(&server, 443, "a.test", "/x"), to("https://c.test:444/x"));
        assert_eq!(sent(&server, 443, "a.test", "/.well-known/acme-challenge/x"), (404, None));
    }
}
