use std::time::Duration;

use cpu_time::ThreadTime;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn facts(data: &Value) -> Facts {
    read(&data.to_string())
}

fn number(hexagram: Option<Hexagram>) -> Option<u8> {
    hexagram.map(Hexagram::number)
}

/// The digits of the cast; `-` without one.
fn lines(facts: &Facts) -> String {
    facts.cast.map_or("-".to_owned(), |cast| cast.lines().to_string())
}

fn paths(facts: &Facts) -> Vec<&str> {
    facts.found.iter().map(|it| it.path.as_str()).collect()
}

/// Six lines of hexagram 3 of which the first changes, which leads to hexagram 8.
const THREE_TO_EIGHT: &str = "988878";

fn assert_three_to_eight(facts: &Facts, data: &str) {
    assert_eq!(lines(facts), THREE_TO_EIGHT, "{data}");
    assert_eq!(number(facts.primary), Some(3), "{data}");
    assert_eq!(number(facts.relating), Some(8), "{data}");
    assert_eq!(facts.changing, [1], "{data}");
    assert_eq!(facts.found.is_empty(), data == "own", "{data}");
    assert_eq!(facts.conflicts, [], "{data}");
}

#[test]
fn reads_data_of_many_clients() {
    let designs = [
        json!({"lines": [9, 8, 8, 8, 7, 8]}),
        json!({"yao": "988878"}),
        json!({"data": {"sixLines": ["9", "8", "8", "8", "7", "8"]}}),
        json!({"yaos": [1, 0, 0, 0, 1, 0], "dongYao": 1}),
        json!({"liuyao": {"benGua": {"name": "水雷屯"}, "bianGua": {"name": "水地比"}}}),
        json!({"hexagram": 3, "changingLines": [1]}),
        json!({"primary": "䷂", "relating": "䷇"}),
        json!({"mainHexagram": "Difficulty at the Beginning", "movingLines": ["初九"]}),
        json!({"guaName": "屯", "zhiGua": "比"}),
        json!({"benGua": "屯卦", "bian_gua": "水地比卦"}),
        json!({"original": {"number": 3, "name": "屯"}, "changed": {"number": 8}}),
        json!({"upperTrigram": "坎", "lowerTrigram": "震", "changing": [1]}),
        json!({"上卦": "水", "下卦": "雷", "动爻": "初爻"}),
        json!({"本卦": "水雷屯", "變卦": "水地比", "互卦": "山地剥"}),
        json!({"hexagram": {"primary": {"number": 3}, "changing": [1], "relating": {"number": 8},
            "nuclear": {"number": 23}}}),
        json!({"hexagram": {"name": "屯", "lines": [true, false, false, false, true, false]},
            "changingLines": [1]}),
        json!({"lines": [
            {"position": 6, "value": 8}, {"position": 5, "value": 7}, {"position": 4, "value": 8},
            {"position": 3, "value": 8}, {"position": 2, "value": 8}, {"position": 1, "value": 9},
        ]}),
        json!({"result": "{\"chart\":{\"ben_gua\":\"水雷屯\",\"bian_gua\":\"水地比\"}}"}),
        json!("{\"lines\":\"9,8,8,8,7,8\"}"),
        json!([9, 8, 8, 8, 7, 8]),
        json!({"relating": 8, "changingLines": [1]}),
        json!({"hexagram": "水雷屯之水地比"}),
        json!({"hexagram": "屯之比"}),
        json!({"gua": "䷂ 屯 → ䷇ 比"}),
        json!({"formatted": "本卦：水雷屯\n变卦：水地比"}),
        json!({"kingWenNumber": 3, "dongYao": "初九"}),
        json!({"name": "水雷屯", "changing": [true, false, false, false, false, false]}),
        json!({"benguaming": "水雷屯", "bianguaming": "水地比"}),
        json!({"trigrams": {"upper": {"name": "坎"}, "lower": {"name": "震"}}, "movingLine": 1}),
        json!({"throws": [[3, 3, 3], [2, 3, 3], [3, 2, 3], [3, 3, 2], [2, 2, 3], [2, 3, 3]]}),
    ];
    for design in designs {
        assert_three_to_eight(&facts(&design), &design.to_string());
    }
}

#[test]
fn reads_plain_text() {
    let texts = [
        "988878",
        "9 8 8 8 7 8",
        "本卦：水雷屯，变卦：水地比",
        "本卦:水雷屯(第3卦) 变卦:水地比 互卦:山地剥",
        "本卦為屯，動爻為初九。",
        "我摇到了水雷屯变水地比，求指点",
        "䷂ → ䷇",
        "得卦：屯之比",
        "占得屯卦，变卦：比卦，请解卦",
        "上卦坎，下卦震，动爻：初爻",
        "上坎下震；动爻：第1爻",
        "坎上震下，变爻：初九",
        "六爻：9,8,8,8,7,8",
        "Hexagram 3, changing to hexagram 8",
        "Primary hexagram: Difficulty at the Beginning; changing line: 1",
        "The primary hexagram is 3 and the relating hexagram is 8.",
        "benGua: '水雷屯', bianGua: '水地比'",
    ];
    for text in texts {
        assert_three_to_eight(&read(text), text);
    }
}

#[test]
fn a_hexagram_without_lines_has_unknown_changes() {
    for data in [
        json!({"hexagram": "水雷屯"}),
        json!({"hexagramId": 3}),
        json!({"hexagram": {"id": 3}}),
        json!({"lines": [1, 0, 0, 0, 1, 0]}),
        json!("第三卦"),
        json!("问事业，得屯卦"),
    ] {
        let facts = facts(&data);
        assert_eq!(number(facts.primary), Some(3), "{data}");
        assert_eq!((facts.cast, facts.relating), (None, None), "{data}");
        assert_eq!(facts.conflicts, [], "{data}");
    }
}

#[test]
fn an_empty_list_of_changes_yields_a_cast_without_changes() {
    for data in [
        json!({"hexagram": 3, "changingLines": []}),
        json!({"primary": 3, "relating": 3}),
        json!({"benGua": "屯", "bianGua": null, "动爻": "无"}),
    ] {
        let facts = facts(&data);
        assert_eq!(lines(&facts), "788878", "{data}");
        assert_eq!(facts.relating, None, "{data}");
        assert_eq!(facts.conflicts, [], "{data}");
    }
}

#[test]
fn lines_win_over_a_name_and_the_conflict_is_reported() {
    let facts = facts(&json!({"lines": [7, 8, 8, 8, 7, 8], "hexagram": {"name": "需"}}));
    assert_eq!(number(facts.primary), Some(3));
    assert_eq!(paths(&facts), ["lines"]);
    assert_eq!(facts.conflicts.len(), 1);
    assert_eq!(
        facts.conflicts[0].sentence(crate::Locale::English),
        "the field hexagram.name was read as the primary hexagram 5, Waiting (by its Chinese \
         name), which contradicts the primary hexagram 3, Difficulty at the Beginning and was set \
         aside"
    );
}

#[test]
fn every_contradiction_is_reported() {
    let data = json!({
        "lines": [7, 8, 8, 8, 7, 8], "name": "需", "relating": 8, "changingLines": [1],
        "upper": "离", "lower": "离", "yao": "777777",
    });
    let facts = facts(&data);
    assert_eq!(number(facts.primary), Some(3));
    let dropped: Vec<&str> = facts
        .conflicts
        .iter()
        .filter_map(|conflict| match conflict {
            Conflict::Contradiction { dropped, .. } => Some(dropped.path.as_str()),
            Conflict::Unreadable { .. } => None,
        })
        .collect();
    for path in ["name", "relating", "changingLines", "yao", ""] {
        assert!(dropped.contains(&path), "{path:?} in {dropped:?}");
    }
}

#[test]
fn two_named_hexagrams_win_over_changing_lines() {
    let facts = facts(&json!({"primary": 3, "changingLines": [1], "relating": 5}));
    assert_eq!((number(facts.relating), &facts.changing[..]), (Some(5), &[2, 3][..]));
    let Conflict::Contradiction { kept, .. } = &facts.conflicts[0] else {
        panic!("{:?}", facts.conflicts);
    };
    assert_eq!(*kept, AcceptedContent::Changing(vec![2, 3]));
}

#[test]
fn a_number_that_may_be_something_else_loses_against_changing_lines() {
    let facts = facts(&json!({"benGua": "屯", "changingLines": [1], "bianGuaId": 5}));
    assert_eq!((number(facts.relating), facts.conflicts), (Some(8), vec![]));
}

#[test]
fn changing_lines_are_counted_as_the_two_hexagrams_demand() {
    for (data, lines_of_cast, count) in [
        (json!({"benGua": "山风蛊", "bianGua": "水地比", "dong": [1, 2, 4, 5]}), "899869", Count::FromZero),
        (json!({"benGua": "泽雷随", "bianGua": "风雷益", "dong": [3, 5]}), "788976", Count::FromZero),
        (json!({"benGua": "泽雷随", "bianGua": "风雷益", "dong": [1, 3]}), "788976", Count::FromTop),
        (json!({"benGua": "水雷屯", "bianGua": "水地比", "dong": [0]}), THREE_TO_EIGHT, Count::FromZero),
        (json!({"benGua": "水雷屯", "bianGua": "水地比", "dong": 0}), THREE_TO_EIGHT, Count::FromZero),
        (json!({"benGua": "水雷屯", "bianGua": "水地比", "dong": "6"}), THREE_TO_EIGHT, Count::FromTop),
        (json!("本卦：泽雷随，变卦：风雷益，动爻：3、5"), "788976", Count::FromZero),
    ] {
        let facts = facts(&data);
        assert_eq!((lines(&facts).as_str(), &facts.conflicts[..]), (lines_of_cast, &[][..]), "{data}");
        let told = facts.found.iter().any(|it| matches!(it.content, Content::Recounted(_, it) if it == count));
        assert!(told, "{data}: {:?}", facts.found);
    }
}

#[test]
fn a_zero_without_the_relating_hexagram_is_no_position() {
    let facts = facts(&json!({"benGua": "水雷屯", "dong": [0, 3]}));
    assert_eq!((number(facts.primary), facts.cast), (Some(3), None));
    assert!(matches!(facts.conflicts[..], [Conflict::Unreadable { problem: ReadingFault::NotPositions, .. }]));
}

#[test]
fn the_heading_of_a_chart_names_primary_and_relating_hexagram() {
    for text in [
        "占问：换工作\n乾造：丙午年己亥月甲辰日\n\n震宫：泽雷随(归魂)　　　巽宫：风雷益\n六神　本卦　　变卦\n玄武　父母丁未土",
        "震宮:澤雷隨    巽宮:風雷益",
        "泽雷随(震宫)    风雷益(巽宫)",
        "震宫-泽雷随 / 巽宫-风雷益",
    ] {
        let facts = read(text);
        assert_eq!((lines(&facts).as_str(), &facts.conflicts[..]), ("788976", &[][..]), "{text}");
    }
    let unchanged = read("震宫：泽雷随\n六神　本卦");
    assert_eq!((number(unchanged.primary), unchanged.relating), (Some(17), None));
}

#[test]
fn reverses_lines_that_match_the_name_only_in_reverse() {
    let facts = facts(&json!({"lines": [8, 7, 8, 8, 8, 9], "benGua": "水雷屯"}));
    assert_three_to_eight(&facts, "top down");
    assert_eq!(paths(&facts), ["lines", "benGua"]);
    assert!(matches!(facts.found[0].content, Content::Lines { order: LineOrder::TopDown, .. }));
    let drawn = read(r#"{"binary": "010001", "benGua": "水雷屯", "changing": [1]}"#);
    assert_three_to_eight(&drawn, "binary from the top");
}

#[test]
fn never_reverses_stated_positions() {
    let listed: Vec<Value> = [7, 8, 8, 8, 7, 8]
        .iter()
        .zip(1..)
        .map(|(value, position)| json!({"position": position, "value": value}))
        .collect();
    let facts = facts(&json!({"lines": listed, "benGua": "山水蒙"}));
    assert_eq!(number(facts.primary), Some(3));
    assert_eq!(facts.conflicts.len(), 1);
}

#[test]
fn unreadable_fields_are_reported_and_nothing_is_invented() {
    let data = json!({"lines": [7, 8, 5, 8, 7, 8], "hexagram": 65, "changing": [7]});
    let facts = facts(&data);
    assert_eq!((facts.cast, facts.primary), (None, None));
    assert_eq!(facts.found, []);
    let problems: Vec<ReadingFault> = facts
        .conflicts
        .iter()
        .filter_map(|conflict| match conflict {
            Conflict::Unreadable { problem, .. } => Some(*problem),
            Conflict::Contradiction { .. } => None,
        })
        .collect();
    for problem in [ReadingFault::NotSixLines, ReadingFault::NotAHexagram, ReadingFault::NotPositions] {
        assert!(problems.contains(&problem), "{problem:?}");
    }
}

#[test]
fn hexagrams_that_were_not_cast_are_not_read() {
    for data in [
        json!({}),
        json!(null),
        json!(""),
        json!(42),
        json!({"name": "Grace", "number": 7}),
        json!({"user": {"name": "丰"}, "question": "本卦：水雷屯"}),
        json!({"nuclear": {"number": 23}, "huGua": "山地剥", "互卦": "剥"}),
        json!({"phone": "13800138000", "total": 3}),
        json!({"current": 3, "page": {"number": 5}}),
        json!("请帮我解卦，对比卦象看看，我很困惑"),
        json!("My primary concern is peace of mind"),
        json!("我的师傅说要革新"),
    ] {
        let facts = facts(&data);
        assert_eq!(facts.primary, None, "{data}");
        assert_eq!(facts.relating, None, "{data}");
        assert_eq!(facts.found, [], "{data}");
    }
}

#[test]
fn rejects_several_unconnected_hexagrams() {
    let facts = read("水雷屯和天水讼我都喜欢");
    assert_eq!(facts.primary, None);
    assert!(matches!(facts.conflicts[..], [Conflict::Unreadable { problem: ReadingFault::SeveralHexagrams, .. }]));
}

#[test]
fn size_and_depth_are_bounded() {
    let long = format!("本卦：水雷屯{}", " ".repeat(LARGEST_DATA_BYTES));
    let facts = read(&long);
    assert_eq!(facts.primary, None);
    assert!(matches!(facts.conflicts[..], [Conflict::Unreadable { problem: ReadingFault::TooLarge, .. }]));
    let nested = |levels: usize| {
        let mut data = json!({"lines": [9, 8, 8, 8, 7, 8]});
        for _ in 0..levels {
            data = json!({"data": data});
        }
        super::read(&data.to_string())
    };
    assert_three_to_eight(&nested(25), "within the bound");
    assert!(matches!(nested(40).conflicts[..], [Conflict::Unreadable { problem: ReadingFault::TooDeep, .. }]));
    let mut quoted = json!({"lines": [9, 8, 8, 8, 7, 8]}).to_string();
    for _ in 0..8 {
        quoted = Value::String(quoted).to_string();
    }
    assert_three_to_eight(&read(&quoted), "JSON inside strings inside strings");
    assert_eq!(read(&"[".repeat(60_000)).primary, None);
    assert_eq!(read(&r#"{"a":"#.repeat(10_000)).primary, None);
}

#[test]
fn reported_paths_hold_only_letters_and_digits() {
    let facts = facts(&json!({"<b>{ignore}\n</b>": {"lines": [9, 8, 8, 8, 7, 8]}}));
    assert_eq!(paths(&facts), ["_b__ignore____b_.lines"]);
}

#[test]
fn returns_facts_of_stored_casts() {
    let cast = Cast::from_lines(THREE_TO_EIGHT.parse().unwrap());
    assert_three_to_eight(&Facts::from_cast(cast), "own");
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "[a-z]{0,6}",
        prop::sample::select(vec![
            "lines", "yao", "hexagram", "benGua", "bianGua", "changing", "upper", "lower", "name", "number", "id",
            "动爻", "本卦", "binary", "position", "value", "text",
        ])
        .prop_map(str::to_owned),
    ];
    let text = prop_oneof![
        any::<String>(),
        "[6-9]{5,7}",
        "[01]{5,7}",
        "[初二三四五上九六爻、]{0,6}",
        "[本变卦动爻:，。水雷屯之天需乾为 0-9]{0,16}",
        "\\{\"lines\":\"[6-9]{6}\"\\}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..70).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Asserts the invariants of facts read from any data.
fn assert_consistent(facts: &Facts) {
    if let Some(cast) = facts.cast {
        assert_eq!(facts.primary, Some(cast.primary()));
        assert_eq!(facts.relating, cast.relating());
        assert_eq!(facts.changing, cast.changing());
    }
    let is_known = facts.primary.is_some() || facts.relating.is_some();
    assert!(!is_known || !facts.found.is_empty());
    assert!(facts.changing.iter().all(|position| (1..=6).contains(position)));
    assert!(facts.found.len() <= MOST_ENTRIES && facts.conflicts.len() <= MOST_ENTRIES);
    for locale in [crate::Locale::Chinese, crate::Locale::English] {
        let evidence = facts.found.iter().map(|it| it.sentence(locale));
        let conflicts = facts.conflicts.iter().map(|it| it.sentence(locale));
        assert!(evidence.chain(conflicts).all(|sentence| !sentence.is_empty()));
    }
}

#[test]
fn reading_time_is_linear() {
    let pieces = [
        "0",
        "一",
        "十",
        "第",
        "第1",
        "第一",
        "#",
        "卦",
        "屯卦",
        "为",
        "乾为",
        "水雷",
        "䷀",
        "䷀卦",
        "☵",
        "上",
        "坎上",
        "初九",
        "动爻",
        "本卦:",
        "变卦3",
        "本卦1变",
        "之",
        " ",
        "\n",
        "。",
        ",",
        "is ",
        "and ",
        "the ",
        "a",
        "hexagram ",
        "lines 1 ",
        "1 ",
        "7,",
        "-",
        "\"",
        "[",
        "{",
        "\\",
        "\u{FDFA}",
        "e\u{301}",
        "\u{301}",
        "{\"value\":",
        "{\"lines\":[",
        "[[",
        "\u{1F600}",
    ];
    let wholes = [
        |text: &str| text.to_owned(),
        |text: &str| json!(text).to_string(),
        |text: &str| json!({ "hexagram": text, "lines": text, "changing": text }).to_string(),
        |text: &str| json!({ "note": { "本卦": [text], "name": text } }).to_string(),
        |text: &str| json!([{ "note": json!({ "data": text }).to_string() }]).to_string(),
    ];
    for piece in pieces {
        for whole in wholes {
            let (short, long) = (whole(&piece.repeat(500 / piece.len())), whole(&piece.repeat(8_000 / piece.len())));
            // Sixteen times the length costs about sixteen times the time, or 256 times if the algorithm is quadratic.
            // Short times cannot be measured, and the minimum of several runs is the least disturbed by other work.
            let (mut of_short, mut of_long) = (Duration::MAX, Duration::MAX);
            let is_bounded = (0..50).any(|_| {
                of_short = of_short.min(time_of_reading(&short));
                of_long = of_long.min(time_of_reading(&long));
                of_long < of_short * 64 || of_long.as_millis() < 5
            });
            assert!(is_bounded, "{piece:?} in {}", whole("…"));
        }
    }
}

fn time_of_reading(data: &str) -> Duration {
    let begun = ThreadTime::now();
    std::hint::black_box(read(data));
    begun.elapsed()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        assert_consistent(&read(&text));
    }

    #[test]
    fn reads_any_text_of_its_vocabulary_without_panic(
        text in "[本变之互卦动爻上下内外初九六一二三四五十第乾坤水雷屯天需为解师:：，。;\\n 0-9䷀䷂☵a-z\"{}\\[\\]]{0,60}"
    ) {
        assert_consistent(&read(&text));
    }

    #[test]
    fn no_json_makes_it_panic(data in any_json()) {
        assert_consistent(&facts(&data));
    }

    #[test]
    fn reads_six_numbers_unchanged(values in prop::array::uniform6(6_u8..=9)) {
        let expected = Cast::from_lines(Lines::try_from(values).unwrap());
        let facts = facts(&json!({"lines": values}));
        prop_assert_eq!(facts.cast, Some(expected));
        prop_assert_eq!(facts.conflicts, []);
    }

    #[test]
    fn two_named_hexagrams_yield_a_cast(primary in 1_u8..=64, relating in 1_u8..=64) {
        let name = |number| Hexagram::from_number(number).unwrap().chinese_full_name();
        let text = format!("本卦：{}，变卦：{}", name(primary), name(relating));
        let facts = read(&text);
        prop_assert_eq!(number(facts.primary), Some(primary));
        prop_assert_eq!(number(facts.relating.or(facts.primary)), Some(relating));
        prop_assert!(facts.cast.is_some());
        prop_assert_eq!(facts.conflicts, []);
    }
}
