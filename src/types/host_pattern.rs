//! Host names that a setting allows.

use std::{fmt, str::FromStr};

use url::Host;

/// A host name, or `*.` and a domain for all names below it. International names are kept as DNS has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

impl HostPattern {
    /// Returns true if this is the host, or a parent domain of it after `*.`.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        match self.0.strip_prefix("*.") {
            Some(domain) => host.strip_suffix(domain).is_some_and(|above| above.ends_with('.')),
            None => host == self.0,
        }
    }
}

impl FromStr for HostPattern {
    type Err = ();

    /// Rejects URLs, ports and IP addresses, which would match nothing.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (wildcard, name) = text.strip_prefix("*.").map_or(("", text), |name| ("*.", name));
        match Host::parse(name.trim_end_matches('.')) {
            Ok(Host::Domain(name)) if !name.is_empty() && !name.contains('*') => Ok(Self(format!("{wildcard}{name}"))),
            _ => Err(()),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_the_same_in_all_spellings() {
        let pattern: HostPattern = "例子.中国".parse().unwrap();
        assert!(pattern.matches("xn--fsqu00a.xn--fiqs8s") && !pattern.matches("a.xn--fsqu00a.xn--fiqs8s"));
        let below: HostPattern = "*.例子.中国".parse().unwrap();
        assert!(below.matches("a.xn--fsqu00a.xn--fiqs8s") && !below.matches("xn--fsqu00a.xn--fiqs8s"));
        for text in ["example.com", "Example.COM", "example.com."] {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), "example.com", "{text}");
        }
    }

    #[test]
    fn entries_that_could_not_match_are_refused() {
        for text in [
            "",
            "*",
            "*.",
            "a.*.com",
            "https://example.com",
            "example.com:443",
            "example.com/a",
            "user@example.com",
            "127.0.0.1",
            "[::1]",
            "exa mple.com",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }
}
