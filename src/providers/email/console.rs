//! The development driver: it prints the message to the console and sends nothing.
//!
//! The code that opens the application passes in the function that prints.

use super::{EmailMessage, EmailSender};
use crate::providers::{Failure, LineWriter, MessageReceipt};

/// Prints messages instead of sending them.
pub struct ConsoleMailer {
    write: LineWriter,
}

impl ConsoleMailer {
    /// Creates a sender that passes every message to `write`.
    pub fn new(write: LineWriter) -> Self {
        Self { write }
    }
}

impl EmailSender for ConsoleMailer {
    fn name(&self) -> &'static str {
        "console"
    }

    fn send(&self, message: &EmailMessage) -> Result<MessageReceipt, Failure> {
        let words: Vec<_> = message.text.split_whitespace().collect();
        (self.write)(&format!("Email to {}: {}: {}", message.to, message.subject, words.join(" ")));
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
    use crate::{
        providers::email::letter::LetterWriter,
        types::{EmailAddress, Locale},
    };

    #[test]
    fn prints_the_message_as_one_line() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        let console = ConsoleMailer::new(Box::new(move |line| written.lock().unwrap().push(line.to_owned())));
        let to = EmailAddress::parse("reader@example.com").unwrap();
        let writer = LetterWriter::load("Yarrow", None).unwrap();
        let message = writer.plain(to, Locale::English, "Hello", "One.\n\nTwo.");
        console.send(&message).unwrap();
        assert_eq!(*lines.lock().unwrap(), ["Email to reader@example.com: Hello: One. Two."]);
        assert!(!format!("{message:?}").contains("reader"));
    }
}
