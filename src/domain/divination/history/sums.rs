//! The numbers and bytes of a user's records, so that a save and a count cost the same whatever the user has stored.
//!
//! Every change of records moves them in its own transaction. Users with few records have no stored sums: their records
//! are counted until a save finds more than [`COUNTED`].

use super::state::{HistoryState, state_in};
use crate::{
    error::Result,
    store::{Read, Write},
    types::UserId,
};

/// The most records of a user without stored sums.
pub(super) const COUNTED: i64 = 128;
/// Users whose sums are compared in one read.
const SLICE: u32 = 500;

/// The sums of a user, or a change of them. Records that are marked for deletion are in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub visible: i64,
    pub hidden: i64,
    /// Of visible and hidden records.
    pub bytes: i64,
}

impl Sums {
    pub(super) const fn plus(self, change: Self) -> Self {
        let Self { visible, hidden, bytes } = change;
        Self { visible: self.visible + visible, hidden: self.hidden + hidden, bytes: self.bytes + bytes }
    }
}

/// Returns the stored sums of a user who has many records.
pub(super) fn stored_in(tx: &Read<'_>, user: UserId) -> Result<Option<Sums>> {
    let sql = "select visible, hidden, bytes from history_sums where user_id = ?1";
    tx.first(sql, [user.0], |row| Ok(Sums { visible: row.get(0)?, hidden: row.get(1)?, bytes: row.get(2)? }))
}

/// Returns the user's sums.
pub(super) fn find_in(tx: &Read<'_>, user: UserId, state: HistoryState) -> Result<Sums> {
    stored_in(tx, user)?.map_or_else(|| count_in(tx, user, state), Ok)
}

/// Adds a change to the sums, if they are stored.
pub(super) fn move_in(tx: &Write<'_>, user: UserId, by: Sums) -> Result<()> {
    let sql =
        "update history_sums set visible = visible + ?2, hidden = hidden + ?3, bytes = bytes + ?4 where user_id = ?1";
    tx.execute_later(sql, (user.0, by.visible, by.hidden, by.bytes))
}

/// Deletes the sums of a user who is deleted.
pub(super) fn delete_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from history_sums where user_id = ?1", [user.0]).map(drop)
}

/// Stores the user's sums.
pub(super) fn put_in(tx: &Write<'_>, user: UserId, sums: Sums) -> Result<()> {
    let sql = "insert into history_sums (user_id, visible, hidden, bytes) values (?1, ?2, ?3, ?4) \
               on conflict (user_id) do update \
               set visible = excluded.visible, hidden = excluded.hidden, bytes = excluded.bytes";
    tx.execute_later(sql, (user.0, sums.visible, sums.hidden, sums.bytes))
}

/// Counts the user's records.
pub(super) fn count_in(tx: &Read<'_>, user: UserId, state: HistoryState) -> Result<Sums> {
    let sql = "select count(case when sequence > ?3 then 1 end), count(case when sequence <= ?3 then 1 end), \
               cast(coalesce(sum(bytes), 0) as bigint) from history where user_id = ?1 and sequence > ?2";
    tx.one(sql, (user.0, state.surplus_through, state.hidden_through), |row| {
        Ok(Sums { visible: row.get(0)?, hidden: row.get(1)?, bytes: row.get(2)? })
    })
}

/// Returns true if the user's stored sums are those of the records.
pub fn are_right_in(tx: &Read<'_>, user: UserId) -> Result<bool> {
    match stored_in(tx, user)? {
        Some(stored) => Ok(stored == count_in(tx, user, state_in(tx, user)?)?),
        None => Ok(true),
    }
}

/// Stores the sums of the records anew.
pub fn repair_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    put_in(tx, user, count_in(tx, user, state_in(tx, user)?)?)
}

/// Returns the next users with stored sums, and those of them whose sums are wrong.
pub fn compare_in(tx: &Read<'_>, after: UserId) -> Result<(Option<UserId>, Vec<UserId>)> {
    let sql = "select user_id from history_sums where user_id > ?1 order by user_id limit ?2";
    let users = tx.all(sql, (after.0, SLICE), |row| row.get(0).map(UserId))?;
    let mut wrong = Vec::new();
    for user in &users {
        if !are_right_in(tx, *user)? {
            wrong.push(*user);
        }
    }
    Ok((users.last().copied(), wrong))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use tempfile::TempDir;

    use crate::{
        clock::Clock,
        domain::{
            divination::history::{
                HistoryDraft, HistoryEdit, count_in,
                saving::{HistoryQuota, Save, save_in},
            },
            identity::users::{self, Address},
        },
        store::{SchemaPolicy, Store, Tuning, Write},
        types::{EmailAddress, UserId},
    };

    const QUOTA: HistoryQuota = HistoryQuota { records: 1_000_000, bytes: 1 << 40, record_bytes: 1 << 30 };

    fn save(tx: &Write<'_>, user: UserId, number: u32) {
        let draft = HistoryDraft {
            local_record_id: Cow::Owned(format!("r-{number}")),
            question_type: None,
            question: Some(Cow::Borrowed("a question")),
            json_data: None,
            ai_result: None,
            client_timestamp: None,
        };
        let edit = HistoryEdit { draft, base_version: None };
        let saved = save_in(tx, &[&Save { user, edit, quota: QUOTA }]).unwrap();
        assert!(saved.into_iter().all(|saved| saved.is_ok()));
    }

    /// Returns the steps of a save and of a count by a user with so many records.
    fn steps(records: u32) -> (u64, u64) {
        let directory: TempDir = tempfile::tempdir().unwrap();
        let path = directory.path().join("yarrow.db");
        let store = Store::open(&path, &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
        let make = move |tx: &Write<'_>| {
            let address = Address::Email(EmailAddress::parse("ada@example.com").unwrap());
            let user = users::find_or_create_in(tx, &address)?.0.id;
            (0..records).for_each(|number| save(tx, user, number));
            Ok(user)
        };
        let user = store.write(make).wait().unwrap();
        let file = store.file().unwrap();
        let ((), saving) = file.counting_steps(|tx| {
            save(tx, user, records);
            Ok(())
        });
        let (counted, counting) = file.counting_steps(|tx| count_in(tx, user, 0, None));
        assert_eq!(counted, i64::from(records));
        (saving, counting)
    }

    #[test]
    fn a_save_and_a_count_read_no_records() {
        let (few, many) = (steps(200), steps(4000));
        assert_eq!(few, many);
        // Those of others are counted, and few.
        assert!(steps(100).1 > few.1);
    }
}
