//! Which backups are kept.

use std::collections::BTreeSet;

use super::{
    Backup, Occasion, enter, findings, list,
    manifest::{self, Checksum},
};
use crate::{
    config::{Backup as Rules, Config},
    error::{Error, Result},
    store::files,
    types::Timestamp,
};

/// These stay, however much of the disk they take.
const ALWAYS_KEPT: usize = 2;
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Deletes the backups that no rule keeps and says which. The newest one that was found sound stays in any case.
///
/// # Errors
/// Storage errors.
pub fn prune(config: &Config, now: Timestamp) -> Result<Vec<Backup>> {
    let directory = config.backup_directory();
    let _lock = enter(&directory)?;
    let all = list(config)?;
    let doomed = superfluous(&all, &config.backup, now);
    let mut deleted = Vec::new();
    let kept = if doomed.is_empty() { None } else { newest_sound(&all, now) };
    for backup in doomed.into_iter().filter(|backup| Some(&backup.name) != kept.map(|kept| &kept.name)) {
        std::fs::remove_file(&backup.path).map_err(Error::internal)?;
        files::remove_if_exists(&manifest::beside(&backup.path)).map_err(Error::internal)?;
        deleted.push(backup);
    }
    if !deleted.is_empty() {
        tracing::info!(deleted = deleted.len(), "deleted old backups");
    }
    Ok(deleted)
}

/// The first of these backups that was found sound when it was made, and has not changed since. Reads all of it.
pub fn newest_sound(all: &[Backup], now: Timestamp) -> Option<&Backup> {
    let is_sound = |backup: &&Backup| {
        let was_sound = matches!(findings(&backup.path, now), Ok(Some(found)) if found.is_sound());
        was_sound && matches!(manifest::verify(&backup.path), Ok(Checksum::Right | Checksum::Unknown))
    };
    past_first(all, now).find(is_sound)
}

/// The backups, and after the others those that a clock that was ahead dated: nobody knows when they are of.
pub(super) fn past_first(all: &[Backup], now: Timestamp) -> impl Iterator<Item = &Backup> {
    let is_past = move |backup: &&Backup| backup.at <= now;
    all.iter().filter(is_past).chain(all.iter().filter(move |backup| !is_past(backup)))
}

/// The backups, newest first, that no rule keeps. Those that a clock that was ahead dated keep none of the others out.
pub(super) fn superfluous(all: &[Backup], rules: &Rules, now: Timestamp) -> Vec<Backup> {
    let first_day = now.0.div_euclid(DAY) - i64::from(rules.keep_daily);
    let (mut days, mut bytes) = (BTreeSet::new(), 0_u64);
    let mut doomed = Vec::new();
    for (index, backup) in past_first(all, now).enumerate() {
        let day = backup.at.0.div_euclid(DAY);
        let is_of_the_days = day > first_day && (days.insert(day) || backup.occasion != Occasion::Scheduled);
        let is_kept = index < rules.keep_hourly as usize || is_of_the_days;
        let fits = bytes.saturating_add(backup.bytes) <= rules.keep_size.0;
        if index < ALWAYS_KEPT || is_kept && fits {
            bytes = bytes.saturating_add(backup.bytes);
        } else {
            doomed.push(backup.clone());
        }
    }
    doomed
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

    fn made(hours_ago: i64, occasion: Occasion) -> Backup {
        let at = Timestamp(NOW.0 - hours_ago * HOUR);
        Backup { name: format!("{hours_ago}"), path: format!("{hours_ago}").into(), at, occasion, bytes: 10 }
    }

    fn kept(all: &[Backup], rules: &Rules) -> Vec<i64> {
        let doomed = superfluous(all, rules, NOW);
        all.iter().filter(|backup| !doomed.contains(backup)).map(|backup| (NOW.0 - backup.at.0) / HOUR).collect()
    }

    #[test]
    fn a_backup_an_hour_is_thinned_to_one_a_day() {
        let all: Vec<_> = (0..24 * 90).map(|hours| made(hours, Occasion::Scheduled)).collect();
        let kept = kept(&all, &rules());
        assert_eq!(kept.iter().filter(|hours| **hours < 24).count(), 24);
        let days: BTreeSet<_> = kept.iter().map(|hours| (NOW.0 - hours * HOUR).div_euclid(DAY)).collect();
        assert_eq!(days.len(), 30);
        assert_eq!(kept.len(), 24 + 28);
        assert_eq!(*kept.last().unwrap(), 28 * 24 + 13, "the newest of a day is the one that stays");
    }

    #[test]
    fn what_a_clock_dated_that_was_ahead_comes_after_the_others() {
        let all: Vec<_> = [-50, -49, -48, 1, 2, 3].map(|hours| made(hours, Occasion::Scheduled)).into();
        let rules = Rules { keep_hourly: 2, keep_daily: 0, keep_size: Bytes(25), ..rules() };
        assert_eq!(kept(&all, &rules), [1, 2]);
    }

    #[test]
    fn what_somebody_asked_for_stays_for_the_days() {
        let all = [
            made(1, Occasion::Scheduled),
            made(30, Occasion::Scheduled),
            made(31, Occasion::Manual),
            made(32, Occasion::BeforeCleanup),
            made(33, Occasion::Scheduled),
            made(24 * 40, Occasion::Manual),
        ];
        let rules = Rules { keep_hourly: 1, ..rules() };
        assert_eq!(kept(&all, &rules), [1, 30, 31, 32]);
    }

    #[test]
    fn backups_do_not_fill_the_disk() {
        let all: Vec<_> = (0..10).map(|hours| made(hours, Occasion::Scheduled)).collect();
        assert_eq!(kept(&all, &Rules { keep_size: Bytes(45), ..rules() }), [0, 1, 2, 3]);
        assert_eq!(kept(&all, &Rules { keep_size: Bytes(0), ..rules() }), [0, 1]);
    }
}
