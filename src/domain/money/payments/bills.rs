//! Bills: each morning yesterday's bill of each provider is compared with our orders and refunds.
//!
//! A payment that we missed is settled by a query. Every other difference moves its order to review and raises an alert.
//! A bill can be checked again at any time; the last check of a day counts.

mod records;

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, de};

pub use self::records::list;

use super::{Payments, channels::PaymentChannel, order::Order, order_states, orders, reconcile, refunds};
use crate::{
    error::{Code, Error, Fault, FieldCode, Result},
    providers::payment::{
        OrderState,
        bill::{BillLine, ProviderBill},
    },
    store::{Read, Row, Write},
    types::{Date, Fen, TimeZone, Timestamp, named_enum},
};

/// Providers make the bill of a day until 10:00 on the next.
const READY_AT_HOUR: i8 = 10;
/// Our times and the provider's may differ, so what happened this close to midnight may be on another bill.
const MARGIN: Duration = Duration::from_mins(5);
/// Days for which differences raise the alert.
const ALERT_DAYS: Duration = Duration::from_hours(7 * 24);
/// The review reason of an order that differs from the bill.
const BILL_DIFFERS: &str = "bill_differs";

named_enum! {
    /// A difference between a bill and our records.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BillDifferenceCode {
        /// The bill has a payment of an order that we do not have.
        OrderMissing = "order_missing",
        /// The bill has a payment that we had not recorded. A query settles it.
        PaymentMissing = "payment_missing",
        AmountDiffers = "amount_differs",
        /// We recorded a payment or refund that the bill does not have.
        NotInBill = "not_in_bill",
        /// The bill has a refund that we had not recorded.
        RefundMissing = "refund_missing",
        RefundDiffers = "refund_differs",
    }
}

impl<'de> Deserialize<'de> for BillDifferenceCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| de::Error::custom("a stored difference has an unknown code"))
    }
}

/// A difference between a bill and our records, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillDifference {
    pub code: BillDifferenceCode,
    pub order_no: String,
    pub refund_no: Option<String>,
    /// The amount on the bill.
    pub billed: Option<Fen>,
    /// The amount in our records.
    pub recorded: Option<Fen>,
}

/// The result of checking a bill.
#[derive(Clone, Debug)]
pub struct BillCheck {
    pub channel: String,
    pub day: Date,
    pub checked_at: Timestamp,
    pub payments: u32,
    pub refunds: u32,
    pub amount_paid: Fen,
    pub amount_refunded: Fen,
    /// The provider's fees in yuan, less those given back.
    pub fees: String,
    pub differences: Vec<BillDifference>,
}

/// Checks yesterday's bills once they are ready. Blocks on the providers.
///
/// # Errors
/// Storage errors, and those of the providers.
pub fn run_if_due(payments: &Payments) -> Result<()> {
    let now = payments.core.clock.now();
    let shanghai = shanghai()?;
    let today = shanghai.today(now);
    let ready = shanghai.at(today.at(READY_AT_HOUR, 0, 0, 0));
    let Ok(yesterday) = today.yesterday() else { return Ok(()) };
    if ready.is_none_or(|ready| now < ready) {
        return Ok(());
    }
    let with_bills = payments.channels.all().filter(|channel| channel.gateway.has_bills());
    // A provider that fails does not keep the others from being checked.
    let outcomes: Vec<_> = with_bills.map(|channel| check_channel_if_due(payments, channel, yesterday)).collect();
    outcomes.into_iter().collect()
}

fn check_channel_if_due(payments: &Payments, channel: &PaymentChannel, day: Date) -> Result<()> {
    let (name, text) = (channel.gateway.name(), day.to_string());
    let is_due =
        payments.core.store.read(|tx| Ok(!records::is_checked_in(tx, name, &text)? && has_orders_in(tx, name)?))?;
    if is_due { check_channel(payments, channel, day).map(drop) } else { Ok(()) }
}

/// Checks the bills of a day, of one channel or of all that have bills. Blocks on the providers.
///
/// # Errors
/// `invalid_parameters` for a day that is not over or a channel without bills. Those of the providers.
pub fn check(payments: &Payments, channel: Option<&str>, day: Date) -> Result<Vec<BillCheck>> {
    if day >= shanghai()?.today(payments.core.clock.now()) {
        let fault = Fault::new(FieldCode::OutOfRange, ("must be before today, in Shanghai", "须早于今天（上海时间）"));
        return Err(Error::field("day", fault));
    }
    let is_wanted =
        |found: &&PaymentChannel| found.gateway.has_bills() && channel.is_none_or(|name| found.gateway.name() == name);
    let wanted: Vec<_> = payments.channels.all().filter(is_wanted).collect();
    if channel.is_some() && wanted.is_empty() {
        let fault = Fault::new(
            FieldCode::UnknownValue,
            ("must be a configured channel that has bills", "须为已配置且有账单的渠道"),
        );
        return Err(Error::field("channel", fault));
    }
    wanted.into_iter().map(|channel| check_channel(payments, channel, day)).collect()
}

/// Counts the differences of the last days.
pub fn recent_differences_in(tx: &Read<'_>) -> Result<u64> {
    let sum: i64 = tx.one(
        "select coalesce(sum(differences), 0) from payment_bills where checked_at > ?1",
        [tx.now.minus(ALERT_DAYS).0],
        |row| row.get(0),
    )?;
    u64::try_from(sum).map_err(Error::internal)
}

fn check_channel(payments: &Payments, channel: &PaymentChannel, day: Date) -> Result<BillCheck> {
    let name = channel.gateway.name();
    let invalid = || Error::field("day", Fault::new(FieldCode::OutOfRange, ("must be a valid date", "须为有效的日期")));
    let shanghai = shanghai()?;
    let begin = shanghai.at(day.at(0, 0, 0, 0)).ok_or_else(invalid)?;
    let end = shanghai.at(day.tomorrow().map_err(|_| invalid())?.at(0, 0, 0, 0)).ok_or_else(invalid)?;
    let clock = &payments.core.clock;
    let bill = channel.breaker.run(|| clock.now().0, || channel.gateway.bill(begin.0))?.unwrap_or_default();
    let missed = payments.core.store.read(|tx| missed_payments_in(tx, name, &bill))?;
    for order_no in &missed {
        // Without an answer the payment stays a difference.
        if let Err(error) = reconcile::inquire(payments, order_no) {
            tracing::warn!(%error, order_no, "a payment on a bill could not be queried");
        }
    }
    payments
        .core
        .store
        .write(move |tx| {
            let mut found = compare_in(tx, name, &bill, (begin.plus(MARGIN), end.minus(MARGIN)))?;
            found.extend(missed.iter().map(|order_no| BillDifference {
                code: BillDifferenceCode::PaymentMissing,
                order_no: order_no.clone(),
                refund_no: None,
                billed: bill.lines.iter().find(|line| line.order_no == *order_no).map(|line| line.amount),
                recorded: None,
            }));
            let check = summary(name, (day, tx.now), &bill, found)?;
            review_in(tx, &check)?;
            end_reviews_in(tx, &check)?;
            records::store_in(tx, &check)?;
            Ok(check)
        })
        .wait()
}

/// Returns the known orders that the bill calls paid and we do not.
fn missed_payments_in(tx: &Read<'_>, channel: &str, bill: &ProviderBill) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    for line in bill.lines.iter().filter(|line| line.refund_no.is_none()) {
        let found = orders::find_maybe_in(tx, &line.order_no)?;
        if found.is_some_and(|order| order.channel == channel && order.paid_at.is_none()) {
            missed.push(line.order_no.clone());
        }
    }
    Ok(missed)
}

fn compare_in(
    tx: &Read<'_>,
    channel: &str,
    bill: &ProviderBill,
    (begin, end): (Timestamp, Timestamp),
) -> Result<Vec<BillDifference>> {
    let mut found = Vec::new();
    for line in &bill.lines {
        let Some(order) = orders::find_maybe_in(tx, &line.order_no)?.filter(|order| order.channel == channel) else {
            found.push(difference(BillDifferenceCode::OrderMissing, line, None));
            continue;
        };
        found.extend(match &line.refund_no {
            None => payment_difference(line, &order),
            Some(number) => refund_difference_in(tx, line, number, &order)?,
        });
    }
    let billed: BTreeSet<_> =
        bill.lines.iter().map(|line| (line.order_no.as_str(), line.refund_no.as_deref())).collect();
    let missing = |order_no: String, refund_no: Option<String>, recorded| BillDifference {
        code: BillDifferenceCode::NotInBill,
        order_no,
        refund_no,
        billed: None,
        recorded: Some(recorded),
    };
    for order in orders::paid_between_in(tx, channel, begin, end)? {
        if order.settled_at.is_none() && !billed.contains(&(order.order_no.as_str(), None)) {
            found.push(missing(order.order_no, None, order.paid));
        }
    }
    for refund in refunds::succeeded_between_in(tx, channel, begin, end)? {
        if !billed.contains(&(refund.order_no.as_str(), Some(refund.refund_no.as_str()))) {
            found.push(missing(refund.order_no, Some(refund.refund_no), refund.amount));
        }
    }
    Ok(found)
}

fn payment_difference(line: &BillLine, order: &Order) -> Option<BillDifference> {
    let differs = order.paid_at.is_some() && order.paid != line.amount && order.settled_at.is_none();
    differs.then(|| difference(BillDifferenceCode::AmountDiffers, line, Some(order.paid)))
}

fn refund_difference_in(tx: &Read<'_>, line: &BillLine, number: &str, order: &Order) -> Result<Option<BillDifference>> {
    let known = refunds::of_order_in(tx, &order.order_no)?.into_iter().find(|refund| refund.refund_no == number);
    Ok(match known {
        Some(refund) if refund.amount == line.amount => None,
        Some(refund) => Some(difference(BillDifferenceCode::RefundDiffers, line, Some(refund.amount))),
        // The provider's own refunds have no row here at Alipay, which reports their total.
        None if order.refunded >= line.amount => None,
        None => Some(difference(BillDifferenceCode::RefundMissing, line, None)),
    })
}

fn difference(code: BillDifferenceCode, line: &BillLine, recorded: Option<Fen>) -> BillDifference {
    BillDifference {
        code,
        order_no: line.order_no.clone(),
        refund_no: line.refund_no.clone(),
        billed: Some(line.amount),
        recorded,
    }
}

fn summary(
    channel: &str,
    (day, checked_at): (Date, Timestamp),
    bill: &ProviderBill,
    differences: Vec<BillDifference>,
) -> Result<BillCheck> {
    let sum = |is_refund: bool| {
        let amounts = bill.lines.iter().filter(|line| line.refund_no.is_some() == is_refund).map(|line| line.amount);
        let (mut count, mut total) = (0, Fen::ZERO);
        for amount in amounts {
            count += 1;
            total = total.checked_add(amount).ok_or_else(|| Error::internal("the sum of a bill is too large"))?;
        }
        Ok::<_, Error>((count, total))
    };
    let ((payments, amount_paid), (refunds, amount_refunded)) = (sum(false)?, sum(true)?);
    Ok(BillCheck {
        channel: channel.to_owned(),
        day,
        checked_at,
        payments,
        refunds,
        amount_paid,
        amount_refunded,
        fees: bill.fees.to_string(),
        differences,
    })
}

/// Moves the orders with differences to review, unless a query has settled them.
fn review_in(tx: &Write<'_>, check: &BillCheck) -> Result<()> {
    for found in &check.differences {
        if found.code == BillDifferenceCode::PaymentMissing {
            continue;
        }
        let order = orders::find_maybe_in(tx, &found.order_no)?.filter(|order| order.channel == check.channel);
        order.map(|order| order_states::ensure_review_in(tx, order, BILL_DIFFERS)).transpose()?;
    }
    if !check.differences.is_empty() {
        let (channel, day, differences) = (&check.channel, check.day.to_string(), check.differences.len());
        tracing::error!(channel, day, differences, "a provider's bill differs; run `yarrow payments bill`");
    }
    Ok(())
}

/// Ends the reviews of orders that differed when the bill was checked before, and agree now.
fn end_reviews_in(tx: &Write<'_>, check: &BillCheck) -> Result<()> {
    for before in records::differences_in(tx, &check.channel, check.day)? {
        if check.differences.iter().any(|found| found.order_no == before.order_no) {
            continue;
        }
        let found = orders::find_maybe_in(tx, &before.order_no)?;
        let is_about_the_bill =
            |order: &Order| order.state == OrderState::Review && order.reason.as_deref() == Some(BILL_DIFFERS);
        if let Some(order) = found.filter(|order| order.channel == check.channel && is_about_the_bill(order)) {
            let state = order_states::settled_state(&order);
            order_states::set_state_in(tx, Order { reason: None, ..order }, state)?;
        }
    }
    Ok(())
}

/// Returns true if a channel ever had orders: a new one has no bills yet.
fn has_orders_in(tx: &Read<'_>, channel: &str) -> Result<bool> {
    let found = tx.first(
        "select 1 from payment_orders where channel = ?1 and trade_no is not null limit 1",
        [channel],
        |row: &Row<'_>| row.get::<i64>(0),
    )?;
    Ok(found.is_some())
}

fn shanghai() -> Result<TimeZone> {
    "Asia/Shanghai".parse().map_err(|_| Error::from(Code::Internal))
}
