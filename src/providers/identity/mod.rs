//! Services at which users prove an identity: Apple and Google by signed tokens, WeChat and the carriers by a code that
//! the service exchanges.
//!
//! A proof is good for one sign-in. WeChat and the carriers see to that themselves; for signed tokens the caller does.
//! An address in a proof counts only if the provider verified it.

pub mod id_token;
pub mod one_tap;
pub mod wechat;

use crate::providers::Failure;

/// The reason why a proof was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofFault {
    /// The proof is invalid, expired, used or meant for another app. The reason may be logged.
    Rejected(String),
    /// The provider did not answer, or refused this service.
    Failed(Failure),
}

impl From<Failure> for ProofFault {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn rejected(reason: impl Into<String>) -> ProofFault {
    ProofFault::Rejected(reason.into())
}
