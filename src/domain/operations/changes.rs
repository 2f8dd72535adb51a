//! The changes of a user's data since a cursor, for apps that work offline.
//!
//! Each kind of data has a number that grows with every change of the user, so a cursor is one position for each kind.
//! Rows carry the number of their last change only: a row that changes while a client reads page by page moves behind
//! the client's position, and is returned once more. Nothing is skipped, because the single writer commits the numbers
//! in their order.
//!
//! Deletions come first, before the rows that were stored again since.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    core::Core,
    domain::{
        divination::{
            history::{self, HistoryRecord},
            sessions::{self, Session},
        },
        identity::{
            preferences::{self, Preferences},
            users::User,
        },
        messaging::notifications::{self, InboxItem, LastNotification, ReadMark},
        money::ledger::{self, Asset},
        operations::deletions::{self, DeletedKind, Deletion, StoredDeletion},
    },
    error::{Code, Result},
    keys::ServerKey,
    store::Read,
    types::{Timestamp, UserId},
};

/// The size of history records after which a page ends.
const MAX_HISTORY_BYTES: i64 = 1 << 20;
const SEAL_BYTES: usize = 16;
const NUMBERS: usize = 12;

/// The positions up to which a client knows the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Positions {
    deletions: i64,
    /// Of deleted broadcasts, which are the same for all users.
    broadcast_deletions: i64,
    sessions: i64,
    history: i64,
    preferences: i64,
    points: i64,
    coins: i64,
    notifications: LastNotification,
    reads: i64,
    mark: i64,
}

/// The state of a client: when it last asked, and its positions. Opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesCursor {
    at: Timestamp,
    positions: Positions,
}

/// The balances of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balances {
    pub points: i64,
    pub coins: i64,
}

/// The numbers of the last entries of a user's accounts. They change with every change of a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastEntries {
    pub points: i64,
    pub coins: i64,
}

/// Returns the user's balances and the entries that they follow from.
pub fn balances_in(tx: &Read<'_>, user: UserId) -> Result<(Balances, LastEntries)> {
    let points = ledger::account_in(tx, user, Asset::Point)?;
    let coins = ledger::account_in(tx, user, Asset::Coin)?;
    let balances = Balances { points: points.balance, coins: coins.balance };
    Ok((balances, LastEntries { points: points.last_sequence, coins: coins.last_sequence }))
}

/// One page of changes.
#[derive(Clone, Debug)]
pub struct ChangePage {
    /// To be applied before everything else.
    pub deletions: Vec<Deletion>,
    pub balances: Option<Balances>,
    pub preferences: Option<Preferences>,
    pub sessions: Vec<Session>,
    pub history: Vec<HistoryRecord<'static>>,
    pub notifications: Vec<InboxItem>,
    /// Everything up to this notification is read.
    pub read_mark: Option<ReadMark>,
    pub cursor: ChangesCursor,
    pub has_more: bool,
}

impl ChangesCursor {
    /// Returns the text of the cursor, sealed for this user.
    pub fn to_text(self, keys: &ServerKey, user: UserId) -> String {
        let numbers = self.numbers().map(i64::to_be_bytes).concat();
        let seal = seal(keys, user, &numbers);
        URL_SAFE_NO_PAD.encode([&numbers[..], &seal[..]].concat())
    }

    /// Reads a cursor; none if the text is not a cursor of this user.
    pub fn from_text(keys: &ServerKey, user: UserId, text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == NUMBERS * 8 + SEAL_BYTES)?;
        let (numbers, sealed) = bytes.split_at(NUMBERS * 8);
        if seal(keys, user, numbers) != sealed {
            return None;
        }
        let mut numbers = numbers.chunks_exact(8).map(|bytes| bytes.try_into().map_or(0, i64::from_be_bytes));
        let mut next = || numbers.next().unwrap_or_default();
        Some(Self {
            at: Timestamp(next()),
            positions: Positions {
                deletions: next(),
                broadcast_deletions: next(),
                sessions: next(),
                history: next(),
                preferences: next(),
                points: next(),
                coins: next(),
                notifications: LastNotification { id: next(), sent_at: next() },
                reads: next(),
                mark: next(),
            },
        })
    }

    fn numbers(self) -> [i64; NUMBERS] {
        let Positions {
            deletions,
            broadcast_deletions,
            sessions,
            history,
            preferences,
            points,
            coins,
            notifications: LastNotification { id: notification, sent_at: notified_at },
            reads,
            mark,
        } = self.positions;
        [
            self.at.0,
            deletions,
            broadcast_deletions,
            sessions,
            history,
            preferences,
            points,
            coins,
            notification,
            notified_at,
            reads,
            mark,
        ]
    }
}

/// Returns up to about `limit` changes since a cursor, or all of the user's data page by page without one.
///
/// # Errors
/// `cursor_expired` if deletions since the cursor may have been purged, or the cursor is newer than a restored backup.
pub fn list(core: &Core, user: &User, since: Option<ChangesCursor>, limit: u32) -> Result<ChangePage> {
    core.store.read(|tx| {
        let positions = match since {
            Some(cursor) => {
                require_current_in(tx, core.config.retention.deletions, user.id, cursor)?;
                cursor.positions
            }
            None => Positions::first_in(tx, user.id)?,
        };
        list_in(tx, user, positions, limit)
    })
}

impl Positions {
    /// Returns the positions of a client that knows nothing: deletions and readings of the past do not concern it.
    fn first_in(tx: &Read<'_>, user: UserId) -> Result<Self> {
        Ok(Self {
            deletions: deletions::last_number_in(tx, user)?,
            broadcast_deletions: notifications::last_deletion_in(tx)?,
            reads: notifications::last_read_change_in(tx, user)?,
            mark: notifications::last_mark_in(tx, user)?.map_or(0, |mark| mark.through),
            // Unlike those of an account, even one without entries, or preferences that were never changed.
            points: -1,
            coins: -1,
            preferences: -1,
            ..Self::default()
        })
    }
}

fn require_current_in(tx: &Read<'_>, max_age: Duration, user: UserId, cursor: ChangesCursor) -> Result<()> {
    let Positions { sessions, history, notifications, .. } = cursor.positions;
    let last_deletion = deletions::last_number_in(tx, user)?;
    // Every number that a client has seen is that of a row, or lower than the number of a deletion.
    let is_ahead = sessions > last_deletion && sessions > sessions::last_change_in(tx, user)?
        || history > last_deletion && history > history::last_change_in(tx, user)?
        || !notifications::is_known_in(tx, user, notifications)?;
    let is_old = cursor.at < tx.now.minus(max_age);
    if is_old || is_ahead { Err(Code::CursorExpired.into()) } else { Ok(()) }
}

fn list_in(tx: &Read<'_>, user: &User, positions: Positions, limit: u32) -> Result<ChangePage> {
    let cursor = ChangesCursor { at: tx.now, positions };
    let mut page = Page { tx, user, changes: ChangePage::none(cursor), free: limit };
    page.add_balances()?;
    page.add_preferences()?;
    page.add_deletions()?;
    page.add_sessions()?;
    page.add_history()?;
    page.add_notifications()?;
    page.add_readings()?;
    Ok(page.changes)
}

impl ChangePage {
    fn none(cursor: ChangesCursor) -> Self {
        Self {
            deletions: Vec::new(),
            balances: None,
            preferences: None,
            sessions: Vec::new(),
            history: Vec::new(),
            notifications: Vec::new(),
            read_mark: None,
            cursor,
            has_more: false,
        }
    }
}

/// A page that is filled kind by kind. Once a kind may have more, the page is full.
struct Page<'read> {
    tx: &'read Read<'read>,
    user: &'read User,
    changes: ChangePage,
    /// The number of rows that still fit.
    free: u32,
}

impl Page<'_> {
    fn positions(&mut self) -> &mut Positions {
        &mut self.changes.cursor.positions
    }

    /// Counts rows, and ends the page if they are as many as were asked for.
    fn count(&mut self, rows: usize) {
        self.free = self.free.saturating_sub(u32::try_from(rows).unwrap_or(u32::MAX));
        self.changes.has_more |= self.free == 0;
    }

    fn is_full(&self) -> bool {
        self.changes.has_more
    }

    fn add_balances(&mut self) -> Result<()> {
        let (balances, LastEntries { points, coins }) = balances_in(self.tx, self.user.id)?;
        let positions = self.positions();
        if (points, coins) != (positions.points, positions.coins) {
            (positions.points, positions.coins) = (points, coins);
            self.changes.balances = Some(balances);
        }
        Ok(())
    }

    fn add_preferences(&mut self) -> Result<()> {
        let found = preferences::find_in(self.tx, self.user.id)?;
        let changed_at = found.updated_at.map_or(0, |at| at.0);
        if changed_at != self.positions().preferences {
            self.positions().preferences = changed_at;
            self.changes.preferences = Some(found);
        }
        Ok(())
    }

    fn add_deletions(&mut self) -> Result<()> {
        loop {
            let (position, free) = (self.positions().deletions, self.free);
            let found = deletions::list_after_in(self.tx, self.user.id, position, free)?;
            // Of a range there may be no record left.
            let may_be_more = found.len() == free as usize;
            for stored in found {
                self.add_deletion(stored)?;
                if self.is_full() {
                    return Ok(());
                }
            }
            if !may_be_more {
                break;
            }
        }
        let broadcasts =
            notifications::list_deleted_after_in(self.tx, self.positions().broadcast_deletions, self.free)?;
        if let Some((last, _)) = broadcasts.last() {
            self.positions().broadcast_deletions = *last;
        }
        self.count(broadcasts.len());
        self.changes.deletions.extend(broadcasts.into_iter().map(|(number, id)| Deletion {
            number,
            kind: DeletedKind::Notification,
            subject: id.to_string(),
        }));
        Ok(())
    }

    /// Adds a deletion, or as many as fit of a range.
    fn add_deletion(&mut self, stored: StoredDeletion) -> Result<()> {
        let range = match stored {
            StoredDeletion::One(deletion) => {
                self.positions().deletions = deletion.number;
                self.changes.deletions.push(deletion);
                self.count(1);
                return Ok(());
            }
            StoredDeletion::Range(range) => range,
        };
        let after = range.after.max(self.positions().deletions - range.number_of(0));
        let found = history::ids_between_in(self.tx, self.user.id, after, range.through, self.free)?;
        self.count(found.len());
        self.positions().deletions = range.number;
        self.changes.deletions.extend(found.into_iter().map(|(sequence, subject)| Deletion {
            number: range.number_of(sequence),
            kind: DeletedKind::History,
            subject,
        }));
        if let Some(last) = self.changes.deletions.last().filter(|_| self.is_full()).map(|last| last.number) {
            self.positions().deletions = last;
        }
        Ok(())
    }

    fn add_sessions(&mut self) -> Result<()> {
        if self.is_full() {
            return Ok(());
        }
        let found = sessions::list_changed_in(self.tx, self.user.id, self.positions().sessions, self.free)?;
        if let Some(last) = found.last() {
            self.positions().sessions = last.change;
        }
        self.count(found.len());
        self.changes.sessions = found;
        Ok(())
    }

    fn add_history(&mut self) -> Result<()> {
        if self.is_full() {
            return Ok(());
        }
        let (position, free) = (self.positions().history, self.free);
        let found = history::list_changed_in(self.tx, self.user.id, position, free, MAX_HISTORY_BYTES)?;
        self.positions().history = found.last.unwrap_or(position);
        self.count(found.items.len());
        self.changes.has_more |= found.is_cut;
        self.changes.history = found.items;
        Ok(())
    }

    fn add_notifications(&mut self) -> Result<()> {
        if self.is_full() {
            return Ok(());
        }
        let found = notifications::list_after_in(self.tx, self.user, self.positions().notifications, self.free)?;
        self.positions().notifications = found.through;
        self.count(found.items.len());
        self.changes.has_more |= found.has_more;
        self.changes.notifications = found.items;
        Ok(())
    }

    fn add_readings(&mut self) -> Result<()> {
        if self.is_full() {
            return Ok(());
        }
        let read = notifications::list_read_after_in(self.tx, self.user.id, self.positions().reads, self.free)?;
        if let Some((last, _)) = read.last() {
            self.positions().reads = *last;
        }
        self.count(read.len());
        let listed: Vec<_> = self.changes.notifications.iter().map(|item| item.notification.id).collect();
        let items = read.into_iter().filter_map(|(_, item)| item);
        self.changes.notifications.extend(items.filter(|item| !listed.contains(&item.notification.id)));
        let mark = notifications::last_mark_in(self.tx, self.user.id)?;
        if let Some(mark) = mark.filter(|mark| mark.through > self.changes.cursor.positions.mark) {
            self.positions().mark = mark.through;
            self.changes.read_mark = Some(mark);
        }
        Ok(())
    }
}

fn seal(keys: &ServerKey, user: UserId, numbers: &[u8]) -> [u8; SEAL_BYTES] {
    keys.seal_row(&["changes", &user.to_string(), &URL_SAFE_NO_PAD.encode(numbers)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Clock,
        store::{SchemaPolicy, Store, Tuning},
    };

    #[test]
    fn cursors_are_valid_for_their_user_and_key_only() {
        let key = |byte| ServerKey::from_bytes(&[byte; 32]);
        let positions = Positions { sessions: 7, mark: i64::MAX, points: -1, ..Positions::default() };
        let cursor = ChangesCursor { at: Timestamp(1_767_225_600_000), positions };
        let text = cursor.to_text(&key(1), UserId(7));
        assert_eq!(ChangesCursor::from_text(&key(1), UserId(7), &text), Some(cursor));
        assert_eq!(ChangesCursor::from_text(&key(1), UserId(8), &text), None);
        assert_eq!(ChangesCursor::from_text(&key(2), UserId(7), &text), None);
        assert_eq!(ChangesCursor::from_text(&key(1), UserId(7), &text[1..]), None);
    }

    #[test]
    fn cursors_expire_with_the_records_of_deletions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("yarrow.db");
        let store = Store::open(&path, &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
        let day = Duration::from_hours(24);
        let outcome = |age: Duration| {
            store.read(|tx| {
                let cursor = ChangesCursor { at: tx.now.minus(age), positions: Positions::default() };
                require_current_in(tx, day, UserId(7), cursor)
            })
        };
        assert!(outcome(day).is_ok());
        assert_eq!(outcome(day + Duration::from_secs(1)).unwrap_err().code, Code::CursorExpired);
    }
}
