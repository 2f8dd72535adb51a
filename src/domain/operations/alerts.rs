//! Alerts: rules about the installation, with a notification when a rule starts firing, reminders while it fires, and
//! one when it is resolved.
//!
//! The database remembers active alerts, so a restart repeats no notification. A notification that could not be delivered
//! is retried with backoff.

mod content;
mod delivery;
mod rules;
mod state;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::{
    delivery::{MAIL, deliver, send},
    rules::{HEALTH_UNKNOWN, unreadable},
    state::{AlertState, DeliveryBackoff},
};
use crate::{
    config::EmailProvider,
    core::Core,
    domain::{
        messaging::mailer::Mailer,
        operations::{
            facts,
            health::{Health, HealthSnapshot},
            settings,
        },
    },
    error::{Code, Error, Result},
    store::{Read, Write},
    types::{Locale, Timestamp, named_enum},
};

pub use content::AlertFact;
pub use delivery::DeliveryResult;
pub use rules::{Finding, PROVIDER_DOWN, evaluate, with_advice};

const ACTIVE: &str = "alerts.active";
const RESOLVED: &str = "alerts.resolved";
/// Resolved alerts that are kept.
const MAX_RESOLVED: usize = 100;

named_enum! {
    /// The reason for a notification.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AlertEvent {
        Firing = "firing",
        /// The rule still fires.
        Reminder = "reminder",
        Resolved = "resolved",
        /// An operator tests the delivery.
        Test = "test",
    }
}

/// A notification to the operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertMessage {
    pub event: AlertEvent,
    pub rule: String,
    pub fact: AlertFact,
    /// The time at which the rule started firing.
    pub since: Timestamp,
}

/// A firing rule of which the operators were notified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveAlert {
    /// Milliseconds since 1970.
    since: i64,
    /// Milliseconds since 1970.
    notified_at: i64,
    #[serde(flatten)]
    pub content: AlertContent,
}

/// The content of an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertContent {
    /// The English text that was sent.
    pub detail: String,
    /// None if an earlier version of the program stored it.
    #[serde(default, deserialize_with = "facts::known")]
    pub fact: Option<AlertFact>,
}

impl AlertContent {
    /// Returns the text for a page. One that an earlier version stored is in English.
    pub fn text(&self, locale: Locale) -> String {
        self.fact.as_ref().map_or_else(|| self.detail.clone(), |fact| fact.text(locale))
    }

    /// Returns the values, if they are known.
    pub fn values(&self) -> Option<Value> {
        self.fact.as_ref().map(|fact| facts::rule_and_values(fact).1)
    }
}

impl From<AlertFact> for AlertContent {
    fn from(fact: AlertFact) -> Self {
        Self { detail: fact.detail(), fact: Some(fact) }
    }
}

impl ActiveAlert {
    pub const fn new(since: Timestamp, notified_at: Timestamp, content: AlertContent) -> Self {
        Self { since: since.0, notified_at: notified_at.0, content }
    }

    pub fn since(&self) -> Timestamp {
        Timestamp(self.since)
    }

    pub fn notified_at(&self) -> Timestamp {
        Timestamp(self.notified_at)
    }
}

/// An alert that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedAlert {
    pub rule: String,
    #[serde(flatten)]
    pub content: AlertContent,
    /// Milliseconds since 1970.
    since: i64,
    /// Milliseconds since 1970.
    until: i64,
}

impl ResolvedAlert {
    pub const fn new(rule: String, content: AlertContent, since: Timestamp, until: Timestamp) -> Self {
        Self { rule, content, since: since.0, until: until.0 }
    }

    pub const fn since(&self) -> Timestamp {
        Timestamp(self.since)
    }

    pub const fn until(&self) -> Timestamp {
        Timestamp(self.until)
    }
}

/// The active alerts by rule.
pub type ActiveAlerts = BTreeMap<String, ActiveAlert>;

/// The service that notifies operators.
pub struct Alerts {
    core: Core,
    health: Arc<Health>,
    mailer: Arc<Mailer>,
    state: AlertState,
}

impl Alerts {
    pub fn new(core: Core, health: Arc<Health>, mailer: Arc<Mailer>) -> Self {
        Self { core, health, mailer, state: AlertState::default() }
    }

    /// Evaluates all rules and sends the notifications that are due.
    ///
    /// # Errors
    /// Storage errors. A failed delivery is logged and retried.
    pub fn run(&self) -> Result<()> {
        let core = &self.core;
        let now = core.clock.now();
        let findings = match HealthSnapshot::collect(&self.health) {
            Ok(snapshot) => evaluate(&self.health, &snapshot),
            Err(error) if error.code == Code::Overloaded => return Err(error),
            Err(error) => vec![unreadable(core, &error)],
        };
        let mut active = self.state.active(|| core.store.read(active_in));
        let messages = due_messages(&active, &findings, now, core.config.alerts.remind_after);
        self.deliver_due(&mut active, messages, now);
        if !self.state.is_unstored() {
            return Ok(());
        }
        let stored = active.clone();
        let resolved = self.state.resolved();
        let count = resolved.len();
        core.store
            .write(move |tx| {
                settings::put_json_in(tx, ACTIVE, &stored)?;
                add_resolved_in(tx, resolved)
            })
            .wait()?;
        self.state.mark_stored(active, count);
        Ok(())
    }

    /// Sends the messages whose backoff has passed and applies those that were delivered.
    fn deliver_due(&self, active: &mut ActiveAlerts, messages: Vec<AlertMessage>, now: Timestamp) {
        let mut undelivered = self.state.undelivered();
        let mut resolved = Vec::new();
        undelivered.retain(|rule, _| messages.iter().any(|message| message.rule == *rule));
        for mut message in messages {
            let backoff =
                undelivered.entry(message.rule.clone()).or_insert_with(|| DeliveryBackoff::new(message.since));
            if backoff.is_waiting(now) {
                continue;
            }
            message.since = backoff.since;
            message.fact = with_advice(&self.core, message.fact);
            if deliver(self, &message) {
                undelivered.remove(&message.rule);
                resolved.extend(apply(active, &message, now));
            } else {
                backoff.record_failure(now);
            }
        }
        self.state.update(active, undelivered, resolved);
    }

    /// Sends a test message through every configured channel.
    ///
    /// # Errors
    /// `configuration` when no channel is configured.
    pub fn send_test(&self) -> Result<Vec<DeliveryResult>> {
        let (fact, since) = (AlertFact::TestMessage {}, self.core.clock.now());
        let message = AlertMessage { event: AlertEvent::Test, rule: "test".into(), fact, since };
        let mut results = send(self, &message);
        if self.core.config.email.provider == EmailProvider::Console {
            for mail in results.iter_mut().filter(|result| result.channel == MAIL) {
                let detail = (
                    "email.provider is `console`: mail is printed and not sent.",
                    "email.provider 为 `console`：邮件只打印，不发送。",
                );
                mail.outcome = Err(Error::new(Code::Configuration).detail(detail));
            }
        }
        if results.is_empty() {
            let detail = (
                "No alert can be sent: set alerts.webhook_url or alerts.mail_to.",
                "无法发送告警：请设置 alerts.webhook_url 或 alerts.mail_to。",
            );
            return Err(Error::new(Code::Configuration).detail(detail));
        }
        Ok(results)
    }
}

/// Returns the stored active alerts.
pub fn active_in(tx: &Read<'_>) -> Result<ActiveAlerts> {
    Ok(settings::find_json_in(tx, ACTIVE)?.unwrap_or_default())
}

/// Returns the last resolved alerts, newest first.
pub fn resolved_in(tx: &Read<'_>) -> Result<Vec<ResolvedAlert>> {
    Ok(settings::find_json_in(tx, RESOLVED)?.unwrap_or_default())
}

fn add_resolved_in(tx: &Write<'_>, added: Vec<ResolvedAlert>) -> Result<()> {
    if added.is_empty() {
        return Ok(());
    }
    let mut all: Vec<_> = added.into_iter().rev().collect();
    all.extend(resolved_in(tx)?);
    all.truncate(MAX_RESOLVED);
    settings::put_json_in(tx, RESOLVED, &all)
}

/// Returns the messages that are due, including those for rules that no longer exist.
fn due_messages(
    active: &ActiveAlerts,
    findings: &[Finding],
    now: Timestamp,
    remind_after: Duration,
) -> Vec<AlertMessage> {
    // Without a health snapshot only one rule was evaluated, so the others are not gone.
    let are_all_evaluated = findings.iter().any(|finding| finding.rule == HEALTH_UNKNOWN && !finding.is_firing);
    let is_evaluated = |rule: &String| findings.iter().any(|finding| finding.rule == *rule);
    let gone = active.keys().filter(|rule| are_all_evaluated && !is_evaluated(rule)).map(|rule| Finding {
        rule: rule.clone(),
        is_firing: false,
        fact: AlertFact::RuleRemoved {},
    });
    let findings = findings.iter().cloned().chain(gone);
    findings.filter_map(|finding| due_message(active.get(&finding.rule), &finding, now, remind_after)).collect()
}

/// Returns the message that is due for one rule.
fn due_message(
    active: Option<&ActiveAlert>,
    finding: &Finding,
    now: Timestamp,
    remind_after: Duration,
) -> Option<AlertMessage> {
    let message = |event, since| {
        let Finding { rule, fact, .. } = finding.clone();
        Some(AlertMessage { event, rule, fact, since })
    };
    match (active, finding.is_firing) {
        (None, true) => message(AlertEvent::Firing, now),
        (Some(alert), true) if !remind_after.is_zero() && !alert.notified_at().is_within(remind_after, now) => {
            message(AlertEvent::Reminder, alert.since())
        }
        (Some(alert), false) => message(AlertEvent::Resolved, alert.since()),
        _ => None,
    }
}

/// Applies a delivered message. Returns the alert that it resolves.
fn apply(active: &mut ActiveAlerts, message: &AlertMessage, now: Timestamp) -> Option<ResolvedAlert> {
    if message.event == AlertEvent::Resolved {
        let alert = active.remove(&message.rule)?;
        return Some(ResolvedAlert::new(message.rule.clone(), alert.content, Timestamp(alert.since), now));
    }
    active.insert(message.rule.clone(), ActiveAlert::new(message.since, now, message.fact.clone().into()));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn finding(is_firing: bool) -> Finding {
        Finding { rule: "disk_low".into(), is_firing, fact: AlertFact::NoProblem {} }
    }

    #[test]
    fn notifies_once_then_reminds_then_resolves() {
        let mut active = ActiveAlerts::new();
        let mut evaluate = |minutes: i64, is_firing| {
            let now = Timestamp(minutes * 60_000);
            let message = due_message(active.get("disk_low"), &finding(is_firing), now, HOUR)?;
            apply(&mut active, &message, now);
            Some((message.event, message.since.0 / 60_000))
        };
        assert_eq!(evaluate(0, false), None);
        assert_eq!(evaluate(1, true), Some((AlertEvent::Firing, 1)));
        assert_eq!(evaluate(2, true), None);
        assert_eq!(evaluate(60, true), None);
        assert_eq!(evaluate(61, true), Some((AlertEvent::Reminder, 1)));
        assert_eq!(evaluate(62, true), None);
        assert_eq!(evaluate(121, true), Some((AlertEvent::Reminder, 1)));
        assert_eq!(evaluate(122, false), Some((AlertEvent::Resolved, 1)));
        assert_eq!(evaluate(123, false), None);
        assert_eq!(evaluate(124, true), Some((AlertEvent::Firing, 124)));
    }

    #[test]
    fn resolves_removed_rules_unless_the_health_is_unknown() {
        let alert = ActiveAlert::new(Timestamp(1), Timestamp(1), AlertFact::NoProblem {}.into());
        let active = ActiveAlerts::from([("provider_down:llm".into(), alert)]);
        let readable = [Finding { rule: HEALTH_UNKNOWN.into(), ..finding(false) }, finding(false)];
        let messages = due_messages(&active, &readable, Timestamp(2), HOUR);
        assert_eq!(
            messages.iter().map(|message| (message.rule.as_str(), message.event)).collect::<Vec<_>>(),
            [("provider_down:llm", AlertEvent::Resolved)]
        );
        let unknown = [Finding { rule: HEALTH_UNKNOWN.into(), ..finding(true) }];
        let messages = due_messages(&active, &unknown, Timestamp(2), HOUR);
        assert_eq!(
            messages.iter().map(|message| (message.rule.as_str(), message.event)).collect::<Vec<_>>(),
            [(HEALTH_UNKNOWN, AlertEvent::Firing)]
        );
    }

    #[test]
    fn sends_no_reminders_if_they_are_switched_off() {
        let alert = ActiveAlert::new(Timestamp(0), Timestamp(0), AlertFact::NoProblem {}.into());
        let message = due_message(Some(&alert), &finding(true), Timestamp(i64::MAX), Duration::ZERO);
        assert_eq!(message, None);
    }

    #[test]
    fn keeps_the_text_of_alerts_whose_facts_it_does_not_know() {
        let known = ActiveAlert::new(Timestamp(1), Timestamp(2), AlertFact::BackupOverdue { last: None }.into());
        let stored = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<ActiveAlert>(&stored).unwrap(), known);
        for fact in ["", r#","fact":{"rule":"of a later version","values":{"n":1}}"#] {
            let stored = format!(r#"{{"since":1,"notified_at":2,"detail":"An old text."{fact}}}"#);
            let alert: ActiveAlert = serde_json::from_str(&stored).unwrap();
            assert_eq!((alert.content.text(Locale::Chinese).as_str(), alert.content.values()), ("An old text.", None));
        }
    }
}
