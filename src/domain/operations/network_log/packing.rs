//! Moves the entries of the first version of the schema into blocks, some at a time.
//!
//! They are counted already. Until they are moved, no list shows them and no user is erased from the log.

use super::{
    NetworkLog, Pace,
    blocks::{self, Row},
};
use crate::{
    error::Result,
    store::{Read, Write},
};

/// Writes of one run.
const BATCHES: usize = 100;

/// Moves some entries. Returns true if more may be left. Blocks.
///
/// # Errors
/// Storage errors; the next call continues.
pub(super) fn pack_some(log: &NetworkLog) -> Result<bool> {
    for _ in 0..BATCHES {
        if log.read(is_done_in)? {
            return Ok(false);
        }
        log.store().write(pack_in).wait()?;
    }
    Ok(true)
}

fn is_done_in(tx: &Read<'_>) -> Result<bool> {
    tx.one("select not exists (select 1 from access_log_unpacked)", (), |row| row.get(0))
}

fn pack_in(tx: &Write<'_>) -> Result<()> {
    let sql = "select id, at, user_id, client_ip, method, route, status, duration_us, request_id from access_log_unpacked \
               order by id limit ?1";
    let stored = tx.all(sql, [blocks::LARGEST], |row| {
        let texts: (String, String, Option<String>, String) = (row.get(3)?, row.get(4)?, row.get(5)?, row.get(8)?);
        Ok((row.get::<i64>(0)?, row.get(1)?, row.get(2)?, row.get(6)?, row.get(7)?, texts))
    })?;
    let mut rows = Vec::new();
    for (_, at, user, status, duration_us, (client, method, route, request_id)) in &stored {
        let (at, user, status, duration_us, route) = (*at, *user, *status, *duration_us, route.as_deref());
        rows.push(Row { position: 0, at, user, client, method, route, status, duration_us, request_id });
    }
    rows.sort_by_key(|row| row.at);
    blocks::append_in(tx, &mut rows, &mut Pace::default())?;
    match stored.last() {
        Some((last, ..)) => tx.execute("delete from access_log_unpacked where id <= ?1", [*last]).map(drop),
        None => Ok(()),
    }
}

/// Deletes all entries that are not moved.
pub(super) fn delete_all_in(tx: &Write<'_>) -> Result<()> {
    tx.execute("delete from access_log_unpacked", ()).map(drop)
}
