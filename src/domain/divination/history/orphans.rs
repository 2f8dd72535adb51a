//! History records without a user. They should not exist, because deleting a user deletes them.

use crate::{
    error::Result,
    store::{Read, Write},
    types::UserId,
};

/// Returns the next user id after this one that has records.
pub fn next_owner_in(tx: &Read<'_>, after: UserId) -> Result<Option<UserId>> {
    tx.first("select user_id from history where user_id > ?1 order by user_id limit 1", [after.0], |row| {
        row.get(0).map(UserId)
    })
}

/// Deletes up to `limit` records of a user that is known to be deleted.
pub fn delete_orphans_in(tx: &Write<'_>, owner: UserId, limit: u32) -> Result<usize> {
    super::sums::delete_in(tx, owner)?;
    tx.execute(
        "delete from history where id in (select id from history where user_id = ?1 order by sequence limit ?2)",
        (owner.0, limit),
    )
}
