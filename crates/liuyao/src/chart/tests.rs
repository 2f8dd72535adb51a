//! The chart of whole casts, against tables made by public libraries and against known castings.

use std::collections::HashMap;

use serde_json::json;

use super::*;
use crate::hexagram::{Hexagram, Lines};

const SIXTY_DAYS: &str = include_str!("../../../../tests/vectors/chart/sixty-days.tsv");
const HEXAGRAMS: &str = include_str!("../../../../tests/vectors/chart/hexagrams.tsv");
const CHANGES: &str = include_str!("../../../../tests/vectors/chart/changes.tsv");

fn rows<const COLUMNS: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; COLUMNS]> {
    table.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>().try_into().unwrap())
}

fn cast(digits: &str) -> Cast {
    Cast::from_lines(digits.parse().unwrap())
}

fn chart(digits: &str) -> Chart {
    Chart::new(&cast(digits), Err(MissingMoment::Unknown))
}

fn chart_at(digits: &str, time: &str) -> Chart {
    let at = time.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    Chart::new(&cast(digits), moment_at(at, "Asia/Shanghai", DayStart::At23))
}

fn moment_at(milliseconds: i64, zone: &str, day_start: DayStart) -> Result<CalendarMoment, MissingMoment> {
    let local = crate::LocalTime::at(milliseconds, &jiff::tz::TimeZone::get(zone).unwrap());
    local.and_then(|local| CalendarMoment::new(local, day_start)).ok_or(MissingMoment::OutOfRange)
}

fn written(nature: LineNature) -> String {
    [nature.kin.name(), nature.stem.name(), nature.branch.name()].concat()
}

/// Writes the lines that there are with their positions, such as `2妻财甲寅`.
fn placed(natures: [Option<LineNature>; 6]) -> String {
    let natures = (1..).zip(natures).filter_map(|(position, nature)| Some(format!("{position}{}", written(nature?))));
    let natures = natures.collect::<Vec<_>>().join(" ");
    if natures.is_empty() { "-".into() } else { natures }
}

fn hidden(chart: &Chart) -> String {
    placed(chart.lines.map(|line| line.hidden.map(|hidden| hidden.nature)))
}

fn becomes(chart: &Chart) -> String {
    placed(chart.lines.map(|line| line.becomes.map(|becomes| becomes.nature)))
}

fn position_of(chart: &Chart, role: LineRole) -> u8 {
    chart.lines.iter().find(|line| line.role == Some(role)).unwrap().position
}

fn summary(chart: &Chart) -> String {
    let Palace { trigram, stage, .. } = chart.palace;
    let (subject, object) = (position_of(chart, LineRole::Subject), position_of(chart, LineRole::Object));
    format!("{} {} {subject} {object}", trigram.chinese_name(), stage.name())
}

/// Writes the selected texts, main first: `p` or `r` for primary or relating, then the position, 0 for the judgement
/// and 7 for the text for six changing lines.
fn texts(cast: Cast) -> String {
    let selection = TextSelection::of(&cast);
    assert!(selection.texts.iter().enumerate().all(|(place, text)| text.is_main == (place == 0)));
    let text = |text: &SelectedText| {
        let hexagram = if text.hexagram == cast.primary() { 'p' } else { 'r' };
        let position = match text.part {
            SelectedPart::Judgement => 0,
            SelectedPart::Line => text.position.unwrap(),
            SelectedPart::AllLines => 7,
        };
        format!("{hexagram}{position}")
    };
    selection.texts.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn all_hexagrams_equal_three_libraries() {
    let mut with_hidden = [0; 3];
    for [lines, palace, stage, subject, object, natures, hidden_lines] in rows(HEXAGRAMS) {
        let chart = chart(&lines.replace('1', "7").replace('0', "8"));
        assert_eq!(summary(&chart), format!("{palace} {stage} {subject} {object}"), "{lines}");
        assert_eq!(chart.lines.map(|line| written(line.nature)).join(" "), natures, "{lines}");
        assert_eq!(hidden(&chart), hidden_lines, "{lines}");
        with_hidden[chart.lines.iter().filter(|line| line.hidden.is_some()).count()] += 1;
    }
    assert_eq!(with_hidden, [20, 32, 12]);
}

#[test]
fn all_changes_and_texts_equal_the_libraries() {
    let mut casts = 0;
    for [lines, changed, selected] in rows(CHANGES) {
        assert_eq!(becomes(&chart(lines)), changed, "{lines}");
        assert_eq!(texts(cast(lines)), selected, "{lines}");
        casts += 1;
    }
    assert_eq!(casts, 4096);
}

#[test]
fn void_branches_and_spirits_of_all_days_equal_two_libraries() {
    let days: HashMap<String, StemBranch> =
        (0..60).map(StemBranch::from_place).map(|day| (day.to_string(), day)).collect();
    let mut seen = 0;
    for [name, void, spirits] in rows(SIXTY_DAYS) {
        let day = days[name];
        assert_eq!(day.void_branches().map(Branch::name).concat(), void, "{name}");
        assert_eq!(Spirit::on_day(day.stem()).map(Spirit::name).concat(), spirits, "{name}");
        seen += 1;
    }
    assert_eq!(seen, 60);
}

#[test]
fn known_castings_have_their_charts() {
    for (lines, name, place, hidden_lines) in [
        ("778777", "履", "艮 fifth 5 2", "5妻财丙子"),
        ("877777", "姤", "乾 first 1 4", "2妻财甲寅"),
        ("788976", "随", "震 returning 3 6", "4子孙庚午"),
        ("899869", "蛊", "巽 returning 3 6", "5子孙辛巳"),
        ("999999", "乾", "乾 pure 6 3", "-"),
        ("887788", "小过", "兑 wandering 4 1", "2妻财丁卯 4子孙丁亥"),
    ] {
        let chart = chart(lines);
        assert_eq!(cast(lines).primary().chinese_name(), name);
        assert_eq!((summary(&chart).as_str(), hidden(&chart).as_str()), (place, hidden_lines), "{name}");
    }
    let natures = chart("778777").lines.map(|line| written(line.nature)).join(" ");
    assert_eq!(natures, "父母丁巳 官鬼丁卯 兄弟丁丑 父母壬午 子孙壬申 兄弟壬戌");
}

#[test]
fn known_castings_become_what_they_become() {
    for (lines, name, changed) in [
        ("788976", "益", "4妻财辛未 6兄弟辛卯"),
        ("899869", "比", "2子孙乙巳 3兄弟乙卯 5妻财戊戌 6父母戊子"),
        ("999999", "坤", "1父母乙未 2官鬼乙巳 3妻财乙卯 4父母癸丑 5子孙癸亥 6兄弟癸酉"),
    ] {
        assert_eq!(cast(lines).relating().unwrap().chinese_name(), name);
        assert_eq!(becomes(&chart(lines)), changed, "{name}");
    }
}

#[test]
fn known_castings_have_their_texts() {
    let selection = |lines: &str| serde_json::to_value(TextSelection::of(&cast(lines))).unwrap();
    let text = |hexagram: u8, part: &str, position: Option<u8>, is_main: bool| json!({ "hexagram": hexagram, "part": part, "position": position, "isMain": is_main });
    let two = [text(17, "line", Some(6), true), text(17, "line", Some(4), false)];
    assert_eq!(selection("788976"), json!({ "rule": "two_changing", "texts": two }));
    let all = [text(1, "all_lines", None, true)];
    assert_eq!(selection("999999"), json!({ "rule": "six_changing", "texts": all }));
    let three = [text(3, "judgement", None, true), text(16, "judgement", None, false)];
    assert_eq!(selection("988698"), json!({ "rule": "three_changing", "texts": three }));
    let five = [text(17, "line", Some(2), true)];
    assert_eq!(selection("689669"), json!({ "rule": "five_changing", "texts": five }));
}

#[test]
fn spirits_and_states_follow_the_time() {
    let first_spirit = |time| chart_at("788976", time).lines[0].spirit;
    assert_eq!(first_spirit("2026-11-25T22:59:59+08:00"), Some(Spirit::BlackTortoise));
    assert_eq!(first_spirit("2026-11-25T23:00:00+08:00"), Some(Spirit::AzureDragon));
    // 己亥 month, 甲辰 day, 寅卯 void.
    let chart = chart_at("788976", "2026-11-25T23:30:00+08:00");
    let line = |position: usize| chart.lines[position - 1].state.unwrap();
    assert_eq!((line(1).strength, line(1).growth_stage), (Strength::Prosperous, GrowthStage::Grave));
    assert_eq!((line(2).strength, line(2).void, line(2).month_combination), (Strength::Supported, true, true));
    assert_eq!((line(3).strength, line(3).day_effect), (Strength::Confined, DayEffect::Supports));
    assert_eq!((line(5).strength, line(5).day_combination), (Strength::Resting, true));
    let fourth = chart.lines[3].becomes.unwrap();
    assert_eq!((fourth.relation, fourth.progress), (ChangeRelation::ControlsBack, None));
    let sixth = chart.lines[5].becomes.unwrap();
    assert_eq!((sixth.relation, sixth.state.unwrap().void), (ChangeRelation::ControlsBack, true));
    assert_eq!(chart.lines[3].hidden.unwrap().state.unwrap().strength, Strength::Dead);
}

#[test]
fn a_clash_with_the_day_stirs_strong_lines_at_rest_and_breaks_weak_ones() {
    // 己亥 month, 丙午 day: the day clashes with the strong 子 of the first line.
    let stirred = chart_at("788877", "2026-11-28T12:00:00+08:00");
    assert_eq!(
        (stirred.lines[0].state.unwrap().day_clash, stirred.lines[0].clash_effect),
        (true, Some(ClashEffect::Stirred))
    );
    let moving = chart_at("988877", "2026-11-28T12:00:00+08:00");
    assert_eq!((moving.lines[0].state.unwrap().day_clash, moving.lines[0].clash_effect), (true, None));
    // 乙未 month, 丙午 day: the same line is weak.
    let broken = chart_at("788877", "2026-07-31T12:00:00+08:00");
    assert_eq!(broken.moment.as_ref().unwrap().pillars.day.branch(), Branch::Wu);
    assert_eq!(broken.lines[0].clash_effect, Some(ClashEffect::Broken));
}

#[test]
fn patterns_of_a_change_are_found() {
    let chart = chart("999888");
    assert_eq!(
        (chart.pattern, chart.relating_pattern),
        (Some(LinePattern::SixCombinations), Some(LinePattern::SixClashes))
    );
    assert_eq!(chart.echoes, []);
    let echoes =
        |lines| super::tests::chart(lines).echoes.iter().map(|echo| (echo.half, echo.kind)).collect::<Vec<_>>();
    assert_eq!(echoes("799799"), [(Half::Lower, EchoKind::Repeating), (Half::Upper, EchoKind::Repeating)]);
    assert_eq!(echoes("977777"), [(Half::Lower, EchoKind::TrigramReversing)]);
    assert_eq!(echoes("777866"), [(Half::Upper, EchoKind::LineReversing)]);
}

#[test]
fn a_chart_is_written_as_documented() {
    let written = serde_json::to_value(chart_at("788976", "2026-11-25T23:30:00+08:00")).unwrap();
    let lunar = json!({ "year": 2026, "month": 10, "isLeapMonth": false, "day": 18 });
    let pillars = json!({ "year": "丙午", "month": "己亥", "day": "甲辰", "hour": "甲子" });
    let moment = json!({
        "local": "2026-11-25T23:30:00+08:00", "clock": "civil", "dayStart": "23:00", "pillars": pillars,
        "void": ["寅", "卯"], "nearBoundary": ["day"], "lunar": lunar,
    });
    assert_eq!(written["moment"], moment);
    assert_eq!(written["palace"], json!({ "trigram": "震", "element": "wood", "stage": "returning" }));
    assert_eq!(written["pattern"], json!(null));
    let fourth = &written["lines"][3];
    for (member, value) in [
        ("position", json!(4)),
        ("value", json!(9)),
        ("spirit", json!("螣蛇")),
        ("kin", json!("父母")),
        ("stem", json!("丁")),
        ("branch", json!("亥")),
        ("element", json!("water")),
        ("role", json!(null)),
        ("strength", json!("旺")),
        ("void", json!(false)),
        ("monthBreak", json!(false)),
        ("dayClash", json!(false)),
    ] {
        assert_eq!(fourth[member], value, "{member}");
    }
    assert_eq!(
        (&fourth["hidden"]["kin"], &fourth["hidden"]["stem"], &fourth["hidden"]["branch"]),
        (&json!("子孙"), &json!("庚"), &json!("午"))
    );
    assert_eq!((&fourth["becomes"]["kin"], &fourth["becomes"]["relation"]), (&json!("妻财"), &json!("回头克")));
}

#[test]
fn a_chart_without_a_time_says_why() {
    let unknown = serde_json::to_value(chart("788976")).unwrap();
    assert_eq!((&unknown["moment"], &unknown["momentMissing"]), (&json!(null), &json!("unknown")));
    let line = unknown["lines"][3].as_object().unwrap();
    assert!(!line.contains_key("spirit") && !line.contains_key("strength") && !line.contains_key("void"));
    let early = serde_json::to_value(chart_at("788976", "1750-01-01T00:00:00Z")).unwrap();
    assert_eq!((&early["moment"], &early["momentMissing"]), (&json!(null), &json!("out_of_range")));
    let known = serde_json::to_value(chart_at("788976", "2026-01-01T00:00:00Z")).unwrap();
    assert!(!known.as_object().unwrap().contains_key("momentMissing"));
}

#[test]
fn an_earth_line_that_the_day_strikes_is_not_supported_by_it() {
    let states = |day: Branch| Branch::ALL.map(|branch| DayEffect::on(branch, day)).map(DayEffect::name).concat();
    assert_eq!(states(Branch::Chen), "克扶耗耗扶泄泄扶生生冲克");
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_cast_at_any_time_has_a_chart(
            lines in proptest::array::uniform6(6_u8..10),
            milliseconds in prop_oneof![any::<i64>(), -2_300_000_000_000_i64..4_200_000_000_000],
            rule in 0..2_usize,
        ) {
            let cast = Cast::from_lines(Lines::try_from(lines).unwrap());
            let chart = Chart::new(&cast, moment_at(milliseconds, "America/New_York", DayStart::ALL[rule]));
            prop_assert!(serde_json::to_string(&chart).is_ok());
            prop_assert_eq!(chart.lines.iter().filter(|line| line.role.is_some()).count(), 2);
            prop_assert_eq!(chart.lines.iter().filter(|line| line.becomes.is_some()).count(), cast.changing().len());
            let kin: std::collections::HashSet<_> = chart.lines.iter()
                .flat_map(|line| [Some(line.nature.kin), line.hidden.map(|hidden| hidden.nature.kin)])
                .flatten()
                .collect();
            prop_assert_eq!(kin.len(), 5);
        }

        #[test]
        fn any_hexagram_has_a_body_and_a_use(number in 1_u8..65, position in any::<u8>()) {
            let hexagram = Hexagram::from_number(number).unwrap();
            let BodyAndUse { body, use_trigram, .. } = BodyAndUse::new(hexagram, position);
            prop_assert_ne!(body.half, use_trigram.half);
        }
    }
}
