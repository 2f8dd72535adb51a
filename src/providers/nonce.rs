//! Random identifiers that requests carry. It owns no state and falls back to nothing: when the system's random
//! source fails, the call fails.

use super::{Failure, FailureKind};
use crate::types::{self, hex};

/// `N` random bytes as lower-case hexadecimal digits.
///
/// Fails as `Misconfigured` when the system's random source does, which happens where `/dev/urandom` is missing.
pub(super) fn random_hex<const N: usize>(provider: &'static str) -> Result<String, Failure> {
    random_bytes::<N>(provider).map(|bytes| hex(&bytes))
}

/// `N` random bytes; see [`random_hex`].
pub(super) fn random_bytes<const N: usize>(provider: &'static str) -> Result<[u8; N], Failure> {
    types::random_bytes().map_err(|_| Failure::new(FailureKind::Misconfigured, provider, "random_source"))
}
