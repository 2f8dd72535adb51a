//! The table of checked bills: the last check of each channel and day, with its differences.

use super::{BillCheck, BillDifference};
use crate::{
    core::Core,
    error::{Error, Result},
    store::{Read, Row, RowError, RowResult, Write},
    types::{Date, Fen, PageRequest, Paginated, Timestamp},
};

/// Lists the checked bills, newest day first.
///
/// # Errors
/// Storage errors.
pub fn list(core: &Core, page: PageRequest) -> Result<Paginated<BillCheck>> {
    core.store.read(|tx| {
        let rows = tx.all(
            "select channel, day, checked_at, payments, refunds, paid_fen, refunded_fen, fees, found from payment_bills \
             order by day desc, channel desc limit ?1 offset ?2",
            (page.size, page.offset()),
            |row| Ok((check_row(row)?, row.get::<String>(1)?, row.get::<String>(8)?)),
        )?;
        let items = rows.into_iter().map(|(check, day, found)| {
            let day: Date = day.parse().map_err(Error::internal)?;
            Ok(BillCheck { day, differences: parse(&found)?, ..check })
        });
        Ok(Paginated {
            items: items.collect::<Result<_>>()?,
            total: tx.one("select count(*) from payment_bills", (), |row| row.get(0))?,
        })
    })
}

pub(super) fn store_in(tx: &Write<'_>, check: &BillCheck) -> Result<()> {
    let differences = i64::try_from(check.differences.len()).map_err(Error::internal)?;
    let found = serde_json::to_string(&check.differences).map_err(Error::internal)?;
    tx.execute(
        "insert into payment_bills (channel, day, checked_at, payments, refunds, paid_fen, refunded_fen, fees, \
         differences, found) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
         on conflict (channel, day) do update set checked_at = excluded.checked_at, payments = excluded.payments, \
         refunds = excluded.refunds, paid_fen = excluded.paid_fen, refunded_fen = excluded.refunded_fen, \
         fees = excluded.fees, differences = excluded.differences, found = excluded.found",
        (
            &check.channel,
            check.day.to_string(),
            check.checked_at.0,
            check.payments,
            check.refunds,
            check.amount_paid.as_fen(),
            check.amount_refunded.as_fen(),
            &check.fees,
            differences,
            found,
        ),
    )
    .map(drop)
}

/// Returns the differences of the last check of a day.
pub(super) fn differences_in(tx: &Read<'_>, channel: &str, day: Date) -> Result<Vec<BillDifference>> {
    let sql = "select found from payment_bills where channel = ?1 and day = ?2";
    let found = tx.first(sql, (channel, day.to_string()), |row: &Row<'_>| row.get::<String>(0))?;
    found.map_or_else(|| Ok(Vec::new()), |found| parse(&found))
}

pub(super) fn is_checked_in(tx: &Read<'_>, channel: &str, day: &str) -> Result<bool> {
    let found =
        tx.first("select 1 from payment_bills where channel = ?1 and day = ?2", (channel, day), |row: &Row<'_>| {
            row.get::<i64>(0)
        })?;
    Ok(found.is_some())
}

fn check_row(row: &Row<'_>) -> RowResult<BillCheck> {
    let fen = |index| -> RowResult<Fen> {
        let amount: i64 = row.get(index)?;
        Fen::from_fen(amount).map_err(|_| RowError::Invalid)
    };
    Ok(BillCheck {
        channel: row.get(0)?,
        day: Date::default(),
        checked_at: Timestamp(row.get(2)?),
        payments: row.get(3)?,
        refunds: row.get(4)?,
        amount_paid: fen(5)?,
        amount_refunded: fen(6)?,
        fees: row.get(7)?,
        differences: Vec::new(),
    })
}

fn parse(found: &str) -> Result<Vec<BillDifference>> {
    serde_json::from_str(found).map_err(Error::internal)
}
