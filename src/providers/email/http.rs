//! Email by any provider with an HTTP API, as the operator describes it.

use super::{EmailMessage, EmailSender};
use crate::providers::{
    Failure, MessageReceipt,
    http_template::{HttpTemplate, HttpTemplateSettings},
};

/// The driver's name in the configuration.
pub const NAME: &str = "http";

/// Sends each message by one described request.
pub struct HttpMailer {
    template: HttpTemplate,
    from: String,
}

impl HttpMailer {
    pub fn new(settings: HttpTemplateSettings, from: String) -> Self {
        Self { template: HttpTemplate::new(NAME, "email.http.url", settings), from }
    }
}

impl EmailSender for HttpMailer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn send(&self, message: &EmailMessage) -> Result<MessageReceipt, Failure> {
        self.template.send(&[
            ("from", &self.from),
            ("to", message.to.as_str()),
            ("subject", &message.subject),
            ("text", &message.text),
            ("html", &message.html),
        ])
    }

    fn probe(&self) -> Result<(), Failure> {
        self.template.probe()
    }
}
