//! The purge of payment records after the retention that law and disputes require.

use crate::{
    domain::operations::{confirmations::DeletionPreview, settings},
    error::{Error, Result},
    store::{Read, Row, RowResult, Write},
    types::Timestamp,
};

/// The setting that stores the last activity of any purged order.
const PURGED_UNTIL: &str = "payments.purged_until";

/// Selects orders that can be purged: no money can be pending.
macro_rules! is_finished {
    () => {
        "state in ('credited', 'closed', 'refunded') and not exists (select 1 from payment_refunds as refund \
         where refund.order_no = payment_orders.order_no and refund.finished_at is null)"
    };
}

/// The time of the last activity of an order.
macro_rules! last_activity {
    () => {
        "(select max(moment) from (select created_at as moment union all select credited_at union all select closed_at \
         union all select refunded_at union all select settled_at \
         union all select max(callback.received_at) from payment_callbacks as callback \
         where callback.order_no = payment_orders.order_no \
         union all select max(refund.created_at) from payment_refunds as refund \
         where refund.order_no = payment_orders.order_no \
         union all select max(refund.finished_at) from payment_refunds as refund \
         where refund.order_no = payment_orders.order_no) as moments)"
    };
}

/// Returns the last activity of any purged order. Ledger entries up to then may have no order.
pub fn purged_until_in(tx: &Read<'_>) -> Result<Timestamp> {
    let text = settings::find_in(tx, PURGED_UNTIL)?;
    let moment = text.map(|text| text.parse().map_err(Error::internal)).transpose()?;
    Ok(moment.map_or(Timestamp(i64::MIN), Timestamp))
}

/// Counts the orders that a purge deletes and keeps.
pub fn preview_in(tx: &Read<'_>, floor: Timestamp) -> Result<DeletionPreview> {
    let orders: i64 = tx.one("select count(*) from payment_orders", (), |row| row.get(0))?;
    let old: i64 = tx.one(
        concat!(
            "select count(*) from payment_orders where created_at < ?1 and ",
            is_finished!(),
            " and ",
            last_activity!(),
            " < ?1"
        ),
        [floor.0],
        |row| row.get(0),
    )?;
    let table = || "payment_orders".to_owned();
    Ok(DeletionPreview { delete: vec![(table(), old)], keep: vec![(table(), orders - old)] })
}

/// A purgeable order with a fingerprint that shows later changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeableOrder {
    id: i64,
    order_no: String,
    state: String,
    refunded_fen: i64,
    coins_returned: i64,
    coins_written_off: i64,
    callbacks: i64,
    refunds: i64,
    refunds_done: i64,
    /// The time of the last activity.
    last_activity: i64,
}

const PURGEABLE_COLUMNS: &str = concat!(
    "id, order_no, state, refunded_fen, coins_returned, coins_written_off, \
     (select count(*) from payment_callbacks as callback where callback.order_no = payment_orders.order_no), \
     (select count(*) from payment_refunds as refund where refund.order_no = payment_orders.order_no), \
     (select count(finished_at) from payment_refunds as refund where refund.order_no = payment_orders.order_no), ",
    last_activity!()
);

/// Returns up to `limit` purgeable orders after a cursor.
///
/// Open orders, orders in review and orders with an open refund are never purgeable. The age counts from the last
/// activity.
pub fn finished_after_in(
    tx: &Read<'_>,
    floor: Timestamp,
    after: Option<&PurgeableOrder>,
    limit: u32,
) -> Result<Vec<PurgeableOrder>> {
    let sql = format!(
        "select {PURGEABLE_COLUMNS} from payment_orders where id > ?1 and created_at < ?2 and {} and {} < ?2 order by id limit ?3",
        is_finished!(),
        last_activity!()
    );
    tx.all(&sql, (after.map_or(i64::MIN, |order| order.id), floor.0, limit), purgeable_order)
}

/// Deletes the orders that have not changed, with their callbacks and refunds, and returns their number. Ledger entries
/// stay.
pub fn delete_in(tx: &Write<'_>, orders: &[PurgeableOrder]) -> Result<usize> {
    let sql = format!("select {PURGEABLE_COLUMNS} from payment_orders where id = ?1");
    let (mut unchanged, before) = (Vec::new(), purged_until_in(tx)?);
    let mut until = before;
    for order in orders {
        if tx.first(&sql, [order.id], purgeable_order)?.as_ref() == Some(order) {
            unchanged.push(&order.order_no);
            until = until.max(Timestamp(order.last_activity));
        }
    }
    if until > before {
        settings::put_in(tx, PURGED_UNTIL, &until.0.to_string())?;
    }
    for sql in [
        "delete from payment_callbacks where order_no = ?1",
        "delete from payment_refunds where order_no = ?1",
        "delete from payment_disputes where (channel, trade_no) in (select channel, trade_no from payment_orders \
         where order_no = ?1)",
        "delete from sandbox_trades where order_no = ?1",
        "delete from payment_orders where order_no = ?1",
    ] {
        tx.execute_each(sql, unchanged.iter().map(|order| [order]))?;
    }
    Ok(unchanged.len())
}

fn purgeable_order(row: &Row<'_>) -> RowResult<PurgeableOrder> {
    Ok(PurgeableOrder {
        id: row.get(0)?,
        order_no: row.get(1)?,
        state: row.get(2)?,
        refunded_fen: row.get(3)?,
        coins_returned: row.get(4)?,
        coins_written_off: row.get(5)?,
        callbacks: row.get(6)?,
        refunds: row.get(7)?,
        refunds_done: row.get(8)?,
        last_activity: row.get(9)?,
    })
}
