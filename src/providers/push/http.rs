//! Pushes by any service with an HTTP API, as the operator describes it. Status 404 and 410 mean a dead token.

use super::{PushFault, PushMessage, PushSender, PushService, send_in_parallel};
use crate::providers::{
    Failure,
    http_template::{HttpTemplate, HttpTemplateSettings},
};

const NAME: &str = "http push";
const DEAD: [&str; 2] = ["http_404", "http_410"];

/// Sends each message by one described request.
pub struct HttpPush(HttpTemplate);

impl HttpPush {
    pub fn new(settings: HttpTemplateSettings) -> Self {
        Self(HttpTemplate::new(NAME, "push.http.url", settings))
    }

    fn send(&self, message: &PushMessage) -> Result<(), PushFault> {
        let sent = self.0.send(&[
            ("token", &message.token),
            ("id", &message.id),
            ("title", &message.title),
            ("body", &message.body),
            ("kind", message.collapse_key),
            ("notification", &message.notification_id),
            ("unread", &message.unread.to_string()),
            ("lifetime", &message.lifetime.to_string()),
        ]);
        match sent {
            Ok(_) => Ok(()),
            Err(failure) if DEAD.contains(&failure.code.as_str()) => Err(PushFault::DeadToken { since: None }),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl PushSender for HttpPush {
    fn service(&self) -> PushService {
        PushService::Http
    }

    fn send_all(&self, messages: &[PushMessage]) -> Vec<Result<(), PushFault>> {
        send_in_parallel(messages, |message| self.send(message))
    }

    fn probe(&self) -> Result<(), Failure> {
        self.0.probe()
    }
}
