//! News for an open app: new notifications and changed balances.
//!
//! One watcher finds out who is concerned by new rows, so that no stream asks the database while nothing happens. Each
//! stream then reads its own news from a position.

use std::{fmt, str::FromStr};

use crate::{
    core::Core,
    domain::{
        identity::{preferences, users::User},
        messaging::notifications::{self, InboxItem, LastNotification},
        money::ledger,
        operations::changes::{self, Balances, LastEntries},
    },
    error::{Code, Error, Result},
    store::Read,
    types::UserId,
};

/// Notifications that are read at once.
const MAX_ITEMS: u32 = 10;
/// New rows of a kind between two looks of the watcher, above which everybody looks.
const MAX_ROWS: u32 = 1_000;

/// The position of a stream: the last notification, and the numbers of the last ledger entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxPosition {
    notification: LastNotification,
    points: i64,
    coins: i64,
}

impl fmt::Display for InboxPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LastNotification { id, sent_at } = self.notification;
        write!(formatter, "{id}.{}.{}.{sent_at}", self.points, self.coins)
    }
}

impl FromStr for InboxPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers = text.trim().split('.').map(|number| number.parse().ok().filter(|number| *number >= 0));
        let numbers: Vec<i64> = numbers.collect::<Option<_>>().ok_or(())?;
        let (id, points, coins, sent_at) = match *numbers.as_slice() {
            [id, points, coins, sent_at] => (id, points, coins, sent_at),
            // As earlier versions wrote them.
            [id, points, coins] => (id, points, coins, 0),
            _ => return Err(()),
        };
        Ok(Self { notification: LastNotification { id, sent_at }, points, coins })
    }
}

/// The news after a position.
#[derive(Clone, Debug)]
pub struct InboxNews {
    /// Each with the position after it.
    pub items: Vec<(InboxItem, InboxPosition)>,
    /// Set if they changed.
    pub balances: Option<Balances>,
    pub position: InboxPosition,
    pub has_more: bool,
}

/// The state at the beginning of a stream.
#[derive(Clone, Copy, Debug)]
pub struct InboxState {
    pub unread: usize,
    pub balances: Balances,
    pub position: InboxPosition,
}

/// Returns the present state of a user's inbox and balances.
pub fn current(core: &Core, user: &User) -> Result<InboxState> {
    let unread = notifications::unread_count(core, user)?;
    core.store.read(|tx| {
        let (balances, LastEntries { points, coins }) = changes::balances_in(tx, user.id)?;
        let position = InboxPosition { notification: notifications::newest_for_in(tx, user.id)?, points, coins };
        Ok(InboxState { unread, balances, position })
    })
}

/// Checks that the events up to a position happened.
///
/// # Errors
/// `cursor_expired` if the restore of a backup may have lost some of them.
pub fn require_known(core: &Core, user: &User, position: InboxPosition) -> Result<()> {
    core.store.read(|tx| {
        let (_, LastEntries { points, coins }) = changes::balances_in(tx, user.id)?;
        let is_known = position.points <= points
            && position.coins <= coins
            && notifications::is_known_in(tx, user.id, position.notification)?;
        let detail = (
            "The service has lost events up to this one. Continue without `Last-Event-ID` and load the app's data again.",
            "服务已丢失此事件及之前的部分事件。请不带 `Last-Event-ID` 重新连接，并重新加载数据。",
        );
        if is_known { Ok(()) } else { Err(Error::new(Code::CursorExpired).detail(detail)) }
    })
}

/// Returns the news after a position, without kinds of notification that are switched off.
pub fn news(core: &Core, user: &User, from: InboxPosition) -> Result<InboxNews> {
    core.store.read(|tx| {
        let found = notifications::list_after_in(tx, user, from.notification, MAX_ITEMS)?;
        let preferences = if found.items.is_empty() { None } else { Some(preferences::find_in(tx, user.id)?) };
        let is_shown =
            |item: &InboxItem| preferences.as_ref().is_none_or(|chosen| chosen.shows(item.notification.kind));
        let (balances, LastEntries { points, coins }) = changes::balances_in(tx, user.id)?;
        let items = found.items.into_iter().filter(is_shown);
        Ok(InboxNews {
            items: items
                .map(|item| {
                    let notification =
                        LastNotification { id: item.notification.id, sent_at: item.notification.created_at.0 };
                    (item, InboxPosition { notification, ..from })
                })
                .collect(),
            balances: ((points, coins) != (from.points, from.coins)).then_some(balances),
            position: InboxPosition { notification: found.through, points, coins },
            has_more: found.has_more,
        })
    })
}

/// The last rows that the watcher has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchMark {
    notification: i64,
    entry: i64,
}

/// The users whom new rows concern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConcernedUsers {
    Everybody,
    Some(Vec<UserId>),
}

/// Returns the users whom the rows after a mark concern, and the new mark.
pub fn concerned(core: &Core, since: Option<WatchMark>) -> Result<(ConcernedUsers, WatchMark)> {
    core.store.read(|tx| {
        let mark = WatchMark { notification: notifications::newest_id_in(tx)?, entry: ledger::last_number_in(tx)? };
        let Some(since) = since else { return Ok((ConcernedUsers::Everybody, mark)) };
        let users = if since == mark { Some(Vec::new()) } else { users_after_in(tx, since)? };
        Ok((users.map_or(ConcernedUsers::Everybody, ConcernedUsers::Some), mark))
    })
}

fn users_after_in(tx: &Read<'_>, since: WatchMark) -> Result<Option<Vec<UserId>>> {
    let Some(mut users) = notifications::recipients_after_in(tx, since.notification, MAX_ROWS)? else {
        return Ok(None);
    };
    let entries = ledger::entries_after_in(tx, since.entry, MAX_ROWS)?;
    if entries.len() == MAX_ROWS as usize {
        return Ok(None);
    }
    users.extend(entries.iter().map(|entry| entry.user));
    users.sort_unstable();
    users.dedup();
    Ok(Some(users))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_written() {
        let notification = LastNotification { id: 42, sent_at: 1_767_225_600_000 };
        let position = InboxPosition { notification, points: 7, coins: 0 };
        assert_eq!(position.to_string().parse(), Ok(position));
        let unknown = LastNotification { id: 42, sent_at: 0 };
        assert_eq!("42.7.0".parse(), Ok(InboxPosition { notification: unknown, points: 7, coins: 0 }));
        for text in ["", "42", "42.7", "42.7.0.1.1", "42.7.-1.1", "x.1.1.1", "42.7.0.", "99999999999999999999.1.1.1"] {
            assert_eq!(text.parse::<InboxPosition>(), Err(()), "{text}");
        }
    }
}
