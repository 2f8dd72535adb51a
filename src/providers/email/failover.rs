//! Two mail providers: the second gets a message that the first certainly did not accept.

use std::sync::Arc;

use super::{EmailMessage, EmailSender};
use crate::providers::{Failure, MessageReceipt, WallClock, breaker::CircuitBreaker};

/// Sends each message by the first of two providers that accepts it.
pub struct FailoverMailer {
    first: Box<dyn EmailSender>,
    second: Box<dyn EmailSender>,
    /// The first provider's breaker, so that a provider that is down costs no time.
    breaker: Arc<CircuitBreaker>,
    clock: WallClock,
}

impl FailoverMailer {
    pub fn new(first: Box<dyn EmailSender>, second: Box<dyn EmailSender>, clock: WallClock) -> Self {
        Self { first, second, breaker: Arc::new(CircuitBreaker::with_defaults("email.first")), clock }
    }
}

impl EmailSender for FailoverMailer {
    fn name(&self) -> &'static str {
        self.first.name()
    }

    fn send(&self, message: &EmailMessage) -> Result<MessageReceipt, Failure> {
        let sent = self.breaker.run(|| (self.clock)(), || self.first.send(message));
        match sent {
            Err(failure) if failure.is_certainly_not_accepted() => {
                tracing::warn!(%failure, "the first mail provider did not accept a message; the second is tried");
                let receipt = self.second.send(message)?;
                Ok(MessageReceipt { provider: Some(self.second.name()), ..receipt })
            }
            sent => sent,
        }
    }

    fn probe(&self) -> Result<(), Failure> {
        self.first.probe().and_then(|()| self.second.probe())
    }
}
