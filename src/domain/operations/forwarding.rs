//! Notices reverse proxies whose `X-Forwarded-For` is not used, because then all clients share one address and its
//! limits.
//!
//! The server logs a warning at most once an hour and stores the last finding for `yarrow doctor`, which runs in another
//! process.

use std::{
    net::IpAddr,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    core::Core,
    domain::operations::settings,
    error::Result,
    store::{Read, Write},
    types::{Timestamp, is_internal},
};

/// A peer is reported this often.
const REPORT_INTERVAL: Duration = Duration::from_hours(1);
/// Findings are shown for this long.
const SHOWN_FOR: Duration = Duration::from_hours(24);

/// The reason why a forwarding header was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForwardingFault {
    /// The peer is not in `server.trusted_proxies`.
    UntrustedPeer,
    /// A trusted peer wrote something that is not an address.
    UnreadableHop,
}

/// The last peer whose header was not used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForwardingFinding {
    pub fault: ForwardingFault,
    pub peer: IpAddr,
    pub at: i64,
}

/// The classes of findings. Each is reported by itself, so that clients that send the header cannot hide a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// An internal address: most likely a proxy, such as the bridge of a container.
    Internal,
    /// Any other: a client that lies, or a proxy elsewhere.
    External,
}

impl Class {
    const ALL: [Self; 2] = [Self::Internal, Self::External];

    fn of(peer: IpAddr) -> Self {
        if is_internal(peer) { Self::Internal } else { Self::External }
    }

    const fn setting(self) -> &'static str {
        match self {
            Self::Internal => "forwarding.internal",
            Self::External => "forwarding.external",
        }
    }
}

/// The monitor of one process.
pub struct ForwardingMonitor {
    core: Core,
    throttles: [Throttle; Class::ALL.len()],
}

impl ForwardingMonitor {
    pub fn new(core: Core) -> Self {
        Self { core, throttles: Class::ALL.map(|_| Throttle::default()) }
    }

    /// Reports a header that was not used. Cheap if the class was reported within the hour.
    pub fn report(&self, peer: IpAddr, fault: ForwardingFault) {
        let class = Class::of(peer);
        if !self.throttles[class as usize].admits(Instant::now()) {
            return;
        }
        match fault {
            ForwardingFault::UntrustedPeer => tracing::warn!(
                %peer,
                "a peer sends X-Forwarded-For and is not trusted: if it is your proxy, add it to server.trusted_proxies, \
                 or all of its clients share one address and its limits"
            ),
            ForwardingFault::UnreadableHop => tracing::warn!(
                %peer,
                "a trusted proxy sends an X-Forwarded-For whose last entry is not an address: all of its clients share \
                 one address and its limits"
            ),
        }
        let at = self.core.clock.now().0;
        let store =
            move |tx: &Write<'_>| settings::put_json_in(tx, class.setting(), &ForwardingFinding { fault, peer, at });
        // Not awaited: the response does not depend on it.
        drop(self.core.store.write(store));
    }
}

/// Returns the findings of the last day, those of internal peers first.
pub fn findings_in(tx: &Read<'_>) -> Result<Vec<ForwardingFinding>> {
    let mut findings = Vec::new();
    for class in Class::ALL {
        findings.extend(settings::find_json_in::<ForwardingFinding>(tx, class.setting())?);
    }
    findings.retain(|finding| Timestamp(finding.at).is_within(SHOWN_FOR, tx.now));
    Ok(findings)
}

/// Admits one event in each interval.
#[derive(Default)]
struct Throttle {
    started: OnceLock<Instant>,
    /// Seconds after `started` at which the next event is admitted.
    next: AtomicU64,
}

impl Throttle {
    fn admits(&self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(*self.started.get_or_init(|| now)).as_secs();
        let next = self.next.load(Ordering::Relaxed);
        let after = elapsed + REPORT_INTERVAL.as_secs();
        elapsed >= next && self.next.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throttle_admits_one_event_an_hour() {
        let (throttle, start) = (Throttle::default(), Instant::now());
        let admitted =
            [0, 1, 3_599, 3_600, 3_601, 7_200].map(|after| throttle.admits(start + Duration::from_secs(after)));
        assert_eq!(admitted, [true, false, false, true, false, true]);
    }
}
