//! The action of a notification: none, a page of the app, or a URL.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::{Host, Url};

use crate::{
    error::{Fault, FieldCode},
    types::HostPattern,
};

/// Maximum characters of a route.
const ROUTE: usize = 200;
/// Maximum bytes of a route's parameters as JSON.
const PARAMS: usize = 4096;
/// Maximum characters of a URL.
const ADDRESS: usize = 2000;

/// The action when the user taps the notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Payload {
    None {},
    OpenRoute {
        route: String,
        #[serde(default)]
        params: Map<String, Value>,
    },
    OpenUrl {
        url: String,
    },
}

impl Payload {
    /// Parses and validates a payload.
    ///
    /// # Errors
    /// `invalid_format`; `too_long`; `rejected` for a URL with a host that is not allowed.
    pub fn parse(json: &str, allowed_hosts: &[HostPattern]) -> Result<Self, Fault> {
        let payload: Self = serde_json::from_str(json).map_err(|_| {
            Fault::new(
                FieldCode::InvalidFormat,
                (
                    "must be {\"type\":\"none\"}, {\"type\":\"open_route\",\"route\":…,\"params\":{…}} or \
                     {\"type\":\"open_url\",\"url\":…}",
                    "须为 {\"type\":\"none\"}、{\"type\":\"open_route\",\"route\":…,\"params\":{…}} 或 \
                     {\"type\":\"open_url\",\"url\":…}",
                ),
            )
        })?;
        match payload {
            Self::None {} => Ok(payload),
            Self::OpenRoute { ref route, ref params } => check_route(route, params).map(|()| payload),
            Self::OpenUrl { url } => check_address(&url, allowed_hosts).map(|url| Self::OpenUrl { url: url.into() }),
        }
    }

    /// Returns the payload in its stored form.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a stored payload. A damaged one has no action.
    pub fn from_stored(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or(Self::None {})
    }
}

fn check_route(route: &str, params: &Map<String, Value>) -> Result<(), Fault> {
    if route.chars().count() > ROUTE {
        return Err(Fault::new(
            FieldCode::TooLong,
            (format!("the route must be at most {ROUTE} characters long"), format!("route 最多 {ROUTE} 个字")),
        ));
    }
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "/_-.:".contains(character);
    if route.is_empty() || !route.chars().all(is_allowed) {
        let message = (
            "the route must be the name of a page of the app: letters, digits and / _ - . :",
            "route 须为应用页面的名称：字母、数字和 / _ - . :",
        );
        return Err(Fault::new(FieldCode::InvalidFormat, message));
    }
    if Value::Object(params.clone()).to_string().len() > PARAMS {
        return Err(Fault::new(
            FieldCode::TooLong,
            (format!("the params must be at most {PARAMS} bytes of JSON"), format!("params 最多 {PARAMS} 字节 JSON")),
        ));
    }
    Ok(())
}

/// Accepts only HTTPS URLs to an allowed host, without user, password or port.
fn check_address(text: &str, allowed_hosts: &[HostPattern]) -> Result<Url, Fault> {
    let rejected = |message: (&'static str, &'static str)| Fault::new(FieldCode::Rejected, message);
    if text.chars().count() > ADDRESS {
        return Err(Fault::new(
            FieldCode::TooLong,
            (format!("the url must be at most {ADDRESS} characters long"), format!("url 最多 {ADDRESS} 个字")),
        ));
    }
    let url = Url::parse(text).map_err(|_| Fault::new(FieldCode::InvalidFormat, ("the url is invalid", "url 无效")))?;
    if url.scheme() != "https" {
        return Err(rejected(("the url must begin with https://", "url 须以 https:// 开头")));
    }
    if !url.username().is_empty() || url.password().is_some() || url.port().is_some() {
        return Err(rejected(("the url must have no user, password or port", "url 不能含有用户名、密码或端口")));
    }
    match url.host() {
        Some(Host::Domain(host)) if allowed_hosts.iter().any(|allowed| allowed.matches(host)) => Ok(url),
        _ => Err(rejected((
            "the url has a host that is not in the setting notifications.url_hosts",
            "url 的主机不在设置 notifications.url_hosts 中",
        ))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(json: &str) -> Result<Payload, FieldCode> {
        let allowed = ["app.example.com", "*.example.org"].map(|host| host.parse().unwrap());
        Payload::parse(json, &allowed).map_err(|fault| fault.code)
    }

    #[test]
    fn accepts_three_variants_only() {
        assert_eq!(parse(r#"{"type":"none"}"#), Ok(Payload::None {}));
        let route = parse(r#"{"type":"open_route","route":"sessions/detail","params":{"id":7}}"#).unwrap();
        assert_eq!(route.to_json(), r#"{"type":"open_route","route":"sessions/detail","params":{"id":7}}"#);
        let bare = parse(r#"{"type":"open_route","route":"points"}"#).unwrap();
        assert_eq!(bare.to_json(), r#"{"type":"open_route","route":"points","params":{}}"#);
        assert!(parse(r#"{"type":"open_url","url":"https://app.example.com/a?b=c#d"}"#).is_ok());
        for other in [
            "{}",
            "null",
            "[]",
            r#""none""#,
            r#"{"type":"None"}"#,
            r#"{"type":"none","url":"https://app.example.com"}"#,
            r#"{"type":"open_route"}"#,
            r#"{"type":"open_route","route":7}"#,
            r#"{"type":"open_route","route":""}"#,
            r#"{"type":"open_route","route":"a b"}"#,
            r#"{"type":"open_route","route":"a","params":[]}"#,
            r#"{"type":"open_route","route":"a","url":"https://app.example.com"}"#,
            r#"{"type":"open_url"}"#,
            r#"{"type":"open_url","url":"app.example.com"}"#,
            r#"{"type":"open_url","url":"https://"}"#,
            r#"{"type":"delete_account"}"#,
        ] {
            assert_eq!(parse(other), Err(FieldCode::InvalidFormat), "{other}");
        }
    }

    #[test]
    fn accepts_allowed_hosts_only() {
        let parse = |url: &str| parse(&serde_json::json!({ "type": "open_url", "url": url }).to_string());
        for url in [
            "https://APP.example.com",
            "https://app.example.com:443/x",
            "https://a.b.example.org/",
            "https://app.example.com./",
        ] {
            assert!(parse(url).is_ok(), "{url}");
        }
        for url in [
            "http://app.example.com",
            "javascript:alert(1)",
            "yarrow://app.example.com",
            "https://example.com",
            "https://evil.com/app.example.com",
            "https://app.example.com.evil.com",
            "https://xapp.example.com",
            "https://example.org",
            "https://evilexample.org",
            "https://user@app.example.com",
            "https://app.example.com@evil.com",
            "https://app.example.com:8443",
            "https://127.0.0.1",
            "https://[::1]",
            "https://evil.com\\@app.example.com",
        ] {
            assert_eq!(parse(url), Err(FieldCode::Rejected), "{url}");
        }
        assert_eq!(parse(&format!("https://app.example.com/{}", "x".repeat(2000))), Err(FieldCode::TooLong));
        assert_eq!(
            parse("https://app.example.com/ x").map(|payload| payload.to_json()),
            Ok(r#"{"type":"open_url","url":"https://app.example.com/%20x"}"#.into())
        );
    }

    proptest! {
        #[test]
        fn parses_any_text_without_panic(text in ".*") {
            let _ = parse(&text);
        }

        /// An accepted URL still has an allowed host when it is parsed again.
        #[test]
        fn accepted_urls_keep_an_allowed_host(before in "[a-z.@:/\\\\%]{0,12}", after in "[a-z.@:/\\\\%#?]{0,12}") {
            let url = format!("https://{before}app.example.com{after}");
            if let Ok(url) = check_address(&url, &["app.example.com".parse().unwrap()]) {
                let again = Url::parse(url.as_str()).unwrap();
                prop_assert_eq!(again.host_str().map(|host| host.trim_end_matches('.')), Some("app.example.com"));
                prop_assert_eq!(again.scheme(), "https");
            }
        }
    }
}
