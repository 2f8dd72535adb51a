//! Payment callbacks: each is stored as received, processed, and acknowledged once it is on disk.
//!
//! Anybody can post here, so only a limited number of unsigned callbacks is stored. A genuine one is stored in the
//! transaction of its effects; if that fails, the provider sends it again. A signed callback for another app or seller
//! has no effect but is stored as well, because it may be the only trace of a payment.
//!
//! Callbacks name the payer. The payer is exported with the user's orders, and removed from stored callbacks once the
//! account is deleted.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::money::payments::Payments;
use crate::{
    core::Core,
    domain::{
        identity::users,
        money::payments::{
            disputes,
            order_states::{self, SettlementEffect, SettlementOutcome},
            orders, refunds, settle,
        },
    },
    error::{Code, Error, Result},
    providers::payment::{
        CallbackMessage, GatewayEvent, GatewayReport, PaymentGateway, Rejection, RejectionReason, payer,
    },
    store::{Pending, Read, Row, RowResult, Write},
    types::{PageRequest, Paginated, Timestamp, UserId, as_text, named_enum},
};

/// Selects the columns that [`callback_row`] reads.
macro_rules! select_callbacks {
    ($rest:literal) => {
        concat!(
            "select id, received_at, channel, is_genuine, verdict, reason, order_no, trade_no, notify_id, replay_of, \
             form, headers from payment_callbacks ",
            $rest
        )
    };
}

/// A stored callback.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AdminCallback)]
#[serde(rename_all = "camelCase")]
pub struct Callback {
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, example = "7")]
    pub id: i64,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:05:05.678Z")]
    pub received_at: Timestamp,
    #[schema(example = "alipay")]
    pub channel: String,
    /// True if the provider's signature is valid. Otherwise the numbers are unverified.
    #[schema(example = true)]
    pub is_genuine: bool,
    #[schema(value_type = SettlementEffect)]
    pub verdict: String,
    #[schema(example = "wrong_amount")]
    pub reason: Option<String>,
    #[schema(example = "202601020123456789012345")]
    pub order_no: Option<String>,
    #[schema(example = "2026010222001400000000000001")]
    pub trade_no: Option<String>,
    #[schema(example = "2026010200222030505000000000001")]
    pub notify_id: Option<String>,
    /// The callback that was replayed.
    #[serde(serialize_with = "number_as_text")]
    #[schema(value_type = Option<String>, example = "3")]
    pub replay_of: Option<i64>,
    /// The body as received.
    // Without the payer if the user's account is deleted.
    #[serde(serialize_with = "form_as_text")]
    #[schema(value_type = String, example = "notify_id=…&sign=…")]
    pub form: Vec<u8>,
    /// The headers that belong to the signature.
    #[serde(skip)]
    pub headers: Option<BTreeMap<String, String>>,
}

#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn number_as_text<S: Serializer>(number: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(|number| number.to_string()).serialize(serializer)
}

fn form_as_text<S: Serializer>(form: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(form))
}

/// A filter on callbacks.
#[derive(Clone, Debug, Default)]
pub struct CallbackFilter {
    pub order_no: Option<String>,
    pub verdict: Option<SettlementEffect>,
}

/// The result of processing a callback.
#[derive(Clone, Debug)]
pub struct CallbackResult {
    pub id: i64,
    pub verdict: SettlementEffect,
    pub reason: Option<String>,
    /// True if the provider's signature is valid.
    pub is_genuine: bool,
    pub order_no: Option<String>,
}

impl CallbackResult {
    /// Returns true if the provider need not send the callback again.
    pub const fn is_acknowledged(&self) -> bool {
        self.verdict.is_acknowledged()
    }

    /// Returns the response to the provider.
    pub const fn word(&self) -> CallbackReply {
        if self.is_acknowledged() { CallbackReply::Success } else { CallbackReply::Fail }
    }
}

named_enum! {
    /// A response to a provider.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CallbackReply {
        /// The callback is on disk.
        Success = "success",
        /// The provider must send it again.
        Fail = "fail",
    }
}

/// Processes and stores a callback of a channel in one transaction; without a channel, of the one that answers in words.
/// `headers` may have more than the signed ones, by lower-case names.
pub fn receive(
    payments: &Payments,
    channel: Option<&str>,
    mut headers: BTreeMap<String, String>,
    body: Vec<u8>,
) -> Pending<CallbackResult> {
    let channel = match channel {
        Some(name) => payments.channels.find(name),
        None => payments.channels.of_words(),
    };
    let signed = channel.map_or(&[][..], |channel| channel.gateway.signed_headers());
    headers.retain(|name, _| signed.contains(&name.as_str()));
    let received_at = payments.core.clock.now();
    let gateway = channel.map(|channel| Arc::clone(&channel.gateway));
    let channel = channel.map_or("unknown", |channel| channel.gateway.name()).to_owned();
    process(payments, gateway, ReceivedCallback { channel, headers, body, received_at, replay_of: None })
}

/// Returns true if a callback was rejected because it is signed with a key that we do not have, and one was fetched.
/// Blocks on the provider.
pub fn fetch_missing_key(payments: &Payments, channel: &str, result: &CallbackResult) -> bool {
    let is_key_unknown = result.reason.as_deref() == Some(RejectionReason::UnknownKey.code());
    let Some(channel) = payments.channels.find(channel).filter(|_| is_key_unknown) else { return false };
    channel.gateway.refresh_keys().unwrap_or_else(|failure| {
        let failed = "the provider's keys could not be fetched";
        if payments.core.log_throttle.admits(failed, channel.gateway.name()) {
            tracing::warn!(%failure, "{failed}");
        }
        false
    })
}

/// Processes a stored callback again, after a restore or once the reason of its rejection is fixed. Its signature is
/// judged at the time at which it was received.
///
/// # Errors
/// `not_found`.
pub fn replay(payments: &Payments, id: i64) -> Result<Pending<CallbackResult>> {
    let (stored, received_at) = payments.core.store.read(|tx| {
        let stored = find_in(tx, id)?;
        let mut first = stored.clone();
        while let Some(earlier) = first.replay_of {
            match find_maybe_in(tx, earlier)? {
                Some(earlier) => first = earlier,
                None => break,
            }
        }
        Ok((stored, first.received_at))
    })?;
    let gateway = payments.channels.find(&stored.channel).map(|channel| Arc::clone(&channel.gateway));
    let Callback { channel, headers, form: body, .. } = stored;
    let headers = headers.unwrap_or_default();
    let message = ReceivedCallback { channel, headers, body, received_at, replay_of: Some(id) };
    Ok(process(payments, gateway, message))
}

/// Lists stored callbacks, newest first.
pub fn list(core: &Core, filter: &CallbackFilter, page: PageRequest) -> Result<Paginated<Callback>> {
    core.store.read(|tx| list_in(tx, filter, page))
}

/// A callback as received.
struct ReceivedCallback {
    /// The channel that it is stored under; `unknown` if none was found at the receipt.
    channel: String,
    /// The signed headers.
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    /// The time of the first receipt.
    received_at: Timestamp,
    replay_of: Option<i64>,
}

fn process(
    payments: &Payments,
    gateway: Option<Arc<dyn PaymentGateway>>,
    message: ReceivedCallback,
) -> Pending<CallbackResult> {
    let max_rejected = payments.core.config.payment.refused_callbacks;
    let Some(gateway) = gateway else {
        return payments.core.store.write(move |tx| store_unconfigured_in(tx, &message, max_rejected));
    };
    let channel = gateway.name();
    let read = gateway.read_callback(&CallbackMessage {
        headers: &message.headers,
        body: &message.body,
        received_at: message.received_at.0,
    });
    match read {
        Ok(report) => payments.core.store.write(move |tx| apply_and_store_in(tx, channel, &message, report)),
        Err(rejection) => {
            let undecryptable = "a payment callback cannot be decrypted; was the key changed at the provider?";
            if rejection.reason == RejectionReason::Undecryptable
                && payments.core.log_throttle.admits(undecryptable, channel)
            {
                tracing::error!(channel, "{undecryptable}");
            }
            payments.core.store.write(move |tx| store_rejected_in(tx, channel, &message, &rejection, max_rejected))
        }
    }
}

fn apply_and_store_in(
    tx: &Write<'_>,
    channel: &'static str,
    message: &ReceivedCallback,
    report: GatewayReport,
) -> Result<CallbackResult> {
    let (outcome, order_no, trade_no) = apply_in(tx, channel, report.event)?;
    let reason = outcome.reason.map(ToOwned::to_owned);
    let names = [order_no.clone(), trade_no, Some(report.notify_id)];
    // The account may sell other things, too: their buyers are none of ours.
    let of_another =
        ReceivedCallback { channel: String::new(), headers: BTreeMap::new(), body: Vec::new(), ..*message };
    let message = if order_no.is_none() { &of_another } else { message };
    let id = insert_in(tx, channel, message, true, outcome.verdict, reason.as_deref(), &names)?;
    Ok(CallbackResult { id, verdict: outcome.verdict, reason, is_genuine: true, order_no })
}

/// Applies a report. Returns its outcome with the numbers of order and trade.
fn apply_in(
    tx: &Write<'_>,
    channel: &'static str,
    event: GatewayEvent,
) -> Result<(SettlementOutcome, Option<String>, Option<String>)> {
    match event {
        GatewayEvent::Trade(mut trade) => {
            if trade.order_no.is_empty() {
                // It names no order of ours: the merchant's account may sell other things, too.
                let Some(order) = orders::find_by_trade_in(tx, channel, &trade.trade_no)? else {
                    return Ok((SettlementEffect::Unchanged.into(), None, Some(trade.trade_no)));
                };
                trade.order_no = order.order_no;
            }
            let outcome = match refunds::unreliable_total_in(tx, &trade)? {
                Some(order) => orders::query_soon_in(tx, order).map(|()| SettlementEffect::Unchanged.into())?,
                None => settle::apply_in(tx, &trade)?,
            };
            Ok((outcome, Some(trade.order_no), Some(trade.trade_no)))
        }
        GatewayEvent::Refund(report) => {
            let outcome = refunds::apply_report_in(tx, channel, &report)?;
            Ok((outcome, Some(report.order_no), Some(report.trade_no)))
        }
        GatewayEvent::RefundFailed(failed) => {
            let order = orders::find_by_trade_in(tx, channel, &failed.trade_no)?;
            let order_no = order.as_ref().map(|order| order.order_no.clone());
            let outcome = match order {
                Some(order) => refunds::fail_in(tx, order, &failed)?,
                None => SettlementEffect::Unchanged.into(),
            };
            Ok((outcome, order_no, Some(failed.trade_no)))
        }
        GatewayEvent::Dispute { trade_no, dispute_no, state } => {
            let (order, outcome) = disputes::apply_in(tx, channel, &trade_no, &dispute_no, state)?;
            Ok((outcome, order, Some(trade_no)))
        }
        GatewayEvent::Other(_) => Ok((SettlementEffect::Unchanged.into(), None, None)),
    }
}

/// Stores a callback of a channel that is not configured.
fn store_unconfigured_in(tx: &Write<'_>, message: &ReceivedCallback, max_rejected: u32) -> Result<CallbackResult> {
    let (verdict, reason) = (SettlementEffect::Rejected, Some(order_states::NOT_CONFIGURED));
    let id = insert_in(tx, &message.channel, message, false, verdict, reason, &[None, None, None])?;
    delete_old_rejected_in(tx, max_rejected)?;
    Ok(CallbackResult { id, verdict, reason: reason.map(Into::into), is_genuine: false, order_no: None })
}

fn store_rejected_in(
    tx: &Write<'_>,
    channel: &'static str,
    message: &ReceivedCallback,
    rejection: &Rejection,
    max_rejected: u32,
) -> Result<CallbackResult> {
    let reason = rejection.reason.to_string();
    let names = [rejection.order_no.clone(), rejection.trade_no.clone(), rejection.notify_id.clone()];
    let id = insert_in(tx, channel, message, rejection.is_genuine, SettlementEffect::Rejected, Some(&reason), &names)?;
    delete_old_rejected_in(tx, max_rejected)?;
    Ok(CallbackResult {
        id,
        is_genuine: rejection.is_genuine,
        verdict: SettlementEffect::Rejected,
        reason: Some(reason),
        order_no: rejection.order_no.clone(),
    })
}

fn delete_old_rejected_in(tx: &Write<'_>, max_rejected: u32) -> Result<()> {
    tx.execute(
        "delete from payment_callbacks where is_genuine = 0 and id <= (select id from payment_callbacks \
         where is_genuine = 0 order by id desc limit 1 offset ?1)",
        [max_rejected],
    )
    .map(drop)
}

fn insert_in(
    tx: &Write<'_>,
    channel: &str,
    message: &ReceivedCallback,
    is_genuine: bool,
    verdict: SettlementEffect,
    reason: Option<&str>,
    [order_no, trade_no, notify_id]: &[Option<String>; 3],
) -> Result<i64> {
    let form = form_in(tx, order_no.as_deref(), channel, &message.body)?;
    let headers = if message.headers.is_empty() { None } else { Some(headers_text(&message.headers)?) };
    tx.one(
        "insert into payment_callbacks (received_at, channel, is_genuine, verdict, reason, order_no, trade_no, \
         notify_id, replay_of, form, headers) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) returning id",
        (
            tx.now.0,
            channel,
            is_genuine,
            verdict.name(),
            reason,
            order_no,
            trade_no,
            notify_id,
            message.replay_of,
            form.as_ref(),
            headers,
        ),
        |row| row.get(0),
    )
}

fn headers_text(headers: &BTreeMap<String, String>) -> Result<String> {
    serde_json::to_string(headers).map_err(Error::internal)
}

/// Returns the form to store: without the payer if the order's user is deleted.
fn form_in<'form>(tx: &Read<'_>, order_no: Option<&str>, channel: &str, form: &'form [u8]) -> Result<Cow<'form, [u8]>> {
    let owner = "select user_id from payment_orders where order_no = ?1";
    let owner: Option<i64> = order_no.map(|number| tx.first(owner, [number], |row| row.get(0))).transpose()?.flatten();
    let is_deleted = match owner {
        Some(user) => !users::exists_in(tx, UserId(user))?,
        None => false,
    };
    Ok(if is_deleted { payer::without_payer(channel, form).into() } else { form.into() })
}

/// Returns the payers of an order, as its callbacks name them.
pub(super) fn payers_in(tx: &Read<'_>, order_no: &str) -> Result<Vec<Value>> {
    let forms: Vec<(String, Vec<u8>)> = tx.all(
        "select channel, form from payment_callbacks where order_no = ?1 and is_genuine = 1 order by id",
        [order_no],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut payers: Vec<Value> = Vec::new();
    for (channel, form) in forms {
        let fields = payer::payer_fields(&channel, &form).into_iter().map(|(name, value)| (name, Value::String(value)));
        let payer: Value = fields.collect();
        if payer.as_object().is_some_and(|payer| !payer.is_empty()) && !payers.contains(&payer) {
            payers.push(payer);
        }
    }
    Ok(payers)
}

/// Removes the payer from the callbacks of a user whose account is deleted.
pub fn erase_payer_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    let stored: Vec<(i64, String, Vec<u8>)> = tx.all(
        "select id, channel, form from payment_callbacks where order_no in \
         (select order_no from payment_orders where user_id = ?1)",
        [user.0],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    for (id, channel, form) in stored {
        let without = payer::without_payer(&channel, &form);
        if without.len() < form.len() {
            tx.execute("update payment_callbacks set form = ?2 where id = ?1", (id, without))?;
        }
    }
    Ok(())
}

fn find_in(tx: &Read<'_>, id: i64) -> Result<Callback> {
    find_maybe_in(tx, id)?.ok_or_else(|| Error::from(Code::NotFound))
}

fn find_maybe_in(tx: &Read<'_>, id: i64) -> Result<Option<Callback>> {
    tx.first(select_callbacks!("where id = ?1"), [id], callback_row)
}

fn list_in(tx: &Read<'_>, filter: &CallbackFilter, page: PageRequest) -> Result<Paginated<Callback>> {
    let (size, offset) = (page.size, page.offset());
    let verdict = filter.verdict.map(SettlementEffect::name);
    // An order has few callbacks, so they need no index by verdict.
    if let Some(order_no) = &filter.order_no {
        return Ok(Paginated {
            items: tx.all(
                select_callbacks!(
                    "where order_no = ?1 and (verdict = ?2 or ?2 is null) order by id desc limit ?3 offset ?4"
                ),
                (order_no, verdict, size, offset),
                callback_row,
            )?,
            total: tx.one(
                "select count(*) from payment_callbacks where order_no = ?1 and (verdict = ?2 or ?2 is null)",
                (order_no, verdict),
                |row| row.get(0),
            )?,
        });
    }
    let Some(verdict) = verdict else {
        return Ok(Paginated {
            items: tx.all(select_callbacks!("order by id desc limit ?1 offset ?2"), (size, offset), callback_row)?,
            total: tx.one("select count(*) from payment_callbacks", (), |row| row.get(0))?,
        });
    };
    Ok(Paginated {
        items: tx.all(
            select_callbacks!("where verdict = ?1 order by id desc limit ?2 offset ?3"),
            (verdict, size, offset),
            callback_row,
        )?,
        total: tx.one("select count(*) from payment_callbacks where verdict = ?1", [verdict], |row| row.get(0))?,
    })
}

fn callback_row(row: &Row<'_>) -> RowResult<Callback> {
    Ok(Callback {
        id: row.get(0)?,
        received_at: Timestamp(row.get(1)?),
        channel: row.get(2)?,
        is_genuine: row.get(3)?,
        verdict: row.get(4)?,
        reason: row.get(5)?,
        order_no: row.get(6)?,
        trade_no: row.get(7)?,
        notify_id: row.get(8)?,
        replay_of: row.get(9)?,
        form: row.get(10)?,
        headers: row.get::<Option<String>>(11)?.and_then(|text| serde_json::from_str(&text).ok()),
    })
}
