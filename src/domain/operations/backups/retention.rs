//! The rules that decide which backups are deleted.

use std::collections::BTreeSet;

use super::{
    Backup, Occasion, findings, list, lock_backups,
    manifest::{self, Checksum},
};
use crate::{
    config::{BackupConfig as Rules, Config},
    error::{Error, Result},
    store::files,
    types::Timestamp,
};

/// The number of backups that stay whatever their size.
const ALWAYS_KEPT: usize = 2;
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Deletes the backups that no rule keeps, and returns them. The newest sound one always stays.
///
/// # Errors
/// Storage errors.
pub fn prune(config: &Config, now: Timestamp) -> Result<Vec<Backup>> {
    let directory = config.backup_directory();
    let _lock = lock_backups(&directory)?;
    let all = list(config, now)?;
    let expired = expired(&all, &config.backup, now);
    let mut deleted = Vec::new();
    let sound = if expired.is_empty() { None } else { newest_sound(&all, now) };
    for backup in expired.into_iter().filter(|backup| Some(&backup.name) != sound.map(|sound| &sound.name)) {
        std::fs::remove_file(&backup.path).map_err(Error::internal)?;
        files::remove_if_exists(&manifest::path_of(&backup.path)).map_err(Error::internal)?;
        deleted.push(backup);
    }
    if !deleted.is_empty() {
        tracing::info!(deleted = deleted.len(), "deleted old backups");
    }
    Ok(deleted)
}

/// Returns the newest of these backups that was sound when made and has not changed since. Reads whole backups.
pub fn newest_sound(all: &[Backup], now: Timestamp) -> Option<&Backup> {
    let is_sound = |backup: &&Backup| {
        let was_sound = matches!(findings(&backup.path, now), Ok(Some(found)) if found.is_sound());
        was_sound && matches!(manifest::verify(&backup.path), Ok(Checksum::Right | Checksum::Unknown))
    };
    future_last(all, now).find(is_sound)
}

/// Returns the newest backup that is not from the future. `all` is sorted newest first.
pub(super) fn newest(all: &[Backup], now: Timestamp) -> Option<&Backup> {
    all.iter().find(|backup| backup.at <= now)
}

/// Orders backups with a future time last: the clock was ahead, so their real age is unknown.
pub(super) fn future_last(all: &[Backup], now: Timestamp) -> impl Iterator<Item = &Backup> {
    let is_past = move |backup: &&Backup| backup.at <= now;
    all.iter().filter(is_past).chain(all.iter().filter(move |backup| !is_past(backup)))
}

/// Returns the backups that no rule keeps. `all` is sorted by time, newest first.
///
/// If not all fit, the newest get half of the size, or a database that a user has made large would cost the daily ones.
pub(super) fn expired(all: &[Backup], rules: &Rules, now: Timestamp) -> Vec<Backup> {
    let first_day = now.0.div_euclid(DAY) - i64::from(rules.keep_daily);
    let mut days = BTreeSet::new();
    let mut candidates: Vec<_> = future_last(all, now)
        .enumerate()
        .map(|(index, backup)| {
            let day = backup.at.0.div_euclid(DAY);
            let is_daily = day > first_day && (days.insert(day) || backup.occasion != Occasion::Scheduled);
            Candidate { backup, index, is_daily, is_kept: false }
        })
        .collect();
    let (size, newest) = (rules.keep_size.0, rules.keep_hourly as usize);
    let mut bytes = 0;
    keep(&mut candidates, &mut bytes, u64::MAX, |candidate| candidate.index < ALWAYS_KEPT);
    keep(&mut candidates, &mut bytes, size / 2, |candidate| candidate.index < newest);
    keep(&mut candidates, &mut bytes, size, |candidate| candidate.is_daily);
    keep(&mut candidates, &mut bytes, size, |candidate| candidate.index < newest);
    candidates.iter().filter(|candidate| !candidate.is_kept).map(|candidate| candidate.backup.clone()).collect()
}

/// A backup that may be kept. The newest has index 0.
struct Candidate<'all> {
    backup: &'all Backup,
    index: usize,
    /// The newest of its day, or made on request.
    is_daily: bool,
    is_kept: bool,
}

/// Keeps the wanted backups that fit into `size` together with those already kept.
fn keep(candidates: &mut [Candidate<'_>], bytes: &mut u64, size: u64, is_wanted: impl Fn(&Candidate<'_>) -> bool) {
    for candidate in candidates.iter_mut().filter(|candidate| !candidate.is_kept && is_wanted(candidate)) {
        let with = bytes.saturating_add(candidate.backup.bytes);
        if with <= size {
            (*bytes, candidate.is_kept) = (with, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Bytes;

    const HOUR: i64 = DAY / 24;
    const NOW: Timestamp = Timestamp(1_000 * DAY + DAY / 2);

    fn rules() -> Rules {
        Rules { keep_hourly: 24, keep_daily: 30, keep_size: Bytes(u64::MAX), ..Config::defaults().unwrap().backup }
    }

    fn backup(hours_ago: i64, occasion: Occasion) -> Backup {
        let at = Timestamp(NOW.0 - hours_ago * HOUR);
        Backup { name: format!("{hours_ago}"), path: format!("{hours_ago}").into(), at, occasion, bytes: 10 }
    }

    fn kept(all: &[Backup], rules: &Rules) -> Vec<i64> {
        let expired = expired(all, rules, NOW);
        all.iter().filter(|backup| !expired.contains(backup)).map(|backup| (NOW.0 - backup.at.0) / HOUR).collect()
    }

    #[test]
    fn thins_hourly_backups_to_daily_ones() {
        let all: Vec<_> = (0..24 * 90).map(|hours| backup(hours, Occasion::Scheduled)).collect();
        let kept = kept(&all, &rules());
        assert_eq!(kept.iter().filter(|hours| **hours < 24).count(), 24);
        let days: BTreeSet<_> = kept.iter().map(|hours| (NOW.0 - hours * HOUR).div_euclid(DAY)).collect();
        assert_eq!(days.len(), 30);
        assert_eq!(kept.len(), 24 + 28);
        assert_eq!(*kept.last().unwrap(), 28 * 24 + 13, "the newest of a day stays");
    }

    #[test]
    fn orders_future_backups_after_the_others() {
        let all: Vec<_> = [-50, -49, -48, 1, 2, 3].map(|hours| backup(hours, Occasion::Scheduled)).into();
        let rules = Rules { keep_hourly: 2, keep_daily: 0, keep_size: Bytes(25), ..rules() };
        assert_eq!(kept(&all, &rules), [1, 2]);
    }

    #[test]
    fn keeps_manual_backups_for_the_daily_retention() {
        let all = [
            backup(1, Occasion::Scheduled),
            backup(30, Occasion::Scheduled),
            backup(31, Occasion::Manual),
            backup(32, Occasion::BeforeCleanup),
            backup(33, Occasion::Scheduled),
            backup(24 * 40, Occasion::Manual),
        ];
        let rules = Rules { keep_hourly: 1, ..rules() };
        assert_eq!(kept(&all, &rules), [1, 30, 31, 32]);
    }

    #[test]
    fn limits_the_total_size() {
        let all: Vec<_> = (0..10).map(|hours| backup(hours, Occasion::Scheduled)).collect();
        assert_eq!(kept(&all, &Rules { keep_size: Bytes(45), ..rules() }), [0, 1, 2, 3]);
        assert_eq!(kept(&all, &Rules { keep_size: Bytes(0), ..rules() }), [0, 1]);
    }

    #[test]
    fn large_backups_leave_room_for_daily_ones() {
        let all: Vec<_> = (0..24 * 40).map(|hours| backup(hours, Occasion::Scheduled)).collect();
        let days = |kept: &[i64]| {
            kept.iter().map(|hours| (NOW.0 - hours * HOUR).div_euclid(DAY)).collect::<BTreeSet<_>>().len()
        };
        // Ten of the newest and the newest of ten days before.
        let half = kept(&all, &Rules { keep_size: Bytes(200), ..rules() });
        assert_eq!((half.len(), half[9], days(&half)), (20, 9, 11));
        // Daily ones that need less than half leave the rest to the newest.
        let rules = Rules { keep_daily: 5, ..rules() };
        let more = kept(&all, &Rules { keep_size: Bytes(300), ..rules.clone() });
        assert_eq!((more.len(), days(&more)), (15 + 3 + 9, 5));
        // After the database grew suddenly, the older ones are small and stay.
        let mut grown = all.clone();
        grown.iter_mut().take(4).for_each(|backup| backup.bytes = 90);
        let rules = Rules { keep_daily: 30, keep_size: Bytes(400), ..rules };
        let expired = expired(&grown, &rules, NOW);
        let left: Vec<_> = grown.iter().filter(|backup| !expired.contains(backup)).collect();
        assert_eq!(left.iter().filter(|backup| backup.bytes == 90).count(), 2);
        assert!(left.iter().map(|backup| backup.bytes).sum::<u64>() <= 400 && left.len() == 24, "{}", left.len());
    }
}
