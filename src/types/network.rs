//! IP networks, in one spelling.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};

/// Prefix length of `::ffff:0:0/96`, the IPv4 addresses written as IPv6.
const MAPPED: u8 = 96;

/// Parses a network such as `10.0.0.0/8`, or an address, which is the network of itself. IPv4 networks that are written
/// as IPv6 (`::ffff:10.0.0.0/104`) become IPv4 networks, as the addresses of clients do.
pub fn parse_network(text: &str) -> Option<IpNet> {
    let network: IpNet = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()?;
    let IpNet::V6(mapped) = network else { return Some(network) };
    let address = mapped.addr().to_ipv4_mapped();
    let length = mapped.prefix_len().checked_sub(MAPPED);
    Some(match address.zip(length) {
        Some((address, length)) => IpNet::V4(Ipv4Net::new(address, length).ok()?),
        None => network,
    })
}

/// Returns true for addresses that no client on the internet has: loopback, private and link-local ones, and those of
/// carrier NATs.
pub fn is_internal(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let is_carrier_nat = Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10).contains(&address);
            address.is_loopback() || address.is_private() || address.is_link_local() || is_carrier_nat
        }
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_one_spelling() {
        for (text, network) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.1", "10.0.0.1/32"),
            ("::ffff:10.0.0.1", "10.0.0.1/32"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::1", "::1/128"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(parse_network(text).unwrap().to_string(), network, "{text}");
        }
        assert!(parse_network("proxy").is_none());
    }

    #[test]
    fn internal_addresses_are_those_of_no_client() {
        let is_internal = |text: &str| super::is_internal(text.parse().unwrap());
        for text in ["127.0.0.1", "172.17.0.1", "::ffff:192.168.0.1", "100.64.0.1", "fd00::1", "fe80::1", "::1"] {
            assert!(is_internal(text), "{text}");
        }
        assert!(["203.0.113.1", "100.128.0.1", "2001:db8::1"].into_iter().all(|text| !is_internal(text)));
    }
}
