//! How long payment records are kept: as long as the law or a dispute may ask for them.

use std::time::Duration;

use crate::{
    error::Result,
    ops::confirmations::Census,
    store::{Read, Write},
    types::Timestamp,
};

/// Counts the finished orders that are old enough to go, and all that stay.
pub fn census_in(tx: &Read<'_>, floor: Timestamp) -> Result<Census> {
    let orders: i64 = tx.one("select count(*) from payment_orders", (), |row| row.get(0))?;
    let old: i64 = tx.one(
        "select count(*) from payment_orders where created_at < ?1 and state in ('credited', 'closed', 'refunded')",
        [floor.0],
        |row| row.get(0),
    )?;
    let table = || "payment_orders".to_owned();
    Ok(Census { delete: vec![(table(), old)], keep: vec![(table(), orders - old)] })
}

/// Deletes up to `limit` finished orders older than `age`, with what came in about them, and says how many orders.
///
/// An order that is open or in review is never old enough: somebody's money may be in it. What the coins of an order
/// did to a balance stays in the ledger.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    let floor = tx.now.minus(age).0;
    let orders: Vec<String> = tx.all(
        "select order_no from payment_orders where created_at < ?1 and state in ('credited', 'closed', 'refunded') \
         order by created_at limit ?2",
        (floor, limit),
        |row| row.get(0),
    )?;
    for sql in [
        "delete from payment_callbacks where order_no = ?1",
        "delete from payment_refunds where order_no = ?1",
        "delete from sandbox_trades where order_no = ?1",
        "delete from payment_orders where order_no = ?1",
    ] {
        tx.execute_each(sql, orders.iter().map(|order| [order]))?;
    }
    Ok(orders.len())
}
