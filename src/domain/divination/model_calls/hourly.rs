//! How many calls a user made in the last hour, apart from the calls' own records, which their user may delete.

use crate::{
    error::Result,
    store::{
        Read, Write,
        sliding_window::{self, HOUR, Window},
    },
    types::UserId,
};

/// What is counted, each apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Interpretations,
    Conversations,
}

impl Counted {
    const fn kind(self) -> &'static str {
        match self {
            Self::Interpretations => "interpretation",
            Self::Conversations => "chat",
        }
    }

    const fn newest_first(self) -> &'static str {
        match self {
            Self::Interpretations => {
                "select created_at from model_calls where user_id = ?1 and kind = 'interpretation' \
                 and created_at <= ?3 order by created_at desc limit 1 offset ?2"
            }
            Self::Conversations => {
                "select created_at from model_calls where user_id = ?1 and kind = 'chat' \
                 and created_at <= ?3 order by created_at desc limit 1 offset ?2"
            }
        }
    }
}

/// Refuses more than so many in an hour.
///
/// # Errors
/// `too_many_requests`.
pub fn require_open_in(tx: &Read<'_>, user: UserId, counted: Counted, allowed: u32) -> Result<()> {
    let newest_first = counted.newest_first();
    sliding_window::require_open_in(tx, &[Window { newest_first, key: user.0, allowed, length: HOUR }])
}

/// Counts one more, unless it is one too many.
///
/// # Errors
/// `too_many_requests`.
pub fn take_in(tx: &Write<'_>, user: UserId, counted: Counted, allowed: u32) -> Result<()> {
    require_open_in(tx, user, counted, allowed)?;
    tx.execute(
        "insert into model_calls (user_id, kind, created_at) values (?1, ?2, ?3)",
        (user.0, counted.kind(), tx.now.0),
    )
    .map(drop)
}

/// Deletes up to `slice` of the calls that are counted no more.
pub fn delete_old_in(tx: &Write<'_>, slice: u32) -> Result<usize> {
    tx.execute(
        "delete from model_calls where id in (select id from model_calls where created_at < ?1 limit ?2)",
        (tx.now.minus(HOUR).0, slice),
    )
}

/// Deletes what is counted of a user who leaves.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from model_calls where user_id = ?1", [user.0]).map(drop)
}
