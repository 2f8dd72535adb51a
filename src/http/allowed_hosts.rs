//! Checks the `Host` of requests to listeners that are not public.
//!
//! A web page can point its own name at a loopback or private address and then call the listener as its own origin (DNS
//! rebinding). The `Host` still contains that name.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::http::{HeaderMap, header, uri::Authority};

use crate::config::ServerConfig;

/// The allowed hosts of a listener. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AllowedHosts(Option<Arc<[String]>>);

impl AllowedHosts {
    /// Allows every name, for public listeners.
    pub fn any() -> Self {
        Self(None)
    }

    /// Allows the names of the service, and hosts that no web page can have: addresses, `localhost` and names without a
    /// dot.
    pub fn names_of(server: &ServerConfig) -> Self {
        let public = server.public_url.as_deref().and_then(|url| url::Url::parse(url).ok());
        let public = public.and_then(|url| url.host_str().map(ToOwned::to_owned));
        let names = server.domain.iter().chain(&server.hosts).cloned().chain(public);
        Self(Some(names.map(|name| name.to_ascii_lowercase()).collect()))
    }

    /// Returns true if the request may be served. Browsers always send a `Host`.
    pub fn allows(&self, headers: &HeaderMap) -> bool {
        let (Some(names), Some(host)) = (&self.0, headers.get(header::HOST)) else { return true };
        let host = host.to_str().unwrap_or_default();
        // The usual hosts of such a listener, recognised without a copy.
        if host.parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok() {
            return true;
        }
        host.parse::<Authority>().is_ok_and(|authority| {
            if authority.as_str().contains('@') {
                return false;
            }
            let name = authority.host().trim_end_matches('.').to_ascii_lowercase();
            is_unclaimable(&name) || names.contains(&name)
        })
    }
}

/// Returns true for hosts that no foreign web page can have.
fn is_unclaimable(host: &str) -> bool {
    let is_address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    is_address || !host.contains('.') || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::config::Config;

    #[test]
    fn allows_names_of_the_service_and_those_no_page_can_have() {
        let mut server = Config::defaults().unwrap().server;
        server.public_url = Some("https://API.example.com:8443/v".into());
        server.hosts = vec!["yarrow.internal.example".into()];
        let hosts = AllowedHosts::names_of(&server);
        let allows =
            |host: &'static str| hosts.allows(&HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]));
        for host in [
            "127.0.0.1:8080",
            "[::1]:8080",
            "192.0.2.1",
            "localhost:80",
            "yarrow.localhost",
            "yarrow:8080",
            "api.example.com",
            "API.example.com.:443",
            "yarrow.internal.example",
        ] {
            assert!(allows(host), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example:8080", "a.api.example.com", "localhost.evil.example", "", "a@b"]
        {
            assert!(!allows(host), "{host}");
        }
        assert!(hosts.allows(&HeaderMap::new()));
    }
}
