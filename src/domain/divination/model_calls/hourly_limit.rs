//! The hourly limit of model calls per user. Calls are counted in a table of their own, because users may delete the
//! calls' records.

use crate::{
    error::{RateLimit, Result},
    store::{
        Read, Write,
        sliding_window::{HOUR, Window, WindowRows, WindowUse, window_rows},
    },
    types::{UserId, named_enum},
};

named_enum! {
    /// The kinds of call that users make. Each is limited by itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum UserCall {
        Interpretation = "interpretation",
        Chat = "chat",
    }
}

impl UserCall {
    /// Returns the limit on calls of this kind in an hour.
    pub const fn limit(self, quota: u32) -> RateLimit {
        let name = match self {
            Self::Interpretation => "interpretations",
            Self::Chat => "chat",
        };
        RateLimit { name, quota, window: HOUR }
    }

    const fn rows(self) -> WindowRows {
        match self {
            Self::Interpretation => {
                window_rows!("model_calls", "created_at", "user_id = ?1 and kind = 'interpretation'")
            }
            Self::Chat => window_rows!("model_calls", "created_at", "user_id = ?1 and kind = 'chat'"),
        }
    }
}

/// Rejects a call if the user has made `allowed` calls in the last hour. Returns how many more the user may make.
///
/// # Errors
/// `too_many_requests`.
pub fn check_in(tx: &Read<'_>, user: UserId, call: UserCall, allowed: u32) -> Result<WindowUse> {
    window(user, call, allowed).require_open_in(tx)
}

/// Returns how many more calls a user may make in the hour.
pub fn use_in(tx: &Read<'_>, user: UserId, call: UserCall, allowed: u32) -> Result<WindowUse> {
    window(user, call, allowed).use_in(tx)
}

fn window(user: UserId, call: UserCall, allowed: u32) -> Window<i64> {
    Window { limit: call.limit(allowed), rows: call.rows(), key: user.0 }
}

/// Counts a call, which [`check_in`] has admitted.
pub fn count_in(tx: &Write<'_>, user: UserId, call: UserCall) -> Result<()> {
    tx.execute_later(
        "insert into model_calls (user_id, kind, created_at) values (?1, ?2, ?3)",
        (user.0, call.name(), tx.now.0),
    )
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
