//! Active users: one bit for each user and day, in blocks of 4,096 ids.
//!
//! Ids ascend with registration, so the users of a week are a range of ids, and its retention is a count of bits. The
//! bits come from the network log and are kept as long. The counts of a day, week or month outlive them.
//!
//! The surprise: setting a bit twice changes nothing, so the log may be read again.

use std::{collections::BTreeMap, time::Duration};

use jiff::ToSpan;
use serde_json::json;

use crate::{
    core::Core,
    domain::{Each, identity::users},
    error::{Error, Result},
    store::{Read, Write},
    types::{Date, TimeInput, TimeZone, Timestamp, UserId},
};

/// Users in one row.
const BLOCK: i64 = 4096;
const BLOCK_BYTES: usize = 512;
/// Weeks of registrations in a retention table.
pub const COHORTS: i64 = 12;

/// The users of a day that were active for the first time in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewlyActive {
    pub in_day: i64,
    pub in_week: i64,
    pub in_month: i64,
}

/// The users who registered in a week, and how many of them were active in each later week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionRow {
    /// Monday of the week.
    pub week: Date,
    /// Users active in the first, second and further weeks after it. Only weeks that have ended.
    pub kept: Vec<i64>,
}

/// Records that users were active on a day, and returns how many of them are new in day, week and month. Deleted users
/// are left out.
pub fn record_in(tx: &Write<'_>, day: Date, mut active: Vec<UserId>) -> Result<NewlyActive> {
    active.sort_unstable_by_key(|user| user.0);
    active.dedup();
    let mut newly = NewlyActive::default();
    for users in active.chunk_by(|one, other| one.0 / BLOCK == other.0 / BLOCK) {
        let block = users[0].0 / BLOCK;
        let mut bits = bits_in(tx, block, day, day)?;
        let unset: Vec<_> = users.iter().copied().filter(|user| !has(&bits, *user)).collect();
        if unset.is_empty() {
            continue;
        }
        let (monday, first) = (monday_of(day), day.first_of_month());
        let week = bits_in(tx, block, monday, monday.checked_add(6.days()).unwrap_or(day))?;
        let month = bits_in(tx, block, first, day.last_of_month())?;
        let mut is_changed = false;
        for user in unset {
            if users::exists_in(tx, user)? {
                set(&mut bits, user);
                is_changed = true;
                newly.in_day += 1;
                newly.in_week += i64::from(!has(&week, user));
                newly.in_month += i64::from(!has(&month, user));
            }
        }
        if is_changed {
            let sql = "insert into active_users (block, day, bits) values (?1, ?2, ?3) \
                       on conflict (block, day) do update set bits = excluded.bits";
            tx.execute(sql, (block, day.to_string(), bits))?;
        }
    }
    Ok(newly)
}

/// Clears the user's bits. The counts stay.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    let block = user.0 / BLOCK;
    let sql = "select day, bits from active_users where block = ?1";
    let rows = tx.all(sql, [block], |row| Ok((row.get::<String>(0)?, row.get::<Vec<u8>>(1)?)))?;
    for (day, mut bits) in rows.into_iter().filter(|(_, bits)| has(bits, user)) {
        clear(&mut bits, user);
        tx.execute("update active_users set bits = ?3 where block = ?1 and day = ?2", (block, day, bits))?;
    }
    Ok(())
}

/// Exports the days on which the user was active, oldest first.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let sql = "select day, bits from active_users where block = ?1 order by day";
    tx.each(sql, [user.0 / BLOCK], |row| {
        let (day, bits): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if has(&bits, user) { each(json!({ "day": day })) } else { Ok(()) }
    })
}

/// Deletes up to `limit` rows of days before those of the network log. Days of the running week and month stay, because
/// their users are counted once.
pub fn delete_older_in(tx: &Write<'_>, zone: &TimeZone, age: Duration, limit: u32) -> Result<usize> {
    let today = zone.today(tx.now);
    let first_day = zone.today(tx.now.minus(age)).min(monday_of(today)).min(today.first_of_month()).to_string();
    tx.execute(
        "delete from active_users where (block, day) in \
         (select block, day from active_users where day < ?1 order by day limit ?2)",
        (first_day, limit),
    )
}

/// Returns the retention of the last weeks before the one that contains `today`, oldest first. Weeks without
/// registrations are left out.
///
/// # Errors
/// Storage errors.
pub fn retention(core: &Core, today: Date) -> Result<Vec<RetentionRow>> {
    let this_week = monday_of(today);
    let weeks: Vec<Date> = (1..=COHORTS).rev().filter_map(|ago| this_week.checked_sub((7 * ago).days()).ok()).collect();
    let Some(first_week) = weeks.first().copied() else { return Ok(Vec::new()) };
    let zone = &core.config.limits.time_zone;
    core.store.read(|tx| {
        let start_of = |week: Date| TimeInput::Day(week).in_zone(zone).unwrap_or(Timestamp(0));
        let mut bounds = Vec::new();
        for week in weeks.iter().copied().chain([this_week]) {
            bounds.push(users::first_registered_in(tx, start_of(week))?.map_or(i64::MAX, |user| user.0));
        }
        let active = weekly_bits_in(tx, (bounds[0], *bounds.last().unwrap_or(&i64::MAX)), first_week, this_week)?;
        let kept = |index: usize| {
            let later = weeks.iter().skip(index + 1);
            later.map(|week| count_between(active.get(week), bounds[index], bounds[index + 1])).collect()
        };
        let has_users = |index: &usize| bounds[*index] < bounds[*index + 1];
        Ok((0..weeks.len())
            .filter(has_users)
            .map(|index| RetentionRow { week: weeks[index], kept: kept(index) })
            .collect())
    })
}

/// The active users of a week, by block.
type WeeklyBits = BTreeMap<Date, BTreeMap<i64, Vec<u8>>>;

/// Returns the active users of each week from the Monday `from` until before `to`, of users whose ids are in a range.
fn weekly_bits_in(tx: &Read<'_>, users: (i64, i64), from: Date, to: Date) -> Result<WeeklyBits> {
    let mut weekly = WeeklyBits::new();
    if users.0 == i64::MAX {
        return Ok(weekly);
    }
    let sql = "select block, day, bits from active_users where block >= ?1 and block <= ?2 and day >= ?3 and day < ?4";
    let parameters = (users.0 / BLOCK, users.1 / BLOCK, from.to_string(), to.to_string());
    // Days repeat in each block, so each is parsed once.
    let mut mondays: BTreeMap<String, Date> = BTreeMap::new();
    tx.each(sql, parameters, |row| {
        let (block, day): (i64, String) = (row.get(0)?, row.get(1)?);
        let monday = if let Some(monday) = mondays.get(&day) {
            *monday
        } else {
            let monday = monday_of(day.parse().map_err(Error::internal)?);
            mondays.insert(day, monday);
            monday
        };
        let bits: Vec<u8> = row.get(2)?;
        merge(weekly.entry(monday).or_default().entry(block).or_insert_with(|| vec![0; BLOCK_BYTES]), &bits);
        Ok(())
    })?;
    Ok(weekly)
}

/// Counts the users of a range of ids.
fn count_between(blocks: Option<&BTreeMap<i64, Vec<u8>>>, from: i64, to: i64) -> i64 {
    let Some(blocks) = blocks.filter(|_| from < to) else { return 0 };
    let mut count = 0_u32;
    for (block, bits) in blocks.range(from / BLOCK..=(to - 1) / BLOCK) {
        let first = block * BLOCK;
        if first >= from && first + BLOCK <= to {
            count += bits.iter().map(|byte| byte.count_ones()).sum::<u32>();
        } else {
            let users = (first.max(from)..(first + BLOCK).min(to)).map(UserId);
            count += users.map(|user| u32::from(has(bits, user))).sum::<u32>();
        }
    }
    count.into()
}

/// Returns the users of a block who were active on any of these days.
fn bits_in(tx: &Read<'_>, block: i64, from: Date, to: Date) -> Result<Vec<u8>> {
    let mut merged = vec![0; BLOCK_BYTES];
    let sql = "select bits from active_users where block = ?1 and day >= ?2 and day <= ?3";
    tx.each(sql, (block, from.to_string(), to.to_string()), |row| {
        merge(&mut merged, &row.get::<Vec<u8>>(0)?);
        Ok(())
    })?;
    Ok(merged)
}

fn monday_of(day: Date) -> Date {
    day.checked_sub(i64::from(day.weekday().to_monday_zero_offset()).days()).unwrap_or(day)
}

fn merge(into: &mut [u8], bits: &[u8]) {
    for (byte, other) in into.iter_mut().zip(bits) {
        *byte |= other;
    }
}

/// Returns the byte and the bit of a user in the user's block.
fn position(user: UserId) -> (usize, u8) {
    let offset = usize::try_from(user.0 % BLOCK).unwrap_or(0);
    (offset / 8, 1 << (offset % 8))
}

fn has(bits: &[u8], user: UserId) -> bool {
    let (byte, bit) = position(user);
    bits.get(byte).is_some_and(|byte| byte & bit != 0)
}

fn set(bits: &mut [u8], user: UserId) {
    let (byte, bit) = position(user);
    if let Some(byte) = bits.get_mut(byte) {
        *byte |= bit;
    }
}

fn clear(bits: &mut [u8], user: UserId) {
    let (byte, bit) = position(user);
    if let Some(byte) = bits.get_mut(byte) {
        *byte &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_bits_of_a_range_of_ids() {
        let mut bits = vec![vec![0; BLOCK_BYTES]; 2];
        for user in [1, 4095, 4096, 5000, 8191].map(UserId) {
            set(&mut bits[usize::try_from(user.0 / BLOCK).unwrap()], user);
        }
        let blocks: BTreeMap<i64, Vec<u8>> = (0..).zip(bits).collect();
        for ((from, to), expected) in
            [((0, 8192), 5), ((1, 4096), 2), ((2, 4097), 2), ((4096, 8192), 3), ((5000, 5001), 1), ((9, 9), 0)]
        {
            assert_eq!(count_between(Some(&blocks), from, to), expected, "{from}..{to}");
        }
        assert_eq!(count_between(None, 0, 10), 0);
    }
}
