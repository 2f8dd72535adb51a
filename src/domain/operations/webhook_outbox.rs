//! The outbox of webhooks: events that are to be sent to the operator's systems.
//!
//! An event is stored in the transaction of its fact, so that neither exists without the other. Its id is random and
//! never changes, so that the receiver can tell a repetition, also after a restore from a backup. Operations have no
//! configuration at hand, so the server stores at its start whether events are wanted.
//!
//! An event names users by their ids. Texts are stored beside it, only if the operator asks for them, and are erased with
//! their user.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{account_erasures, settings, steps};
use crate::{
    config::Config,
    core::Core,
    error::{Code, Error, Result},
    store::{Read, Row, RowResult, Write},
    types::{PageRequest, Paginated, Timestamp, UserId, named_enum, random_hex},
};

const SUBSCRIPTION: &str = "webhooks.subscription";

named_enum! {
    /// The kind of an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WebhookKind {
        UserCreated = "user.created",
        UserErased = "user.erased",
        OrderCredited = "order.credited",
        OrderRefunded = "order.refunded",
        PurchaseCredited = "purchase.credited",
        PurchaseRefunded = "purchase.refunded",
        ViolationRecorded = "violation.recorded",
        FeedbackSubmitted = "feedback.submitted",
        /// Sent on demand only.
        Test = "webhook.test",
    }
}

named_enum! {
    /// The state of an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WebhookState {
        Pending = "pending",
        Delivered = "delivered",
        /// Given up. It can be replayed.
        Failed = "failed",
    }
}

/// The events that the operator wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Subscription {
    has_texts: bool,
}

/// A fact to tell.
#[derive(Clone, Debug)]
pub struct NewWebhookEvent<'fact> {
    pub kind: WebhookKind,
    pub user: Option<UserId>,
    /// Members beside the user, without personal texts.
    pub data: Value,
    /// The text that the user wrote.
    pub text: Option<&'fact str>,
}

/// A stored event.
#[derive(Clone, Debug)]
pub struct WebhookEvent {
    pub id: i64,
    /// The id that the receiver sees.
    pub event_id: String,
    pub kind: WebhookKind,
    pub user: Option<UserId>,
    pub data: String,
    pub text: Option<String>,
    pub state: WebhookState,
    pub created_at: Timestamp,
    pub due_at: Timestamp,
    pub attempts: u32,
    pub delivered_at: Option<Timestamp>,
    /// The code of the last failure.
    pub failure: Option<String>,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookResult {
    Delivered,
    Retry { at: Timestamp, failure: String },
    GivenUp { failure: String },
}

/// The number of events in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookCounts {
    pub pending: i64,
    pub failed: i64,
}

macro_rules! event_columns {
    () => {
        "id, event_id, kind, user_id, data, text, state, created_at, due_at, attempts, delivered_at, failure"
    };
}

macro_rules! select_events {
    ($rest:literal) => {
        concat!("select ", event_columns!(), " from webhook_events ", $rest)
    };
}

impl WebhookEvent {
    /// Returns an event that is not stored, for a test.
    ///
    /// # Errors
    /// `internal` if the system has no random numbers.
    pub fn test(now: Timestamp) -> Result<Self> {
        Ok(Self {
            id: 0,
            event_id: new_event_id()?,
            kind: WebhookKind::Test,
            user: None,
            data: json!({ "test": true }).to_string(),
            text: None,
            state: WebhookState::Pending,
            created_at: now,
            due_at: now,
            attempts: 0,
            delivered_at: None,
            failure: None,
        })
    }

    /// Returns the body that is sent, which is the same for each attempt.
    ///
    /// # Errors
    /// `internal` for damaged data.
    pub fn body(&self) -> Result<String> {
        let mut data: Value = serde_json::from_str(&self.data).map_err(Error::internal)?;
        if let Some(members) = data.as_object_mut() {
            if let Some(user) = self.user {
                members.insert("userId".to_owned(), json!(user));
            }
            if let Some(text) = &self.text {
                members.insert("text".to_owned(), json!(text));
            }
        }
        Ok(json!({ "type": self.kind.name(), "timestamp": self.created_at, "data": data }).to_string())
    }
}

/// Stores whether events are wanted. The server calls it at its start.
///
/// # Errors
/// Storage errors.
pub fn store_subscription(core: &Core) -> Result<()> {
    let wanted = subscription_of(&core.config);
    if core.store.read(|tx| settings::find_json_in::<Subscription>(tx, SUBSCRIPTION))? == wanted {
        return Ok(());
    }
    let store = move |tx: &Write<'_>| match wanted {
        Some(wanted) => settings::put_json_in(tx, SUBSCRIPTION, &wanted),
        None => settings::remove_in(tx, SUBSCRIPTION),
    };
    core.store.write(store).wait()
}

fn subscription_of(config: &Config) -> Option<Subscription> {
    config.webhooks.url.as_ref().map(|_| Subscription { has_texts: config.webhooks.with_texts })
}

/// Stores an event, if the operator wants events.
pub fn record_in(tx: &Write<'_>, event: &NewWebhookEvent<'_>) -> Result<()> {
    let Some(wanted) = settings::find_json_in::<Subscription>(tx, SUBSCRIPTION)? else { return Ok(()) };
    tx.execute(
        "insert into webhook_events (event_id, kind, user_id, data, text, state, created_at, due_at, attempts) \
         values (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?6, 0)",
        (
            new_event_id()?,
            event.kind.name(),
            event.user.map(|user| user.0),
            event.data.to_string(),
            event.text.filter(|_| wanted.has_texts),
            tx.now.0,
        ),
    )
    .map(drop)
}

fn new_event_id() -> Result<String> {
    Ok(format!("msg_{}", random_hex::<16>()?))
}

/// Lists events, newest first.
pub fn list(core: &Core, state: Option<WebhookState>, page: PageRequest) -> Result<Paginated<WebhookEvent>> {
    let state = state.map(WebhookState::name);
    core.store.read(|tx| {
        let items = match state {
            Some(state) => tx.all(
                select_events!("where state = ?1 order by id desc limit ?2 offset ?3"),
                (state, page.size, page.offset()),
                event_of,
            )?,
            None => {
                tx.all(select_events!("order by id desc limit ?1 offset ?2"), (page.size, page.offset()), event_of)?
            }
        };
        let total =
            tx.one("select count(*) from webhook_events where state = ?1 or ?1 is null", [state], |row| row.get(0))?;
        Ok(Paginated { items: without_erased_in(tx, items)?, total })
    })
}

/// Makes an event due again, or all that were given up. Returns their number. Blocks.
///
/// # Errors
/// `not_found` for an unknown event.
pub fn replay(core: &Core, id: Option<i64>) -> Result<usize> {
    let replay = |tx: &Write<'_>, id: &i64| {
        let sql = "update webhook_events set state = 'pending', due_at = ?2, attempts = 0, delivered_at = null \
                   where id = ?1";
        tx.execute(sql, (*id, tx.now.0))
    };
    let failed = "select id from webhook_events where state = 'failed' order by id";
    let all_failed = || core.store.read(|tx| tx.all(failed, (), |row| row.get(0)));
    let ids = id.map_or_else(all_failed, |id| Ok(vec![id]))?;
    let replayed = steps::for_each(core, &|| true, ids, replay)?.into_iter().sum();
    if replayed == 0 && id.is_some() { Err(Code::NotFound.into()) } else { Ok(replayed) }
}

/// Returns up to `limit` events that are due, the oldest first.
pub fn list_due_in(tx: &Read<'_>, limit: u32) -> Result<Vec<WebhookEvent>> {
    let due = tx.all(
        select_events!("where state = 'pending' and due_at <= ?1 order by due_at, id limit ?2"),
        (tx.now.0, limit),
        event_of,
    )?;
    without_erased_in(tx, due)
}

/// Stores the results of attempts. An event that was replayed meanwhile stays due.
pub fn settle_in(tx: &Write<'_>, results: &[(WebhookEvent, WebhookResult)]) -> Result<()> {
    for (event, result) in results {
        let (id, due_at) = (event.id, event.due_at.0);
        match result {
            WebhookResult::Delivered => tx.execute(
                "update webhook_events set state = 'delivered', delivered_at = ?3, attempts = attempts + 1, \
                 failure = null, text = null where id = ?1 and due_at = ?2",
                (id, due_at, tx.now.0),
            )?,
            WebhookResult::Retry { at, failure } => tx.execute(
                "update webhook_events set due_at = ?3, attempts = attempts + 1, failure = ?4 \
                 where id = ?1 and due_at = ?2",
                (id, due_at, at.0, failure),
            )?,
            WebhookResult::GivenUp { failure } => tx.execute(
                "update webhook_events set state = 'failed', attempts = attempts + 1, failure = ?3 \
                 where id = ?1 and due_at = ?2",
                (id, due_at, failure),
            )?,
        };
    }
    Ok(())
}

/// Returns the number of events that wait and that were given up.
pub fn counts(core: &Core) -> Result<WebhookCounts> {
    core.store.read(|tx| {
        tx.one(
            "select (select count(*) from webhook_events where state = 'pending'), \
             (select count(*) from webhook_events where state = 'failed')",
            (),
            |row| Ok(WebhookCounts { pending: row.get(0)?, failed: row.get(1)? }),
        )
    })
}

/// Deletes up to `limit` events that are older than `age`, also those that were never delivered.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from webhook_events where id in \
         (select id from webhook_events where created_at < ?1 order by created_at limit ?2)",
        (tx.now.minus(age).0, limit),
    )
}

/// Deletes the texts of up to `limit` events of a deleted user. The events stay, without them.
pub fn erase_user_in(tx: &Write<'_>, user: UserId, limit: u32) -> Result<usize> {
    tx.execute(
        "update webhook_events set text = null where id in \
         (select id from webhook_events where user_id = ?1 and text is not null limit ?2)",
        (user.0, limit),
    )
}

/// Leaves out the texts of users who are being erased.
fn without_erased_in(tx: &Read<'_>, events: Vec<WebhookEvent>) -> Result<Vec<WebhookEvent>> {
    let erased = account_erasures::list_in(tx)?;
    let shown = events.into_iter().map(|event| match event.user {
        Some(user) if erased.contains(&user) => WebhookEvent { text: None, ..event },
        _ => event,
    });
    Ok(shown.collect())
}

fn event_of(row: &Row<'_>) -> RowResult<WebhookEvent> {
    Ok(WebhookEvent {
        id: row.get(0)?,
        event_id: row.get(1)?,
        kind: row.get_parsed(2, WebhookKind::from_name)?,
        user: row.get::<Option<i64>>(3)?.map(UserId),
        data: row.get(4)?,
        text: row.get(5)?,
        state: row.get_parsed(6, WebhookState::from_name)?,
        created_at: Timestamp(row.get(7)?),
        due_at: Timestamp(row.get(8)?),
        attempts: row.get(9)?,
        delivered_at: row.get::<Option<i64>>(10)?.map(Timestamp),
        failure: row.get(11)?,
    })
}
