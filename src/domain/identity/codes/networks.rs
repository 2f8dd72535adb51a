//! The networks of a client, for limits.
//!
//! A subscriber has an IPv4 address or a whole IPv6 /64. Somebody with a /56 or /48 could use each of its /64 networks
//! once, so the networks around a client have limits of their own.

use std::net::IpAddr;

use super::{WIDE, WIDEST};

/// The networks of a client, from its own to the widest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientNetworks {
    /// The IPv4 address, or the /64 of an IPv6 address.
    pub own: String,
    /// The /24 or /56.
    pub wide: String,
    /// The /48 of an IPv6 address.
    pub widest: Option<String>,
}

impl ClientNetworks {
    pub fn of(client: IpAddr) -> Self {
        match client.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                Self { own: address.to_string(), wide: format!("{a}.{b}.{c}.0/24"), widest: None }
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self {
                    own: format!("{a:x}:{b:x}:{c:x}:{d:x}::/64"),
                    wide: format!("{a:x}:{b:x}:{c:x}:{:x}::/56", d & 0xff00),
                    widest: Some(format!("{a:x}:{b:x}:{c:x}::/48")),
                }
            }
        }
    }

    /// Returns the networks, from the client's own to the widest.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> + Clone {
        [self.own.as_str(), self.wide.as_str()].into_iter().chain(self.widest.as_deref())
    }

    /// Returns each network with its limit, given the limit of one client.
    pub fn limits(&self, allowed: u32) -> impl Iterator<Item = (&str, u32)> {
        self.all().zip([1, WIDE, WIDEST].map(|times| allowed.saturating_mul(times)))
    }
}

/// Returns the network of a subscriber: the IPv4 address, or the /64 of an IPv6 address.
pub fn client_network(client: IpAddr) -> String {
    ClientNetworks::of(client).own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifies_clients_by_ipv4_address_or_ipv6_network() {
        let network = |text: &str| client_network(text.parse().unwrap());
        assert_eq!(network("203.0.113.9"), "203.0.113.9");
        assert_eq!(network("::ffff:203.0.113.9"), "203.0.113.9");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), network("2001:db8:1:2:ffff::1"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
    }

    #[test]
    fn wider_networks_contain_their_clients() {
        let of = |text: &str| ClientNetworks::of(text.parse().unwrap());
        assert_eq!(of("203.0.113.9").wide, of("203.0.113.200").wide);
        assert_ne!(of("203.0.113.9").wide, of("203.0.114.9").wide);
        assert_eq!(of("203.0.113.9").widest, None);
        assert_eq!(of("2001:db8:1:2::1").wide, of("2001:db8:1:ff::1").wide);
        assert_ne!(of("2001:db8:1:2::1").wide, of("2001:db8:1:102::1").wide);
        assert_eq!(of("2001:db8:1:2::1").widest, of("2001:db8:1:f002::1").widest);
        assert_ne!(of("2001:db8:1:2::1").widest, of("2001:db8:2:2::1").widest);
    }
}
