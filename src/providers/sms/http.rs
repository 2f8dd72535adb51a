//! Text messages by any gateway with an HTTP API, as the operator describes it.

use secrecy::ExposeSecret;

use super::{CodeMessage, SmsSender};
use crate::providers::{
    Failure, MessageReceipt,
    http_template::{HttpTemplate, HttpTemplateSettings},
};

/// The driver's name in the configuration.
pub const NAME: &str = "http";

/// Sends verification codes by one described request each.
pub struct HttpSms(HttpTemplate);

impl HttpSms {
    pub fn new(settings: HttpTemplateSettings) -> Self {
        Self(HttpTemplate::new(NAME, "sms.http.url", settings))
    }
}

impl SmsSender for HttpSms {
    fn name(&self) -> &'static str {
        NAME
    }

    fn send_code(&self, message: &CodeMessage) -> Result<MessageReceipt, Failure> {
        let digits = message.phone_number.trim_start_matches('+');
        let national = digits.strip_prefix("86").filter(|rest| rest.len() == 11).unwrap_or(digits);
        let minutes = message.expires_in_minutes.to_string();
        self.0.send(&[
            ("phone", &message.phone_number),
            ("digits", digits),
            ("national", national),
            ("code", message.code.expose_secret()),
            ("minutes", &minutes),
        ])
    }

    fn probe(&self) -> Result<(), Failure> {
        self.0.probe()
    }
}
