//! The numbers of a user's records, which say what is hidden and what the next record and change are called.

use crate::{
    error::Result,
    store::{Read, Row, RowResult},
    types::UserId,
};

/// The numbers of a user's records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HistoryState {
    /// The highest sequence and the highest stored number of a change.
    pub sequence: i64,
    change: i64,
    /// Records up to this sequence are hidden.
    pub hidden_through: i64,
    /// Records up to this sequence no longer count, and are about to be deleted.
    pub surplus_through: i64,
    /// A record up to this sequence changed at least with the number `restored_base` and its sequence.
    pub restored_through: i64,
    pub restored_base: i64,
}

impl HistoryState {
    /// Returns the sequence of the next record. Greater than those of deleted records that were hidden.
    pub fn next_sequence(self) -> i64 {
        self.sequence.max(0).max(self.hidden_through).max(self.restored_through) + 1
    }

    pub fn set_last_change(&mut self, change: i64) {
        self.change = change;
    }

    /// Returns the number of the last change.
    pub fn last_change(self) -> i64 {
        self.change.max(self.restored_base + self.restored_through)
    }
}

/// The columns that [`state_of`] reads, of a user.
macro_rules! state_columns {
    ($user:literal) => {
        concat!(
            "coalesce((select max(sequence) from history where user_id = ",
            $user,
            "), 0), coalesce((select max(change) from history where user_id = ",
            $user,
            "), 0), coalesce((select max(through) from history_hidings where user_id = ",
            $user,
            "), 0), coalesce((select max(surplus_through) from history_hidings where user_id = ",
            $user,
            "), 0), coalesce((select max(through) from history_restorings where user_id = ",
            $user,
            "), 0), coalesce((select max(base) from history_restorings where user_id = ",
            $user,
            "), 0)"
        )
    };
}

pub(super) use state_columns;

pub(super) fn state_in(tx: &Read<'_>, user: UserId) -> Result<HistoryState> {
    tx.one(concat!("select ", state_columns!("?1")), [user.0], state_of)
}

pub(super) fn state_of(row: &Row<'_>) -> RowResult<HistoryState> {
    Ok(HistoryState {
        sequence: row.get(0)?,
        change: row.get(1)?,
        hidden_through: row.get(2)?,
        surplus_through: row.get(3)?,
        restored_through: row.get(4)?,
        restored_base: row.get(5)?,
    })
}
