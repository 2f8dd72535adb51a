//! A user's inbox: the list, the unread count, and marking as read.

use std::{cell::Cell, collections::HashSet};

use serde_json::json;

use super::{
    InboxItem, Notification,
    blocks::{self, BroadcastBlock, Position, ReadBits},
    notification_of,
};
use crate::{
    core::Core,
    domain::{
        Each,
        identity::{
            preferences::{self, NotificationKind, Preferences},
            users::{self, User},
        },
        operations::deletions::{self, DeletedKind},
    },
    error::{Code, Error, Result},
    store::{Pending, Read, Row, RowResult, SnapshotId, Write},
    types::{CursorRange, CursorSlice, PageRequest, Paginated, Timestamp, UserId},
};

/// Broadcasts that one statement reads.
const BROADCASTS_PER_READ: usize = 32;
/// Stands for a caller without an account, who has read nothing.
const NOBODY: UserId = UserId(0);
/// The notifications that a list with page numbers covers.
pub const NEWEST: u32 = 1000;
/// Maximum expired broadcasts to exclude from one response before the job has removed them from the blocks.
const MAX_EXPIRED: u32 = 1000;

/// The result of marking all as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkAllOutcome {
    /// Number of notifications marked, including kinds that are switched off.
    pub marked: usize,
}

thread_local! {
    /// This thread's cached state of broadcasts, with the snapshot it is valid for.
    static BROADCAST_STATE: Cell<Option<(SnapshotId, BroadcastState)>> = const { Cell::new(None) };
}

/// The state of broadcasts that is the same for all users.
#[derive(Clone, Copy, Debug)]
struct BroadcastState {
    /// The ordinal of the last broadcast ever sent.
    newest: i64,
    /// The ordinal of the newest existing broadcast, and the time it was sent.
    sent: Option<(i64, Timestamp)>,
    /// The earliest expiry of any notification that is not yet removed.
    expires_at: Option<Timestamp>,
}

/// The state that, with the preferences, decides which notifications a user sees and has read.
struct ReadState {
    /// The last ordinal before the user's registration.
    since: i64,
    /// The ordinal of the last broadcast ever sent.
    newest: i64,
    mark: Mark,
    /// Expired broadcasts that are still in the blocks.
    expired: HashSet<i64>,
    /// True if the user is a recipient of any notification that is not a broadcast.
    has_direct: bool,
}

/// The last notification id that is marked as read, and the last broadcast's ordinal at that time.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    through: i64,
    ordinal: i64,
}

/// The unread broadcasts of one block.
struct UnreadBlock {
    block: i64,
    broadcasts: Vec<(i64, NotificationKind)>,
}

/// Lists the user's notifications, newest first, without kinds that are switched off.
pub fn list(core: &Core, user: UserId, span: CursorRange) -> Result<CursorSlice<InboxItem>> {
    core.store.read(|tx| list_in(tx, user, span))
}

/// Returns the number of unread notifications, without kinds that are switched off.
pub fn unread_count(core: &Core, user: &User) -> Result<usize> {
    core.store.read(|tx| unread_count_in(tx, user.id, user.created_at))
}

/// Marks one notification read. Keeps the first time of reading.
///
/// # Errors
/// `not_found` if it does not exist, has expired, or is not the user's.
pub fn mark_read(core: &Core, user: UserId, id: i64) -> Pending<InboxItem> {
    // A read notification needs no write.
    match core.store.read(|tx| visible_in(tx, user, id)) {
        Ok(received) if received.read_at.is_none() => core.store.write(move |tx| {
            users::require_in(tx, user)?;
            mark_read_in(tx, user, id)
        }),
        cached => Pending::ready(cached),
    }
}

/// Marks all of the user's notifications as read, including kinds that are switched off.
pub fn mark_all_read(core: &Core, user: UserId) -> Pending<MarkAllOutcome> {
    core.store.write(move |tx| {
        users::require_in(tx, user)?;
        mark_all_read_in(tx, user)
    })
}

/// Returns the newest broadcast; for a user, the newest since their registration.
pub fn latest_broadcast(core: &Core, user: Option<UserId>) -> Result<Option<InboxItem>> {
    core.store.read(|tx| {
        let (state, preferences) = view_in(tx, user)?;
        Ok(broadcasts_in(tx, user.unwrap_or(NOBODY), &state, &preferences, i64::MAX, 1)?.pop())
    })
}

/// Returns a page of the newest notifications, and the number of all. Without a user, those are the broadcasts.
pub fn list_newest(core: &Core, user: Option<UserId>, page: PageRequest) -> Result<Paginated<InboxItem>> {
    let offset = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let rows = offset.saturating_add(page.size as usize).min(NEWEST as usize);
    core.store.read(|tx| {
        let (state, preferences) = view_in(tx, user)?;
        let mut ordinals = ordinals_in(tx, &state, &preferences, i64::MAX, usize::MAX)?;
        let mut total = ordinals.len();
        ordinals.truncate(rows);
        let mut items = broadcast_items_in(tx, user.unwrap_or(NOBODY), &ordinals)?;
        if let Some(user) = user.filter(|_| state.has_direct) {
            let direct = direct_items_in(tx, user, &preferences, CursorRange { before: None, limit: NEWEST })?;
            total += direct.len();
            items.extend(direct);
            items.sort_unstable_by_key(|item| std::cmp::Reverse(item.notification.id));
        }
        items.truncate(rows);
        items.drain(..offset.min(items.len()));
        Ok(Paginated { items, total: i64::try_from(total).map_err(Error::internal)? })
    })
}

/// Returns the state and the preferences that decide what a caller sees.
fn view_in(tx: &Read<'_>, user: Option<UserId>) -> Result<(ReadState, Preferences)> {
    Ok(match user {
        Some(user) => (find_read_state_in(tx, user)?, preferences::find_in(tx, user)?),
        None => (ReadState::anonymous_in(tx)?, Preferences::DEFAULT),
    })
}

/// Exports the user's direct notifications, and the times at which notifications were read.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let ids: Vec<i64> = tx.all(
        "select notification_id from notification_recipients where user_id = ?1 \
         union select notification_id from notification_reads where user_id = ?1 order by 1",
        [user.0],
        |row| row.get(0),
    )?;
    for id in ids {
        let read_at = read_at_in(tx, user, id)?;
        // A deleted broadcast leaves only its read time.
        let notification = find_in(tx, id)?;
        each(json!({
            "id": id.to_string(),
            "kind": notification.as_ref().map(|notification| notification.kind.name()),
            "title": notification.as_ref().map(|notification| notification.title.as_str()),
            "body": notification.as_ref().map(|notification| notification.body.as_str()),
            "createdAt": notification.as_ref().map(|notification| notification.created_at),
            "readAt": read_at,
        }))?;
    }
    Ok(())
}

/// Exports the times at which the user marked all as read, with the last id covered.
pub fn export_marks_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let marks = "select through, marked_at from notification_marks where user_id = ?1 order by through";
    tx.each(marks, [user.0], |row| {
        let (through, marked_at): (i64, i64) = (row.get(0)?, row.get(1)?);
        each(json!({ "through": through.to_string(), "markedAt": Timestamp(marked_at) }))
    })
}

/// Deletes the user from the recipients, with direct notifications without other ones. A broadcast's number of readers
/// stays.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    let received = "select notification_id from notification_recipients where user_id = ?1";
    let direct: Vec<i64> = tx.all(received, [user.0], |row| row.get(0))?;
    for table in ["notification_recipients", "notification_read_blocks"] {
        tx.execute(&format!("delete from {table} where user_id = ?1"), [user.0])?;
    }
    super::sending::delete_orphans_in(tx, direct)
}

/// Deletes up to `limit` readings and as many marks of a deleted user.
pub fn erase_readings_in(tx: &Write<'_>, user: UserId, limit: u32) -> Result<usize> {
    let reads = "delete from notification_reads where user_id = ?1 and notification_id in \
                 (select notification_id from notification_reads where user_id = ?1 limit ?2)";
    let marks = "delete from notification_marks where user_id = ?1 and through in \
                 (select through from notification_marks where user_id = ?1 limit ?2)";
    Ok(tx.execute(reads, (user.0, limit))? + tx.execute(marks, (user.0, limit))?)
}

/// The last notification that a client knows. Ids are given again after the restore of a backup, at later times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastNotification {
    pub id: i64,
    /// In milliseconds; 0 before the first.
    pub sent_at: i64,
}

/// The notifications sent after another, oldest first.
#[derive(Clone, Debug, Default)]
pub struct NewNotifications {
    /// Those that the user may see, of all kinds.
    pub items: Vec<InboxItem>,
    /// The last one that was read.
    pub through: LastNotification,
    pub has_more: bool,
}

/// The last "mark all as read" of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMark {
    /// The last id that it covers.
    pub through: i64,
    pub at: Timestamp,
}

/// Returns the user's notifications after this one, oldest first. Kinds that are switched off are included.
pub fn list_after_in(tx: &Read<'_>, user: &User, last: LastNotification, limit: u32) -> Result<NewNotifications> {
    let id = last.id;
    let since = read_state_in(tx, user.id, user.created_at)?.since;
    let first = since.max(ordinal_below_in(tx, id.saturating_add(1))?.unwrap_or(0));
    let mut items =
        tx.all(select_items!("where ordinal > ?2 order by ordinal limit ?3"), (user.id.0, first, limit), item_of)?;
    items.extend(tx.all(
        select_items!(
            "where id in (select notification_id from notification_recipients \
             where user_id = ?1 and notification_id > ?2 order by notification_id limit ?3)"
        ),
        (user.id.0, id, limit),
        item_of,
    )?);
    items.sort_unstable_by_key(|item| item.notification.id);
    items.truncate(limit as usize);
    let has_more = items.len() == limit as usize;
    let through = items.last().map_or(last, |InboxItem { notification, .. }| LastNotification {
        id: notification.id,
        sent_at: notification.created_at.0,
    });
    items.retain(|item| !item.notification.has_expired(tx.now));
    Ok(NewNotifications { items, through, has_more })
}

/// Returns the recipients of the notifications after this id; none if there is a broadcast, or more than `limit` rows.
pub fn recipients_after_in(tx: &Read<'_>, id: i64, limit: u32) -> Result<Option<Vec<UserId>>> {
    let sent: Vec<(i64, bool)> = tx.all(
        "select id, ordinal is not null from notifications where id > ?1 order by id limit ?2",
        (id, limit),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut users = Vec::new();
    for (id, is_broadcast) in &sent {
        if *is_broadcast || sent.len() == limit as usize {
            return Ok(None);
        }
        users.extend(tx.all(
            "select user_id from notification_recipients where notification_id = ?1",
            [id],
            |row| row.get(0).map(UserId),
        )?);
    }
    Ok(Some(users))
}

/// Returns the newest notification to everybody or to this user.
pub fn newest_for_in(tx: &Read<'_>, user: UserId) -> Result<LastNotification> {
    let last_of = |row: &Row<'_>| Ok(LastNotification { id: row.get(0)?, sent_at: row.get(1)? });
    let broadcast = tx.first(
        "select id, created_at from notifications where ordinal = (select max(ordinal) from notifications)",
        (),
        last_of,
    )?;
    let own = tx.first(
        "select id, created_at from notifications \
         where id = (select max(notification_id) from notification_recipients where user_id = ?1)",
        [user.0],
        last_of,
    )?;
    Ok(broadcast.into_iter().chain(own).max_by_key(|last| last.id).unwrap_or_default())
}

/// Returns false if the notification, and those before it, may have been lost by the restore of a backup.
pub fn is_known_in(tx: &Read<'_>, user: UserId, last: LastNotification) -> Result<bool> {
    let at_or_before = "select created_at from notifications where id <= ?1 order by id desc limit 1";
    let sent_at = tx.first(at_or_before, [last.id], |row| row.get::<i64>(0))?;
    if sent_at.is_some_and(|sent_at| sent_at > last.sent_at) {
        return Ok(false);
    }
    let deleted = "select exists (select 1 from notification_deletions where notification_id = ?1)";
    Ok(last.id <= newest_for_in(tx, user)?.id
        || tx.one(deleted, [last.id], |row| row.get(0))?
        || deletions::is_recorded_in(tx, user, DeletedKind::Notification, &last.id.to_string())?)
}

/// Returns the id of the newest notification, or 0.
pub fn newest_id_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select coalesce(max(id), 0) from notifications", (), |row| row.get(0))
}

/// Returns the notifications that the user read one by one after a change, with the numbers of the changes. A
/// notification that has been deleted since is `None`.
pub fn list_read_after_in(
    tx: &Read<'_>,
    user: UserId,
    change: i64,
    limit: u32,
) -> Result<Vec<(i64, Option<InboxItem>)>> {
    let read: Vec<(i64, i64)> = tx.all(
        "select change, notification_id from notification_reads where user_id = ?1 and change > ?2 \
         order by change limit ?3",
        (user.0, change, limit),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    read.into_iter().map(|(change, id)| Ok((change, find_item_in(tx, user, id)?))).collect()
}

/// Returns the number of the last change by which the user read a single notification, or 0.
pub fn last_read_change_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    let last = "select coalesce(max(change), 0) from notification_reads where user_id = ?1";
    tx.one(last, [user.0], |row| row.get(0))
}

/// Returns the user's last "mark all as read".
pub fn last_mark_in(tx: &Read<'_>, user: UserId) -> Result<Option<ReadMark>> {
    tx.first(
        "select through, marked_at from notification_marks where user_id = ?1 order by through desc limit 1",
        [user.0],
        |row| Ok(ReadMark { through: row.get(0)?, at: Timestamp(row.get(1)?) }),
    )
}

pub(super) fn list_in(tx: &Read<'_>, user: UserId, span: CursorRange) -> Result<CursorSlice<InboxItem>> {
    let (state, preferences) = (find_read_state_in(tx, user)?, preferences::find_in(tx, user)?);
    let rows = span.rows_to_read() as usize;
    let mut found = broadcasts_in(tx, user, &state, &preferences, span.upper_bound(), rows)?;
    if state.has_direct {
        found.extend(direct_items_in(tx, user, &preferences, span)?);
    }
    found.sort_unstable_by_key(|item| std::cmp::Reverse(item.notification.id));
    found.truncate(rows);
    Ok(span.slice(found, |item| item.notification.id))
}

/// Returns the number of unread notifications of a user who registered at this time, without kinds that are switched off.
pub fn unread_count_in(tx: &Read<'_>, user: UserId, registered_at: Timestamp) -> Result<usize> {
    let state = read_state_in(tx, user, registered_at)?;
    let broadcasts = unread_broadcasts_in(tx, user, &state)?;
    let direct = unread_direct_in(tx, user, &state)?;
    if broadcasts.is_empty() && direct.is_empty() {
        return Ok(0);
    }
    let preferences = preferences::find_in(tx, user)?;
    let kinds = broadcasts.iter().flat_map(|unread| &unread.broadcasts).map(|(_, kind)| *kind);
    Ok(kinds.chain(direct).filter(|kind| preferences.shows(*kind)).count())
}

pub(super) fn mark_read_in(tx: &Write<'_>, user: UserId, id: i64) -> Result<InboxItem> {
    let received = visible_in(tx, user, id)?;
    if received.read_at.is_some() {
        return Ok(received);
    }
    tx.execute(
        "insert into notification_reads (user_id, notification_id, read_at, change) values (?1, ?2, ?3, ?4)",
        (user.0, id, tx.now.0, deletions::next_change_in(tx, user, last_read_change_in(tx, user)?)?),
    )?;
    if let Some(ordinal) = received.notification.ordinal {
        blocks::set_read_in(tx, user, ordinal)?;
        blocks::increment_readers_in(tx, Position::of(ordinal).block, &[ordinal])?;
    } else {
        let sql = "update notification_recipients set is_read = 1 where user_id = ?1 and notification_id = ?2";
        tx.execute(sql, (user.0, id))?;
    }
    Ok(InboxItem { read_at: Some(tx.now), ..received })
}

pub(super) fn mark_all_read_in(tx: &Write<'_>, user: UserId) -> Result<MarkAllOutcome> {
    let state = find_read_state_in(tx, user)?;
    let broadcasts = unread_broadcasts_in(tx, user, &state)?;
    let direct = unread_direct_in(tx, user, &state)?;
    if broadcasts.is_empty() && direct.is_empty() {
        return Ok(MarkAllOutcome { marked: 0 });
    }
    tx.execute(
        "insert into notification_marks (user_id, through, ordinal, marked_at) \
         select ?1, max(id), ?2, ?3 from notifications",
        (user.0, state.newest, tx.now.0),
    )?;
    blocks::delete_read_bits_before_in(tx, user, Position::of(state.newest).block)?;
    let mut marked = direct.len();
    for UnreadBlock { block, broadcasts } in broadcasts {
        marked += broadcasts.len();
        let ordinals: Vec<_> = broadcasts.into_iter().map(|(ordinal, _)| ordinal).collect();
        blocks::increment_readers_in(tx, block, &ordinals)?;
    }
    Ok(MarkAllOutcome { marked })
}

impl ReadState {
    /// Returns the state of an anonymous caller: everything is visible, nothing is read.
    fn anonymous_in(tx: &Read<'_>) -> Result<Self> {
        let latest = broadcast_state_in(tx)?;
        let expired = latest.expired_in(tx)?;
        Ok(Self { since: 0, newest: latest.newest, mark: Mark::default(), expired, has_direct: false })
    }
}

fn find_read_state_in(tx: &Read<'_>, user: UserId) -> Result<ReadState> {
    read_state_in(tx, user, users::registered_at_in(tx, user)?)
}

/// Reads the user's part in one statement, because most users have neither marks nor direct notifications.
fn read_state_in(tx: &Read<'_>, user: UserId, registered_at: Timestamp) -> Result<ReadState> {
    let latest = broadcast_state_in(tx)?;
    let since = match latest.sent {
        Some((ordinal, at)) if at < registered_at => ordinal,
        Some(_) => last_ordinal_before_in(tx, registered_at)?,
        None => 0,
    };
    let expired = latest.expired_in(tx)?;
    tx.one(
        "select coalesce((select through from notification_marks where user_id = ?1 order by through desc limit 1), 0), \
         coalesce((select ordinal from notification_marks where user_id = ?1 order by through desc limit 1), 0), \
         exists (select 1 from notification_recipients where user_id = ?1)",
        [user.0],
        |row| {
            let mark = Mark { through: row.get(0)?, ordinal: row.get(1)? };
            Ok(ReadState { since, newest: latest.newest, mark, expired, has_direct: row.get(2)? })
        },
    )
}

fn broadcast_state_in(tx: &Read<'_>) -> Result<BroadcastState> {
    let cached = BROADCAST_STATE.get().filter(|(view, _)| tx.snapshot_id() == Some(*view));
    if let Some((_, latest)) = cached {
        return Ok(latest);
    }
    let latest = BroadcastState {
        newest: blocks::last_ordinal_in(tx)?,
        sent: last_broadcast_before_in(tx, Timestamp(i64::MAX))?,
        expires_at: tx.first(
            "select expires_at from notifications where is_live = 1 and expires_at is not null \
             order by expires_at limit 1",
            (),
            |row| row.get(0).map(Timestamp),
        )?,
    };
    if let Some(view) = tx.snapshot_id() {
        BROADCAST_STATE.set(Some((view, latest)));
    }
    Ok(latest)
}

/// Returns the ordinal of the newest broadcast sent before this time, or 0.
fn last_ordinal_before_in(tx: &Read<'_>, time: Timestamp) -> Result<i64> {
    Ok(last_broadcast_before_in(tx, time)?.map_or(0, |(ordinal, _)| ordinal))
}

/// Returns the newest broadcast sent before this time: its ordinal and time.
fn last_broadcast_before_in(tx: &Read<'_>, time: Timestamp) -> Result<Option<(i64, Timestamp)>> {
    tx.first(
        "select ordinal, created_at from notifications where ordinal is not null and created_at < ?1 \
         order by created_at desc, ordinal desc limit 1",
        [time.0],
        |row| Ok((row.get(0)?, Timestamp(row.get(1)?))),
    )
}

impl BroadcastState {
    /// Returns the expired broadcasts that are still in the blocks. There are none after the job has run.
    fn expired_in(&self, tx: &Read<'_>) -> Result<HashSet<i64>> {
        if self.expires_at.is_none_or(|expires_at| expires_at > tx.now) {
            return Ok(HashSet::new());
        }
        let expired = tx.all(
            "select ordinal from notifications where expires_at is not null and is_live = 1 and expires_at <= ?1 \
             and ordinal is not null order by expires_at limit ?2",
            (tx.now.0, MAX_EXPIRED),
            |row| row.get(0),
        )?;
        Ok(expired.into_iter().collect())
    }
}

/// Returns the newest visible broadcasts below this id.
fn broadcasts_in(
    tx: &Read<'_>,
    user: UserId,
    state: &ReadState,
    preferences: &Preferences,
    below_id: i64,
    limit: usize,
) -> Result<Vec<InboxItem>> {
    broadcast_items_in(tx, user, &ordinals_in(tx, state, preferences, below_id, limit)?)
}

/// Returns the ordinals of these broadcasts, from the blocks, so that removed and switched-off ones cost no row.
fn ordinals_in(
    tx: &Read<'_>,
    state: &ReadState,
    preferences: &Preferences,
    below_id: i64,
    limit: usize,
) -> Result<Vec<i64>> {
    let Some(top) = ordinal_below_in(tx, below_id)? else { return Ok(Vec::new()) };
    let mut ordinals = Vec::new();
    let (first, last) = (Position::of(state.since + 1).block, Position::of(top).block);
    for number in (first..=last).rev() {
        let Some(block) = blocks::find_in(tx, number)? else { continue };
        let is_shown = |(ordinal, kind): &(i64, NotificationKind)| {
            (state.since + 1..=top).contains(ordinal) && preferences.shows(*kind) && !state.expired.contains(ordinal)
        };
        let shown = block.entries().rev().filter(is_shown).map(|(ordinal, _)| ordinal);
        ordinals.extend(shown.take(limit - ordinals.len()));
        if ordinals.len() >= limit {
            break;
        }
    }
    Ok(ordinals)
}

fn broadcast_items_in(tx: &Read<'_>, user: UserId, ordinals: &[i64]) -> Result<Vec<InboxItem>> {
    let mut items = Vec::with_capacity(ordinals.len());
    for ordinals in ordinals.chunks(BROADCASTS_PER_READ) {
        let mut parameters = [0; BROADCASTS_PER_READ + 1];
        parameters[0] = user.0;
        parameters[1..=ordinals.len()].copy_from_slice(ordinals);
        items.extend(tx.all(
            select_items!(
                "where ordinal in (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, \
                 ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33) order by ordinal desc"
            ),
            parameters,
            item_of,
        )?);
    }
    Ok(items)
}

/// Returns the newest visible direct notifications of a page.
fn direct_items_in(
    tx: &Read<'_>,
    user: UserId,
    preferences: &Preferences,
    span: CursorRange,
) -> Result<Vec<InboxItem>> {
    let [first, second, third, fourth] =
        NotificationKind::ALL.map(|kind| if preferences.shows(kind) { kind.name() } else { "" });
    tx.all(
        select_items!(
            "where id in (select notification_id from notification_recipients \
             where user_id = ?1 and notification_id < ?2 and kind in (?3, ?4, ?5, ?6) \
             and (expires_at is null or expires_at > ?7) order by notification_id desc limit ?8)"
        ),
        (user.0, span.upper_bound(), first, second, third, fourth, tx.now.0, span.rows_to_read()),
        item_of,
    )
}

fn ordinal_below_in(tx: &Read<'_>, id: i64) -> Result<Option<i64>> {
    tx.first(
        "select ordinal from notifications where ordinal is not null and id < ?1 order by id desc limit 1",
        [id],
        |row| row.get(0),
    )
}

fn find_in(tx: &Read<'_>, id: i64) -> Result<Option<Notification>> {
    tx.first(select_notifications!("where id = ?1"), [id], notification_of)
}

/// Returns the user's unread broadcasts since the last mark and the registration, by block.
fn unread_broadcasts_in(tx: &Read<'_>, user: UserId, state: &ReadState) -> Result<Vec<UnreadBlock>> {
    let first = state.since.max(state.mark.ordinal) + 1;
    let mut all = Vec::new();
    if state.newest < first {
        return Ok(all);
    }
    for block in blocks::list_from_in(tx, Position::of(first).block)? {
        let read = blocks::read_bits_in(tx, user, block.number)?;
        let broadcasts = unread_of(&block, &read, first, &state.expired);
        if !broadcasts.is_empty() {
            all.push(UnreadBlock { block: block.number, broadcasts });
        }
    }
    Ok(all)
}

fn unread_of(
    block: &BroadcastBlock,
    read: &ReadBits,
    first: i64,
    expired: &HashSet<i64>,
) -> Vec<(i64, NotificationKind)> {
    let is_unread = |(ordinal, _): &(i64, NotificationKind)| {
        *ordinal >= first && !read.contains(*ordinal) && !expired.contains(ordinal)
    };
    block.entries().filter(is_unread).collect()
}

/// Returns the kinds of the user's direct notifications after the mark that are unread.
fn unread_direct_in(tx: &Read<'_>, user: UserId, state: &ReadState) -> Result<Vec<NotificationKind>> {
    if !state.has_direct {
        return Ok(Vec::new());
    }
    tx.all(
        "select kind from notification_recipients where user_id = ?1 and is_read = 0 and notification_id > ?2 \
         and (expires_at is null or expires_at > ?3)",
        (user.0, state.mark.through, tx.now.0),
        |row| row.get_parsed(0, NotificationKind::from_name),
    )
}

/// Returns a notification that the user may see, even if its kind is switched off. Returns `None` if it does not exist,
/// has expired, or is not the user's.
pub fn find_visible_in(tx: &Read<'_>, user: UserId, id: i64) -> Result<Option<InboxItem>> {
    match visible_in(tx, user, id) {
        Err(error) if error.code == Code::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn visible_in(tx: &Read<'_>, user: UserId, id: i64) -> Result<InboxItem> {
    let found = find_item_in(tx, user, id)?.filter(|found| !found.notification.has_expired(tx.now));
    let item = found.ok_or(Code::NotFound)?;
    let is_visible = match item.notification.ordinal {
        Some(ordinal) => ordinal > last_ordinal_before_in(tx, users::registered_at_in(tx, user)?)?,
        None => is_recipient_in(tx, user, id)?,
    };
    if is_visible { Ok(item) } else { Err(Code::NotFound.into()) }
}

fn is_recipient_in(tx: &Read<'_>, user: UserId, id: i64) -> Result<bool> {
    let found = tx.first(
        "select true from notification_recipients where user_id = ?1 and notification_id = ?2",
        (user.0, id),
        |row| row.get(0),
    )?;
    Ok(found.unwrap_or(false))
}

fn find_item_in(tx: &Read<'_>, user: UserId, id: i64) -> Result<Option<InboxItem>> {
    tx.first(select_items!("where id = ?2"), (user.0, id), item_of)
}

fn item_of(row: &Row<'_>) -> RowResult<InboxItem> {
    // The time follows the columns of the notification.
    let read_at = row.get::<Option<i64>>(8)?.map(Timestamp);
    Ok(InboxItem { notification: notification_of(row)?, read_at })
}

fn read_at_in(tx: &Read<'_>, user: UserId, id: i64) -> Result<Option<Timestamp>> {
    let sql = concat!("select ", read_at!("?2"));
    Ok(tx.one(sql, (user.0, id), |row| row.get::<Option<i64>>(0))?.map(Timestamp))
}
