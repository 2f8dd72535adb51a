//! How a message goes out: by the log, by a webhook and by mail.

use secrecy::ExposeSecret;
use serde_json::json;

use super::{Event, Message};
use crate::{
    app::App,
    error::{Error, Result},
    providers::{email::letter, webhook::Webhook},
    types::Locale,
};

pub(super) const MAIL: &str = "mail";

/// A way by which messages go out, and what came of the last one.
#[derive(Debug)]
pub struct Delivery {
    pub channel: &'static str,
    pub outcome: Result<()>,
}

/// Sends a message and says whether anybody has it. The log always has.
pub(super) fn deliver(app: &App, message: &Message) -> bool {
    let (rule, event) = (&message.rule, message.event.name());
    if message.event == Event::Resolved {
        tracing::info!(rule, event, detail = message.detail, "alert");
    } else {
        tracing::warn!(rule, event, detail = message.detail, "alert");
    }
    let deliveries = send(app, message);
    for Delivery { channel, outcome } in &deliveries {
        if let Err(error) = outcome {
            tracing::warn!(%error, channel, rule, "an alert could not be delivered");
        }
    }
    deliveries.is_empty() || deliveries.iter().any(|delivery| delivery.outcome.is_ok())
}

/// Sends a message by every way that is configured.
pub(super) fn send(app: &App, message: &Message) -> Vec<Delivery> {
    let alerts = &app.config.alerts;
    let mut deliveries = Vec::new();
    if let Some(url) = &alerts.webhook_url {
        let webhook = Webhook::new(url.expose_secret(), alerts.webhook_secret.as_ref());
        let outcome = webhook.send(&as_json(app, message)).map_err(Error::from);
        deliveries.push(Delivery { channel: "webhook", outcome });
    }
    for address in &alerts.mail_to {
        let letter = letter::plain(address.clone(), Locale::English, &subject(message), &as_text(app, message));
        let outcome =
            app.mailer.breaker.run(|| app.clock.now().0, || app.mailer.sender.send(&letter)).map_err(Error::from);
        deliveries.push(Delivery { channel: MAIL, outcome });
    }
    deliveries
}

fn subject(message: &Message) -> String {
    format!("Yarrow: {} {}", message.rule, message.event.name())
}

fn as_text(app: &App, message: &Message) -> String {
    let installation = app.config.server.public_url.as_deref().unwrap_or("an installation without a public address");
    let Message { event, rule, detail, since } = message;
    format!("{detail}\n\nRule {rule}: {}, since {since}, at {installation}.", event.name())
}

fn as_json(app: &App, message: &Message) -> String {
    json!({
        "event": message.event.name(),
        "rule": message.rule,
        "detail": message.detail,
        "since": message.since,
        "at": app.clock.now(),
        "installation": app.config.server.public_url,
    })
    .to_string()
}
