//! Requests for verification codes with their outcomes: the answer to "the code does not arrive".
//!
//! Rows are kept for some days under the HMAC of the address. Providers' words are masked before they are stored.
//! Refusals are recorded once a minute for each address, and up to a total an hour, because anybody can cause them.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{
    AddressHmac, Purpose,
    counts::{self, ALL, CountedEvent, CountedWindow},
};
use crate::{
    domain::Each,
    error::{RateLimit, Result},
    providers::sms::{DeliveryReceipt, DeliveryStatus},
    store::{Read, Row, RowResult, Write, sliding_window::HOUR},
    types::{Timestamp, named_enum},
};

/// Time between two recorded refusals of an address.
const REFUSAL_INTERVAL: Duration = Duration::from_mins(1);
/// Refusals recorded in an hour.
const REFUSALS_PER_HOUR: u32 = 1_000;

/// Selects the columns that [`message_row`] reads.
macro_rules! select_messages {
    ($rest:literal) => {
        concat!(
            "select id, channel, purpose, asked_at, outcome, finished_at, provider, code, receipt, words, \
             delivery, delivery_code, delivery_at from code_messages ",
            $rest
        )
    };
}

named_enum! {
    /// The way of a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Channel {
        Sms = "sms",
        Email = "email",
    }
}

named_enum! {
    /// The outcome of a request for a code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MessageOutcome {
        /// The provider has been asked; the server may have stopped before it answered.
        Asked = "asked",
        /// The provider accepted the message.
        Sent = "sent",
        /// The provider did not accept the message.
        NotSent = "not_sent",
        /// The provider may have accepted the message.
        Unknown = "unknown",
        /// A limit or overload of this service. The provider was not asked.
        Refused = "refused",
        /// The address has a fixed code, so nothing is sent.
        ReviewAccount = "review_account",
    }
}

/// The row of one request.
#[derive(Clone, Copy, Debug)]
pub struct MessageId(i64);

/// The outcome of a request, as it is stored.
#[derive(Clone, Debug)]
pub struct Finished {
    pub outcome: MessageOutcome,
    pub provider: Option<&'static str>,
    /// The provider's code for a failure.
    pub code: Option<String>,
    /// The provider's identifier of the message, or of the failed call.
    pub receipt: Option<String>,
    /// Masked.
    pub words: Option<String>,
}

/// A request for a verification code.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CodeMessageRow)]
pub struct CodeMessageRecord {
    #[serde(skip)]
    pub id: MessageId,
    /// `sms` or `email`.
    #[schema(example = "sms")]
    pub channel: String,
    /// `sign_in`, `address` or `cancellation`.
    #[schema(example = "sign_in")]
    pub purpose: String,
    pub asked_at: Timestamp,
    /// `asked`: the provider's answer is awaited, or the server stopped before it. `sent`: the provider accepted the
    /// message. `not_sent`: it did not. `unknown`: it may have. `refused`: a limit or overload of this service.
    /// `review_account`: nothing is sent to this address.
    #[schema(example = "sent")]
    pub outcome: String,
    pub finished_at: Option<Timestamp>,
    #[schema(example = "aliyun")]
    pub provider: Option<String>,
    /// The provider's code for a failure, or this service's for a refusal.
    #[schema(example = "isv.BUSINESS_LIMIT_CONTROL")]
    pub code: Option<String>,
    /// The provider's identifier of the message, or of the failed call.
    #[schema(example = "900619746936498440^0")]
    pub receipt: Option<String>,
    /// The provider's words, with addresses and numbers masked.
    #[schema(example = "OK")]
    pub words: Option<String>,
    pub delivery: Option<StoredDelivery>,
}

/// The carrier's report about a sent message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CodeDelivery)]
pub struct StoredDelivery {
    /// `waiting`, `delivered` or `failed`.
    #[schema(example = "delivered")]
    pub status: String,
    /// The carrier's code.
    #[schema(example = "DELIVERED")]
    pub code: Option<String>,
    pub at: Option<Timestamp>,
}

/// Records a request before the provider is called.
pub fn insert_in(tx: &Write<'_>, recipient: &AddressHmac, channel: Channel, purpose: Purpose) -> Result<MessageId> {
    let sql = "insert into code_messages (address, channel, purpose, asked_at, outcome) values (?1, ?2, ?3, ?4, ?5)";
    tx.insert(sql, (&recipient.0, channel.name(), purpose.name(), tx.now.0, MessageOutcome::Asked.name()))
        .map(MessageId)
}

/// Records the outcome. Does nothing if the row was erased meanwhile.
pub fn finish_in(tx: &Write<'_>, message: MessageId, finished: &Finished) -> Result<()> {
    tx.execute(
        "update code_messages set outcome = ?2, finished_at = ?3, provider = ?4, code = ?5, receipt = ?6, words = ?7 \
         where id = ?1",
        (
            message.0,
            finished.outcome.name(),
            tx.now.0,
            finished.provider,
            &finished.code,
            &finished.receipt,
            &finished.words,
        ),
    )
    .map(drop)
}

/// Returns true if a refusal would be recorded now.
pub fn is_refusal_due_in(tx: &Read<'_>, recipient: &AddressHmac) -> Result<bool> {
    let of_address = "select asked_at from code_messages where outcome = 'refused' and address = ?1 \
                      order by asked_at desc limit 1";
    let last: Option<i64> = tx.first(of_address, [&recipient.0], |row| row.get(0))?;
    let limit = RateLimit { name: "code-refusals", quota: REFUSALS_PER_HOUR, window: HOUR };
    Ok(last.is_none_or(|at| !Timestamp(at).is_near(REFUSAL_INTERVAL, tx.now))
        && CountedWindow { limit, event: CountedEvent::Refused, subject: ALL }.state_in(tx)?.1.is_zero())
}

/// Records a request that this service refused, unless one was recorded a moment ago.
pub fn record_refusal_in(
    tx: &Write<'_>,
    recipient: &AddressHmac,
    channel: Channel,
    purpose: Purpose,
    code: &str,
) -> Result<()> {
    if !is_refusal_due_in(tx, recipient)? {
        return Ok(());
    }
    tx.execute(
        "insert into code_messages (address, channel, purpose, asked_at, outcome, finished_at, code) \
         values (?1, ?2, ?3, ?4, ?5, ?4, ?6)",
        (&recipient.0, channel.name(), purpose.name(), tx.now.0, MessageOutcome::Refused.name(), code),
    )?;
    counts::add_in(tx, CountedEvent::Refused, std::iter::once(ALL))
}

/// Returns the last requests for an address, newest first.
pub fn list_in(tx: &Read<'_>, recipient: &AddressHmac, limit: u32) -> Result<Vec<CodeMessageRecord>> {
    tx.all(
        select_messages!("where address = ?1 order by asked_at desc, id desc limit ?2"),
        (&recipient.0, limit),
        message_row,
    )
}

/// Returns the last messages that a provider accepted and whose delivery is unknown, newest first.
pub fn list_undelivered_in(
    tx: &Read<'_>,
    recipient: &AddressHmac,
    provider: &str,
    limit: u32,
) -> Result<Vec<CodeMessageRecord>> {
    tx.all(
        select_messages!(
            "where address = ?1 and provider = ?2 and outcome = 'sent' and receipt is not null \
             and (delivery is null or delivery = 'waiting') order by asked_at desc, id desc limit ?3"
        ),
        (&recipient.0, provider, limit),
        message_row,
    )
}

/// Stores a delivery receipt.
pub fn store_delivery_in(tx: &Write<'_>, message: MessageId, delivery: &DeliveryReceipt) -> Result<()> {
    let DeliveryReceipt { status, code, at } = delivery;
    tx.execute(
        "update code_messages set delivery = ?2, delivery_code = ?3, delivery_at = ?4 where id = ?1",
        (message.0, DeliveryStatus::name(*status), code, at),
    )
    .map(drop)
}

/// Passes all requests for an address, for an export.
pub fn export_in(tx: &Read<'_>, recipient: &AddressHmac, each: Each<'_>) -> Result<()> {
    let sql = select_messages!("where address = ?1 order by asked_at, id");
    tx.each(sql, [&recipient.0], |row| {
        let message = message_row(row)?;
        let delivery =
            message.delivery.map(|found| json!({ "status": found.status, "code": found.code, "at": found.at }));
        each(json!({
            "channel": message.channel, "purpose": message.purpose, "askedAt": message.asked_at,
            "outcome": message.outcome, "finishedAt": message.finished_at, "provider": message.provider,
            "code": message.code, "receipt": message.receipt, "words": message.words, "delivery": delivery,
        }))
    })
}

/// Deletes the requests for an address.
pub fn erase_in(tx: &Write<'_>, recipient: &AddressHmac) -> Result<()> {
    tx.execute("delete from code_messages where address = ?1", [&recipient.0]).map(drop)
}

/// Deletes up to `limit` requests older than `age`, or dated further ahead than `age` by a wrong clock.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from code_messages where id in (select id from code_messages order by id limit ?2) \
         and (asked_at <= ?1 or asked_at > ?3)",
        (tx.now.minus(age).0, limit, tx.now.plus(age).0),
    )
}

fn message_row(row: &Row<'_>) -> RowResult<CodeMessageRecord> {
    let delivery: Option<String> = row.get(10)?;
    let (delivery_code, delivery_at) = (row.get(11)?, row.get::<Option<i64>>(12)?.map(Timestamp));
    Ok(CodeMessageRecord {
        id: MessageId(row.get(0)?),
        channel: row.get(1)?,
        purpose: row.get(2)?,
        asked_at: Timestamp(row.get(3)?),
        outcome: row.get(4)?,
        finished_at: row.get::<Option<i64>>(5)?.map(Timestamp),
        provider: row.get(6)?,
        code: row.get(7)?,
        receipt: row.get(8)?,
        words: row.get(9)?,
        delivery: delivery.map(|status| StoredDelivery { status, code: delivery_code, at: delivery_at }),
    })
}
