//! History records: castings that clients of the first API generation store under their own record ids.
//!
//! `jsonData` is stored and returned byte for byte; neither it nor `timestamp` is interpreted. Order and limits follow
//! a sequence that the server assigns. A user has a quota of records and one of bytes. Deactivating hides a user's
//! records for some weeks before they are deleted. Until then they can be restored; saving a hidden record again makes
//! it the newest. A record is hidden by its sequence: see [`deactivate_all`].

mod hiding;
mod orphans;
mod state;
mod sums;

use std::{borrow::Cow, ops::ControlFlow};

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::{
    config::LimitsConfig,
    core::Core,
    domain::{
        Each,
        identity::users,
        operations::deletions::{self, DeletedKind},
    },
    error::{Code, Result},
    store::{Pending, Read, Row, RowResult, SqlParameters, Write},
    types::{JsonText, PageRequest, Timestamp, UserId},
};

use self::{
    hiding::hidden_ranges_in,
    state::{HistoryState, state_in},
    sums::Sums,
};
pub use self::{
    hiding::{
        RESTORINGS, RestoredRecords, deactivate_all, delete_expired_in, delete_marked_in, delete_old_hidings_in,
        erase_hidings_in, marked_in, restore_all,
    },
    orphans::{delete_orphans_in, next_owner_in},
    sums::{are_right_in, compare_in, repair_in},
};

/// The most records of a list without paging.
const UNPAGED: u32 = 1000;

/// An upper bound of the bytes of the record id and the client's time.
const SHORT_FIELDS: u64 = 1024;

/// The columns that [`record_of`] reads.
macro_rules! record_columns {
    () => {
        "local_record_id, question_type, question, json_data, ai_result, client_timestamp, created_at, updated_at, change"
    };
}

/// A record as the client sends it.
#[derive(Clone, Debug)]
pub struct HistoryDraft<'text> {
    pub local_record_id: Cow<'text, str>,
    pub question_type: Option<Cow<'text, str>>,
    pub question: Option<Cow<'text, str>>,
    pub json_data: Option<JsonText<'text>>,
    pub ai_result: Option<Cow<'text, str>>,
    pub client_timestamp: Option<JsonText<'text>>,
}

/// The most records and bytes of one user.
#[derive(Clone, Copy, Debug)]
pub struct HistoryQuota {
    records: i64,
    bytes: i64,
    /// An upper bound of the size of a record.
    record_bytes: i64,
}

impl HistoryQuota {
    pub fn of(limits: &LimitsConfig) -> Self {
        Self {
            records: i64::from(limits.history_records),
            bytes: i64::try_from(limits.history_size.0).unwrap_or(i64::MAX),
            record_bytes: max_record_bytes(limits),
        }
    }

    /// Requires that the record fits, as the user's newest, and returns the change of the user's sums. None if they are
    /// not stored. A save that adds no bytes is accepted even beyond the limit.
    ///
    /// # Errors
    /// `history_full` and `history_too_large`.
    fn require_in(
        self,
        tx: &Write<'_>,
        user: UserId,
        state: HistoryState,
        draft: &HistoryDraft<'_>,
    ) -> Result<Option<Sums>> {
        let sequence = state.next_sequence();
        let stored = sums::stored_in(tx, user)?;
        let are_kept = stored.is_some() || sequence > sums::COUNTED;
        // While the newest sequence number is within the limit, so is the number of records, and counting is unnecessary.
        // Likewise, so few records are within the limit even if each has the maximum size.
        let may_be_too_large = sequence.saturating_mul(self.record_bytes) > self.bytes;
        if !are_kept && sequence <= self.records && !may_be_too_large {
            return Ok(None);
        }
        let sums = stored.map_or_else(|| sums::count_in(tx, user, state), Ok)?;
        let change = change_in(tx, user, state, draft)?;
        if change.visible > 0 && sums.visible >= self.records {
            return Err(Code::HistoryFull.into());
        }
        if change.bytes > 0 && sums.bytes + change.bytes > self.bytes {
            return Err(Code::HistoryTooLarge.into());
        }
        if are_kept && stored.is_none() {
            sums::put_in(tx, user, sums)?;
        }
        Ok(are_kept.then_some(change))
    }
}

/// The stored values of fields that a draft leaves out.
struct StoredFields {
    question_type: Option<String>,
    question: Option<String>,
    json_data: Option<String>,
    ai_result: Option<String>,
    client_timestamp: Option<String>,
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

    fn with_defaults(self, stored: StoredFields) -> Self {
        Self {
            local_record_id: self.local_record_id,
            question_type: self.question_type.or(stored.question_type.map(Cow::Owned)),
            question: self.question.or(stored.question.map(Cow::Owned)),
            json_data: self.json_data.or(stored.json_data.map(JsonText::from_stored)),
            ai_result: self.ai_result.or(stored.ai_result.map(Cow::Owned)),
            client_timestamp: self.client_timestamp.or(stored.client_timestamp.map(JsonText::from_stored)),
        }
    }
}

/// The numbers of a record: its place among the user's records, and that of its last change.
#[derive(Clone, Copy)]
struct RecordNumbers {
    sequence: i64,
    change: i64,
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

/// Saves a record, or updates the record with the same id; fields that the draft leaves out keep their values. Saves
/// nothing and returns the newer state if the record is not in the version that was edited.
///
/// # Errors
/// `unauthenticated` if the account was deleted; `history_full` when the user has the maximum number of records, and
/// `history_too_large` when they have the maximum size.
pub fn save(core: &Core, user: UserId, edit: HistoryEdit) -> Pending<Result<HistoryRecord<'static>, NewerState>> {
    let quota = HistoryQuota::of(&core.config.limits);
    core.store.write_without_savepoint(move |tx| save_in(tx, user, edit, quota))
}

/// Saves several records in one transaction, each as [`save`] does. A record that cannot be saved fails alone.
///
/// # Errors
/// `unauthenticated` if the account was deleted.
pub fn save_all(
    core: &Core,
    user: UserId,
    edits: Vec<HistoryEdit>,
) -> Pending<Vec<Result<HistoryRecord<'static>, Unsaved>>> {
    let quota = HistoryQuota::of(&core.config.limits);
    core.store.write(move |tx| {
        let save = |edit| match save_in(tx, user, edit, quota) {
            Ok(saved) => Ok(saved.map_err(Unsaved::Changed)),
            Err(error) if matches!(error.code, Code::HistoryFull | Code::HistoryTooLarge) => {
                Ok(Err(Unsaved::Limit(error.code)))
            }
            Err(error) => Err(error),
        };
        edits.into_iter().map(save).collect()
    })
}

/// Changes nothing if it fails, so it needs no savepoint.
///
/// # Errors
/// `unauthenticated` if the account was deleted since the token was checked.
fn save_in(
    tx: &Write<'_>,
    user: UserId,
    HistoryEdit { draft, base_version }: HistoryEdit,
    quota: HistoryQuota,
) -> Result<Result<HistoryRecord<'static>, NewerState>> {
    users::require_in(tx, user)?;
    let state = state_in(tx, user)?;
    if base_version.is_some() {
        let current = find_in(tx, user, state.hidden_through, &draft.local_record_id)?;
        if current.as_ref().map(|record| record.version) != base_version {
            return Ok(Err(current));
        }
    }
    let next = next_in(tx, user, state)?;
    let change = quota.require_in(tx, user, state, &draft)?;
    let saved = |draft, created_at| HistoryRecord {
        draft,
        created_at,
        updated_at: tx.now,
        version: RecordVersion(next.change),
    };
    if let Some(change) = change {
        sums::move_in(tx, user, change)?;
    }
    if !insert_in(tx, user, next, &draft, tx.now)? {
        if let Some((created_at, stored)) = update_in(tx, user, state.hidden_through, next.change, &draft)? {
            return Ok(Ok(saved(draft.with_defaults(stored), created_at)));
        }
        renew_in(tx, user, next, &draft, tx.now)?;
    }
    Ok(Ok(saved(draft, tx.now)))
}

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

/// Returns the numbers of the user's next record and change.
fn next_in(tx: &Read<'_>, user: UserId, state: HistoryState) -> Result<RecordNumbers> {
    let change = deletions::next_change_in(tx, user, state.last_change())?;
    Ok(RecordNumbers { sequence: state.next_sequence(), change })
}

/// Inserts a record of a former backend as the user's newest. Returns false if a record with this id exists.
///
/// # Errors
/// `history_full` and `history_too_large`; nothing is changed then.
pub fn import_in(
    tx: &Write<'_>,
    quota: HistoryQuota,
    user: UserId,
    draft: &HistoryDraft<'_>,
    created_at: Timestamp,
) -> Result<bool> {
    if exists_in(tx, user, &draft.local_record_id)? {
        return Ok(false);
    }
    let state = state_in(tx, user)?;
    let next = next_in(tx, user, state)?;
    if let Some(change) = quota.require_in(tx, user, state, draft)? {
        sums::move_in(tx, user, change)?;
    }
    // A record with this id may be about to be deleted.
    if !insert_in(tx, user, next, draft, created_at)? {
        renew_in(tx, user, next, draft, created_at)?;
    }
    Ok(true)
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

/// Returns the change of the user's sums by a save. It replaces all of a hidden record, and the fields that are sent of a
/// visible one.
fn change_in(tx: &Read<'_>, user: UserId, state: HistoryState, draft: &HistoryDraft<'_>) -> Result<Sums> {
    let sizes = "select sequence <= ?3, bytes, octet_length(question_type), octet_length(question), \
                 octet_length(json_data), octet_length(ai_result), octet_length(client_timestamp) \
                 from history where local_record_id = ?1 and user_id = ?2 and sequence > ?4";
    let params = (draft.local_record_id.as_ref(), user.0, state.hidden_through, state.surplus_through);
    let replaced = tx.first(sizes, params, |row| {
        if row.get(0)? {
            return Ok(Sums { visible: 1, hidden: -1, bytes: -row.get::<i64>(1)? });
        }
        let mut replaced = length(&draft.local_record_id);
        for (column, sent) in (2..).zip(draft.fields()) {
            if sent.is_some() {
                replaced += row.get::<Option<i64>>(column)?.unwrap_or(0);
            }
        }
        Ok(Sums { bytes: -replaced, ..Sums::default() })
    })?;
    let change = replaced.unwrap_or(Sums { visible: 1, ..Sums::default() });
    Ok(Sums { bytes: change.bytes + draft.bytes(), ..change })
}

/// Returns an upper bound of the size of a record.
fn max_record_bytes(limits: &LimitsConfig) -> i64 {
    // UTF-8 takes up to four bytes for a character.
    let texts = 4 * (u64::from(limits.label) + u64::from(limits.question));
    let bytes = limits.json_data.0 + limits.ai_result.0 + texts + SHORT_FIELDS;
    i64::try_from(bytes).unwrap_or(i64::MAX)
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

/// Inserts the record as the user's newest, unless its id exists; returns true if it was inserted.
///
/// A plain `values` statement, because `insert … select` and `returning` build a temporary table each time, which costs as
/// much as the row.
fn insert_in(
    tx: &Write<'_>,
    user: UserId,
    newest: RecordNumbers,
    draft: &HistoryDraft<'_>,
    created_at: Timestamp,
) -> Result<bool> {
    let inserted = tx.execute(
        "insert into history (user_id, sequence, local_record_id, question_type, question, json_data, ai_result, \
         client_timestamp, created_at, updated_at, bytes, change) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11) \
         on conflict (user_id, local_record_id) do nothing",
        new_row(user, newest, draft, created_at),
    )?;
    Ok(inserted == 1)
}

/// Returns the number of the last change of the user's records, or 0.
pub fn last_change_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    Ok(state_in(tx, user)?.last_change())
}

/// Makes a hidden record the user's newest, with the content of the draft.
fn renew_in(
    tx: &Write<'_>,
    user: UserId,
    newest: RecordNumbers,
    draft: &HistoryDraft<'_>,
    created_at: Timestamp,
) -> Result<()> {
    tx.execute(
        "update history set sequence = ?2, question_type = ?4, question = ?5, json_data = ?6, ai_result = ?7, \
         client_timestamp = ?8, created_at = ?9, updated_at = ?9, bytes = ?10, change = ?11 \
         where user_id = ?1 and local_record_id = ?3",
        new_row(user, newest, draft, created_at),
    )
    .map(drop)
}

/// Updates the active record with this id, if there is one. Returns its creation time and the stored values of the
/// fields that the draft leaves out.
fn update_in(
    tx: &Write<'_>,
    user: UserId,
    hidden_through: i64,
    change: i64,
    draft: &HistoryDraft<'_>,
) -> Result<Option<(Timestamp, StoredFields)>> {
    tx.first(
        "update history set question_type = coalesce(?3, question_type), question = coalesce(?4, question), \
         json_data = coalesce(?5, json_data), ai_result = coalesce(?6, ai_result), \
         client_timestamp = coalesce(?7, client_timestamp), updated_at = ?8, change = ?9, \
         bytes = octet_length(local_record_id) + coalesce(octet_length(coalesce(?3, question_type)), 0) \
         + coalesce(octet_length(coalesce(?4, question)), 0) + coalesce(octet_length(coalesce(?5, json_data)), 0) \
         + coalesce(octet_length(coalesce(?6, ai_result)), 0) \
         + coalesce(octet_length(coalesce(?7, client_timestamp)), 0) \
         where user_id = ?1 and local_record_id = ?2 and sequence > ?10 \
         returning created_at, case when cast(?3 as text) is null then question_type end, case when cast(?4 as text) is null then question end, \
         case when cast(?5 as text) is null then json_data end, case when cast(?6 as text) is null then ai_result end, \
         case when cast(?7 as text) is null then client_timestamp end",
        (
            user.0,
            draft.local_record_id.as_ref(),
            draft.question_type.as_deref(),
            draft.question.as_deref(),
            draft.json_data.as_ref().map(JsonText::as_str),
            draft.ai_result.as_deref(),
            draft.client_timestamp.as_ref().map(JsonText::as_str),
            tx.now.0,
            change,
            hidden_through,
        ),
        |row| {
            let stored = StoredFields {
                question_type: row.get(1)?,
                question: row.get(2)?,
                json_data: row.get(3)?,
                ai_result: row.get(4)?,
                client_timestamp: row.get(5)?,
            };
            Ok((Timestamp(row.get(0)?), stored))
        },
    )
}

/// Returns the parameters of the statements that make a record the newest.
fn new_row<'draft>(
    user: UserId,
    newest: RecordNumbers,
    draft: &'draft HistoryDraft<'_>,
    at: Timestamp,
) -> impl SqlParameters + use<'draft> {
    (
        user.0,
        newest.sequence,
        draft.local_record_id.as_ref(),
        draft.question_type.as_deref(),
        draft.question.as_deref(),
        draft.json_data.as_ref().map(JsonText::as_str),
        draft.ai_result.as_deref(),
        draft.client_timestamp.as_ref().map(JsonText::as_str),
        at.0,
        draft.bytes(),
        newest.change,
    )
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
