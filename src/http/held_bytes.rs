//! The memory that the service holds for its peers: heads and bodies of requests, and responses until they are read.
//!
//! One ledger for every listener and protocol, with two pools, so that bytes of strangers never refuse the request of a known
//! caller. A request enters it with [`HeldBytes::admit`], before its body is read, grows with what it makes the service
//! hold, and leaves it when the last byte of the response is with the kernel.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::http::HeaderMap;

use crate::{
    concurrency::{
        byte_pool::{BytePool, ByteShare},
        lock::lock_unpoisoned,
    },
    config::LimitsConfig,
    error::{Code, Error, Result},
};

/// Memory of a request with a short head, its future and its connection's part, without bodies.
const REQUEST: u64 = 10 << 10;
/// Memory of one header besides its text.
const HEADER: usize = 160;
/// Bytes of heads whose requests do not run yet.
const ARRIVING: u64 = 8 << 20;

/// The party that bytes are held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    User(i64),
    Account(i64),
    Key(i64),
    /// An IPv4 address, or the /64 of an IPv6 address.
    Network(u64),
}

/// The pools of all listeners.
pub struct HeldPools {
    arriving: Arc<BytePool<Peer>>,
    strangers: Arc<BytePool<Peer>>,
    known: Arc<BytePool<Peer>>,
    per_stranger: u64,
    per_client: u64,
    per_user: u64,
}

impl HeldPools {
    pub fn new(limits: &LimitsConfig) -> Self {
        Self {
            arriving: BytePool::new(ARRIVING),
            strangers: BytePool::new(limits.anonymous_bytes.0),
            known: BytePool::new(limits.held_bytes.0),
            per_stranger: limits.anonymous_bytes_per_client.0,
            per_client: limits.held_bytes_per_client.0,
            per_user: limits.held_bytes_per_user.0,
        }
    }

    /// Takes the bytes of a request whose head has arrived, until it runs: with HTTP/2 many may wait for that. Returns `None`
    /// if there are too many.
    pub fn arrive(&self, client: IpAddr, headers: &HeaderMap) -> Option<ByteShare<Peer>> {
        let network = Peer::Network(network_of(client));
        self.arriving.take([Some((network, ARRIVING)), None], texts(headers))
    }

    fn take(&self, known: Option<Peer>, client: IpAddr, bytes: u64) -> Option<ByteShare<Peer>> {
        let network = Peer::Network(network_of(client));
        match known {
            None => self.strangers.take([Some((network, self.per_stranger)), None], bytes),
            Some(known) => self.known.take([Some((known, self.per_user)), Some((network, self.per_client))], bytes),
        }
    }
}

fn texts(headers: &HeaderMap) -> u64 {
    headers.values().map(|value| (value.len() + HEADER) as u64).sum()
}

fn network_of(client: IpAddr) -> u64 {
    match client.to_canonical() {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => u64::try_from(address.to_bits() >> 64).unwrap_or_default(),
    }
}

/// The share of one request.
#[derive(Debug, Default)]
pub struct HeldBytes(Mutex<Option<ByteShare<Peer>>>);

impl HeldBytes {
    /// Enters a request into the ledger. Only the first call counts.
    ///
    /// # Errors
    /// `overloaded` if the caller, the client network or all callers together hold too many bytes.
    pub fn admit(&self, pools: &HeldPools, known: Option<Peer>, client: IpAddr, headers: &HeaderMap) -> Result<()> {
        let mut share = lock_unpoisoned(&self.0);
        if share.is_none() {
            *share = Some(pools.take(known, client, REQUEST + texts(headers)).ok_or_else(too_many_held)?);
        }
        Ok(())
    }

    /// Adds bytes to the share.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub fn grow(&self, bytes: usize) -> Result<()> {
        let mut share = lock_unpoisoned(&self.0);
        let has_grown = share.as_mut().is_some_and(|share| share.grow(bytes as u64));
        if has_grown { Ok(()) } else { Err(too_many_held()) }
    }

    /// Keeps no more than an idle stream takes.
    pub fn shrink(&self) {
        if let Some(share) = lock_unpoisoned(&self.0).as_mut() {
            share.shrink();
        }
    }
}

fn too_many_held() -> Error {
    let detail = (
        "Too many requests and responses of this user or network are still under way.",
        "该用户或网络仍在传输的请求和响应过多。",
    );
    Error::new(Code::Overloaded).detail(detail).retry_after(Duration::from_secs(1))
}

/// The memory that a response's body holds until it is read. Without this extension it is the size of the body.
#[derive(Clone, Copy, Debug)]
pub struct BodyBytes(pub usize);

impl BodyBytes {
    /// The bytes exist once for all responses, or enter the ledger as they are made.
    pub const NONE: Self = Self(0);
}
