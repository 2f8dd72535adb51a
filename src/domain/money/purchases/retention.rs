//! The purge of purchases after the retention that law and disputes require.

use crate::{
    domain::operations::settings,
    error::{Error, Result},
    store::{Read, Row, RowError, RowResult, Write},
    types::Timestamp,
};

/// The setting that stores the last activity of any purged purchase.
const PURGED_UNTIL: &str = "purchases.purged_until";

/// Selects the columns that [`purgeable_row`] reads.
macro_rules! select_purgeable {
    ($rest:literal) => {
        concat!(
            "select id, state, returned, written_off, returns, created_at, credited_at, revoked_at, restored_at \
             from store_purchases ",
            $rest
        )
    };
}

/// A purgeable purchase with a fingerprint that shows later changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeablePurchase {
    id: i64,
    state: String,
    returned: i64,
    written_off: i64,
    returns: i64,
    last_activity: i64,
}

/// Returns the last activity of any purged purchase. Ledger entries up to then may have no purchase.
pub fn purged_until_in(tx: &Read<'_>) -> Result<Timestamp> {
    let text = settings::find_in(tx, PURGED_UNTIL)?;
    let moment = text.map(|text| text.parse().map_err(Error::internal)).transpose()?;
    Ok(moment.map_or(Timestamp(i64::MIN), Timestamp))
}

/// Counts the purchases that a purge deletes and keeps.
pub fn preview_in(tx: &Read<'_>, floor: Timestamp) -> Result<(i64, i64)> {
    let all: i64 = tx.one("select count(*) from store_purchases", (), |row| row.get(0))?;
    let old: i64 = tx.one(
        "select count(*) from store_purchases where created_at < ?1 and due_at is null \
         and coalesce(credited_at, 0) < ?1 and coalesce(revoked_at, 0) < ?1 and coalesce(restored_at, 0) < ?1",
        [floor.0],
        |row| row.get(0),
    )?;
    Ok((old, all - old))
}

/// Returns up to `limit` purgeable purchases after a cursor: those for which no call to the store is due.
pub fn finished_after_in(
    tx: &Read<'_>,
    floor: Timestamp,
    after: Option<&PurgeablePurchase>,
    limit: u32,
) -> Result<Vec<PurgeablePurchase>> {
    let sql = select_purgeable!(
        "where id > ?1 and created_at < ?2 and due_at is null and coalesce(credited_at, 0) < ?2 \
         and coalesce(revoked_at, 0) < ?2 and coalesce(restored_at, 0) < ?2 order by id limit ?3"
    );
    tx.all(sql, (after.map_or(i64::MIN, |purchase| purchase.id), floor.0, limit), purgeable_row)
}

/// Deletes the purchases that have not changed, and returns their number. Ledger entries stay.
pub fn delete_in(tx: &Write<'_>, purchases: &[PurgeablePurchase]) -> Result<usize> {
    let sql = select_purgeable!("where id = ?1");
    let before = purged_until_in(tx)?;
    let (mut until, mut deleted) = (before, 0);
    for purchase in purchases {
        if tx.first(sql, [purchase.id], purgeable_row)?.as_ref() == Some(purchase) {
            tx.execute("update store_messages set purchase = null where purchase = ?1", [purchase.id])?;
            deleted += tx.execute("delete from store_purchases where id = ?1", [purchase.id])?;
            until = until.max(Timestamp(purchase.last_activity));
        }
    }
    if until > before {
        settings::put_in(tx, PURGED_UNTIL, &until.0.to_string())?;
    }
    Ok(deleted)
}

fn purgeable_row(row: &Row<'_>) -> RowResult<PurgeablePurchase> {
    let time = |index| Ok::<_, RowError>(row.get::<Option<i64>>(index)?.unwrap_or(0));
    Ok(PurgeablePurchase {
        id: row.get(0)?,
        state: row.get(1)?,
        returned: row.get(2)?,
        written_off: row.get(3)?,
        returns: row.get(4)?,
        last_activity: row.get::<i64>(5)?.max(time(6)?).max(time(7)?).max(time(8)?),
    })
}
