//! The configured base address of a provider.

use ureq::http::Uri;

use crate::providers::{Failure, FailureKind};

/// A validated base address of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    base: String,
    host: String,
    host_header: String,
}

impl BaseUrl {
    /// Parses `http://host`, `https://host:port`, or either with a path. A trailing slash is dropped.
    ///
    /// Fails as `Misconfigured` for anything else: another scheme, no host, a query, or user information.
    pub fn parse(provider: &'static str, text: &str) -> Result<Self, Failure> {
        let fault = || Failure::new(FailureKind::Misconfigured, provider, "endpoint");
        let trimmed = text.trim().trim_end_matches('/');
        let uri: Uri = trimmed.parse().map_err(|_| fault())?;
        let default_port = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err(fault()),
        };
        let authority = uri.authority().ok_or_else(fault)?;
        if uri.query().is_some() || authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(fault());
        }
        let host = authority.host().to_ascii_lowercase();
        let host_header = match authority.port_u16() {
            Some(port) if port != default_port => format!("{host}:{port}"),
            _ => host.clone(),
        };
        Ok(Self { base: trimmed.to_owned(), host, host_header })
    }

    /// Returns the address without a trailing slash.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the address without its path.
    pub fn origin(&self) -> String {
        let (scheme, _) = self.base.split_once(':').unwrap_or_default();
        format!("{scheme}://{}/", self.host_header)
    }

    /// Returns the host in lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the value of the `host` header, with the port unless it is the scheme's default.
    pub fn host_header(&self) -> &str {
        &self.host_header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_path_and_omits_the_default_port() {
        let endpoint = BaseUrl::parse("x", "https://API.example.com:443/v1/").unwrap();
        assert_eq!(endpoint.base(), "https://API.example.com:443/v1");
        assert_eq!(endpoint.host(), "api.example.com");
        assert_eq!(endpoint.host_header(), "api.example.com");
        let endpoint = BaseUrl::parse("x", "http://127.0.0.1:8080").unwrap();
        assert_eq!(endpoint.host_header(), "127.0.0.1:8080");
    }

    #[test]
    fn rejects_invalid_endpoints_as_misconfigured() {
        for text in [
            "",
            "example.com",
            "ftp://example.com",
            "https://user:key@example.com",
            "https://example.com?a=b",
            "https://",
        ] {
            let failure = BaseUrl::parse("x", text).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Misconfigured, "{text}");
        }
    }
}
