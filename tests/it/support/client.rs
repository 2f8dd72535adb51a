//! A fluent HTTP client: requests, responses and assertions on them.

use std::{sync::LazyLock, time::Duration};

use serde_json::Value;
use ureq::http;

use super::server::copies;

/// A signed-in user.
#[derive(Clone, Debug)]
pub struct Caller {
    pub user_id: String,
    pub phone_number: String,
    pub token: String,
}

/// A request body.
#[derive(Clone, Debug)]
pub enum Body {
    None,
    Bytes { content_type: Option<String>, bytes: Vec<u8> },
}

/// A request that has not been sent.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Body,
}

impl Request {
    pub fn new(method: &str, url: &str) -> Self {
        Self { method: method.into(), url: url.into(), headers: Vec::new(), body: Body::None }
    }

    pub fn by(self, caller: &Caller) -> Self {
        self.token(&caller.token)
    }

    pub fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn query(mut self, pairs: &[(&str, &str)]) -> Self {
        let separator = if self.url.contains('?') { '&' } else { '?' };
        self.url = format!("{}{separator}{}", self.url, encoded(pairs));
        self
    }

    pub fn form(self, pairs: &[(&str, &str)]) -> Self {
        self.bytes(Some("application/x-www-form-urlencoded"), encoded(pairs).into_bytes())
    }

    pub fn json(self, body: &Value) -> Self {
        self.raw_json(&body.to_string())
    }

    pub fn raw_json(self, body: &str) -> Self {
        self.bytes(Some("application/json"), body.as_bytes().to_vec())
    }

    pub fn bytes(mut self, content_type: Option<&str>, bytes: Vec<u8>) -> Self {
        self.body = Body::Bytes { content_type: content_type.map(Into::into), bytes };
        self
    }

    /// Sends the request. Panics if there is no response.
    pub fn send(self) -> Response {
        self.try_send().unwrap()
    }

    /// Sends the request. Returns an error if there is no response, for example because the server was killed.
    pub fn try_send(self) -> Result<Response, ureq::Error> {
        static AGENT: LazyLock<ureq::Agent> = LazyLock::new(|| {
            let config = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .allow_non_standard_methods(true)
                .timeout_global(Some(Duration::from_mins(1)))
                .max_idle_connections_per_host(1)
                .max_idle_age(Duration::from_secs(2));
            config.build().into()
        });
        let mut request = http::Request::builder().method(self.method.as_str()).uri(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = match self.body {
            Body::None => AGENT.run(request.body(()).unwrap())?,
            Body::Bytes { content_type, bytes } => {
                if let Some(content_type) = content_type {
                    request = request.header("content-type", content_type);
                }
                AGENT.run(request.body(bytes).unwrap())?
            }
        };
        if self.method != "GET" && self.url.contains("/admin/sensitive-word") {
            wait_for_words();
        }
        let (parts, mut body) = response.into_parts();
        Ok(Response { status: parts.status.as_u16(), headers: parts.headers, bytes: body.read_to_vec()? })
    }
}

/// Waits until every copy of the service knows the current words, which it looks for each second.
pub(super) fn wait_for_words() {
    if copies() > 1 {
        std::thread::sleep(Duration::from_millis(1_300));
    }
}

fn encoded(pairs: &[(&str, &str)]) -> String {
    let encode =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect::<Vec<_>>().join("&")
}

/// An HTTP response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub bytes: Vec<u8>,
}

impl Response {
    /// Panics unless the status matches.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// Panics unless the response is a problem with this status and code.
    #[track_caller]
    pub fn expect_problem(self, status: u16, code: &str) -> Self {
        let response = self.expect(status);
        assert_eq!(response.header("content-type"), Some("application/problem+json"), "{}", response.text());
        let problem = response.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["requestId"].as_str(), response.header("x-request-id"), "{problem}");
        response
    }

    /// Panics unless the response is `invalid_parameters` with exactly these fields and codes.
    #[track_caller]
    pub fn expect_fields(self, fields: &[(&str, &str)]) -> Self {
        let response = self.expect_problem(422, "invalid_parameters");
        let problem = response.json();
        let mut found: Vec<_> = problem["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| (error["field"].as_str().unwrap(), error["code"].as_str().unwrap()))
            .collect();
        let mut expected = fields.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{problem}");
        response
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}
