//! Sends the events of the outbox to the operator's URL, off the request path.
//!
//! Each event is sent at least once: a kill between the receiver's answer and its record repeats it with the same id. No
//! transaction is open during a call. Events may arrive in another order than they happened.

use std::time::Duration;

use secrecy::ExposeSecret;

use super::webhook_outbox::{self, WebhookEvent, WebhookResult};
use crate::{
    config::Config,
    core::Core,
    error::{Code, Error, Result},
    metrics::Counter,
    providers::{
        Failure, FailureKind,
        standard_webhook::{NAME, StandardWebhook},
    },
};

/// Events that are sent at once.
const BATCH: u32 = 8;
/// The pauses before each further attempt. The last one repeats.
const PAUSES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_mins(30),
    Duration::from_hours(1),
    Duration::from_hours(3),
];

/// The configured receiver of events.
pub struct Webhooks {
    pub core: Core,
    endpoint: Option<StandardWebhook>,
    pub metrics: WebhookMetrics,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct WebhookMetrics {
    pub delivered: Counter,
    /// Attempts that failed.
    pub failed: Counter,
    /// Events that were given up.
    pub given_up: Counter,
}

impl Webhooks {
    /// Builds the receiver, if it is configured.
    ///
    /// # Errors
    /// `configuration`.
    pub fn new(core: Core) -> Result<Self> {
        let endpoint = endpoint(&core.config).map_err(|fault| crate::config::configuration_error(&[fault]))?;
        Ok(Self { core, endpoint, metrics: WebhookMetrics::default() })
    }

    pub fn is_configured(&self) -> bool {
        self.endpoint.is_some()
    }

    fn endpoint(&self) -> Result<&StandardWebhook> {
        let missing = ("The operator has not set `webhooks.url`.", "运营方未设置 `webhooks.url`。");
        let missing = || Error::new(Code::NotConfigured).detail(missing);
        self.endpoint.as_ref().ok_or_else(missing)
    }
}

/// Builds the receiver, if it is configured.
///
/// # Errors
/// The fault of a setting.
pub fn endpoint(config: &Config) -> Result<Option<StandardWebhook>, String> {
    let Some(url) = &config.webhooks.url else { return Ok(None) };
    let secrets: Vec<&str> = config.webhooks.secrets.iter().map(ExposeSecret::expose_secret).collect();
    let endpoint = StandardWebhook::new(url.expose_secret(), &secrets, config.webhooks.timeout);
    endpoint.map(Some).map_err(|fault| format!("webhooks.{fault}"))
}

/// Sends everything that is due, until `is_running` returns false. Returns true if there was something.
///
/// # Errors
/// Storage errors.
pub fn run_due(webhooks: &Webhooks, is_running: &dyn Fn() -> bool) -> Result<bool> {
    let Some(endpoint) = &webhooks.endpoint else { return Ok(false) };
    let mut has_worked = false;
    while is_running() {
        let due = webhooks.core.store.read(|tx| webhook_outbox::list_due_in(tx, BATCH))?;
        if due.is_empty() {
            break;
        }
        has_worked = true;
        let outcomes = send_all(webhooks, endpoint, &due);
        let results = outcomes.into_iter().zip(&due).map(|(outcome, event)| result_of(webhooks, event, outcome));
        let results: Vec<_> = results.collect();
        let results: Vec<_> = due.into_iter().zip(results).collect();
        webhooks.core.store.write(move |tx| webhook_outbox::settle_in(tx, &results)).wait()?;
    }
    Ok(has_worked)
}

/// Sends events at once. One that cannot be sent fails alone.
fn send_all(webhooks: &Webhooks, endpoint: &StandardWebhook, events: &[WebhookEvent]) -> Vec<Result<(), Failure>> {
    let now = webhooks.core.clock.now().0 / 1000;
    let unsent = |code| Failure::new(FailureKind::Unusable, NAME, code);
    std::thread::scope(|scope| {
        let send = |event: &WebhookEvent| {
            let body = event.body().map_err(|_| unsent("event_damaged"))?;
            endpoint.send(&event.event_id, now, &body)
        };
        let running: Vec<_> = events.iter().map(|event| scope.spawn(move || send(event))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(unsent("sender_panicked")))
        };
        running.into_iter().map(join).collect()
    })
}

fn result_of(webhooks: &Webhooks, event: &WebhookEvent, outcome: Result<(), Failure>) -> WebhookResult {
    let Err(failure) = outcome else {
        webhooks.metrics.delivered.add(1);
        return WebhookResult::Delivered;
    };
    webhooks.metrics.failed.add(1);
    let now = webhooks.core.clock.now();
    let pause = PAUSES.get(event.attempts as usize).or(PAUSES.last()).copied().unwrap_or_default();
    let at = now.plus(failure.retry_after.unwrap_or_default().clamp(pause, pause * 4));
    // The receiver says that it is gone for good.
    let is_gone = failure.code == "http_410";
    if is_gone || at.since(event.created_at) > webhooks.core.config.webhooks.retry_for {
        webhooks.metrics.given_up.add(1);
        tracing::warn!(%failure, kind = event.kind.name(), "an event was given up; see `yarrow webhooks list`");
        return WebhookResult::GivenUp { failure: failure.code };
    }
    WebhookResult::Retry { at, failure: failure.code }
}

/// Sends a test event at once. Returns its id.
///
/// # Errors
/// `not_configured`; those of the receiver.
pub fn send_test(webhooks: &Webhooks) -> Result<String> {
    let endpoint = webhooks.endpoint()?;
    let now = webhooks.core.clock.now();
    let event = WebhookEvent::test(now)?;
    endpoint.send(&event.event_id, now.0 / 1000, &event.body()?)?;
    Ok(event.event_id)
}
