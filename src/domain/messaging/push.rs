//! Pushes notifications to phones, off the request path.
//!
//! A job takes due entries from the queue and decides again about each: the user may have read the notification, signed
//! out or switched its kind off, and quiet hours may have begun. No transaction is open while a service is called. After
//! a kill between the call and its record a push is sent again; it replaces itself on the phone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use ring::digest;

use super::{
    notifications::{self, InboxItem, NotificationKind},
    push_queue::{self, PushDevice, PushResult, QueuedPush},
};
use crate::{
    config::Config,
    core::Core,
    domain::identity::{preferences, tokens, users},
    error::{Code, Error, Result},
    metrics::Counter,
    providers::{
        Failure, FailureKind, WallClock,
        breaker::CircuitBreaker,
        http_template::HttpTemplateSettings,
        push::{
            PushFault, PushMessage, PushSender, PushService,
            apns::{Apns, ApnsSettings},
            fcm::{Fcm, FcmSettings},
            http::HttpPush,
        },
    },
    store::{Pending, Read},
    types::{Secret, Timestamp, UserId, hex},
};

/// Pushes sent at once.
const BATCH: u32 = 100;
const FIRST_RETRY: Duration = Duration::from_secs(30);
const MAX_RETRY: Duration = Duration::from_hours(1);
/// A token that is refused again after this time is removed.
const REFUSAL_PERIOD: Duration = Duration::from_hours(24);
/// The fewest pushes sent at once of which a majority that is refused shows wrong settings.
const MIN_MAJORITY: usize = 5;

/// The configured push services.
pub struct Push {
    pub core: Core,
    routes: Vec<PushRoute>,
    pub metrics: PushMetrics,
}

struct PushRoute {
    sender: Box<dyn PushSender>,
    breaker: Arc<CircuitBreaker>,
    /// The last time that the service accepted a push, in milliseconds since 1970; 0 if it has not since the start.
    accepted_at: AtomicI64,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct PushMetrics {
    pub sent: Counter,
    /// Attempts that will be repeated.
    pub failed: Counter,
    /// Pushes that a service refused, or that could not be sent in time.
    pub given_up: Counter,
    /// Tokens that a service does not know any more.
    pub dead_tokens: Counter,
}

/// The decision about a push.
enum Decision {
    Send(PushMessage),
    Settle(PushResult),
}

impl Push {
    /// Builds the configured services.
    ///
    /// # Errors
    /// `configuration`.
    pub fn new(core: Core) -> Result<Self> {
        let clock = core.clock.clone();
        let now: Arc<dyn Fn() -> i64 + Send + Sync> = Arc::new(move || clock.now().0);
        let senders = senders(&core.config, &now).map_err(|faults| crate::config::configuration_error(&faults))?;
        let route = |sender: Box<dyn PushSender>| PushRoute {
            breaker: Arc::new(CircuitBreaker::with_defaults(breaker_name(sender.service()))),
            sender,
            accepted_at: AtomicI64::new(0),
        };
        Ok(Self { core, routes: senders.into_iter().map(route).collect(), metrics: PushMetrics::default() })
    }

    /// Returns true if any service is configured.
    pub fn is_configured(&self) -> bool {
        !self.routes.is_empty()
    }

    /// Requires that a service is configured.
    ///
    /// # Errors
    /// `not_configured`.
    pub fn require(&self, service: PushService) -> Result<()> {
        if self.routes.iter().any(|route| route.sender.service() == service) {
            return Ok(());
        }
        let name = service.name();
        let detail = (format!("The operator has not set `push.{name}`."), format!("运营方未设置 `push.{name}`。"));
        Err(Error::new(Code::NotConfigured).detail(detail))
    }

    pub fn breakers(&self) -> impl Iterator<Item = &Arc<CircuitBreaker>> {
        self.routes.iter().map(|route| &route.breaker)
    }
}

/// Registers the caller's app, or moves it to the caller. The user's apps that registered first are removed beyond the
/// limit.
///
/// # Errors
/// `unauthenticated` if the token of the request was revoked.
pub fn register(core: &Core, user: UserId, by: Secret, service: PushService, token: String) -> Pending<PushDevice> {
    let limit = core.config.push.devices_per_user;
    core.store.write(move |tx| {
        users::require_in(tx, user)?;
        let family = tokens::family_in(tx, user, &by)?.ok_or(Code::Unauthenticated)?;
        let device = push_queue::register_in(tx, user, family, service, &token)?;
        push_queue::remove_oldest_in(tx, user, limit)?;
        Ok(device)
    })
}

const fn breaker_name(service: PushService) -> &'static str {
    match service {
        PushService::Apns => "push apns",
        PushService::Fcm => "push fcm",
        PushService::Http => "push http",
    }
}

/// Builds the senders of the configured services.
///
/// # Errors
/// All faults of their settings.
pub fn senders(
    config: &Config,
    now: &Arc<dyn Fn() -> i64 + Send + Sync>,
) -> Result<Vec<Box<dyn PushSender>>, Vec<String>> {
    let clock = || -> WallClock {
        let now = Arc::clone(now);
        Box::new(move || now())
    };
    let timeout = config.push.timeout;
    let (mut senders, mut faults): (Vec<Box<dyn PushSender>>, Vec<String>) = (Vec::new(), Vec::new());
    let apns = &config.push_apns;
    if !apns.topic.is_empty() {
        let settings = ApnsSettings {
            base_url: apns.base_url.clone(),
            team_id: apns.team_id.clone(),
            key_id: apns.key_id.clone(),
            private_key: apns.private_key.clone().unwrap_or_default(),
            topic: apns.topic.clone(),
            timeout,
        };
        match Apns::new(settings, clock()) {
            Ok(apns) => senders.push(Box::new(apns)),
            Err(fault) => faults.push(format!("push.apns.{fault}")),
        }
    }
    let fcm = &config.push_fcm;
    if let Some(service_account) = fcm.service_account.clone() {
        let (base_url, token_url) = (fcm.base_url.clone(), fcm.token_url.clone());
        match Fcm::new(&FcmSettings { base_url, service_account, token_url, timeout }, clock()) {
            Ok(fcm) => senders.push(Box::new(fcm)),
            Err(fault) => faults.push(format!("push.fcm.{fault}")),
        }
    }
    let http = &config.push_http;
    if !http.url.is_empty() {
        senders.push(Box::new(HttpPush::new(HttpTemplateSettings {
            method: http.method.clone(),
            url: http.url.clone(),
            headers: http.headers.clone(),
            body: http.body.clone(),
            accepted_member: http.accepted_member.clone(),
            accepted_values: http.accepted_values.clone(),
            id_member: String::new(),
            timeout,
        })));
    }
    if faults.is_empty() { Ok(senders) } else { Err(faults) }
}

/// Sends everything that is due, until `is_running` returns false. Returns true if there was something.
///
/// # Errors
/// Storage errors.
pub fn run_due(push: &Push, is_running: &dyn Fn() -> bool) -> Result<bool> {
    let mut has_worked = false;
    while push.is_configured() && is_running() {
        let due = push.core.store.read(|tx| push_queue::list_due_in(tx, BATCH))?;
        // Notifications to single users do not wait until a broadcast is spread.
        let has_broadcast = due.len() < BATCH as usize && push_queue::spread_broadcast(&push.core)?;
        if due.is_empty() && !has_broadcast {
            break;
        }
        has_worked = true;
        let results = attempt(push, due)?;
        push.core.store.write(move |tx| push_queue::settle_in(tx, &results)).wait()?;
    }
    Ok(has_worked)
}

/// Decides about the pushes, and sends those that are to be sent.
fn attempt(push: &Push, due: Vec<QueuedPush>) -> Result<Vec<(QueuedPush, PushResult)>> {
    let mut results = Vec::with_capacity(due.len());
    let mut messages: Vec<(QueuedPush, PushMessage)> = Vec::new();
    let decisions: Vec<(QueuedPush, Decision)> = push.core.store.read(|tx| {
        due.into_iter().map(|queued| decide_in(tx, push, &queued).map(|decision| (queued, decision))).collect()
    })?;
    for (queued, decision) in decisions {
        match decision {
            Decision::Send(message) => messages.push((queued, message)),
            Decision::Settle(result) => results.push((queued, result)),
        }
    }
    for route in &push.routes {
        let service = route.sender.service();
        let (queued, messages): (Vec<_>, Vec<_>) =
            messages.iter().filter(|(queued, _)| queued.device.service == service).cloned().unzip();
        let outcomes = send(push, route, &messages);
        results.extend(queued.into_iter().zip(outcomes).map(|(queued, outcome)| {
            let result = result_of(push, route, &queued, outcome);
            (queued, result)
        }));
    }
    Ok(results)
}

fn decide_in(tx: &Read<'_>, push: &Push, queued: &QueuedPush) -> Result<Decision> {
    let (config, device, done) = (&push.core.config, &queued.device, Decision::Settle(PushResult::Done));
    if !tokens::has_family_in(tx, device.user, device.family)? {
        return Ok(Decision::Settle(PushResult::DeadDevice { since: device.updated_at }));
    }
    let is_known = push.routes.iter().any(|route| route.sender.service() == device.service);
    let expires_at = queued.queued_at.plus(config.push.max_age);
    if !is_known || expires_at <= tx.now {
        push.metrics.given_up.add(1);
        return Ok(done);
    }
    let Some(InboxItem { notification, read_at: None }) =
        notifications::find_visible_in(tx, device.user, queued.notification)?
    else {
        return Ok(done);
    };
    let chosen = preferences::find_in(tx, device.user)?;
    if !chosen.shows(notification.kind) {
        return Ok(done);
    }
    let zone = chosen.time_zone.as_ref().unwrap_or(&config.limits.time_zone);
    if let Some(at) = chosen.quiet_hours.and_then(|quiet| quiet.end_after(tx.now, zone)) {
        return Ok(Decision::Settle(PushResult::Later { at, is_attempt: false }));
    }
    let expires_at = notification.expires_at.map_or(expires_at, |end| end.min(expires_at));
    let user = users::find_in(tx, device.user)?;
    Ok(Decision::Send(PushMessage {
        token: device.token.clone(),
        id: message_id(device.id, notification.id),
        title: notification.title,
        body: if config.push.shows_body { notification.body } else { String::new() },
        collapse_key: notification.kind.name(),
        notification_id: notification.id.to_string(),
        unread: notifications::unread_count_in(tx, user.id, user.created_at)?,
        expires_at: expires_at.0 / 1000,
        lifetime: i64::try_from(expires_at.since(tx.now).as_secs()).unwrap_or(i64::MAX),
        is_urgent: matches!(notification.kind, NotificationKind::System | NotificationKind::Account),
    }))
}

/// Sends messages through one service, unless its circuit breaker is open.
fn send(push: &Push, route: &PushRoute, messages: &[PushMessage]) -> Vec<Result<(), PushFault>> {
    if messages.is_empty() {
        return Vec::new();
    }
    let mut outcomes = Vec::new();
    let clock = || push.core.clock.now().0;
    let ran = route.breaker.run(clock, || {
        outcomes = route.sender.send_all(messages);
        suspect_settings(route.sender.service(), &mut outcomes);
        if outcomes.iter().any(Result::is_ok) {
            route.accepted_at.store(clock(), Ordering::Relaxed);
        }
        // A dead token comes from a healthy service. If all attempts failed or the settings are wrong, the first failure
        // tells why.
        let failures: Vec<&Failure> = outcomes.iter().filter_map(failure).collect();
        let wrong_settings = failures.iter().find(|failure| failure.kind == FailureKind::Misconfigured);
        let first = failures.first().filter(|_| failures.len() == outcomes.len());
        wrong_settings.or(first).map_or(Ok(()), |failure| Err((*failure).clone()))
    });
    match ran {
        Err(failure) if outcomes.is_empty() => messages.iter().map(|_| Err(failure.clone().into())).collect(),
        _ => outcomes,
    }
}

/// Turns refusals of tokens into failures of the service if most pushes are refused for the same reason. Operators are
/// alerted then, and the pushes are repeated until the settings are corrected.
fn suspect_settings(service: PushService, outcomes: &mut [Result<(), PushFault>]) {
    let reason_of = |outcome: &Result<(), PushFault>| match outcome {
        Err(PushFault::RefusedToken { reason }) => Some(*reason),
        _ => None,
    };
    let reasons: Vec<_> = outcomes.iter().filter_map(reason_of).collect();
    let is_frequent = |reason: &&&str| reasons.iter().filter(|other| other == reason).count() * 2 > outcomes.len();
    let Some(&reason) = reasons.iter().find(is_frequent).filter(|_| outcomes.len() >= MIN_MAJORITY) else { return };
    for outcome in outcomes.iter_mut().filter(|outcome| reason_of(outcome) == Some(reason)) {
        *outcome = Err(Failure::new(FailureKind::Misconfigured, service.name(), reason).into());
    }
}

fn failure(outcome: &Result<(), PushFault>) -> Option<&Failure> {
    match outcome {
        Err(PushFault::Failed(failure)) => Some(failure),
        _ => None,
    }
}

fn result_of(push: &Push, route: &PushRoute, queued: &QueuedPush, outcome: Result<(), PushFault>) -> PushResult {
    let now = push.core.clock.now();
    match outcome {
        Ok(()) => {
            push.metrics.sent.add(1);
            PushResult::Sent
        }
        Err(PushFault::RefusedToken { reason }) => {
            let (device, service) = (&queued.device, queued.device.service.name());
            let has_accepted_others = |since: &Timestamp| route.accepted_at.load(Ordering::Relaxed) > since.0;
            let is_final =
                device.refused_at.filter(|since| since.plus(REFUSAL_PERIOD) <= now).filter(has_accepted_others);
            if is_final.is_some() {
                push.metrics.dead_tokens.add(1);
                return PushResult::DeadDevice { since: device.updated_at };
            }
            tracing::warn!(service, reason, "a device's push token was refused");
            push.metrics.given_up.add(1);
            PushResult::Refused
        }
        Err(PushFault::DeadToken { since }) => {
            push.metrics.dead_tokens.add(1);
            // Without a time, the token is dead as it was sent.
            PushResult::DeadDevice { since: since.map_or(queued.device.updated_at, Timestamp) }
        }
        Err(PushFault::Failed(failure)) if is_final(failure.kind) => {
            tracing::warn!(%failure, "a push was refused");
            push.metrics.given_up.add(1);
            PushResult::Done
        }
        Err(PushFault::Failed(failure)) => {
            push.metrics.failed.add(1);
            let backoff = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(queued.attempts)).min(MAX_RETRY);
            let wait = failure.retry_after.map_or(backoff, |wait| wait.clamp(backoff, MAX_RETRY));
            PushResult::Later { at: now.plus(wait), is_attempt: true }
        }
    }
}

/// Returns true if another attempt with the same message cannot succeed. One with wrong credentials can, once the
/// operator has corrected them.
const fn is_final(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Refused | FailureKind::ContentRefused | FailureKind::Unusable)
}

/// Returns a UUID that is the same for each attempt.
fn message_id(device: i64, notification: i64) -> String {
    let hash = digest::digest(&digest::SHA256, format!("push:{device}:{notification}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_ref()[..16]);
    // Version 8 has bits of its maker's choice.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = hex(&bytes);
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
