//! Limits open connections, in total and for each client network.

use std::{net::IpAddr, sync::Arc};

use super::connection::StreamLimits;
use crate::{
    app::App,
    concurrency::semaphore::{KeyedPermit, KeyedSemaphore},
    domain::identity::codes::client_network,
};

/// Counts connections, in total and by network. Clones share the counts.
#[derive(Clone)]
pub struct ConnectionLimiter {
    pub limits: StreamLimits,
    most_per_network: u32,
    is_exempt: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// By the client network of a subscriber.
    open: KeyedSemaphore<String>,
}

/// The permit of one open connection.
pub struct ConnectionPermit {
    pub peer: IpAddr,
    _permit: KeyedPermit<String>,
}

impl ConnectionLimiter {
    pub fn new(app: &App) -> Self {
        let proxies = app.core.config.server.trusted_proxies.clone();
        let limits = &app.core.config.limits;
        Self {
            limits: StreamLimits { head: limits.header_timeout, idle: limits.idle_timeout },
            most_per_network: limits.connections_per_client,
            is_exempt: Arc::new(move |peer| proxies.iter().any(|network| network.contains(&peer))),
            open: KeyedSemaphore::new(limits.connections),
        }
    }

    /// Returns a permit for a connection from this peer, or `None` if there are too many. Trusted proxies are exempt
    /// from the limit of a network.
    pub fn admit(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let most = if (self.is_exempt)(peer) { u32::MAX } else { self.most_per_network };
        self.open.try_acquire(client_network(peer), most).map(|permit| ConnectionPermit { peer, _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn limits_the_network_of_a_subscriber() {
        let limits = StreamLimits { head: Duration::from_secs(1), idle: Duration::from_secs(1) };
        let limiter = ConnectionLimiter {
            limits,
            most_per_network: 2,
            is_exempt: Arc::new(|_| false),
            open: KeyedSemaphore::new(10),
        };
        let admit = |peer: &str| limiter.admit(peer.parse().unwrap());
        let permits: Vec<_> = ["2001:db8::1", "2001:db8::2:1"].into_iter().map(|peer| admit(peer).unwrap()).collect();
        assert!(admit("2001:db8:0:0:ffff::1").is_none());
        let others = ["2001:db8:0:1::1", "192.0.2.1", "192.0.2.2"].map(|peer| admit(peer).is_some());
        assert_eq!(others, [true; 3]);
        drop(permits);
        assert!(admit("2001:db8:0:0:ffff::1").is_some());
    }
}
