//! Notes of the staff about users. Users do not see them in the app; their export contains them.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::users;
use crate::{
    core::Core,
    domain::{
        Each,
        operations::idempotency::{IdempotentOutcome, IdempotentRequest},
    },
    error::{Code, Error, Result},
    store::{Pending, Read, Row, RowResult, Write},
    types::{Timestamp, UserId, as_text},
};

/// The largest number of notes about one user.
pub const MAX_NOTES: u32 = 200;
/// The largest number of characters of a note.
pub const MAX_LENGTH: usize = 1000;

/// The columns that [`note_of`] reads, in its order.
macro_rules! note_columns {
    () => {
        "id, user_id, author, content, created_at"
    };
}

macro_rules! select_notes {
    ($rest:literal) => {
        concat!("select ", note_columns!(), " from staff_notes ", $rest)
    };
}

/// A note of the staff about a user.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ShownStaffNote)]
#[serde(rename_all = "camelCase")]
pub struct StaffNote {
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, example = "7")]
    pub id: i64,
    #[serde(rename = "userId")]
    pub user: UserId,
    #[schema(example = "admin:alice")]
    pub author: String,
    #[schema(example = "充值问题已处理")]
    pub content: String,
    pub created_at: Timestamp,
}

/// Adds a note.
///
/// # Errors
/// `not_found`; `already_exists` if there are too many.
pub fn add(
    core: &Core,
    user: UserId,
    author: String,
    content: String,
    once: IdempotentRequest<StaffNote>,
) -> Pending<IdempotentOutcome<StaffNote>> {
    core.store.write(move |tx| once.run_in(tx, |tx| add_in(tx, user, &author, &content)))
}

/// Lists the notes about a user, newest first.
///
/// # Errors
/// `not_found`.
pub fn list(core: &Core, user: UserId) -> Result<Vec<StaffNote>> {
    core.store.read(|tx| {
        users::find_in(tx, user)?;
        list_in(tx, user)
    })
}

pub fn list_in(tx: &Read<'_>, user: UserId) -> Result<Vec<StaffNote>> {
    tx.all(select_notes!("where user_id = ?1 order by id desc limit ?2"), (user.0, MAX_NOTES), note_of)
}

/// Removes a note that `author` wrote; `None` may remove every note.
///
/// # Errors
/// `not_found`; `forbidden` for the note of somebody else.
pub fn remove(core: &Core, user: UserId, id: i64, author: Option<String>) -> Pending<()> {
    core.store.write(move |tx| {
        let note = tx.first(select_notes!("where user_id = ?1 and id = ?2"), (user.0, id), note_of)?;
        let note = note.ok_or(Code::NotFound)?;
        if author.is_some_and(|author| author != note.author) {
            return Err(
                Error::new(Code::Forbidden).detail(("Only the author can remove a note.", "只有作者可以删除备注。"))
            );
        }
        tx.execute("delete from staff_notes where id = ?1", [id]).map(drop)
    })
}

/// Exports the notes about the user without their authors, oldest first.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(select_notes!("where user_id = ?1 order by id"), [user.0], |row| {
        let note = note_of(row)?;
        each(json!({ "content": note.content, "createdAt": note.created_at }))
    })
}

/// Deletes the notes about the user.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from staff_notes where user_id = ?1", [user.0]).map(drop)
}

fn add_in(tx: &Write<'_>, user: UserId, author: &str, content: &str) -> Result<StaffNote> {
    users::find_in(tx, user)?;
    let count: u32 = tx.one("select count(*) from staff_notes where user_id = ?1", [user.0], |row| row.get(0))?;
    if count >= MAX_NOTES {
        let detail = (
            format!("The user already has {MAX_NOTES} notes, the maximum. Remove one first."),
            format!("该用户的备注已达上限 {MAX_NOTES} 条，请先删除一条。"),
        );
        return Err(Error::new(Code::AlreadyExists).detail(detail));
    }
    tx.one(
        concat!(
            "insert into staff_notes (user_id, author, content, created_at) values (?1, ?2, ?3, ?4) returning ",
            note_columns!()
        ),
        (user.0, author, content, tx.now.0),
        note_of,
    )
}

fn note_of(row: &Row<'_>) -> RowResult<StaffNote> {
    Ok(StaffNote {
        id: row.get(0)?,
        user: UserId(row.get(1)?),
        author: row.get(2)?,
        content: row.get(3)?,
        created_at: Timestamp(row.get(4)?),
    })
}
