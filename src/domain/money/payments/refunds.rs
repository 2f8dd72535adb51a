//! Giving money back: the intent is written first, then the provider is asked, then the outcome is written.
//!
//! A refund has a number, under which it happens once here and at the provider, however often it is asked for. When
//! the provider's answer is lost, it is asked what became of the number before anything is repeated.

mod carrying_out;

pub(super) use carrying_out::ask_about_open;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::domain::money::payments::Payments;
use crate::{
    core::Core,
    domain::{
        money::{
            ledger::Authority,
            payments::{order::Order, orders},
        },
        operations::idempotency::{Answered, Once},
    },
    error::{Code, Error, Fault, FieldCode, Result},
    providers::payment::PaymentGateway,
    store::{Read, Row, Write},
    types::{Fen, Timestamp, named, random_hex},
};

/// The columns in the order in which [`refund_of`] reads them.
macro_rules! select_refunds {
    ($rest:literal) => {
        concat!(
            "select refund_no, order_no, amount_fen, state, reason, actor, failure, asked_at, created_at, finished_at \
             from payment_refunds ",
            $rest
        )
    };
}

named! {
    /// How far a refund came.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Progress {
        /// It is not known yet what became of it.
        Requested = "requested",
        Succeeded = "succeeded",
        /// The provider will not do it, unless it is asked again.
        Refused = "refused",
    }
}

/// Money that was to go back.
#[derive(Clone, Debug)]
pub struct Refund {
    pub refund_no: String,
    pub order_no: String,
    pub amount: Fen,
    pub progress: Progress,
    pub reason: String,
    pub actor: String,
    /// The provider's code of the last failure, or what a person knew of the money that the provider could not be asked
    /// about.
    pub failure: Option<String>,
    pub asked_at: Timestamp,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

impl Refund {
    /// As its user is told of it.
    pub(super) fn exported(&self) -> Value {
        json!({
            "amount": self.amount.to_string(),
            "state": self.progress.name(),
            "createdAt": self.created_at,
            "finishedAt": self.finished_at,
        })
    }

    /// At whose word the money goes back.
    fn authority(&self) -> Authority {
        Authority { actor: self.actor.clone(), reason: self.reason.clone(), request_id: self.refund_no.clone() }
    }
}

/// What is to go back.
#[derive(Clone, Debug)]
pub struct Wish {
    pub order_no: String,
    /// Everything that is left if it is not said.
    pub amount: Option<Fen>,
    /// Makes repetition safe; one is made if it is not given.
    pub refund_no: Option<String>,
}

/// A refund, and the order as it left it.
#[derive(Clone, Debug)]
pub struct Refunded {
    pub refund: Refund,
    pub order: Order,
}

/// Gives money back, and takes back the coins that it bought: once for each number, with one answer for each key.
/// Blocks on the provider.
///
/// # Errors
/// `not_found`; `order_state` for an order without that much money; `idempotency_key_reused` for a number or a key that
/// was used for another refund; `invalid_parameters`; those of the provider, after which the same refund may be asked
/// for again.
pub fn refund(payments: &Payments, wish: &Wish, by: &Authority, once: Once<Refunded>) -> Result<Answered<Refunded>> {
    if let Some(kept) = once.answered_before(&payments.core)? {
        return Ok(Answered::Before(kept));
    }
    let refunded = give_back(payments, wish, by)?;
    let told = move |tx: &Write<'_>| note_told_in(tx, &refunded.refund.refund_no).map(|()| refunded);
    payments.core.store.write(move |tx| once.run_in(tx, told)).wait()
}

fn give_back(payments: &Payments, wish: &Wish, by: &Authority) -> Result<Refunded> {
    check(wish)?;
    let (wish, authority) = (wish.clone(), by.clone());
    let gateway = Arc::clone(&payments.gateway);
    let refund = payments.core.store.write(move |tx| request_in(tx, &wish, gateway.as_ref(), &authority)).wait()?;
    if refund.progress == Progress::Requested {
        carrying_out::carry_out(payments, &refund, by)?;
    }
    let refunded = payments.core.store.read(|tx| {
        let refund = find_in(tx, &refund.refund_no)?.ok_or(Code::NotFound)?;
        Ok(Refunded { order: orders::find_in(tx, &refund.order_no)?, refund })
    })?;
    match (&refunded.refund.failure, refunded.refund.progress) {
        (Some(code), Progress::Refused) => {
            Err(Error::new(Code::ProviderFailed).detail(format!("The provider refuses the refund: {code}.")))
        }
        _ => Ok(refunded),
    }
}

/// The refunds of an order, oldest first.
pub fn of_order(core: &Core, order_no: &str) -> Result<Vec<Refund>> {
    core.store.read(|tx| of_order_in(tx, order_no))
}

/// The refunds of an order, oldest first.
pub(super) fn of_order_in(tx: &Read<'_>, order_no: &str) -> Result<Vec<Refund>> {
    tx.all(select_refunds!("where order_no = ?1 order by created_at"), [order_no], refund_of)
}

/// # Errors
/// `out_of_range` for no money at all.
pub fn must_be_some(amount: Fen) -> Result<(), Fault> {
    if amount == Fen::ZERO { Err(Fault::new(FieldCode::OutOfRange, "must be more than 0")) } else { Ok(()) }
}

fn check(wish: &Wish) -> Result<()> {
    if let Some(amount) = wish.amount {
        must_be_some(amount).map_err(|fault| Error::field("amount", fault))?;
    }
    let is_number = |number: &String| {
        (1..=64).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if !wish.refund_no.as_ref().is_none_or(is_number) {
        let fault = Fault::new(FieldCode::InvalidFormat, "must be 1 to 64 letters, digits or `_`");
        return Err(Error::field("refundNo", fault));
    }
    Ok(())
}

fn new_number() -> Result<String> {
    Ok(format!("R{}", random_hex::<12>()?))
}

/// Writes the intent down, or finds it. An order has one refund at a time: whoever repeats a request of which they do
/// not know what became goes on with that one, or hears its number, or that it was done since.
fn request_in(tx: &Write<'_>, wish: &Wish, gateway: &dyn PaymentGateway, by: &Authority) -> Result<Refund> {
    let order = orders::find_in(tx, &wish.order_no)?;
    let named = wish.refund_no.as_deref().map(|number| find_in(tx, number)).transpose()?.flatten();
    if let Some(known) = &named {
        if known.order_no != order.order_no || wish.amount.is_some_and(|amount| amount != known.amount) {
            return Err(Code::IdempotencyKeyReused.into());
        }
        if known.progress == Progress::Requested {
            order.demand_app(gateway)?;
        }
        if known.progress != Progress::Refused {
            return Ok(known.clone());
        }
    }
    let left = order.returnable().checked_sub(order.refunded).unwrap_or(Fen::ZERO);
    // A part is not everything that is left. After what is done, and after an open refund of which a notification has
    // told, nothing is left.
    let is_wished = |known: &Refund| match wish.amount {
        Some(amount) => amount == known.amount,
        None => left == Fen::ZERO || (known.progress == Progress::Requested && left == known.amount),
    };
    if wish.refund_no.is_none()
        && let Some(done) = untold_in(tx, &order.order_no)?.into_iter().find(is_wished)
    {
        return Ok(done);
    }
    order.demand_app(gateway)?;
    if let Some(open) = open_in(tx, &order.order_no)? {
        if wish.refund_no.is_none() && is_wished(&open) {
            return Ok(open);
        }
        return Err(not_done_yet(&open));
    }
    if order.paid_at.is_none() {
        return Err(Error::new(Code::OrderState).detail("No money came in for this order."));
    }
    let amount = wish.amount.or(named.as_ref().map(|refused| refused.amount)).unwrap_or(left);
    if amount > left || amount == Fen::ZERO {
        return Err(Error::new(Code::OrderState).detail(format!("Of this order {left} yuan can be returned.")));
    }
    let refund_no = wish.refund_no.clone().map_or_else(new_number, Ok)?;
    // What the provider refused under this number it may do once the reason is gone, and does once at most.
    tx.execute(
        "insert into payment_refunds (refund_no, order_no, amount_fen, state, reason, actor, asked_at, created_at) \
         values (?1, ?2, ?3, 'requested', ?4, ?5, ?6, ?6) on conflict (refund_no) do update set state = excluded.state, \
         reason = excluded.reason, actor = excluded.actor, asked_at = excluded.asked_at, failure = null, \
         finished_at = null",
        (&refund_no, &order.order_no, amount.as_fen(), &by.reason, &by.actor, tx.now.0),
    )?;
    find_in(tx, &refund_no)?.ok_or_else(|| Error::internal("a refund that was just stored is gone"))
}

/// The refunds of the order that were done without anybody's being told so who asked for them, oldest first.
fn untold_in(tx: &Read<'_>, order_no: &str) -> Result<Vec<Refund>> {
    tx.all(
        select_refunds!("where order_no = ?1 and state = 'succeeded' and told_at is null order by created_at"),
        [order_no],
        refund_of,
    )
}

/// Whoever asked for the refund is about to be told what became of it.
fn note_told_in(tx: &Write<'_>, refund_no: &str) -> Result<()> {
    tx.execute("update payment_refunds set told_at = coalesce(told_at, ?2) where refund_no = ?1", (refund_no, tx.now.0))
        .map(drop)
}

/// Makes sure that no money of the order's is on its way back, so that a person can say where it is. Of a refund about
/// which nobody can be asked any more, because its app or gateway is not configured, they say it: it ends, for this
/// reason.
///
/// # Errors
/// `order_state` for a refund that may be done yet.
pub(super) fn end_open_in(tx: &Write<'_>, gateway: &dyn PaymentGateway, order: &Order, reason: &str) -> Result<()> {
    match open_in(tx, &order.order_no)? {
        Some(open) if order.is_known_to(gateway) => Err(not_done_yet(&open)),
        Some(open) => carrying_out::note_refusal_in(tx, &open.refund_no, reason),
        None => Ok(()),
    }
}

fn not_done_yet(open: &Refund) -> Error {
    let detail = format!("The refund {} of {} yuan is not done yet.", open.refund_no, open.amount);
    Error::new(Code::OrderState).detail(detail)
}

/// The refund of the order of which it is not known yet what became.
fn open_in(tx: &Read<'_>, order_no: &str) -> Result<Option<Refund>> {
    tx.first(
        select_refunds!("where order_no = ?1 and state = 'requested' order by created_at limit 1"),
        [order_no],
        refund_of,
    )
}

/// Open refunds about which this gateway can be asked and was not asked since, the longest first.
fn unheard_of_in(tx: &Read<'_>, gateway: &dyn PaymentGateway, since: Timestamp) -> Result<Vec<Refund>> {
    tx.all(
        select_refunds!(
            "where state = 'requested' and (asked_at <= ?1 or asked_at > ?2) and exists (select 1 \
             from payment_orders where order_no = payment_refunds.order_no and channel = ?3 \
             and (app_id is null or app_id = ?4)) \
             order by asked_at limit 50"
        ),
        (since.0, tx.now.0, gateway.name(), gateway.app_id()),
        refund_of,
    )
}

/// At whose word so much went back, if it covers the order's open refund.
pub(super) fn authority_for_in(tx: &Read<'_>, order: &Order, total: Fen) -> Result<Option<Authority>> {
    let open = open_in(tx, &order.order_no)?;
    let is_covered = |refund: &Refund| order.refunded.checked_add(refund.amount).is_some_and(|sum| sum <= total);
    Ok(open.filter(is_covered).map(|refund| refund.authority()))
}

fn find_in(tx: &Read<'_>, refund_no: &str) -> Result<Option<Refund>> {
    tx.first(select_refunds!("where refund_no = ?1"), [refund_no], refund_of)
}

fn refund_of(row: &Row<'_>) -> rusqlite::Result<Refund> {
    let amount: i64 = row.get(2)?;
    Ok(Refund {
        refund_no: row.get(0)?,
        order_no: row.get(1)?,
        amount: Fen::from_fen(amount).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(2, amount))?,
        progress: row.get_parsed(3, Progress::named)?,
        reason: row.get(4)?,
        actor: row.get(5)?,
        failure: row.get(6)?,
        asked_at: Timestamp(row.get(7)?),
        created_at: Timestamp(row.get(8)?),
        finished_at: row.get::<Option<i64>>(9)?.map(Timestamp),
    })
}
