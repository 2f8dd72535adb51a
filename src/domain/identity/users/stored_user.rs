//! Users as stored, for validation and repair.

use crate::{
    error::Result,
    store::{Read, Row, RowResult, Write},
    types::{Timestamp, UserId},
};

/// A user as stored, with unparsed addresses.
#[derive(Clone, Debug)]
pub struct StoredUser {
    pub id: UserId,
    pub phone_number: Option<String>,
    pub email: Option<String>,
    pub created_at: Timestamp,
}

pub fn find_stored_in(tx: &Read<'_>, id: UserId) -> Result<Option<StoredUser>> {
    tx.first("select id, phone_number, email, created_at from users where id = ?1", [id.0], stored_user_of)
}

pub fn count_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select count(*) from users", (), |row| row.get(0))
}

/// Returns the users whose number is stored in one of these spellings.
pub fn find_by_phone_spellings_in(tx: &Read<'_>, spellings: &[String; 8]) -> Result<Vec<StoredUser>> {
    tx.all(
        "select id, phone_number, email, created_at from users \
         where phone_number in (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) order by id",
        spellings.each_ref(),
        stored_user_of,
    )
}

/// Returns up to `limit` users above this id with an irregular number: anything but digits after an optional plus sign.
pub fn find_irregular_after_in(tx: &Read<'_>, id: UserId, limit: u32) -> Result<Vec<StoredUser>> {
    // The condition of the index `users_with_irregular_phone`.
    tx.all(
        "select id, phone_number, email, created_at from users \
         where (ltrim(substr(phone_number, 1, 1), '+0123456789') <> '' \
         or ltrim(substr(phone_number, 2), '0123456789') <> '') and id > ?1 order by id limit ?2",
        (id.0, limit),
        stored_user_of,
    )
}

pub fn find_by_stored_email_in(tx: &Read<'_>, email: &str) -> Result<Option<UserId>> {
    tx.first("select id from users where email = ?1", [email], |row| row.get(0).map(UserId))
}

/// Sets the stored addresses of the user.
pub fn set_addresses_in(tx: &Write<'_>, id: UserId, phone_number: Option<&str>, email: Option<&str>) -> Result<()> {
    tx.execute("update users set phone_number = ?2, email = ?3 where id = ?1", (id.0, phone_number, email)).map(drop)
}

fn stored_user_of(row: &Row<'_>) -> RowResult<StoredUser> {
    Ok(StoredUser {
        id: UserId(row.get(0)?),
        phone_number: row.get(1)?,
        email: row.get(2)?,
        created_at: Timestamp(row.get(3)?),
    })
}
