use super::*;
use crate::{LocalTime, chart::calendar::DayStart};

const VECTORS: &str = include_str!("../../../../../tests/vectors/chart/plum-blossom.tsv");

fn lines(plum: &PlumBlossom) -> String {
    plum.cast.primary().figure().map(|is_yang| if is_yang { '1' } else { '0' }).iter().collect()
}

/// The casting that Shao Yong made when two sparrows fell from a plum tree.
#[test]
fn the_plum_blossom_casting_is_reproduced() {
    let (year, hour) = (Branch::Chen.into(), Branch::Shen.into());
    let plum = PlumBlossom::new(CastSource::Time { year, month: 12, is_leap_month: false, day: 17, hour });
    assert_eq!([plum.upper.sum, plum.lower.sum, plum.changing_line.sum], [34, 43, 43]);
    assert_eq!((plum.upper.trigram.chinese_name(), plum.lower.trigram.chinese_name()), ("兑", "离"));
    assert_eq!(plum.changing_line.position, 1);
    assert_eq!(plum.cast.primary().chinese_name(), "革");
    assert_eq!(plum.cast.relating().unwrap().chinese_name(), "咸");
    assert_eq!(plum.cast.nuclear().chinese_name(), "姤");
    let BodyAndUse { body, use_trigram, nuclear, changed } = plum.body_and_use;
    assert_eq!((body.trigram.chinese_name(), body.half), ("兑", Half::Upper));
    assert_eq!((use_trigram.trigram.chinese_name(), use_trigram.relation), ("离", BodyRelation::ControlsBody));
    assert_eq!(nuclear.map(|acting| acting.trigram.chinese_name()), ["巽", "乾"]);
    assert_eq!(nuclear.map(|acting| acting.relation), [BodyRelation::ControlledByBody, BodyRelation::Same]);
    assert_eq!((changed.trigram.chinese_name(), changed.relation), ("艮", BodyRelation::FeedsBody));
}

#[test]
fn castings_by_time_equal_two_libraries() {
    let zones = ["Asia/Shanghai", "America/New_York", "Asia/Kathmandu", "Pacific/Auckland"];
    let mut rows = 0;
    for row in VECTORS.lines().skip(1) {
        let [letter, second, figure, changing] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let zone = zones.iter().find(|name| name.split('/').nth(1).unwrap().starts_with(letter)).unwrap();
        let zone = jiff::tz::TimeZone::get(zone).unwrap();
        let moment = LocalTime::at(second.parse::<i64>().unwrap() * 1000, &zone).unwrap();
        let moment = CalendarMoment::new(moment, DayStart::AtMidnight).unwrap();
        let plum = PlumBlossom::new(CastSource::at(&moment));
        assert_eq!(
            (lines(&plum).as_str(), plum.changing_line.position.to_string().as_str()),
            (figure, changing),
            "{row}"
        );
        rows += 1;
    }
    assert!(rows > 350, "{rows}");
}

#[test]
fn castings_by_numbers_count_around() {
    let summary = |source| {
        let plum = PlumBlossom::new(source);
        format!("{} {}", plum.cast.primary().chinese_full_name(), plum.changing_line.position)
    };
    assert_eq!(summary(CastSource::TwoNumbers { upper: 1, lower: 5 }), "天风姤 6");
    assert_eq!(summary(CastSource::TwoNumbers { upper: 8, lower: 16 }), "坤为地 6");
    assert_eq!(summary(CastSource::TwoNumbers { upper: u32::MAX, lower: u32::MAX }), "艮为山 6");
    assert_eq!(summary(CastSource::ThreeNumbers { upper: 123, lower: 456, line: 789 }), "火地晋 3");
    assert_eq!(summary(CastSource::ThreeNumbers { upper: 0, lower: 0, line: 0 }), "坤为地 6");
    let moment = LocalTime::at(1_764_057_600_000, &jiff::tz::TimeZone::get("Asia/Shanghai").unwrap()).unwrap();
    let moment = CalendarMoment::new(moment, DayStart::At23).unwrap();
    assert_eq!(moment.pillars.hour.branch(), Branch::Shen);
    assert_eq!(summary(CastSource::number_at(3, &moment)), "火天大有 6");
}

#[test]
fn the_derivation_is_written() {
    let plum = PlumBlossom::new(CastSource::TwoNumbers { upper: 10, lower: 3 });
    let written = serde_json::to_value(&plum).unwrap();
    assert_eq!(written["source"], serde_json::json!({ "kind": "two_numbers", "upper": 10, "lower": 3 }));
    assert_eq!(written["upper"], serde_json::json!({ "sum": 10, "remainder": 2, "trigram": "兑" }));
    assert_eq!(written["changingLine"], serde_json::json!({ "sum": 13, "position": 1 }));
    assert_eq!(written["bodyAndUse"]["use"]["relation"], "克体");
}
