//! Email: one message to one address.
//!
//! One trait, with one driver per protocol. A driver does not decide who may receive mail and how often; it only
//! reports the outcome of one message. Accepted means accepted by the mail server, not delivered.

pub mod console;
pub mod failover;
pub mod http;
pub mod letter;
pub mod smtp;

use std::fmt;

use super::{Failure, MessageReceipt};
use crate::types::EmailAddress;

/// Sends email.
pub trait EmailSender: Send + Sync {
    /// The driver's name in the configuration.
    fn name(&self) -> &'static str;

    /// Submits one message and blocks for up to some seconds.
    ///
    /// Sending cannot be undone or repeated safely. [`Failure::is_certainly_not_accepted`] tells whether the message
    /// was certainly not accepted.
    fn send(&self, message: &EmailMessage) -> Result<MessageReceipt, Failure>;

    /// Checks, without sending, that the server responds and accepts our password.
    fn probe(&self) -> Result<(), Failure>;
}

/// A message on its way to one address. Its `Debug` shows neither address nor text.
#[derive(Clone)]
pub struct EmailMessage {
    pub to: EmailAddress,
    pub subject: String,
    /// The plain text.
    pub text: String,
    /// The same text as HTML.
    pub html: String,
}

impl fmt::Debug for EmailMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Message").finish_non_exhaustive()
    }
}
