//! External providers, each behind one trait per subject.
//!
//! Owns the providers' protocols and the meaning of their responses; nothing else in the program opens an HTTP
//! connection. It knows no users, tables, prices or HTTP statuses of our own. A provider's free text leaves it only as
//! [`ProviderWords`], because it may repeat the user's words.
//!
//! The calls block. A caller runs them on the blocking pool behind its own semaphore, and passes wall-clock time in;
//! only elapsed time is measured here.

pub mod acs3;
pub mod authority;
pub mod breaker;
pub mod client;
pub mod email;
pub mod llm;
pub mod moderation;
pub mod factory;
mod google_account;
mod http2;
pub mod http_template;
pub mod identity;
mod nonce;
pub mod push;
pub mod object_storage;
pub mod payment;
mod zip;
mod percent;
pub mod rsa;
mod shanghai_time;
mod x509;
mod jws;
mod jwks;
mod json;
mod retry_after;
pub mod sms;
pub mod standard_webhook;
pub mod webhook;

use std::{fmt, time::Duration};

use self::llm::TokenUsage;
use crate::error::{Code, Error};

/// Returns the wall-clock time in milliseconds since 1970. Passed in, because only the application reads the clock.
pub type WallClock = Box<dyn Fn() -> i64 + Send + Sync>;

/// Prints one line of text.
pub type LineWriter = Box<dyn Fn(&str) + Send + Sync>;

/// A failed call to a provider.
///
/// Safe to log: `Display` and `Debug` show only codes and identifiers, shortened and cleaned. They omit `words`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind, which decides the caller's reaction.
    pub kind: FailureKind,
    /// The driver that failed, as it is named in the configuration.
    pub provider: &'static str,
    /// The provider's own code if it sent one, else one of our own, such as `connect_timeout` or `http_502`.
    pub code: String,
    /// The identifier under which the provider's support finds the call.
    pub request_id: Option<String>,
    /// The delay that the provider asked for, or the length of its limit's window.
    pub retry_after: Option<Duration>,
    /// The usage that a language model's provider counted: unusable responses are billed, too.
    pub usage: Option<Box<TokenUsage>>,
    /// The provider's explanation, for support only: no log or error shows it.
    pub words: Option<ProviderWords>,
    /// The address of the call, if it gave no usable response.
    pub target: Option<Box<CallTarget>>,
}

/// The address of a call without path and query, which may hold secrets, and the setting that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTarget {
    origin: String,
    setting: &'static str,
}

/// A provider's confirmation that it accepted a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageReceipt {
    /// The driver that sent it, if the configured one chooses among several.
    pub provider: Option<&'static str>,
    /// The provider's identifier of the message, if it has one.
    pub provider_id: Option<String>,
    pub words: Option<ProviderWords>,
}

/// A provider's free text about one message. It may repeat the recipient and the code, so its `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderWords(Box<str>);

impl ProviderWords {
    /// Returns the text on one line without control characters, or `None` if there is none.
    pub fn new(text: &str) -> Option<Self> {
        let printable = text.chars().map(|character| if character.is_control() { ' ' } else { character });
        let printable: String = printable.take(MAX_WORDS_LENGTH).collect();
        let line = printable.split_whitespace().collect::<Vec<_>>().join(" ");
        (!line.is_empty()).then(|| Self(line.into()))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProviderWords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ProviderWords").finish_non_exhaustive()
    }
}

/// The kinds of failure that callers treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// No connection was established (name not found, refused, TLS handshake failed): certainly not accepted.
    Unreachable,
    /// A time limit passed. Unless it was the limit for connecting, the provider may have acted.
    TimedOut,
    /// The connection was lost, or the provider crashed, after the request had been sent.
    OutcomeUnknown,
    /// Throttled or overloaded: the provider did nothing and may do it later.
    Busy,
    /// The provider's rate limit for this one recipient. It serves all others.
    RecipientLimited,
    /// This request is refused permanently; another one may pass.
    Refused,
    /// The provider refuses the content of the request or withholds its response because of it.
    ContentRefused,
    /// Key, rights, template, model name or balance: no request will pass until the operator acts.
    Misconfigured,
    /// The provider sent a response that cannot be parsed or is incomplete.
    InvalidResponse,
    /// The provider completed its response normally, but the response is unusable: empty, far too long, or ended for an
    /// unknown reason. The request may have caused that, so it says nothing about the provider's health.
    Unusable,
    /// The call was cancelled because our own caller disconnected.
    Cancelled,
    /// Nothing was sent, because too many of our own callers wait for the same answer.
    Overloaded,
}

impl FailureKind {
    /// Returns the kind of an error status of a payment provider. 409 means that an equal request is running.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Misconfigured,
            409 | 429 => Self::Busy,
            500.. => Self::OutcomeUnknown,
            400..=499 => Self::Refused,
            _ => Self::InvalidResponse,
        }
    }
}

impl Failure {
    /// Creates a failure with a code.
    pub fn new(kind: FailureKind, provider: &'static str, code: impl Into<String>) -> Self {
        let code = code.into();
        Self { kind, provider, code, request_id: None, retry_after: None, usage: None, words: None, target: None }
    }

    /// Adds the address of the call and the setting that names it.
    #[must_use]
    pub fn at(mut self, setting: &'static str, url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        self.target = Some(Box::new(CallTarget { origin: format!("{scheme}://{host}"), setting }));
        self
    }

    /// Adds the provider's request identifier, cleaned for logs.
    #[must_use]
    pub fn with_request_id(mut self, request_id: Option<&str>) -> Self {
        self.request_id = request_id.and_then(clean_code);
        self
    }

    /// Adds `request_id` if there is none yet.
    #[must_use]
    pub fn or_request_id(self, request_id: Option<&str>) -> Self {
        if self.request_id.is_some() { self } else { self.with_request_id(request_id) }
    }

    /// Adds the delay that the provider asked for.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// Adds the usage counted before the failure, if any.
    #[must_use]
    pub fn with_usage(mut self, usage: Option<TokenUsage>) -> Self {
        self.usage = usage.map(Box::new).or(self.usage);
        self
    }

    /// Adds the provider's explanation.
    #[must_use]
    pub fn with_words(mut self, words: Option<ProviderWords>) -> Self {
        self.words = words.or(self.words);
        self
    }

    /// Returns the operator's next step, if the failure is one that an operator can mend.
    const fn next_step(&self) -> Option<&'static str> {
        match self.code.as_bytes() {
            b"name_not_found" => Some("check the host name, and the name server of this machine"),
            b"connect_failed" | b"connection_failed" | b"connect_timeout" => {
                Some("check the address, and the firewall of this machine")
            }
            b"tls_failed" => Some("check whether the address uses TLS, its certificate, and this machine's clock"),
            b"not_http" => Some("check whether a server of this provider answers there"),
            _ if matches!(self.kind, FailureKind::Misconfigured) => {
                Some("check the provider's settings (address, key, names) and the account there")
            }
            _ => None,
        }
    }

    /// Returns true if the same call may succeed later without any change.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            FailureKind::Unreachable
            | FailureKind::TimedOut
            | FailureKind::OutcomeUnknown
            | FailureKind::Busy
            | FailureKind::RecipientLimited
            | FailureKind::Overloaded => true,
            FailureKind::Refused
            | FailureKind::ContentRefused
            | FailureKind::Misconfigured
            | FailureKind::InvalidResponse
            | FailureKind::Unusable
            | FailureKind::Cancelled => false,
        }
    }

    /// Returns true if the provider certainly did not act, so that the call can be repeated and its quota refunded.
    pub fn is_certainly_not_accepted(&self) -> bool {
        match self.kind {
            FailureKind::Unreachable
            | FailureKind::Busy
            | FailureKind::RecipientLimited
            | FailureKind::Refused
            | FailureKind::ContentRefused
            | FailureKind::Misconfigured
            | FailureKind::Overloaded => true,
            FailureKind::TimedOut => self.code == client::CONNECT_TIMEOUT,
            FailureKind::OutcomeUnknown
            | FailureKind::InvalidResponse
            | FailureKind::Unusable
            | FailureKind::Cancelled => false,
        }
    }

    /// Returns the failure of a call that changes something: its outcome is unknown if the provider may have acted.
    #[must_use]
    pub fn with_unknown_outcome(self) -> Self {
        let kind = if self.is_certainly_not_accepted() { self.kind } else { FailureKind::OutcomeUnknown };
        Self { kind, ..self }
    }

    /// Returns true if the provider fails for all callers and not only for this request. A breaker counts these.
    pub fn is_outage(&self) -> bool {
        self.is_fault_of_provider() || self.kind == FailureKind::Misconfigured
    }

    /// Returns true if the provider or the network is at fault. A user's request cannot cause such a failure, or one user
    /// could block the provider for all.
    pub fn is_fault_of_provider(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Unreachable
                | FailureKind::TimedOut
                | FailureKind::OutcomeUnknown
                | FailureKind::Busy
                | FailureKind::InvalidResponse
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "provider {} failed: {} ({})", self.provider, self.kind, self.code)?;
        if let Some(request_id) = &self.request_id {
            write!(formatter, ", request {request_id}")?;
        }
        if let Some(target) = &self.target {
            write!(formatter, " at {} (`{}`)", target.origin, target.setting)?;
        }
        match self.next_step() {
            Some(step) => write!(formatter, "; {step}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    /// Maps the failure to our own error: the provider is slow, unavailable, or failed.
    fn from(failure: Failure) -> Self {
        let code = match failure.kind {
            FailureKind::TimedOut | FailureKind::OutcomeUnknown => Code::ProviderTimeout,
            FailureKind::Unreachable | FailureKind::Busy | FailureKind::Cancelled => Code::ProviderUnavailable,
            FailureKind::Overloaded => Code::Overloaded,
            FailureKind::RecipientLimited => Code::TooManyRequests,
            FailureKind::ContentRefused => Code::ContentRejected,
            FailureKind::Refused
            | FailureKind::Misconfigured
            | FailureKind::InvalidResponse
            | FailureKind::Unusable => Code::ProviderFailed,
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
            Self::InvalidResponse => "invalid response",
            Self::Unusable => "unusable",
            Self::Cancelled => "cancelled",
            Self::Overloaded => "overloaded",
        })
    }
}

/// Maximum characters of a provider's explanation.
const MAX_WORDS_LENGTH: usize = 300;

/// Maximum characters of a provider's code or identifier.
const MAX_CODE_LENGTH: usize = 64;

/// Cleans a provider's code for logs: keeps only the usual characters of codes, up to a maximum length.
///
/// `None` if nothing is left. The provider controls these values, so they are not trusted: line breaks could forge log
/// lines.
pub fn clean_code(text: &str) -> Option<String> {
    let kept: String = text
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || "_-.:^".contains(*character))
        .take(MAX_CODE_LENGTH)
        .collect();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_a_failure_on_one_line() {
        let failure = Failure::new(FailureKind::Busy, "aliyun", "Throttling.User").with_request_id(Some("A1-\n B2"));
        assert_eq!(failure.to_string(), "provider aliyun failed: busy (Throttling.User), request A1-B2");
    }

    #[test]
    fn displays_the_address_its_setting_and_the_next_step() {
        let failure = Failure::new(FailureKind::Unreachable, "openai", "connect_failed");
        assert_eq!(
            failure.at("llm.base_url", "https://me:secret@llm.example.com:8443/v1/x?key=secret").to_string(),
            "provider openai failed: unreachable (connect_failed) at https://llm.example.com:8443 (`llm.base_url`); check \
             the address, and the firewall of this machine"
        );
        let failure = Failure::new(FailureKind::Misconfigured, "openai", "http_401");
        assert!(
            failure
                .to_string()
                .ends_with("(http_401); check the provider's settings (address, key, names) and the account there")
        );
    }

    #[test]
    fn only_a_connect_timeout_is_certainly_not_accepted() {
        assert!(Failure::new(FailureKind::TimedOut, "x", client::CONNECT_TIMEOUT).is_certainly_not_accepted());
        assert!(!Failure::new(FailureKind::TimedOut, "x", "total_timeout").is_certainly_not_accepted());
    }

    #[test]
    fn explanations_are_one_short_line_that_no_log_shows() {
        let words = ProviderWords::new(" User\r\n\tunknown\u{1b}[2J ").unwrap();
        assert_eq!(words.reveal(), "User unknown [2J");
        assert_eq!(ProviderWords::new(&"x".repeat(5_000)).unwrap().reveal().len(), MAX_WORDS_LENGTH);
        assert_eq!(ProviderWords::new(" \r\n"), None);
        let failure = Failure::new(FailureKind::Refused, "smtp", "smtp_550").with_words(Some(words));
        assert!(!format!("{failure} {failure:?}").contains("unknown"));
    }

    #[test]
    fn cleans_and_truncates_codes() {
        assert_eq!(clean_code(&"x".repeat(500)).map(|code| code.len()), Some(MAX_CODE_LENGTH));
        assert_eq!(clean_code("你好 \r\n"), None);
    }
}
