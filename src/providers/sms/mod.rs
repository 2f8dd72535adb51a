//! Text messages with a verification code.
//!
//! One trait, with one driver per provider. A driver does not decide who may receive a code and how often; it only
//! reports the provider's response. Accepted means accepted by the provider, not delivered.

pub mod aliyun;
pub mod console;
pub mod failover;
pub mod http;
pub mod tencent;

use std::{fmt, sync::Arc};

use secrecy::SecretString;

use super::{Failure, MessageReceipt, breaker::CircuitBreaker};
use crate::types::named_enum;

/// Sends verification codes.
pub trait SmsSender: Send + Sync {
    /// The driver's name in the configuration.
    fn name(&self) -> &'static str;

    /// The names of all drivers that this one chooses among.
    fn names(&self) -> Vec<&'static str> {
        vec![self.name()]
    }

    /// The circuit breakers of the drivers that this one chooses among.
    fn breakers(&self) -> Vec<Arc<CircuitBreaker>> {
        Vec::new()
    }

    /// Submits one message and blocks for up to some seconds.
    ///
    /// Sending cannot be undone or repeated safely. [`Failure::is_certainly_not_accepted`] tells whether the message
    /// was certainly not accepted.
    fn send_code(&self, message: &CodeMessage) -> Result<MessageReceipt, Failure>;

    /// Queries the delivery of an accepted message. Returns `None` if the provider does not know it or does not report it.
    fn delivery(&self, _: &SentMessage) -> Result<Option<DeliveryReceipt>, Failure> {
        Ok(None)
    }

    /// Checks, without sending and at no cost, that the provider responds and accepts our key.
    fn probe(&self) -> Result<(), Failure>;
}

/// A code to be sent to a phone. Its `Debug` shows neither.
#[derive(Clone)]
pub struct CodeMessage {
    /// The recipient in E.164 form: `+`, country code, number.
    pub phone_number: String,
    /// The code to show.
    pub code: SecretString,
    /// Minutes until the code expires; drivers whose template has no such parameter omit it.
    pub expires_in_minutes: u32,
}

/// A message that the provider accepted. Has no `Debug`, because it names the recipient.
pub struct SentMessage {
    /// The recipient in E.164 form.
    pub phone_number: String,
    /// The driver that sent it.
    pub provider: &'static str,
    /// The identifier in the receipt.
    pub provider_id: String,
    /// In milliseconds since 1970.
    pub sent_at: i64,
}

named_enum! {
    /// The fate of an accepted message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DeliveryStatus {
        /// The carrier has not reported yet.
        Waiting = "waiting",
        Delivered = "delivered",
        Failed = "failed",
    }
}

/// A delivery receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryReceipt {
    pub status: DeliveryStatus,
    /// The carrier's code.
    pub code: Option<String>,
    /// The time of the carrier's report, in milliseconds since 1970.
    pub at: Option<i64>,
}

impl fmt::Debug for CodeMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CodeMessage")
            .field("expires_in_minutes", &self.expires_in_minutes)
            .finish_non_exhaustive()
    }
}
