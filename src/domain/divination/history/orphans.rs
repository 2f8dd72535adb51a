//! Castings whose user is gone. There should be none: deleting a user takes their castings along.

use crate::{
    error::Result,
    store::{Read, Write},
    types::UserId,
};

/// The next user after this one who has castings.
pub fn next_owner_in(tx: &Read<'_>, after: UserId) -> Result<Option<UserId>> {
    tx.first("select user_id from history where user_id > ?1 order by user_id limit 1", [after.0], |row| {
        row.get(0).map(UserId)
    })
}

/// Deletes up to `limit` castings of a user whom the caller knows to be gone.
pub fn delete_orphans_in(tx: &Write<'_>, owner: UserId, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from history where id in (select id from history where user_id = ?1 order by sequence limit ?2)",
        (owner.0, limit),
    )
}
