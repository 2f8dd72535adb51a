//! Deleted users of whose data some rows are left.
//!
//! The deletion of an account is one small write, from which on the user does not exist. It leaves the rows whose number
//! grows with the use of the account; small writes delete them next, and a job goes on after a crash. Until then no reader
//! may show them: lists of all users' rows ask here.

use crate::{
    error::Result,
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// The condition that the user of a column is not being erased.
macro_rules! is_not_being_erased {
    ($column:literal) => {
        concat!("not exists (select 1 from account_erasures where account_erasures.user_id = ", $column, ")")
    };
}
pub(crate) use is_not_being_erased;

/// Records that rows of the user are left.
pub fn begin_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("insert into account_erasures (user_id, requested_at) values (?1, ?2)", (user.0, tx.now.0)).map(drop)
}

/// Records that no row of the user is left.
pub fn complete_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from account_erasures where user_id = ?1", [user.0]).map(drop)
}

/// Returns the users, those deleted first before others.
pub fn list_in(tx: &Read<'_>) -> Result<Vec<UserId>> {
    tx.all("select user_id from account_erasures order by requested_at, user_id", (), |row| row.get(0).map(UserId))
}

/// Returns the number of users, and the time of the first deletion.
pub fn summary_in(tx: &Read<'_>) -> Result<(i64, Option<Timestamp>)> {
    tx.one("select count(*), min(requested_at) from account_erasures", (), |row| {
        Ok((row.get(0)?, row.get::<Option<i64>>(1)?.map(Timestamp)))
    })
}
