//! History records: castings that clients of the first API generation store under their own record ids.
//!
//! `jsonData` is stored and returned byte for byte; neither it nor `timestamp` is interpreted. Order and limits follow
//! a sequence that the server assigns. A user has a quota of records and one of bytes. Deactivating hides a user's
//! records for some weeks before they are deleted. Until then they can be restored; saving a hidden record again makes
//! it the newest. A record is hidden by its sequence: see [`deactivate_all`].

mod hiding;
mod orphans;
mod saving;
mod state;
mod sums;

use std::{borrow::Cow, ops::ControlFlow};

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::{
    core::Core,
    domain::{
        Each,
        identity::users,
        operations::deletions::{self, DeletedKind},
    },
    error::{Code, Result},
    store::{Pending, Read, Row, RowResult},
    types::{JsonText, PageRequest, Timestamp, UserId},
};

use self::{hiding::hidden_ranges_in, state::state_in, sums::Sums};
pub use self::{
    hiding::{
        RESTORINGS, RestoredRecords, deactivate_all, delete_expired_in, delete_marked_in, delete_old_hidings_in,
        erase_hidings_in, marked_in, restore_all,
    },
    orphans::{delete_orphans_in, next_owner_in},
    saving::{HistoryQuota, import_in, save, save_all},
    sums::{are_right_in, compare_in, repair_in},
};

/// The most records of a list without paging.
const UNPAGED: u32 = 1000;

/// The columns that [`record_of`] reads.
macro_rules! record_columns {
    () => {
        "local_record_id, question_type, question, json_data, ai_result, client_timestamp, created_at, updated_at, change"
    };
}

/// A record as the client sends it.
#[derive(Clone, Debug, Default)]
pub struct HistoryDraft<'text> {
    pub local_record_id: Cow<'text, str>,
    pub question_type: Option<Cow<'text, str>>,
    pub question: Option<Cow<'text, str>>,
    pub json_data: Option<JsonText<'text>>,
    pub ai_result: Option<Cow<'text, str>>,
    pub client_timestamp: Option<JsonText<'text>>,
}

impl HistoryDraft<'_> {
    /// Returns the fields in the order of the columns.
    fn fields(&self) -> [Option<&str>; 5] {
        [
            self.question_type.as_deref(),
            self.question.as_deref(),
            self.json_data.as_ref().map(JsonText::as_str),
            self.ai_result.as_deref(),
            self.client_timestamp.as_ref().map(JsonText::as_str),
        ]
    }

    /// Returns the size of a new record.
    fn bytes(&self) -> i64 {
        length(&self.local_record_id) + self.fields().into_iter().flatten().map(length).sum::<i64>()
    }

    fn into_owned(self) -> HistoryDraft<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        HistoryDraft {
            local_record_id: owned(self.local_record_id),
            question_type: self.question_type.map(owned),
            question: self.question.map(owned),
            json_data: self.json_data.map(JsonText::into_owned),
            ai_result: self.ai_result.map(owned),
            client_timestamp: self.client_timestamp.map(JsonText::into_owned),
        }
    }
}

/// The reason why one record of a batch was not saved.
pub enum Unsaved {
    /// The limit that it exceeds.
    Limit(Code),
    Changed(NewerState),
}

/// A stored record.
#[derive(Clone, Debug)]
pub struct HistoryRecord<'text> {
    pub draft: HistoryDraft<'text>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// A save can name it as the state that it edited.
    pub version: RecordVersion,
}

/// The number of the last change of a record. Clients get it as text, like other numbers of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordVersion(pub i64);

impl Serialize for RecordVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl HistoryRecord<'_> {
    fn into_owned(self) -> HistoryRecord<'static> {
        let Self { draft, created_at, updated_at, version } = self;
        HistoryRecord { draft: draft.into_owned(), created_at, updated_at, version }
    }
}

/// A record to save.
#[derive(Debug)]
pub struct HistoryEdit {
    pub draft: HistoryDraft<'static>,
    /// The version that was edited. None saves over any version.
    pub base_version: Option<RecordVersion>,
}

/// The newer state of a record that was edited in an older one; none if it was deleted or hidden.
pub type NewerState = Option<HistoryRecord<'static>>;

/// Returns the active record with this id.
fn find_in(
    tx: &Read<'_>,
    user: UserId,
    hidden_through: i64,
    local_record_id: &str,
) -> Result<Option<HistoryRecord<'static>>> {
    tx.first(
        concat!(
            "select ",
            record_columns!(),
            " from history where local_record_id = ?1 and user_id = ?2 and sequence > ?3"
        ),
        (local_record_id, user.0, hidden_through),
        |row| Ok(record_of(row)?.into_owned()),
    )
}

/// Returns true if the user has a record with this id, hidden or not.
pub fn exists_in(tx: &Read<'_>, user: UserId, local_record_id: &str) -> Result<bool> {
    let state = state_in(tx, user)?;
    has_in(tx, user, state.surplus_through, local_record_id)
}

/// The JSON of a record as it was checked and stored: its data and the client's time.
pub type StoredJson<'row> = [Option<&'row str>; 2];

/// Passes the user's records to `each`, newest first, until it breaks; returns their total. Without a page, passes up
/// to a thousand. Records are borrowed from the row, to save copies. The JSON that is passed beside them is not in them.
pub fn list(
    core: &Core,
    user: UserId,
    question_type: Option<&str>,
    page: Option<PageRequest>,
    mut each: impl FnMut(HistoryRecord<'_>, StoredJson<'_>) -> Result<ControlFlow<()>>,
) -> Result<i64> {
    let page = page.unwrap_or(PageRequest::of_newest(UNPAGED));
    core.store.read(|tx| {
        let hidden_through = hiding::hidden_through_in(tx, user)?;
        let mut found = 0;
        let ended = tx.each_until(
            concat!(
                "select ",
                record_columns!(),
                ", bytes from history where user_id = ?1 and sequence > ?5 \
                 and (question_type = ?2 or ?2 is null) order by sequence desc limit ?3 offset ?4"
            ),
            (user.0, question_type, page.size, page.offset(), hidden_through),
            |row| {
                found += 1;
                let (record, stored) = listed_record_of(row)?;
                each(record, stored)
            },
        )?;
        let total = page.total_if_last(found).filter(|_| ended.is_continue());
        total.map_or_else(|| count_in(tx, user, hidden_through, question_type), Ok)
    })
}

/// A page of changed records, and the number of its last change.
#[derive(Clone, Debug, Default)]
pub struct ChangedRecords {
    pub items: Vec<HistoryRecord<'static>>,
    pub last: Option<i64>,
    /// True if the page ends before the limit because of the size of its records.
    pub is_cut: bool,
}

/// Returns the user's records that changed after a number, in the order of the changes, up to `limit` records or about
/// `max_bytes`.
pub fn list_changed_in(tx: &Read<'_>, user: UserId, change: i64, limit: u32, max_bytes: i64) -> Result<ChangedRecords> {
    let record = concat!("select ", record_columns!(), ", bytes from history where id = ?1");
    let (mut page, mut bytes) = (ChangedRecords::default(), 0);
    for (number, id) in hiding::list_changes_in(tx, user, change, limit)? {
        if bytes >= max_bytes {
            page.is_cut = true;
            break;
        }
        let (found, size) = tx.one(record, [id], |row| Ok((record_of(row)?.into_owned(), row.get::<i64>(9)?)))?;
        page.last = Some(number);
        page.items.push(found);
        bytes += size;
    }
    Ok(page)
}

/// Returns the sequences and ids of the user's records, hidden or not, with a sequence in `(after, through]`, in order.
pub fn ids_between_in(tx: &Read<'_>, user: UserId, after: i64, through: i64, limit: u32) -> Result<Vec<(i64, String)>> {
    tx.all(
        "select sequence, local_record_id from history where user_id = ?1 and sequence > ?2 and sequence <= ?3 \
         order by sequence limit ?4",
        (user.0, after, through, limit),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

pub fn count(core: &Core, user: UserId) -> Result<i64> {
    core.store.read(|tx| count_in(tx, user, hiding::hidden_through_in(tx, user)?, None))
}

/// Deletes the records with these ids and returns the number of records deleted. Their rows are only marked, because
/// large ones take long to delete: [`delete_marked_in`] does that.
pub fn delete(core: &Core, user: UserId, local_record_ids: Vec<String>) -> Pending<usize> {
    core.store.write(move |tx| {
        users::require_in(tx, user)?;
        let state = state_in(tx, user)?;
        let (mut deleted, mut change) = (Vec::new(), Sums::default());
        for id in local_record_ids {
            let bytes: Option<i64> = tx.first(
                "update history set sequence = -sequence, updated_at = ?4 \
                 where user_id = ?1 and local_record_id = ?2 and sequence > ?3 returning bytes",
                (user.0, &id, state.hidden_through, tx.now.0),
                |row| row.get(0),
            )?;
            if let Some(bytes) = bytes {
                deleted.push(id);
                change.visible -= 1;
                change.bytes -= bytes;
            }
        }
        if !deleted.is_empty() {
            sums::move_in(tx, user, change)?;
            deletions::record_in(tx, user, DeletedKind::History, &deleted, state.last_change())?;
        }
        Ok(deleted.len())
    })
}

/// Exports the user's records, including hidden ones.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let (surplus_through, hidden) = (state_in(tx, user)?.surplus_through, hidden_ranges_in(tx, user)?);
    let all = concat!(
        "select ",
        record_columns!(),
        ", sequence from history where user_id = ?1 and sequence > ?2 order by sequence"
    );
    tx.each(all, (user.0, surplus_through), |row| {
        let sequence: i64 = row.get(9)?;
        let deactivated_at = hidden.iter().find(|(through, _)| *through >= sequence).map(|(_, at)| *at);
        let HistoryRecord { draft, created_at, updated_at, .. } = record_of(row)?;
        each(json!({
            "localRecordId": draft.local_record_id,
            "questionType": draft.question_type,
            "question": draft.question,
            "jsonData": draft.json_data,
            "aiResult": draft.ai_result,
            "timestamp": draft.client_timestamp,
            "createdAt": created_at,
            "updatedAt": updated_at,
            "deactivatedAt": deactivated_at,
        }))
    })
}

/// Counts the visible records, or those of a type.
fn count_in(tx: &Read<'_>, user: UserId, hidden_through: i64, question_type: Option<&str>) -> Result<i64> {
    if question_type.is_none()
        && let Some(stored) = sums::stored_in(tx, user)?
    {
        return Ok(stored.visible);
    }
    tx.one(
        "select count(*) from history where user_id = ?1 and sequence > ?3 and (question_type = ?2 or ?2 is null)",
        (user.0, question_type, hidden_through),
        |row| row.get(0),
    )
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// Returns true if the user has a record with this id and a sequence above this one.
fn has_in(tx: &Read<'_>, user: UserId, after: i64, local_record_id: &str) -> Result<bool> {
    tx.one(
        "select exists (select 1 from history where local_record_id = ?1 and user_id = ?2 and sequence > ?3)",
        (local_record_id, user.0, after),
        |row| row.get(0),
    )
}

/// Returns the number of the last change of the user's records, or 0.
pub fn last_change_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    Ok(state_in(tx, user)?.last_change())
}

fn record_of<'row>(row: &'row Row<'_>) -> RowResult<HistoryRecord<'row>> {
    let json = |column| Ok(row.optional_text(column)?.map(JsonText::from_stored));
    record_with(row, [json(3)?, json(5)?])
}

/// Leaves the JSON as it is stored, because reading it takes more time than all the rest. A record that does not have its
/// stored size was changed in the file, so its JSON is read.
fn listed_record_of<'row>(row: &'row Row<'_>) -> RowResult<(HistoryRecord<'row>, StoredJson<'row>)> {
    let stored: StoredJson<'row> = [row.optional_text(3)?, row.optional_text(5)?];
    let record = record_with(row, [None, None])?;
    let bytes = record.draft.bytes() + stored.iter().flatten().map(|text| length(text)).sum::<i64>();
    if row.get::<i64>(9)? == bytes { Ok((record, stored)) } else { Ok((record_of(row)?, [None; 2])) }
}

fn record_with<'row>(
    row: &'row Row<'_>,
    [json_data, client_timestamp]: [Option<JsonText<'row>>; 2],
) -> RowResult<HistoryRecord<'row>> {
    let text = |column| row.optional_text(column);
    Ok(HistoryRecord {
        draft: HistoryDraft {
            local_record_id: row.text(0)?.into(),
            question_type: text(1)?.map(Cow::Borrowed),
            question: text(2)?.map(Cow::Borrowed),
            json_data,
            ai_result: text(4)?.map(Cow::Borrowed),
            client_timestamp,
        },
        created_at: Timestamp(row.get(6)?),
        updated_at: Timestamp(row.get(7)?),
        version: RecordVersion(row.get(8)?),
    })
}
