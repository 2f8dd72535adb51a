//! The claim of a term, as the bucket and a superseded machine store it.

use serde::{Deserialize, Serialize};

/// A claim of a term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermClaim {
    pub machine: String,
    /// Milliseconds since 1970.
    pub at: i64,
    pub version: String,
    /// The term before.
    pub from: u64,
    /// Distinguishes the claims of cloned machines.
    pub(super) nonce: String,
}

/// A term and its claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermHolder {
    pub term: u64,
    pub claim: TermClaim,
}
