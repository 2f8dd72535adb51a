use jiff::{Timestamp, tz::TimeZone};

use super::*;

const PILLARS: &str = include_str!("../../../../../tests/vectors/chart/pillars.tsv");

fn moment_in(zone: &str, time: &str, day_start: DayStart) -> CalendarMoment {
    CalendarMoment::new(local(time, zone), day_start).unwrap()
}

fn local(time: &str, zone: &str) -> LocalTime {
    let at = time.parse::<Timestamp>().unwrap().as_millisecond();
    LocalTime::at(at, &TimeZone::get(zone).unwrap()).unwrap()
}

fn shanghai(time: &str) -> CalendarMoment {
    moment_in("Asia/Shanghai", time, DayStart::At23)
}

fn written(moment: &CalendarMoment) -> String {
    let Pillars { year, month, day, hour } = moment.pillars;
    format!("{year} {month} {day} {hour}")
}

#[test]
fn pillars_equal_two_libraries() {
    let zones = ["Asia/Shanghai", "America/New_York", "Asia/Kathmandu", "Pacific/Auckland"];
    let zones: Vec<(&str, TimeZone)> = zones.into_iter().map(|name| (name, TimeZone::get(name).unwrap())).collect();
    let mut rows = 0;
    for line in PILLARS.lines().skip(1) {
        let [letter, second, pillars, day] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let (_, zone) = zones.iter().find(|(name, _)| name.split('/').nth(1).unwrap().starts_with(letter)).unwrap();
        let at = LocalTime::at(second.parse::<i64>().unwrap() * 1000, zone).unwrap();
        let [traditional, civil] = DayStart::ALL.map(|day_start| CalendarMoment::new(at, day_start).unwrap());
        assert_eq!(written(&traditional).replace(' ', ""), pillars, "{line}");
        assert_eq!(civil.pillars, Pillars { day: civil.pillars.day, ..traditional.pillars }, "{line}");
        assert_eq!(civil.pillars.day.to_string(), day, "{line}");
        rows += 1;
    }
    assert!(rows >= 5000, "{rows}");
}

#[test]
fn the_day_changes_at_23_or_at_midnight() {
    let evening = [
        ("2026-11-25T22:59:59+08:00", "癸卯", "癸卯"),
        ("2026-11-25T23:00:00+08:00", "甲辰", "癸卯"),
        ("2026-11-25T23:59:59+08:00", "甲辰", "癸卯"),
        ("2026-11-26T00:00:00+08:00", "甲辰", "甲辰"),
    ];
    for (time, traditional, civil) in evening {
        let day = |day_start| moment_in("Asia/Shanghai", time, day_start).pillars.day.to_string();
        assert_eq!((day(DayStart::At23).as_str(), day(DayStart::AtMidnight).as_str()), (traditional, civil), "{time}");
    }
    let late = moment_in("Asia/Shanghai", "2026-11-25T23:00:00+08:00", DayStart::AtMidnight);
    assert_eq!(late.pillars.hour.to_string(), "甲子");
    assert_eq!((late.lunar.month, late.lunar.day), (10, 17));
    assert_eq!(shanghai("2026-11-25T23:00:00+08:00").lunar.day, 18);
}

#[test]
fn void_branches_follow_the_day() {
    let void = |time| shanghai(time).void.map(Branch::name).concat();
    assert_eq!(void("2026-11-25T22:59:59+08:00"), "辰巳");
    assert_eq!(void("2026-11-25T23:00:00+08:00"), "寅卯");
}

#[test]
fn year_and_month_begin_at_the_same_instant_everywhere() {
    assert_eq!(written(&shanghai("2026-02-04T04:01:08+08:00")), "乙巳 己丑 己酉 丙寅");
    assert_eq!(written(&shanghai("2026-02-04T04:03:08+08:00")), "丙午 庚寅 己酉 丙寅");
    let new_york = |time| written(&moment_in("America/New_York", time, DayStart::At23));
    assert_eq!(new_york("2026-02-03T15:00:00-05:00"), "乙巳 己丑 戊申 庚申");
    assert_eq!(new_york("2026-02-03T15:04:00-05:00"), "丙午 庚寅 戊申 庚申");
}

#[test]
fn days_follow_summer_time() {
    assert_eq!(written(&shanghai("1988-07-10T23:30:00+09:00")), "戊辰 己未 丁卯 庚子");
    // Standard time, an hour earlier.
    let standard = moment_in("Etc/GMT-8", "1988-07-10T22:30:00+08:00", DayStart::At23);
    assert_eq!(written(&standard), "戊辰 己未 丙寅 己亥");
}

#[test]
fn pillars_near_their_boundary_are_named() {
    let near = |time| shanghai(time).near_boundary.into_iter().map(Pillar::name).collect::<Vec<_>>().join(" ");
    for (time, pillars) in [
        ("2026-11-25T12:00:00+08:00", ""),
        ("2026-11-25T12:58:00+08:00", "hour"),
        ("2026-11-25T22:56:00+08:00", ""),
        ("2026-11-25T22:58:00+08:00", "day hour"),
        ("2026-11-25T23:30:00+08:00", "day"),
        ("2026-11-26T00:02:00+08:00", "day"),
        ("2026-11-26T00:04:00+08:00", ""),
        ("2026-02-04T03:59:07+08:00", ""),
        ("2026-02-04T03:59:09+08:00", "year month"),
        ("2026-02-04T04:05:07+08:00", "year month"),
        ("2026-02-04T04:05:09+08:00", ""),
        ("2026-03-05T21:59:00+08:00", "month"),
    ] {
        assert_eq!(near(time), pillars, "{time}");
    }
}

#[test]
fn moments_are_described_from_1900_to_2100() {
    let is_known = |zone: &str, time: &str| CalendarMoment::new(local(time, zone), DayStart::At23).is_some();
    for zone in ["UTC", "Asia/Shanghai", "America/New_York", "Pacific/Kiritimati"] {
        let at = |year, month, day, hour, minute| {
            let zone = jiff::tz::TimeZone::get(zone).unwrap();
            let time = jiff::civil::date(year, month, day).at(hour, minute, 0, 0);
            zone.to_timestamp(time).unwrap().to_string()
        };
        let times = [at(1899, 12, 31, 23, 59), at(1900, 1, 1, 0, 0), at(2100, 12, 31, 23, 59), at(2101, 1, 1, 0, 0)];
        let known: Vec<_> = times.iter().map(|time| is_known(zone, time)).collect();
        assert_eq!(known, [false, true, true, false], "{zone}");
    }
    assert_eq!(written(&shanghai("1900-01-01T00:00:00+08:05")), "己亥 丙子 甲戌 甲子");
    assert_eq!(written(&shanghai("2100-12-31T23:30:00+08:00")), "庚申 戊子 戊申 壬子");
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    const ZONES: [&str; 8] = [
        "UTC",
        "Asia/Shanghai",
        "America/New_York",
        "Asia/Kathmandu",
        "Pacific/Auckland",
        "Pacific/Apia",
        "Africa/Monrovia",
        "Etc/GMT+12",
    ];

    proptest! {
        #[test]
        fn any_time_is_described_or_out_of_range(
            milliseconds in prop_oneof![any::<i64>(), -2_300_000_000_000_i64..4_200_000_000_000],
            zone in 0..ZONES.len(),
            rule in 0..2_usize,
        ) {
            let local = LocalTime::at(milliseconds, &TimeZone::get(ZONES[zone]).unwrap());
            let moment = local.and_then(|local| CalendarMoment::new(local, DayStart::ALL[rule]));
            let is_in_range = local.is_some_and(|local| (1900..=2100).contains(&local.date().year()));
            prop_assert_eq!(moment.is_some(), is_in_range);
        }
    }
}
