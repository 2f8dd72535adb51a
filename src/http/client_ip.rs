//! Determines a request's client address behind proxies.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the client's address: the peer, or, if the peer is a trusted proxy, the last hop in `X-Forwarded-For` that
/// is not a trusted proxy. Entries written by the client come before that hop and are never used.
pub fn client_ip(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = peer.to_canonical();
    if !is_trusted(&client) {
        return client;
    }
    let lines = headers.get_all(FORWARDED_FOR).iter();
    let hops = lines.rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    for hop in hops {
        // Our proxies write addresses only; anything else, and all entries before it, is untrusted.
        let Some(address) = address_of(hop) else { return client };
        client = address.to_canonical();
        if !is_trusted(&client) {
            return client;
        }
    }
    client
}

/// Parses the address of a hop, with or without a port.
fn address_of(hop: &[u8]) -> Option<IpAddr> {
    let hop = str::from_utf8(hop).ok()?.trim();
    hop.parse().or_else(|_| hop.parse::<SocketAddr>().map(|address| address.ip())).ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn seen(peer: &str, forwarded: &[&str]) -> String {
        seen_in_bytes(peer, &forwarded.iter().map(|line| line.as_bytes()).collect::<Vec<_>>())
    }

    fn seen_in_bytes(peer: &str, forwarded: &[&[u8]]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_bytes(line).unwrap());
        }
        let trusted = ["127.0.0.0/8".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        client_ip(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn trusts_the_header_of_trusted_peers_only() {
        assert_eq!(seen("203.0.113.1", &["198.51.100.7"]), "203.0.113.1");
        assert_eq!(seen("127.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(seen("::ffff:127.0.0.1", &["198.51.100.7"]), "198.51.100.7");
    }

    #[test]
    fn ignores_ports() {
        assert_eq!(seen("127.0.0.1", &["198.51.100.7:4711"]), "198.51.100.7");
        assert_eq!(seen("127.0.0.1", &["1.1.1.1, [2001:db8::1]:4711, 10.0.0.2:80"]), "2001:db8::1");
    }

    #[test]
    fn ignores_addresses_that_the_client_wrote() {
        assert_eq!(seen("127.0.0.1", &["1.1.1.1, 198.51.100.7"]), "198.51.100.7");
        assert_eq!(seen("127.0.0.1", &["1.1.1.1", "198.51.100.7, 10.0.0.2"]), "198.51.100.7");
        assert_eq!(seen("127.0.0.1", &["1.1.1.1, nonsense, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(seen("127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(seen_in_bytes("127.0.0.1", &[b"\xff, 198.51.100.7"]), "198.51.100.7");
    }

    mod properties {
        use std::net::Ipv4Addr;

        use proptest::prelude::*;

        proptest! {
            #[test]
            fn client_entries_never_replace_the_address_of_the_proxy(
                claimed in proptest::collection::vec("[0-9a-f.:, ]{0,40}|[ -~]{0,40}|[ -~é\u{ff0c}]{1,9}", 0..4),
                seen: u32,
                is_appended: bool,
            ) {
                let last = Ipv4Addr::from(seen);
                prop_assume!(!last.is_loopback() && last.octets()[0] != 10);
                let last = last.to_string();
                let mut lines = claimed;
                match lines.last_mut() {
                    Some(line) if is_appended => *line = format!("{line}, {last}"),
                    _ => lines.push(last.clone()),
                }
                let lines: Vec<_> = lines.iter().map(String::as_bytes).collect();
                prop_assert_eq!(super::seen_in_bytes("127.0.0.1", &lines), last.as_str());
                prop_assert_eq!(super::seen_in_bytes("203.0.113.9", &lines), "203.0.113.9");
            }
        }
    }
}
