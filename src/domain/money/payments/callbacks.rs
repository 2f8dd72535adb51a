//! Payment callbacks: each is stored as received, processed, and acknowledged once it is on disk.
//!
//! Anybody can post here, so only a limited number of unsigned callbacks is stored. A genuine one is stored in the
//! transaction of its effects; if that fails, the provider sends it again. A signed callback for another app or seller
//! has no effect but is stored as well, because it may be the only trace of a payment.
//!
//! Callbacks name the payer. The payer is exported with the user's orders, and removed from stored callbacks once the
//! account is deleted.

use std::borrow::Cow;

use serde_json::Value;

use crate::domain::money::payments::Payments;
use crate::{
    core::Core,
    domain::{
        identity::users,
        money::payments::settle::{self, SettlementEffect, SettlementOutcome},
    },
    error::{Code, Error, Result},
    providers::payment::{PaymentCallback, Rejection, form},
    store::{Pending, Read, Row, Write},
    types::{PageRequest, Paginated, Timestamp, UserId, named_enum},
};

/// Selects the columns that [`callback_row`] reads.
macro_rules! select_callbacks {
    ($rest:literal) => {
        concat!(
            "select id, received_at, channel, is_genuine, verdict, reason, order_no, trade_no, notify_id, replay_of, \
             form from payment_callbacks ",
            $rest
        )
    };
}

/// A stored callback.
#[derive(Clone, Debug)]
pub struct Callback {
    pub id: i64,
    pub received_at: Timestamp,
    pub channel: String,
    /// True if the provider's signature is valid.
    pub is_genuine: bool,
    pub verdict: String,
    pub reason: Option<String>,
    /// As the callback claims. Proven only if it is genuine.
    pub order_no: Option<String>,
    pub trade_no: Option<String>,
    pub notify_id: Option<String>,
    /// The callback that this one processed again.
    pub replay_of: Option<i64>,
    /// The exact body, without the payer if the user's account is deleted.
    pub form: Vec<u8>,
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

/// Processes and stores a callback in one transaction.
pub fn receive(payments: &Payments, form: Vec<u8>) -> Pending<CallbackResult> {
    process(payments, form, None)
}

/// Processes a stored callback again, after a restore or once the reason of its rejection is fixed.
///
/// # Errors
/// `not_found`.
pub fn replay(payments: &Payments, id: i64) -> Result<Pending<CallbackResult>> {
    let stored = payments.core.store.read(|tx| find_in(tx, id))?;
    Ok(process(payments, stored.form, Some(id)))
}

/// Lists stored callbacks, newest first.
pub fn list(core: &Core, filter: &CallbackFilter, page: PageRequest) -> Result<Paginated<Callback>> {
    core.store.read(|tx| list_in(tx, filter, page))
}

fn process(payments: &Payments, form: Vec<u8>, replay_of: Option<i64>) -> Pending<CallbackResult> {
    let gateway = &payments.gateway;
    let channel = gateway.name();
    let max_rejected = payments.core.config.payment.refused_callbacks;
    match gateway.read_callback(&form) {
        Ok(callback) => payments
            .core
            .store
            .write(move |tx| apply_and_store_in(tx, ReceivedCallback { channel, form: &form, replay_of }, &callback)),
        Err(rejection) => payments.core.store.write(move |tx| {
            store_rejected_in(tx, ReceivedCallback { channel, form: &form, replay_of }, &rejection, max_rejected)
        }),
    }
}

/// A callback as received.
#[derive(Clone, Copy)]
struct ReceivedCallback<'form> {
    channel: &'static str,
    form: &'form [u8],
    replay_of: Option<i64>,
}

fn apply_and_store_in(
    tx: &Write<'_>,
    message: ReceivedCallback<'_>,
    callback: &PaymentCallback,
) -> Result<CallbackResult> {
    let trade = &callback.trade;
    let SettlementOutcome { verdict, reason } = settle::apply_in(tx, trade)?;
    let reason = reason.map(ToOwned::to_owned);
    let names = [Some(trade.order_no.clone()), Some(trade.trade_no.clone()), Some(callback.notify_id.clone())];
    let id = insert_in(tx, message, true, verdict, reason.as_deref(), &names)?;
    Ok(CallbackResult { id, verdict, reason, order_no: Some(trade.order_no.clone()) })
}

fn store_rejected_in(
    tx: &Write<'_>,
    message: ReceivedCallback<'_>,
    rejection: &Rejection,
    max_rejected: u32,
) -> Result<CallbackResult> {
    let reason = rejection.reason.to_string();
    let names = [rejection.order_no.clone(), rejection.trade_no.clone(), rejection.notify_id.clone()];
    let id = insert_in(tx, message, rejection.is_genuine, SettlementEffect::Rejected, Some(&reason), &names)?;
    tx.execute(
        "delete from payment_callbacks where is_genuine = 0 and id <= (select id from payment_callbacks \
         where is_genuine = 0 order by id desc limit 1 offset ?1)",
        [max_rejected],
    )?;
    Ok(CallbackResult {
        id,
        verdict: SettlementEffect::Rejected,
        reason: Some(reason),
        order_no: rejection.order_no.clone(),
    })
}

fn insert_in(
    tx: &Write<'_>,
    message: ReceivedCallback<'_>,
    is_genuine: bool,
    verdict: SettlementEffect,
    reason: Option<&str>,
    [order_no, trade_no, notify_id]: &[Option<String>; 3],
) -> Result<i64> {
    let form = form_in(tx, order_no.as_deref(), message.form)?;
    tx.one(
        "insert into payment_callbacks (received_at, channel, is_genuine, verdict, reason, order_no, trade_no, \
         notify_id, replay_of, form) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) returning id",
        (
            tx.now.0,
            message.channel,
            is_genuine,
            verdict.name(),
            reason,
            order_no,
            trade_no,
            notify_id,
            message.replay_of,
            form.as_ref(),
        ),
        |row| row.get(0),
    )
}

/// Returns the form to store: without the payer if the order's user is deleted.
fn form_in<'form>(tx: &Read<'_>, order_no: Option<&str>, form: &'form [u8]) -> Result<Cow<'form, [u8]>> {
    let owner = "select user_id from payment_orders where order_no = ?1";
    let owner: Option<i64> = order_no.map(|number| tx.first(owner, [number], |row| row.get(0))).transpose()?.flatten();
    let is_deleted = match owner {
        Some(user) => !users::exists_in(tx, UserId(user))?,
        None => false,
    };
    Ok(if is_deleted { form::without_payer(form).into() } else { form.into() })
}

/// Returns the payers of an order, as its callbacks name them.
pub(super) fn payers_in(tx: &Read<'_>, order_no: &str) -> Result<Vec<Value>> {
    let forms: Vec<Vec<u8>> = tx.all(
        "select form from payment_callbacks where order_no = ?1 and is_genuine = 1 order by id",
        [order_no],
        |row| row.get(0),
    )?;
    let mut payers: Vec<Value> = Vec::new();
    for form in forms {
        let fields = form::payer_fields(&form).into_iter().map(|(name, value)| (name, Value::String(value)));
        let payer: Value = fields.collect();
        if payer.as_object().is_some_and(|payer| !payer.is_empty()) && !payers.contains(&payer) {
            payers.push(payer);
        }
    }
    Ok(payers)
}

/// Removes the payer from the callbacks of a user whose account is deleted.
pub fn erase_payer_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    let stored: Vec<(i64, Vec<u8>)> = tx.all(
        "select id, form from payment_callbacks where order_no in \
         (select order_no from payment_orders where user_id = ?1)",
        [user.0],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (id, form) in stored {
        let without = form::without_payer(&form);
        if without.len() < form.len() {
            tx.execute("update payment_callbacks set form = ?2 where id = ?1", (id, without))?;
        }
    }
    Ok(())
}

fn find_in(tx: &Read<'_>, id: i64) -> Result<Callback> {
    tx.first(select_callbacks!("where id = ?1"), [id], callback_row)?.ok_or_else(|| Error::from(Code::NotFound))
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

fn callback_row(row: &Row<'_>) -> rusqlite::Result<Callback> {
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
    })
}
