//! The outside world: every provider the service talks to, behind one trait a subject.
//!
//! This room owns the providers' protocols and the judgement of what their answers mean; nothing else in the
//! program opens an HTTP connection. It refuses to know users, tables, prices or HTTP statuses of our own,
//! and it never hands a provider's free text onwards, because such text may repeat what a user typed.
//!
//! The one surprise: the calls block. A caller runs them on the pool for long work, behind its own number of
//! permits, and passes wall-clock time in; only elapsed time is measured here.

pub mod acs3;
pub mod authority;
pub mod breaker;
pub mod client;
pub mod email;
pub mod llm;
pub mod moderation;
pub mod factory;
mod nonce;
pub mod object_storage;
pub mod payment;
mod percent;
pub mod rsa;
pub mod sms;
pub mod webhook;

use std::{fmt, time::Duration};

use self::llm::Usage;
use crate::error::{Code, Error};

/// Why a provider did not do what it was asked.
///
/// Everything in it is fit for a log line: codes and identifiers only, shortened and cleaned, no secret, no
/// address, no text of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the caller should do about it.
    pub kind: FailureKind,
    /// The driver that failed, as it is named in the configuration.
    pub provider: &'static str,
    /// The provider's own code where it sent one, else a code of this room such as `connect_timeout` or `http_502`.
    pub code: String,
    /// The identifier under which the provider's support finds the call.
    pub request_id: Option<String>,
    /// How long the provider asked us to stay away, or how long its limit lasts.
    pub retry_after: Option<Duration>,
    /// What the provider of a language model counted all the same: an answer that is none has been paid for, too.
    pub usage: Option<Usage>,
}

/// The kinds of failure that callers treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// No connection came about (name not found, refused, TLS handshake failed): certainly not accepted.
    Unreachable,
    /// A time limit passed. Unless it was the limit for connecting, the provider may have acted all the same.
    TimedOut,
    /// The connection was lost, or the provider broke down, after the request had been sent.
    OutcomeUnknown,
    /// Throttled or overloaded: the provider did nothing and may do it later.
    Busy,
    /// The provider's frequency limit for this one recipient. The provider is well and serves everybody else.
    RecipientLimited,
    /// This request is refused for good; another one may pass.
    Refused,
    /// The provider refuses the content of the request or withholds its answer because of it.
    ContentRefused,
    /// Key, rights, template, model name or balance: no request will pass until the operator acts.
    Misconfigured,
    /// The provider answered something that cannot be understood, or not the whole of it.
    Nonsense,
    /// The provider answered to an end of its own choice, and it is of no use: it says nothing, or far too much, or ended
    /// for a reason nobody knows. It may be what was asked for, so that it says nothing of the provider's health.
    Unusable,
    /// Our own caller went away and the call was dropped for it.
    Cancelled,
}

impl Failure {
    /// A failure with a code and nothing else known.
    pub fn new(kind: FailureKind, provider: &'static str, code: impl Into<String>) -> Self {
        Self { kind, provider, code: code.into(), request_id: None, retry_after: None, usage: None }
    }

    /// The same failure with the provider's request identifier, cleaned for logs.
    #[must_use]
    pub fn with_request_id(mut self, request_id: Option<&str>) -> Self {
        self.request_id = request_id.and_then(clean_code);
        self
    }

    /// The same failure with `request_id`, unless it has one already.
    #[must_use]
    pub fn or_request_id(self, request_id: Option<&str>) -> Self {
        if self.request_id.is_some() { self } else { self.with_request_id(request_id) }
    }

    /// The same failure with the time to stay away.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// The same failure with what was counted before it, if anything was.
    #[must_use]
    pub fn with_usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage.or(self.usage);
        self
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            FailureKind::Unreachable
            | FailureKind::TimedOut
            | FailureKind::OutcomeUnknown
            | FailureKind::Busy
            | FailureKind::RecipientLimited => true,
            FailureKind::Refused
            | FailureKind::ContentRefused
            | FailureKind::Misconfigured
            | FailureKind::Nonsense
            | FailureKind::Unusable
            | FailureKind::Cancelled => false,
        }
    }

    /// Whether the provider certainly did not act, so that repeating the call cannot do a thing twice and a quota
    /// taken for it may be given back.
    pub fn is_certainly_not_accepted(&self) -> bool {
        match self.kind {
            FailureKind::Unreachable
            | FailureKind::Busy
            | FailureKind::RecipientLimited
            | FailureKind::Refused
            | FailureKind::ContentRefused
            | FailureKind::Misconfigured => true,
            FailureKind::TimedOut => self.code == client::CONNECT_TIMEOUT,
            FailureKind::OutcomeUnknown | FailureKind::Nonsense | FailureKind::Unusable | FailureKind::Cancelled => {
                false
            }
        }
    }

    /// Whether the provider, or the way to it, is at fault, which is what a breaker counts: nothing that a user can bring
    /// about by what they ask, or one user could have the provider left alone for everybody.
    pub fn is_fault_of_provider(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Unreachable
                | FailureKind::TimedOut
                | FailureKind::OutcomeUnknown
                | FailureKind::Busy
                | FailureKind::Nonsense
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "provider {} failed: {} ({})", self.provider, self.kind, self.code)?;
        if let Some(request_id) = &self.request_id {
            write!(formatter, ", request {request_id}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    /// What a caller of ours is told: the service behind is slow, away, or of no help.
    fn from(failure: Failure) -> Self {
        let code = match failure.kind {
            FailureKind::TimedOut | FailureKind::OutcomeUnknown => Code::ProviderTimeout,
            FailureKind::Unreachable | FailureKind::Busy | FailureKind::Cancelled => Code::ProviderUnavailable,
            FailureKind::RecipientLimited => Code::TooManyRequests,
            FailureKind::ContentRefused => Code::ContentRejected,
            FailureKind::Refused | FailureKind::Misconfigured | FailureKind::Nonsense | FailureKind::Unusable => {
                Code::ProviderFailed
            }
        };
        Self::new(code).retry_after(failure.retry_after).caused_by(failure)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed out",
            Self::OutcomeUnknown => "outcome unknown",
            Self::Busy => "busy",
            Self::RecipientLimited => "recipient limited",
            Self::Refused => "refused",
            Self::ContentRefused => "content refused",
            Self::Misconfigured => "misconfigured",
            Self::Nonsense => "nonsense",
            Self::Unusable => "unusable",
            Self::Cancelled => "cancelled",
        })
    }
}

/// The longest code or identifier of a provider that is kept.
const LONGEST_CODE: usize = 64;

/// A provider's code made fit for logs: the characters that codes are made of, and not many of them.
///
/// `None` when nothing is left. A provider decides what stands in these members, so they are not trusted to be
/// codes: line breaks and blanks would let it write log lines of its own.
pub fn clean_code(text: &str) -> Option<String> {
    let kept: String = text
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || "_-.:^".contains(*character))
        .take(LONGEST_CODE)
        .collect();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reads_as_one_line_of_codes() {
        let failure = Failure::new(FailureKind::Busy, "aliyun", "Throttling.User").with_request_id(Some("A1-\n B2"));
        assert_eq!(failure.to_string(), "provider aliyun failed: busy (Throttling.User), request A1-B2");
    }

    #[test]
    fn only_a_timeout_of_connecting_is_certainly_not_accepted() {
        assert!(Failure::new(FailureKind::TimedOut, "x", client::CONNECT_TIMEOUT).is_certainly_not_accepted());
        assert!(!Failure::new(FailureKind::TimedOut, "x", "total_timeout").is_certainly_not_accepted());
    }

    #[test]
    fn codes_are_cut_and_cleaned() {
        assert_eq!(clean_code(&"x".repeat(500)).map(|code| code.len()), Some(LONGEST_CODE));
        assert_eq!(clean_code("你好 \r\n"), None);
    }
}
