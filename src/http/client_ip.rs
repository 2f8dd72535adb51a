//! Determines a request's client address behind proxies.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use crate::domain::operations::forwarding::ForwardingFault;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of a client, and why a header that may name another one was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    pub address: IpAddr,
    pub fault: Option<ForwardingFault>,
}

/// Returns the client's address: the peer, or, if the peer is a trusted proxy, the last hop in `X-Forwarded-For` that
/// is not a trusted proxy. Entries written by the client come before that hop and are never used.
pub fn client_ip(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> ClientAddress {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut address = peer.to_canonical();
    if !is_trusted(&address) {
        let fault = headers.contains_key(FORWARDED_FOR).then_some(ForwardingFault::UntrustedPeer);
        return ClientAddress { address, fault };
    }
    let lines = headers.get_all(FORWARDED_FOR).iter();
    let hops = lines.rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    for (index, hop) in hops.enumerate() {
        // Our proxies write addresses only; anything else, and all entries before it, is untrusted. The last entry is
        // from the peer itself.
        let Some(hop) = address_of(hop) else {
            return ClientAddress { address, fault: (index == 0).then_some(ForwardingFault::UnreadableHop) };
        };
        address = hop.to_canonical();
        if !is_trusted(&address) {
            break;
        }
    }
    ClientAddress { address, fault: None }
}

/// Parses the address of a hop: with or without a port, brackets, quotes and a zone.
fn address_of(hop: &[u8]) -> Option<IpAddr> {
    let hop = str::from_utf8(hop).ok()?.trim();
    let hop = hop.strip_prefix('"').and_then(|hop| hop.strip_suffix('"')).unwrap_or(hop);
    if let Ok(address) = hop.parse::<IpAddr>() {
        return Some(address);
    }
    let (host, port) = match hop.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => {
            hop.find(':').filter(|colon| hop.rfind(':') == Some(*colon)).map_or((hop, ""), |colon| hop.split_at(colon))
        }
    };
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    let without_zone = host.split_once('%').map_or(host, |(address, _)| address);
    let address = host.parse().or_else(|_| without_zone.parse::<Ipv6Addr>().map(IpAddr::from)).ok()?;
    is_port.then_some(address)
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
        client_ip(peer.parse().unwrap(), &headers, &trusted).address.to_string()
    }

    #[test]
    fn trusts_the_header_of_trusted_peers_only() {
        assert_eq!(seen("203.0.113.1", &["198.51.100.7"]), "203.0.113.1");
        assert_eq!(seen("127.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(seen("::ffff:127.0.0.1", &["198.51.100.7"]), "198.51.100.7");
    }

    #[test]
    fn reads_every_spelling_of_an_address() {
        for (hop, address) in [
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("[fe80::1%25eth0]:80", "fe80::1"),
            ("::ffff:198.51.100.7", "198.51.100.7"),
            ("[::ffff:198.51.100.7]:80", "198.51.100.7"),
            ("\"198.51.100.7\"", "198.51.100.7"),
            (" 198.51.100.7:80 ", "198.51.100.7"),
        ] {
            assert_eq!(seen("127.0.0.1", &[hop]), address, "{hop}");
        }
        for hop in ["", "unknown", "_hidden", "[2001:db8::1", "198.51.100.7:", "198.51.100.7:port", "[198.51.100.7]x"] {
            assert_eq!(seen("127.0.0.1", &[hop]), "127.0.0.1", "{hop}");
        }
    }

    #[test]
    fn names_headers_that_were_not_used() {
        let fault = |peer: &str, forwarded: &'static str| {
            let headers = HeaderMap::from_iter([(FORWARDED_FOR, HeaderValue::from_static(forwarded))]);
            client_ip(peer.parse().unwrap(), &headers, &["127.0.0.0/8".parse().unwrap()]).fault
        };
        assert_eq!(fault("172.17.0.1", "198.51.100.7"), Some(ForwardingFault::UntrustedPeer));
        assert_eq!(fault("127.0.0.1", "198.51.100.7, unknown"), Some(ForwardingFault::UnreadableHop));
        // Written by the client, before the proxy's own entry.
        assert_eq!(fault("127.0.0.1", "nonsense, 127.0.0.2"), None);
        assert_eq!(fault("127.0.0.1", "198.51.100.7"), None);
        assert_eq!(client_ip("172.17.0.1".parse().unwrap(), &HeaderMap::new(), &[]).fault, None);
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
