//! Delivery of alert messages by log, webhook and mail.

use secrecy::ExposeSecret;
use serde_json::json;

use super::{AlertEvent, AlertMessage, Alerts};
use crate::{
    core::Core,
    domain::operations::facts,
    error::{Error, Result},
    providers::webhook::Webhook,
    types::Locale,
};

pub(super) const MAIL: &str = "mail";

/// The outcome of sending a message through one channel.
#[derive(Debug)]
pub struct DeliveryResult {
    pub channel: &'static str,
    pub outcome: Result<()>,
}

/// Logs and sends a message. Returns true if a channel delivered it or none is configured.
pub(super) fn deliver(alerts: &Alerts, message: &AlertMessage) -> bool {
    let (rule, event, detail) = (&message.rule, message.event.name(), message.fact.detail());
    if message.event == AlertEvent::Resolved {
        tracing::info!(rule, event, detail, "alert");
    } else {
        tracing::warn!(rule, event, detail, "alert");
    }
    let results = send(alerts, message);
    for DeliveryResult { channel, outcome } in &results {
        if let Err(error) = outcome {
            tracing::warn!(%error, channel, rule, "an alert could not be delivered");
        }
    }
    results.is_empty() || results.iter().any(|result| result.outcome.is_ok())
}

/// Sends a message through every configured channel.
pub(super) fn send(alerts: &Alerts, message: &AlertMessage) -> Vec<DeliveryResult> {
    let (core, mailer) = (&alerts.core, &alerts.mailer);
    let settings = &core.config.alerts;
    let mut results = Vec::new();
    if let Some(url) = &settings.webhook_url {
        let webhook = Webhook::new(url.expose_secret(), settings.webhook_secret.as_ref());
        let outcome = webhook.send(&as_json(core, message)).map_err(Error::from);
        results.push(DeliveryResult { channel: "webhook", outcome });
    }
    for address in &settings.mail_to {
        let letter = mailer.letters.plain(address.clone(), Locale::English, &subject(message), &as_text(core, message));
        let sent = mailer.breaker.run(|| core.clock.now().0, || mailer.sender.send(&letter));
        results.push(DeliveryResult { channel: MAIL, outcome: sent.map(drop).map_err(Error::from) });
    }
    results
}

fn subject(message: &AlertMessage) -> String {
    let state = if message.event == AlertEvent::Resolved { "is over" } else { message.event.name() };
    format!("Yarrow: {} {state}", message.rule)
}

fn as_text(core: &Core, message: &AlertMessage) -> String {
    let installation = core.config.server.public_url.as_deref().unwrap_or("an installation without a public address");
    let AlertMessage { event, rule, fact, since } = message;
    let detail = fact.detail();
    let is_over = if *event == AlertEvent::Resolved { "This alert is over. " } else { "" };
    format!("{is_over}{detail}\n\nRule {rule}: {}, since {since}, at {installation}.", event.name())
}

fn as_json(core: &Core, message: &AlertMessage) -> String {
    json!({
        "event": message.event.name(),
        "rule": message.rule,
        "detail": message.fact.detail(),
        "values": facts::rule_and_values(&message.fact).1,
        "since": message.since,
        "at": core.clock.now(),
        "installation": core.config.server.public_url,
    })
    .to_string()
}
