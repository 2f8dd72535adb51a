//! Alerts: a few rules about the installation, and telling somebody once when one begins to hold, now and then while
//! it does, and once when it holds no longer.
//!
//! What was told is remembered in the database, so a restart repeats nothing. A message that could not be delivered is
//! tried again, less and less often.

mod delivery;
mod memory;
mod rules;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use self::{
    delivery::{MAIL, deliver, send},
    memory::Attempts,
    rules::{UNKNOWN, unreadable},
};
use crate::{
    app::App,
    config::EmailProvider,
    domain::operations::{health, settings},
    error::{Code, Error, Result},
    store::Read,
    types::{Timestamp, named},
};

pub use delivery::Delivery;
pub use memory::Memory;
pub use rules::{Finding, evaluate, spelled_out};

const TOLD: &str = "alerts.told";

named! {
    /// Why somebody is told.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Event {
        Firing = "firing",
        /// It still holds.
        Reminder = "reminder",
        Resolved = "resolved",
        /// Somebody wants to know whether messages arrive.
        Test = "test",
    }
}

/// A message to whoever is responsible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub event: Event,
    pub rule: String,
    pub detail: String,
    /// Since when the rule holds.
    pub since: Timestamp,
}

/// A rule that holds, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Milliseconds since 1970.
    since: i64,
    at: i64,
    pub detail: String,
}

impl Told {
    pub fn since(&self) -> Timestamp {
        Timestamp(self.since)
    }

    pub fn at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

/// The rules that hold and were told, by name.
pub type AllTold = BTreeMap<String, Told>;

/// Looks at all rules and tells what has changed.
///
/// # Errors
/// Storage errors. A message that could not be delivered is logged and tried again.
pub fn run(app: &App) -> Result<()> {
    let now = app.clock.now();
    let findings = match health::observe(app) {
        Ok(condition) => evaluate(app, &condition),
        Err(error) if error.code == Code::Overloaded => return Err(error),
        // What the other rules are about cannot be read.
        Err(error) => vec![unreadable(app, &error)],
    };
    let mut told = app.told.remembered(|| app.store.read(told_in));
    let messages = due(&told, &findings, now, app.config.alerts.remind_after);
    let mut undelivered = app.told.undelivered();
    undelivered.retain(|rule, _| messages.iter().any(|message| message.rule == *rule));
    for mut message in messages {
        let attempts = undelivered.entry(message.rule.clone()).or_insert_with(|| Attempts::none(message.since));
        if attempts.are_enough(now) {
            continue;
        }
        message.since = attempts.since;
        message.detail = spelled_out(app, &message.rule, message.detail);
        if deliver(app, &message) {
            undelivered.remove(&message.rule);
            apply(&mut told, &message, now);
        } else {
            attempts.add(now);
        }
    }
    app.told.remember(&told, undelivered);
    if !app.told.is_unstored() {
        return Ok(());
    }
    let stored = told.clone();
    app.store.write(move |tx| settings::put_json_in(tx, TOLD, &stored)).wait()?;
    app.told.note_stored(told);
    Ok(())
}

/// Sends a message by every way that is configured, whatever the rules say.
///
/// # Errors
/// `configuration` when none is.
pub fn test(app: &App) -> Result<Vec<Delivery>> {
    let detail = "This is a test: alerts of this installation arrive here.".to_owned();
    let message = Message { event: Event::Test, rule: "test".into(), detail, since: app.clock.now() };
    let mut deliveries = send(app, &message);
    if app.config.email.provider == EmailProvider::Console {
        for mail in deliveries.iter_mut().filter(|delivery| delivery.channel == MAIL) {
            let detail = "email.provider is `console`: mail is printed and goes to nobody.";
            mail.outcome = Err(Error::new(Code::Configuration).detail(detail));
        }
    }
    if deliveries.is_empty() {
        let detail = "Nobody is told: neither alerts.webhook_url nor alerts.mail_to is set.";
        return Err(Error::new(Code::Configuration).detail(detail));
    }
    Ok(deliveries)
}

/// What was told and not taken back.
pub fn told_in(tx: &Read<'_>) -> Result<AllTold> {
    Ok(settings::find_json_in(tx, TOLD)?.unwrap_or_default())
}

/// What is due about the rules that were looked at, and about those that nobody looks at any more.
fn due(told: &AllTold, findings: &[Finding], now: Timestamp, remind_after: Duration) -> Vec<Message> {
    // Whoever could read the condition looked at every rule that there is.
    let is_readable = findings.iter().any(|finding| finding.rule == UNKNOWN && !finding.is_firing);
    let is_looked_at = |rule: &String| findings.iter().any(|finding| finding.rule == *rule);
    let gone = told.keys().filter(|rule| is_readable && !is_looked_at(rule)).map(|rule| Finding {
        rule: rule.clone(),
        is_firing: false,
        detail: "It is no longer looked at.".to_owned(),
    });
    let findings = findings.iter().cloned().chain(gone);
    findings.filter_map(|finding| due_of(told.get(&finding.rule), &finding, now, remind_after)).collect()
}

/// The message that is due about one rule.
fn due_of(told: Option<&Told>, finding: &Finding, now: Timestamp, remind_after: Duration) -> Option<Message> {
    let message = |event, since| {
        let Finding { rule, detail, .. } = finding.clone();
        Some(Message { event, rule, detail, since })
    };
    match (told, finding.is_firing) {
        (None, true) => message(Event::Firing, now),
        (Some(told), true) if !remind_after.is_zero() && !told.at().is_within(remind_after, now) => {
            message(Event::Reminder, told.since())
        }
        (Some(told), false) => message(Event::Resolved, told.since()),
        _ => None,
    }
}

fn apply(told: &mut AllTold, message: &Message, now: Timestamp) {
    if message.event == Event::Resolved {
        told.remove(&message.rule);
    } else {
        let kept = Told { since: message.since.0, at: now.0, detail: message.detail.clone() };
        told.insert(message.rule.clone(), kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn finding(is_firing: bool) -> Finding {
        Finding { rule: "disk_low".into(), is_firing, detail: "…".into() }
    }

    #[test]
    fn somebody_is_told_once_then_now_and_then_then_that_it_is_over() {
        let mut told = AllTold::new();
        let mut look = |minutes: i64, is_firing| {
            let now = Timestamp(minutes * 60_000);
            let message = due_of(told.get("disk_low"), &finding(is_firing), now, HOUR)?;
            apply(&mut told, &message, now);
            Some((message.event, message.since.0 / 60_000))
        };
        assert_eq!(look(0, false), None);
        assert_eq!(look(1, true), Some((Event::Firing, 1)));
        assert_eq!(look(2, true), None);
        assert_eq!(look(60, true), None);
        assert_eq!(look(61, true), Some((Event::Reminder, 1)));
        assert_eq!(look(62, true), None);
        assert_eq!(look(121, true), Some((Event::Reminder, 1)));
        assert_eq!(look(122, false), Some((Event::Resolved, 1)));
        assert_eq!(look(123, false), None);
        assert_eq!(look(124, true), Some((Event::Firing, 124)));
    }

    #[test]
    fn rules_that_are_gone_are_over_unless_nothing_could_be_read() {
        let told = AllTold::from([("provider_down:llm".into(), Told { since: 1, at: 1, detail: String::new() })]);
        let known = [Finding { rule: UNKNOWN.into(), ..finding(false) }, finding(false)];
        let messages = due(&told, &known, Timestamp(2), HOUR);
        assert_eq!(
            messages.iter().map(|message| (message.rule.as_str(), message.event)).collect::<Vec<_>>(),
            [("provider_down:llm", Event::Resolved)]
        );
        let unknown = [Finding { rule: UNKNOWN.into(), ..finding(true) }];
        let messages = due(&told, &unknown, Timestamp(2), HOUR);
        assert_eq!(
            messages.iter().map(|message| (message.rule.as_str(), message.event)).collect::<Vec<_>>(),
            [(UNKNOWN, Event::Firing)]
        );
    }

    #[test]
    fn reminders_can_be_switched_off() {
        let told = Told { since: 0, at: 0, detail: String::new() };
        let never = due_of(Some(&told), &finding(true), Timestamp(i64::MAX), Duration::ZERO);
        assert_eq!(never, None);
    }
}
