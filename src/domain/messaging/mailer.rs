//! Sends email through the configured provider, behind a circuit breaker and a limit of concurrent messages.

use std::sync::Arc;

use crate::{
    concurrency::semaphore::Semaphore,
    providers::{breaker::CircuitBreaker, email::EmailSender},
};

/// Messages passed to the mail server at the same time, so that a slow provider leaves threads for other work.
const MAX_CONCURRENT_MESSAGES: u32 = 32;

/// The email provider with its breaker and permits.
pub struct Mailer {
    pub sender: Box<dyn EmailSender>,
    pub breaker: Arc<CircuitBreaker>,
    pub permits: Semaphore,
}

impl Mailer {
    pub fn new(sender: Box<dyn EmailSender>) -> Self {
        Self {
            sender,
            breaker: Arc::new(CircuitBreaker::with_defaults("email")),
            permits: Semaphore::new(MAX_CONCURRENT_MESSAGES),
        }
    }
}
