//! The hourly limit of model calls per user. Calls are counted in a table of their own, because users may delete the
//! calls' records.

use crate::{
    error::Result,
    store::{
        Read, Write,
        sliding_window::{self, HOUR, Window},
    },
    types::UserId,
};

/// The kinds of call that are limited, each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedCall {
    Interpretation,
    Chat,
}

impl LimitedCall {
    const fn kind(self) -> &'static str {
        match self {
            Self::Interpretation => "interpretation",
            Self::Chat => "chat",
        }
    }

    const fn newest_first(self) -> &'static str {
        match self {
            Self::Interpretation => {
                "select created_at from model_calls where user_id = ?1 and kind = 'interpretation' \
                 and created_at <= ?3 order by created_at desc limit 1 offset ?2"
            }
            Self::Chat => {
                "select created_at from model_calls where user_id = ?1 and kind = 'chat' \
                 and created_at <= ?3 order by created_at desc limit 1 offset ?2"
            }
        }
    }
}

/// Rejects a call if the user has made `allowed` calls in the last hour.
///
/// # Errors
/// `too_many_requests`.
pub fn check_in(tx: &Read<'_>, user: UserId, call: LimitedCall, allowed: u32) -> Result<()> {
    let newest_first = call.newest_first();
    sliding_window::require_open_in(tx, &[Window { newest_first, key: user.0, allowed, length: HOUR }])
}

/// Counts a call unless it exceeds the limit.
///
/// # Errors
/// `too_many_requests`.
pub fn count_in(tx: &Write<'_>, user: UserId, call: LimitedCall, allowed: u32) -> Result<()> {
    check_in(tx, user, call, allowed)?;
    tx.execute(
        "insert into model_calls (user_id, kind, created_at) values (?1, ?2, ?3)",
        (user.0, call.kind(), tx.now.0),
    )
    .map(drop)
}

/// Deletes up to `limit` calls that are older than an hour.
pub fn delete_old_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from model_calls where id in (select id from model_calls where created_at < ?1 limit ?2)",
        (tx.now.minus(HOUR).0, limit),
    )
}

/// Deletes the counted calls of a user whose account is deleted.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from model_calls where user_id = ?1", [user.0]).map(drop)
}
