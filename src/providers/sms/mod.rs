//! Text messages that carry a verification code.
//!
//! One trait, one driver a provider. A driver refuses to decide who may be sent a code and how often; it only
//! reports what the provider made of one message. Accepted means accepted by the provider, not delivered.

pub mod aliyun;
pub mod console;

use std::fmt;

use secrecy::SecretString;

use super::Failure;

/// Sends verification codes.
pub trait SmsSender: Send + Sync {
    /// The driver's name in the configuration.
    fn name(&self) -> &'static str;

    /// Hands one message to the provider, blocking for some seconds at most.
    ///
    /// Sending cannot be taken back or repeated safely. [`Failure::is_certainly_not_accepted`] tells whether the
    /// message is certainly not on its way.
    fn send_code(&self, message: &CodeMessage) -> Result<Receipt, Failure>;

    /// Asks the provider something that sends nothing and costs nothing: whether it answers and takes our key.
    fn probe(&self) -> Result<(), Failure>;
}

/// A code on its way to a phone. Its `Debug` shows neither.
#[derive(Clone)]
pub struct CodeMessage {
    /// The recipient in E.164 form: `+`, country code, number.
    pub phone_number: String,
    /// The code to show.
    pub code: SecretString,
    /// How long the code will work; drivers whose template has no place for it leave it out.
    pub expires_in_minutes: u32,
}

/// The provider's word that it has taken a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Under which the provider keeps the message, if it keeps one.
    pub provider_id: Option<String>,
}

impl fmt::Debug for CodeMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CodeMessage")
            .field("expires_in_minutes", &self.expires_in_minutes)
            .finish_non_exhaustive()
    }
}
