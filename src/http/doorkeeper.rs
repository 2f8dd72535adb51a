//! How many connections there may be, over all and from one subscriber.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use super::connection::StreamLimits;
use crate::{app::App, ops::codes::client_network};

/// Counts connections, over all and for each peer's network. Clones count together.
#[derive(Clone)]
pub struct Doorkeeper {
    pub limits: StreamLimits,
    most: u32,
    most_per_network: u32,
    is_exempt: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    over_all: u32,
    /// By the network that one subscriber has.
    of_network: HashMap<String, u32>,
}

/// One open connection, counted until it is dropped.
pub struct Visit {
    pub peer: IpAddr,
    open: Arc<Mutex<Open>>,
}

impl Doorkeeper {
    pub fn new(app: &App) -> Self {
        let proxies = app.config.server.trusted_proxies.clone();
        let limits = &app.config.limits;
        Self {
            limits: StreamLimits { head: limits.header_timeout, idle: limits.idle_timeout },
            most: limits.connections,
            most_per_network: limits.connections_per_client,
            is_exempt: Arc::new(move |peer| proxies.iter().any(|network| network.contains(&peer))),
            open: Arc::default(),
        }
    }

    /// Counts a connection from this peer. Nothing, and the connection is closed, if there are too many.
    pub fn admit(&self, peer: IpAddr) -> Option<Visit> {
        let network = client_network(peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_network = open.of_network.get(&network).copied().unwrap_or(0);
        if open.over_all >= self.most || (of_network >= self.most_per_network && !(self.is_exempt)(peer)) {
            return None;
        }
        open.over_all += 1;
        open.of_network.insert(network, of_network + 1);
        Some(Visit { peer, open: Arc::clone(&self.open) })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let network = client_network(self.peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.over_all = open.over_all.saturating_sub(1);
        if let Some(count) = open.of_network.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                open.of_network.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_subscriber_is_one_peer_whatever_its_addresses() {
        let limits = StreamLimits { head: Duration::from_secs(1), idle: Duration::from_secs(1) };
        let (is_exempt, open) = (Arc::new(|_| false), Arc::default());
        let door = Doorkeeper { limits, most: 10, most_per_network: 2, is_exempt, open };
        let admit = |peer: &str| door.admit(peer.parse().unwrap());
        let visits: Vec<_> = ["2001:db8::1", "2001:db8::2:1"].into_iter().map(|peer| admit(peer).unwrap()).collect();
        assert!(admit("2001:db8:0:0:ffff::1").is_none());
        let others = ["2001:db8:0:1::1", "192.0.2.1", "192.0.2.2"].map(|peer| admit(peer).is_some());
        assert_eq!(others, [true; 3]);
        drop(visits);
        assert!(admit("2001:db8:0:0:ffff::1").is_some());
    }
}
