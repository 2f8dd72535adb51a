//! The development driver: it prints the message to the console and sends nothing.
//!
//! The code that opens the application passes in the function that prints.

use secrecy::ExposeSecret;

use super::{CodeMessage, SmsSender};
use crate::{
    providers::{Failure, LineWriter, MessageReceipt},
    types::pluralize,
};

/// Prints codes instead of sending them.
pub struct ConsoleSms {
    write: LineWriter,
}

impl ConsoleSms {
    /// Creates a sender that passes every message to `write`.
    pub fn new(write: LineWriter) -> Self {
        Self { write }
    }
}

impl SmsSender for ConsoleSms {
    fn name(&self) -> &'static str {
        "console"
    }

    fn send_code(&self, message: &CodeMessage) -> Result<MessageReceipt, Failure> {
        let line = format!(
            "SMS to {}: the verification code is {}, valid for {}.",
            message.phone_number,
            message.code.expose_secret(),
            pluralize(message.expires_in_minutes, "minute", "minutes")
        );
        (self.write)(&line);
        Ok(MessageReceipt::default())
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn prints_the_message() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        let console = ConsoleSms::new(Box::new(move |line| {
            written.lock().unwrap().push(line.to_owned());
        }));
        let message =
            CodeMessage { phone_number: "+8613900000000".into(), code: "123456".into(), expires_in_minutes: 5 };
        assert_eq!(console.send_code(&message).unwrap().provider_id, None);
        let expected = "SMS to +8613900000000: the verification code is 123456, valid for 5 minutes.";
        assert_eq!(*lines.lock().unwrap(), [expected]);
        assert!(!format!("{message:?}").contains("139"));
    }
}
