//! Origins of web pages that a setting allows.

use std::{fmt, str::FromStr};

use url::Host;

/// The origin of a page, such as `https://app.example.com`, or with `*.` before its host the origins of all hosts below
/// it. Kept as browsers send origins: in lower case, without the default port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginPattern {
    scheme: String,
    has_wildcard: bool,
    /// Host and port.
    authority: String,
}

impl OriginPattern {
    /// Returns true if the value of an `Origin` header is this origin, or one of those that it stands for.
    pub fn matches(&self, origin: &str) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        if scheme != self.scheme {
            return false;
        }
        if !self.has_wildcard {
            return authority == self.authority;
        }
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let above = authority.strip_suffix(self.authority.as_str()).and_then(|above| above.strip_suffix('.'));
        above.is_some_and(|above| above.split('.').all(is_label))
    }
}

impl FromStr for OriginPattern {
    type Err = ();

    /// Rejects `null`, which sandboxed pages of all sites share, and URLs with a path, which would match nothing.
    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.to_ascii_lowercase();
        let (scheme, rest) = text.split_once("://").ok_or(())?;
        let is_scheme_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !scheme.bytes().all(is_scheme_byte) {
            return Err(());
        }
        let (has_wildcard, rest) = rest.strip_prefix("*.").map_or((false, rest), |domain| (true, domain));
        let (name, port) = match rest.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, Some(port.parse::<u16>().map_err(drop)?)),
            _ => (rest, None),
        };
        let host = Host::parse(name).map_err(drop)?;
        // A name of one label would stand for all sites below a public suffix.
        let is_domain = matches!(&host, Host::Domain(domain) if domain.contains('.') || domain == "localhost");
        if name.is_empty() || name.contains('*') || has_wildcard && !is_domain {
            return Err(());
        }
        let is_default = matches!((scheme, port), ("https", Some(443)) | ("http", Some(80)));
        let port = port.filter(|_| !is_default).map(|port| format!(":{port}")).unwrap_or_default();
        Ok(Self { scheme: scheme.to_owned(), has_wildcard, authority: format!("{host}{port}") })
    }
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wildcard = if self.has_wildcard { "*." } else { "" };
        write!(formatter, "{}://{wildcard}{}", self.scheme, self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, origin: &str) -> bool {
        pattern.parse::<OriginPattern>().unwrap().matches(origin)
    }

    #[test]
    fn one_origin_matches_itself_alone() {
        for (pattern, origin, expected) in [
            ("https://app.example.com", "https://app.example.com", true),
            ("HTTPS://App.Example.com:443", "https://app.example.com", true),
            ("https://app.example.com", "http://app.example.com", false),
            ("https://app.example.com", "https://app.example.com:8443", false),
            ("https://app.example.com", "https://app.example.com.evil.example", false),
            ("https://app.example.com", "https://evil.example/https://app.example.com", false),
            ("https://app.example.com", "null", false),
            ("http://127.0.0.1:5173", "http://127.0.0.1:5173", true),
            ("http://[::1]:5173", "http://[::1]:5173", true),
            ("http://[::1]", "http://[::1]", true),
            ("capacitor://localhost", "capacitor://localhost", true),
            ("https://例子.中国", "https://xn--fsqu00a.xn--fiqs8s", true),
        ] {
            assert_eq!(matches(pattern, origin), expected, "{pattern} {origin}");
        }
    }

    #[test]
    fn a_wildcard_stands_for_names_below_a_domain() {
        for (origin, expected) in [
            ("https://a.example.com", true),
            ("https://a.b.example.com", true),
            ("https://example.com", false),
            ("https://.example.com", false),
            ("https://evilexample.com", false),
            ("https://a.example.com:8443", false),
            ("https://evil.example/a.example.com", false),
            ("https://evil.example#.example.com", false),
            ("http://a.example.com", false),
        ] {
            assert_eq!(matches("https://*.example.com", origin), expected, "{origin}");
        }
        assert_eq!(
            "https://*.Example.com:8443".parse::<OriginPattern>().unwrap().to_string(),
            "https://*.example.com:8443"
        );
    }

    #[test]
    fn entries_that_are_no_origin_are_refused() {
        for text in [
            "",
            "*",
            "null",
            "example.com",
            "https://",
            "https://*",
            "https://*.com",
            "https://*.1.2.3.4",
            "https://a.*.com",
            "https://example.com/",
            "https://example.com/a",
            "https://user@example.com",
            "https://example.com:port",
            "://example.com",
        ] {
            assert!(text.parse::<OriginPattern>().is_err(), "{text}");
        }
    }
}
