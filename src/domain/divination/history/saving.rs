//! Saves of records, each as the user's newest or as a change of the record with its id. The saves of a set are decided in
//! their order, and new records are written together.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use super::{
    HistoryDraft, HistoryEdit, HistoryRecord, NewerState, RecordVersion, Unsaved, exists_in, find_in, length,
    state::{HistoryState, state_columns, state_of},
    sums::{self, Sums},
};
use crate::{
    config::LimitsConfig,
    core::Core,
    domain::{
        identity::users::of_user,
        operations::deletions::{self, last_deletion},
    },
    error::{Code, Error, Result},
    store::{GroupedWrite, Pending, Read, SqlParameters, Write},
    types::{JsonText, Timestamp, UserId},
};

/// Completes the insertion of a record.
///
/// A plain `values` statement, because `insert … select` and `returning` build a temporary table each time, which costs as
/// much as the row.
macro_rules! insert_record {
    ($rest:literal) => {
        concat!(
            "insert into history (user_id, sequence, local_record_id, question_type, question, json_data, ai_result, \
             client_timestamp, created_at, updated_at, bytes, change) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11)",
            $rest
        )
    };
}

/// Larger records are inserted one by one, because those of a set are copied until they are sent.
const LARGE: i64 = 64 << 10;
/// An upper bound of the bytes of the record id and the client's time.
const SHORT_FIELDS: u64 = 1024;

/// The most records and bytes of one user.
#[derive(Clone, Copy, Debug)]
pub struct HistoryQuota {
    pub(super) records: i64,
    pub(super) bytes: i64,
    /// An upper bound of the size of a record.
    pub(super) record_bytes: i64,
}

impl HistoryQuota {
    pub fn of(limits: &LimitsConfig) -> Self {
        Self {
            records: i64::from(limits.history_records),
            bytes: i64::try_from(limits.history_size.0).unwrap_or(i64::MAX),
            record_bytes: max_record_bytes(limits),
        }
    }
}

/// The stored values of fields that a draft leaves out.
pub(super) struct StoredFields {
    question_type: Option<String>,
    question: Option<String>,
    json_data: Option<String>,
    ai_result: Option<String>,
    client_timestamp: Option<String>,
}

impl HistoryDraft<'_> {
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

/// Saves a record, or updates the record with the same id; fields that the draft leaves out keep their values. Saves
/// nothing and returns the newer state if the record is not in the version that was edited.
///
/// # Errors
/// `unauthenticated` if the account was deleted; `history_full` when the user has the maximum number of records, and
/// `history_too_large` when they have the maximum size.
pub fn save(core: &Core, user: UserId, edit: HistoryEdit) -> Pending<Result<HistoryRecord<'static>, NewerState>> {
    core.store.write_grouped(Save { user, edit, quota: HistoryQuota::of(&core.config.limits) })
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
        let saves: Vec<_> = edits.into_iter().map(|edit| Save { user, edit, quota }).collect();
        let decided = save_in(tx, &saves.iter().collect::<Vec<_>>())?;
        let saved = saves.into_iter().zip(decided).map(|(save, decided)| match decided {
            Ok(decided) => Ok(save.complete(decided).map_err(Unsaved::Changed)),
            Err(code @ (Code::HistoryFull | Code::HistoryTooLarge)) => Ok(Err(Unsaved::Limit(code))),
            Err(code) => Err(code.into()),
        });
        saved.collect()
    })
}

/// A save that waits for the writer.
pub(super) struct Save {
    pub(super) user: UserId,
    pub(super) edit: HistoryEdit,
    pub(super) quota: HistoryQuota,
}

impl GroupedWrite for Save {
    type Outcome = Decided;
    type Done = Result<HistoryRecord<'static>, NewerState>;

    fn user(&self) -> UserId {
        self.user
    }

    fn run_in(tx: &Write<'_>, set: &[&Self]) -> Result<Vec<Result<Decided>>> {
        Ok(save_in(tx, set)?.into_iter().map(|decided| decided.map_err(Error::from)).collect())
    }

    fn complete(self, decided: Decided) -> Self::Done {
        let draft = self.edit.draft;
        let (draft, created_at, updated_at, version) = match decided {
            Decided::New { at, version } => (draft, at, at, version),
            Decided::Changed { created_at, at, version, stored } => {
                (draft.with_defaults(stored), created_at, at, version)
            }
            Decided::Newer(newer) => return Err(newer),
        };
        Ok(HistoryRecord { draft, created_at, updated_at, version })
    }
}

/// Runs saves in their order. A refused one has the code of its refusal.
pub(super) fn save_in(tx: &Write<'_>, saves: &[&Save]) -> Result<Vec<Result<Decided, Code>>> {
    let mut set = SaveSet::load_in(tx, saves.iter().map(|save| (save.user, &save.edit.draft)))?;
    let decided = saves
        .iter()
        .map(|Save { user, edit, quota }| set.save(tx, *user, &edit.draft, edit.base_version, *quota, tx.now));
    let decided = decided.collect::<Result<_>>()?;
    set.store_in(tx).map(|()| decided)
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
    let mut set = SaveSet::load_in(tx, std::iter::once((user, draft)))?;
    set.save(tx, user, draft, None, quota, created_at)??;
    set.store_in(tx).map(|()| true)
}

/// The effect of a save that was not refused.
pub(super) enum Decided {
    New {
        at: Timestamp,
        version: RecordVersion,
    },
    Changed {
        created_at: Timestamp,
        at: Timestamp,
        version: RecordVersion,
        stored: StoredFields,
    },
    /// None.
    Newer(NewerState),
}

/// The numbers and sums of a user's records.
struct UserRecords {
    state: HistoryState,
    /// The number of the user's last deletion that is stored.
    last_deletion: i64,
    /// None until they are needed, if they are not stored.
    sums: Option<Sums>,
    are_sums_stored: bool,
    /// The change of the stored sums.
    moved: Sums,
}

/// A stored record with an id that a set saves.
#[derive(Clone, Copy)]
struct KnownRecord {
    sequence: i64,
    change: i64,
}

struct NewRecord<'set> {
    user: UserId,
    numbers: RecordNumbers,
    draft: &'set HistoryDraft<'set>,
    created_at: Timestamp,
}

/// Saves that are decided one after the other.
struct SaveSet<'set> {
    users: BTreeMap<UserId, UserRecords>,
    /// The records with the ids of the set. None for a single save, which tries to insert its record.
    known: Option<HashMap<(UserId, &'set str), KnownRecord>>,
    new: Vec<NewRecord<'set>>,
}

impl<'set> SaveSet<'set> {
    fn load_in(
        tx: &Read<'_>,
        drafts: impl ExactSizeIterator<Item = (UserId, &'set HistoryDraft<'set>)> + Clone,
    ) -> Result<Self> {
        let mut set = Self { users: BTreeMap::new(), known: None, new: Vec::new() };
        tx.each_of(
            concat!(
                "select ",
                state_columns!("users.id"),
                ", ",
                last_deletion!("users.id"),
                ", sums.visible, sums.hidden, sums.bytes, users.id",
                of_user!("left join history_sums as sums on sums.user_id = users.id")
            ),
            drafts.clone().map(|(user, _)| [user.0]),
            |row| {
                let visible: Option<i64> = row.get(7)?;
                let sums = match visible {
                    Some(visible) => Some(Sums { visible, hidden: row.get(8)?, bytes: row.get(9)? }),
                    None => None,
                };
                let of_user = UserRecords {
                    state: state_of(row)?,
                    last_deletion: row.get(6)?,
                    sums,
                    are_sums_stored: sums.is_some(),
                    moved: Sums::default(),
                };
                set.users.insert(UserId(row.get(10)?), of_user);
                Ok(())
            },
        )?;
        if drafts.len() > 1 {
            let ids: HashMap<_, _> =
                drafts.map(|(user, draft)| ((user, draft.local_record_id.to_string()), draft)).collect();
            let mut known = HashMap::new();
            let sql = "select user_id, local_record_id, sequence, change from history \
                       where local_record_id = ?1 and user_id = ?2";
            tx.each_of(sql, ids.keys().map(|(user, id)| (id, user.0)), |row| {
                let (user, id) = (UserId(row.get(0)?), row.get(1)?);
                let record = KnownRecord { sequence: row.get(2)?, change: row.get(3)? };
                if let Some(draft) = ids.get(&(user, id)) {
                    known.insert((user, draft.local_record_id.as_ref()), record);
                }
                Ok(())
            })?;
            set.known = Some(known);
        }
        Ok(set)
    }

    /// Decides a save. A new record is written by [`Self::store_in`].
    ///
    /// # Errors
    /// Storage errors; the inner one if the save is refused.
    fn save(
        &mut self,
        tx: &Write<'_>,
        user: UserId,
        draft: &'set HistoryDraft<'set>,
        base_version: Option<RecordVersion>,
        quota: HistoryQuota,
        created_at: Timestamp,
    ) -> Result<Result<Decided, Code>> {
        let Self { users, known, new } = self;
        let Some(records) = users.get_mut(&user) else { return Ok(Err(Code::Unauthenticated)) };
        let (state, id) = (records.state, draft.local_record_id.as_ref());
        let stored = known.as_ref().map(|known| known.get(&(user, id)).copied());
        if base_version.is_some() {
            let visible = stored.map(|stored| stored.filter(|stored| stored.sequence > state.hidden_through));
            if visible.map(|visible| visible.map(|visible| RecordVersion(visible.change))) != Some(base_version) {
                insert_new_in(tx, new)?;
                let current = find_in(tx, user, state.hidden_through, id)?;
                if current.as_ref().map(|record| record.version) != base_version {
                    return Ok(Ok(Decided::Newer(current)));
                }
            }
        }
        let sequence = state.next_sequence();
        let numbers = RecordNumbers {
            sequence,
            change: deletions::next_change(tx, state.last_change().max(records.last_deletion)),
        };
        if records.are_sums_stored || sequence > sums::COUNTED || quota.may_be_exceeded(sequence) {
            let is_new = stored.is_some_and(|stored| stored.is_none());
            if !is_new || records.sums.is_none() {
                insert_new_in(tx, new)?;
            }
            let sums = records.sums.map_or_else(|| sums::count_in(tx, user, state), Ok)?;
            records.sums = Some(sums);
            let change = if is_new { new_record_change(draft) } else { change_in(tx, user, state, draft)? };
            if let Err(code) = quota.check(sums, change) {
                return Ok(Err(code));
            }
            if sequence > sums::COUNTED && !records.are_sums_stored {
                sums::put_in(tx, user, sums)?;
                records.are_sums_stored = true;
            }
            records.sums = Some(sums.plus(change));
            if records.are_sums_stored {
                records.moved = records.moved.plus(change);
            }
        }
        let record = NewRecord { user, numbers, draft, created_at };
        let (at, version) = (tx.now, RecordVersion(numbers.change));
        let mut decided = Decided::New { at, version };
        match stored {
            Some(None) if draft.bytes() <= LARGE => new.push(record),
            Some(None) => {
                insert_new_in(tx, new)?;
                tx.execute(insert_record!(""), record.row())?;
            }
            None if insert_unless_stored_in(tx, &record)? => {}
            _ => {
                insert_new_in(tx, new)?;
                match update_in(tx, user, state.hidden_through, numbers.change, draft)? {
                    Some((created_at, stored)) => {
                        decided = Decided::Changed { created_at, at, version, stored };
                    }
                    None => renew_in(tx, &record)?,
                }
            }
        }
        records.state.set_last_change(numbers.change);
        let sequence = if let (Decided::Changed { .. }, Some(Some(stored))) = (&decided, stored) {
            stored.sequence
        } else {
            records.state.sequence = sequence;
            sequence
        };
        if let Some(known) = known {
            known.insert((user, id), KnownRecord { sequence, change: numbers.change });
        }
        Ok(Ok(decided))
    }

    /// Writes the new records and the sums.
    fn store_in(mut self, tx: &Write<'_>) -> Result<()> {
        insert_new_in(tx, &mut self.new)?;
        let moved = self.users.iter().filter(|(_, records)| records.moved != Sums::default());
        moved.into_iter().try_for_each(|(user, records)| sums::move_in(tx, *user, records.moved))
    }
}

impl HistoryQuota {
    /// Returns false while the newest sequence number is within the limit, because so is the number of records, and so few
    /// are within the limit of bytes even if each has the maximum size.
    fn may_be_exceeded(self, sequence: i64) -> bool {
        sequence > self.records || sequence.saturating_mul(self.record_bytes) > self.bytes
    }

    /// Checks that the records still fit after a change. One that adds no bytes is accepted even beyond the limit.
    fn check(self, sums: Sums, change: Sums) -> Result<(), Code> {
        if change.visible > 0 && sums.visible >= self.records {
            return Err(Code::HistoryFull);
        }
        if change.bytes > 0 && sums.bytes + change.bytes > self.bytes {
            return Err(Code::HistoryTooLarge);
        }
        Ok(())
    }
}

fn new_record_change(draft: &HistoryDraft<'_>) -> Sums {
    Sums { visible: 1, hidden: 0, bytes: draft.bytes() }
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
    let Some(change) = replaced else { return Ok(new_record_change(draft)) };
    Ok(Sums { bytes: change.bytes + draft.bytes(), ..change })
}

/// Returns an upper bound of the size of a record.
fn max_record_bytes(limits: &LimitsConfig) -> i64 {
    // UTF-8 takes up to four bytes for a character.
    let texts = 4 * (u64::from(limits.label) + u64::from(limits.question));
    let bytes = limits.json_data.0 + limits.ai_result.0 + texts + SHORT_FIELDS;
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Inserts the records that were new so far.
fn insert_new_in(tx: &Write<'_>, new: &mut Vec<NewRecord<'_>>) -> Result<()> {
    let inserted = tx.insert_all_later(insert_record!(""), new.iter().map(NewRecord::row));
    new.clear();
    inserted
}

/// Inserts the record unless its id exists; returns true if it was inserted.
fn insert_unless_stored_in(tx: &Write<'_>, record: &NewRecord<'_>) -> Result<bool> {
    Ok(tx.execute(insert_record!(" on conflict (user_id, local_record_id) do nothing"), record.row())? == 1)
}

/// Makes a hidden record the user's newest, with the content of the draft.
fn renew_in(tx: &Write<'_>, record: &NewRecord<'_>) -> Result<()> {
    tx.execute(
        "update history set sequence = ?2, question_type = ?4, question = ?5, json_data = ?6, ai_result = ?7, \
         client_timestamp = ?8, created_at = ?9, updated_at = ?9, bytes = ?10, change = ?11 \
         where user_id = ?1 and local_record_id = ?3",
        record.row(),
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

impl NewRecord<'_> {
    /// Returns the parameters of the statements that make a record the newest.
    fn row(&self) -> impl SqlParameters + use<'_> {
        let Self { user, numbers, draft, created_at } = self;
        (
            user.0,
            numbers.sequence,
            draft.local_record_id.as_ref(),
            draft.question_type.as_deref(),
            draft.question.as_deref(),
            draft.json_data.as_ref().map(JsonText::as_str),
            draft.ai_result.as_deref(),
            draft.client_timestamp.as_ref().map(JsonText::as_str),
            created_at.0,
            draft.bytes(),
            numbers.change,
        )
    }
}
