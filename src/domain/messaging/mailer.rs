//! Sends email through the configured provider, behind a circuit breaker and a limit of concurrent messages.

use std::{sync::Arc, time::Duration};

use crate::{
    concurrency::semaphore::{WaitLimits, WaitingSemaphore},
    config::Config,
    providers::{
        breaker::CircuitBreaker,
        email::{EmailSender, letter::LetterWriter},
    },
};

/// The limits of messages passed to one provider at the same time. A slow provider leaves threads for other work, and one
/// client leaves permits for others.
pub const MESSAGE_LIMITS: WaitLimits =
    WaitLimits { permits: 64, permits_per_key: 4, waiting: 64, waiting_per_key: 16, max_wait: Duration::from_secs(5) };

/// The email provider with its breaker and permits.
pub struct Mailer {
    pub sender: Box<dyn EmailSender>,
    pub letters: LetterWriter,
    pub breaker: Arc<CircuitBreaker>,
    /// Limits concurrent messages, also of each client network.
    pub permits: WaitingSemaphore<String>,
}

impl Mailer {
    pub fn new(sender: Box<dyn EmailSender>, letters: LetterWriter) -> Self {
        Self {
            sender,
            letters,
            breaker: Arc::new(CircuitBreaker::with_defaults("email")),
            permits: WaitingSemaphore::new(MESSAGE_LIMITS),
        }
    }
}

/// Reads the templates of messages.
///
/// # Errors
/// All faults of the operator's files, each beginning with the name of the setting.
pub fn letters(config: &Config) -> Result<LetterWriter, Vec<String>> {
    let directory = config.email.template_dir.as_ref().map(|directory| directory.0.as_path());
    LetterWriter::load(&config.brand.name, directory)
}
