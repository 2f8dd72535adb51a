//! Random identifiers for requests. If the system's random source fails, the call fails; there is no fallback.

use super::{Failure, FailureKind};
use crate::types::{self, hex};

/// Returns `N` random bytes as lower-case hexadecimal digits.
///
/// Fails as `Misconfigured` if the system's random source fails, which happens without `/dev/urandom`.
pub(super) fn random_hex<const N: usize>(provider: &'static str) -> Result<String, Failure> {
    random_bytes::<N>(provider).map(|bytes| hex(&bytes))
}

/// Returns `N` random bytes; see [`random_hex`].
pub(super) fn random_bytes<const N: usize>(provider: &'static str) -> Result<[u8; N], Failure> {
    types::random_bytes().map_err(|_| Failure::new(FailureKind::Misconfigured, provider, "random_source"))
}
