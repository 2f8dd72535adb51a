//! The claim of a term, as the bucket and a superseded machine store it.

use serde::{Deserialize, Serialize};

use crate::{keys::ServerKey, types::hex};

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
    /// An HMAC of term and claim under the server key. Former versions wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seal: Option<String>,
}

impl TermHolder {
    pub(super) fn seal_under(&self, key: &ServerKey) -> String {
        let TermClaim { machine, at, version, from, nonce, .. } = &self.claim;
        let [term, at, from] = [self.term.to_string(), at.to_string(), from.to_string()];
        hex(&key.authenticate(&["term", &term, machine, &at, version, &from, nonce]))
    }
}

/// A term and its claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermHolder {
    pub term: u64,
    pub claim: TermClaim,
}
