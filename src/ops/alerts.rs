//! Alerts: a few rules about the installation, and telling somebody once when one begins to hold, now and then while
//! it does, and once when it holds no longer.
//!
//! What was told is remembered in the database, so a restart repeats nothing. A message that could not be delivered is
//! tried again, less and less often.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    app::App,
    certificate,
    config::EmailProvider,
    error::{Code, Error, Result},
    ops::{
        condition::{self, BackupState, Condition, LedgerState},
        settings,
    },
    providers::{email::letter, webhook::Webhook},
    store::{self, Read},
    types::{Locale, Timestamp},
};

const TOLD: &str = "alerts.told";
const DAMAGED: &str = "database_damaged";
const UNKNOWN: &str = "condition_unknown";
const MAIL: &str = "mail";
/// How long after the first failed delivery the next is tried; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// A rule, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The stable name, with the provider where there are several: `provider_down:sms`.
    pub rule: String,
    pub is_firing: bool,
    /// What is the matter, for people. No personal data.
    pub detail: String,
}

/// Why somebody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Firing,
    /// It still holds.
    Reminder,
    Resolved,
    /// Somebody wants to know whether messages arrive.
    Test,
}

impl Event {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Reminder => "reminder",
            Self::Resolved => "resolved",
            Self::Test => "test",
        }
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

/// A way by which messages go out, and what came of the last one.
#[derive(Debug)]
pub struct Delivery {
    pub channel: &'static str,
    pub outcome: Result<()>,
}

/// Looks at all rules and tells what has changed.
///
/// # Errors
/// Storage errors. A message that could not be delivered is logged and tried again.
pub fn run(app: &App) -> Result<()> {
    let now = app.clock.now();
    let findings = match condition::observe(app) {
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
    let text = serde_json::to_string(&told).map_err(Error::internal)?;
    app.store.write(move |tx| settings::put_in(tx, TOLD, &text)).wait()?;
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

/// Every rule, and whether it holds now.
pub fn evaluate(app: &App, condition: &Condition) -> Vec<Finding> {
    let finding = |rule: &str, is_firing: bool, detail: String| Finding { rule: rule.into(), is_firing, detail };
    let mut findings: Vec<_> = app
        .breakers()
        .into_iter()
        .map(|breaker| {
            let name = breaker.provider();
            let detail = format!("The provider for {name} has failed several times in a row; it is not called.");
            finding(&format!("provider_down:{name}"), breaker.is_open(), detail)
        })
        .collect();
    let review = condition.payments_in_review;
    findings.push(finding(
        "payments_in_review",
        review > 0,
        format!("{review} payments need a decision; see `yarrow payments list --state review`."),
    ));
    let (discrepancies, closed) =
        (condition.ledger.map_or(0, |verification| verification.discrepancies), condition.accounts_suspended);
    findings.push(finding(
        "ledger_mismatch",
        condition.ledger_state() == LedgerState::Inconsistent,
        format!(
            "The ledger has {discrepancies} discrepancies, {closed} accounts are closed; see `yarrow ledger verify`."
        ),
    ));
    let (is_damaged, fault) = (condition.integrity.is_damaged(), condition.integrity.fault());
    findings.push(finding(DAMAGED, is_damaged, condition::damage(fault)));
    findings.push(finding(UNKNOWN, false, String::new()));
    let percent = condition.disk_free_percent();
    findings.push(finding(
        "disk_low",
        condition.is_disk_low(app),
        format!("{percent} % of the disk are free, which are {} MiB.", condition.disk_free >> 20),
    ));
    let state = condition.backup_state(app);
    findings.push(finding(
        "backup_old",
        matches!(state, BackupState::Old | BackupState::Failed),
        backup_detail(state, condition),
    ));
    if app.config.backup.s3_endpoint.is_some() {
        let failure = condition.offsite.failure.as_ref();
        let why = failure.map_or_else(String::new, |failure| failure.detail.clone());
        findings.push(finding("backup_upload_failed", failure.is_some(), format!("Backups cannot be uploaded: {why}")));
    }
    findings.extend(certificate_expiring(app, condition.at));
    let (sent, budget) = (condition.codes_sent, u64::from(app.config.auth.sends_per_day));
    findings.push(finding(
        "code_budget",
        budget > 0 && sent >= budget.div_ceil(2),
        format!("{sent} verification codes of a budget of {budget} were sent in 24 hours."),
    ));
    findings
}

/// Whether the certificate that is shown ends soon. Files that cannot be read just now are no reason to tell anybody: what
/// was shown before is shown on.
fn certificate_expiring(app: &App, now: Timestamp) -> Option<Finding> {
    let validity = certificate::validity(&app.config).ok()??;
    let detail = format!("The certificate that is shown is good until {}; see `yarrow doctor`.", validity.until);
    Some(Finding { rule: "certificate_expiring".into(), is_firing: validity.ends_soon(now), detail })
}

/// What is known when the condition cannot be read. Only damage is a reason to put a backup in the database's place.
fn unreadable(app: &App, error: &Error) -> Finding {
    let why = error.explained();
    let (rule, detail) = if store::is_damage(error) || !app.store.is_in_place() {
        (DAMAGED, condition::damage(Some(&why)))
    } else {
        (UNKNOWN, format!("How the installation is cannot be read ({why}); see `yarrow doctor`."))
    };
    Finding { rule: rule.into(), is_firing: true, detail }
}

/// What is said of a rule that holds, with what takes time to find out: it is asked for when somebody is told.
pub fn spelled_out(app: &App, rule: &str, detail: String) -> String {
    if rule == DAMAGED { format!("{detail} {}", condition::way_out(app)) } else { detail }
}

fn backup_detail(state: BackupState, condition: &Condition) -> String {
    let last = condition.backups.last.as_ref().map_or_else(|| "never".to_owned(), |last| last.at().to_string());
    match (state, &condition.backups.failure) {
        (BackupState::Failed, Some(failure)) => {
            format!("The last backup failed ({}); the last good one was made {last}.", failure.code)
        }
        _ => format!("The last backup was made {last}."),
    }
}

/// What this process has told, so that a database that cannot be read or written makes nobody hear the same again.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    told: AllTold,
    /// What the database is known to hold of it; nothing until it was read.
    stored: Option<AllTold>,
    undelivered: Undelivered,
}

/// Attempts to tell of a rule that nobody has heard of yet.
type Undelivered = BTreeMap<String, Attempts>;

impl Memory {
    /// What was told, with what the database says once it can be read.
    fn remembered(&self, read: impl FnOnce() -> Result<AllTold>) -> AllTold {
        let mut memory = self.lock();
        if memory.stored.is_none()
            && let Ok(stored) = read()
        {
            let meanwhile = std::mem::replace(&mut memory.told, stored.clone());
            memory.told.extend(meanwhile);
            memory.stored = Some(stored);
        }
        memory.told.clone()
    }

    fn remember(&self, told: &AllTold, undelivered: Undelivered) {
        let mut memory = self.lock();
        memory.told.clone_from(told);
        memory.undelivered = undelivered;
    }

    fn undelivered(&self) -> Undelivered {
        self.lock().undelivered.clone()
    }

    /// Whether the database says something else. What was never read is not overwritten.
    fn is_unstored(&self) -> bool {
        let memory = self.lock();
        memory.stored.as_ref().is_some_and(|stored| *stored != memory.told)
    }

    fn note_stored(&self, told: AllTold) {
        self.lock().stored = Some(told);
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug)]
struct Attempts {
    /// What the first said, and all others say.
    since: Timestamp,
    last: Timestamp,
    /// How long the next waits after the last.
    wait: Duration,
}

impl Attempts {
    const fn none(since: Timestamp) -> Self {
        Self { since, last: since, wait: Duration::ZERO }
    }

    fn add(&mut self, now: Timestamp) {
        self.last = now;
        self.wait = (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
    }

    /// Whether the next can wait.
    fn are_enough(&self, now: Timestamp) -> bool {
        self.last.is_within(self.wait, now)
    }
}

/// What was told and not taken back.
pub fn told_in(tx: &Read<'_>) -> Result<AllTold> {
    let text = settings::find_in(tx, TOLD)?;
    Ok(text.map(|text| serde_json::from_str(&text).map_err(Error::internal)).transpose()?.unwrap_or_default())
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

/// Sends a message and says whether anybody has it. The log always has.
fn deliver(app: &App, message: &Message) -> bool {
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

fn send(app: &App, message: &Message) -> Vec<Delivery> {
    let alerts = &app.config.alerts;
    let mut deliveries = Vec::new();
    if let Some(url) = &alerts.webhook_url {
        let webhook = Webhook::new(url.expose_secret(), alerts.webhook_secret.as_ref());
        let outcome = webhook.send(&as_json(app, message)).map_err(Error::from);
        deliveries.push(Delivery { channel: "webhook", outcome });
    }
    for address in &alerts.mail_to {
        let letter = letter::plain(address.clone(), Locale::English, &subject(message), &as_text(app, message));
        let outcome = app.email_breaker.run(|| app.clock.now().0, || app.email.send(&letter)).map_err(Error::from);
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
    fn what_could_not_be_read_is_not_forgotten() {
        let of = |rule: &str| AllTold::from([(rule.into(), Told { since: 1, at: 1, detail: String::new() })]);
        let memory = Memory::default();
        assert_eq!(memory.remembered(|| Err(Code::StorageFailed.into())), AllTold::new());
        memory.remember(&of(UNKNOWN), Undelivered::new());
        assert!(!memory.is_unstored(), "what was never read is not overwritten");
        let both: AllTold = of(UNKNOWN).into_iter().chain(of("disk_low")).collect();
        assert_eq!(memory.remembered(|| Ok(of("disk_low"))), both);
        assert!(memory.is_unstored());
        memory.note_stored(both);
        assert!(!memory.is_unstored());
    }

    #[test]
    fn what_was_not_delivered_stays_due() {
        let told = AllTold::new();
        let first = due_of(told.get("disk_low"), &finding(true), Timestamp(1), HOUR);
        let second = due_of(told.get("disk_low"), &finding(true), Timestamp(2), HOUR);
        assert_eq!(first.map(|message| message.event), second.map(|message| message.event));
    }

    #[test]
    fn what_cannot_be_delivered_is_tried_less_and_less_often() {
        let mut attempts = Attempts::none(Timestamp(0));
        let mut tried_at = Vec::new();
        for second in 0..3_000 {
            let now = Timestamp(second * 1_000);
            if !attempts.are_enough(now) {
                attempts.add(now);
                tried_at.push(second);
            }
        }
        assert_eq!(tried_at, [0, 5, 15, 35, 75, 155, 315, 635, 1_235, 1_835, 2_435]);
        assert!(!attempts.are_enough(Timestamp(0)), "a clock that was ahead holds nothing up");
    }

    #[test]
    fn reminders_can_be_switched_off() {
        let told = Told { since: 0, at: 0, detail: String::new() };
        let never = due_of(Some(&told), &finding(true), Timestamp(i64::MAX), Duration::ZERO);
        assert_eq!(never, None);
    }
}
