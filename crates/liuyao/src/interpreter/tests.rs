use super::*;

fn empty(locale: Locale, question: &str) -> Reading {
    Reading {
        locale,
        question_type: None,
        question: question.to_owned(),
        asker: None,
        facts: HexagramFacts::default(),
        classic: None,
        method: None,
        chart: None,
        body_and_use: None,
        missing_person: None,
    }
}

#[test]
fn asks_for_a_hexagram_if_none_is_found() {
    let facts = HexagramFacts { conflicts: vec!["lines unreadable".to_owned()], ..HexagramFacts::default() };
    let chinese = interpret(&Reading { facts: facts.clone(), ..empty(Locale::Chinese, "") });
    assert!(chinese.starts_with("数据里没有读到可以确认的卦"));
    assert!(chinese.contains("{\"lines\": [7, 8, 8, 8, 7, 9]}"));
    assert!(chinese.contains("另外：lines unreadable。"));
    assert!(chinese.contains("并非大语言模型所作"));
    let english = interpret(&Reading { facts, ..empty(Locale::English, "") });
    assert!(english.starts_with("No hexagram could be found"));
    assert!(english.contains("none is made up"));
    assert!(english.contains("not by a language model"));
}

#[test]
fn quotes_the_question_on_one_short_line() {
    assert_eq!(quoted(" a\n b\t\u{7}c "), Some("a b c".to_owned()));
    assert_eq!(quoted("\n \u{7}"), None);
    let quote = quoted(&"问".repeat(200)).unwrap();
    assert_eq!(quote.chars().count(), MAX_QUOTE_LENGTH + 1);
    assert!(quote.ends_with('…'));
}

fn trigram(chinese_name: &str) -> TrigramDescription {
    let text = || chinese_name.to_owned();
    TrigramDescription {
        sign: text(),
        chinese_name: text(),
        pinyin: text(),
        english_name: text(),
        image: text(),
        attribute: text(),
    }
}

/// Returns a line at rest.
fn line(position: u8, kin: &'static str, branch: Branch) -> LineFacts {
    LineFacts {
        position,
        nature: NatureFacts { kin, branch },
        spirit: None,
        role: None,
        state: None,
        clash_effect: None,
        hidden: None,
        becomes: None,
    }
}

fn moving(line: &LineFacts, kin: &'static str, branch: Branch, relation: &'static str) -> LineFacts {
    let nature = NatureFacts { kin, branch };
    let becomes =
        BecomesFacts { nature, state: None, relation, progress: None, is_clash: false, is_combination: false };
    LineFacts { becomes: Some(becomes), ..line.clone() }
}

const VOID: StateFacts = StateFacts {
    strength: "旺",
    is_void: true,
    is_month_broken: false,
    day_effect: "泄",
    is_day_combination: false,
    growth_stage: None,
};

/// Returns a reading with this chart. The third line is the asker's, the top one the other side's.
fn charted(locale: Locale, question: &str, mut lines: Vec<LineFacts>, echoes: Vec<EchoFacts>) -> Reading {
    lines[2].role = Some("世");
    lines[5].role = Some("应");
    let text = || "未济".to_owned();
    let primary = HexagramDescription {
        number: 64,
        sign: text(),
        chinese_name: text(),
        chinese_full_name: text(),
        pinyin: text(),
        english_name: text(),
        counsel: text(),
        image: text(),
        upper: trigram("离"),
        lower: trigram("坎"),
    };
    let facts = HexagramFacts { primary: Some(primary), changing: Some(Vec::new()), ..HexagramFacts::default() };
    let (palace, element, stage) = ("离", Element::Fire, "third");
    let (moment, pattern, relating_pattern) = (None, None, None);
    let chart = ChartFacts { moment, palace, element, stage, pattern, relating_pattern, echoes, lines };
    Reading { facts, chart: Some(chart), ..empty(locale, question) }
}

/// Returns lines at rest, of which the top one is 官鬼亥水.
fn lines() -> Vec<LineFacts> {
    vec![
        line(1, "父母", Branch::Yin),
        line(2, "子孙", Branch::Chen),
        line(3, "兄弟", Branch::Wu),
        line(4, "妻财", Branch::You),
        line(5, "子孙", Branch::Wei),
        line(6, "官鬼", Branch::Hai),
    ]
}

fn assert_says(reading: &Reading, part: &str) {
    let text = interpret(reading);
    assert!(text.contains(part), "{part}: {text}");
}

#[test]
fn a_move_that_feeds_the_harm_adds_to_it() {
    let mut lines = lines();
    lines[1] = moving(&lines[1], "兄弟", Branch::Si, "回头生");
    lines[2] = moving(&lines[2], "妻财", Branch::Shen, "化耗");
    let chinese = charted(Locale::Chinese, "公司要裁员，我会被裁吗", lines.clone(), Vec::new());
    assert_says(&chinese, "你自己先动了，反去助长克用神的辰土：此时不宜主动出手");
    let english = charted(Locale::English, "Will I be laid off?", lines, Vec::new());
    assert_says(&english, "that strengthens Offspring (Dragon, earth), which works against the matter");
    assert_says(&english, "the risk of losing this post is real");
}

#[test]
fn a_void_line_that_the_day_strikes_is_not_inert() {
    let mut lines = lines();
    lines[3] = LineFacts { state: Some(VOID), clash_effect: Some("暗动"), ..lines[3].clone() };
    let chinese = charted(Locale::Chinese, "我能升职吗", lines.clone(), Vec::new());
    assert_says(&chinese, "四爻妻财酉金（薪酬）旬空而被日辰冲起，来生用神，是实在的助力。");
    let english = charted(Locale::English, "Will I be promoted?", lines, Vec::new());
    assert_says(&english, "is void, yet the day strikes it awake: it feeds the matter, a real help.");
}

#[test]
fn the_other_side_is_active_if_its_void_line_is_struck() {
    let mut lines = lines();
    lines[5] = LineFacts { state: Some(VOID), clash_effect: Some("暗动"), ..lines[5].clone() };
    let chinese = charted(Locale::Chinese, "护照签证能下来吗", lines.clone(), Vec::new());
    assert_says(&chinese, "应爻旬空，今日被冲起，那边已经动了");
    let english = charted(Locale::English, "Will my visa be approved?", lines.clone(), Vec::new());
    assert_says(&english, "It is void, yet it moves: something is already under way over there");
    lines[5].clash_effect = None;
    assert_says(&charted(Locale::Chinese, "护照签证能下来吗", lines, Vec::new()), "应爻旬空，那边还没有定准");
}

#[test]
fn a_line_of_the_asker_at_rest_does_not_harm_the_person_asked_about() {
    let mut lines = lines();
    lines[3].nature.branch = Branch::Shen;
    let wife = "妻子的病会好吗";
    assert_says(&charted(Locale::Chinese, wife, lines.clone(), Vec::new()), "世克用神，你这边管得多，宜放宽些");
    lines[2] = moving(&lines[2], "父母", Branch::Mao, "回头生");
    assert_says(&charted(Locale::Chinese, wife, lines, Vec::new()), "世动而克用神，管得太紧反而伤了对方");
}

#[test]
fn an_unborn_child_is_fed_and_a_doctor_is_named() {
    let mut lines = lines();
    lines[1] = line(2, "兄弟", Branch::Wei);
    let text = interpret(&charted(Locale::Chinese, "试管能成功吗", lines, Vec::new()));
    for part in ["世生用神，是你在养着它，又相合，留得住", "请咨询医生"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn names_the_trigram_that_reverses() {
    let lower = EchoFacts { is_upper: false, kind: "卦反吟" };
    let upper = EchoFacts { is_upper: true, kind: "爻反吟" };
    let chinese = |question, echoes| interpret(&charted(Locale::Chinese, question, lines(), echoes));
    assert!(chinese("试管能成功吗", vec![lower]).contains("内卦反吟，中途可能要再来一次。"));
    assert!(chinese("钥匙丢了", vec![upper]).contains("外卦反吟，东西去而复返"));
    assert!(chinese("我能升职吗", vec![upper, lower]).contains("内外卦反吟，事情会去而复来。"));
    let english = charted(Locale::English, "Will I be promoted?", lines(), vec![lower]);
    assert_says(&english, "The lower trigram changes into the one facing it on King Wen's compass: what leaves comes");
}

#[test]
fn family_may_have_moved_a_lost_thing() {
    let mut lines = lines();
    lines[2] = moving(&lines[2], "父母", Branch::Mao, "回头生");
    let reading = |locale, question| {
        let mut reading = charted(locale, question, lines.clone(), Vec::new());
        let chart = reading.chart.as_mut().unwrap();
        (chart.lines[2].role, chart.lines[1].role) = (None, Some("世"));
        chart.lines[4].nature = NatureFacts { kin: "父母", branch: Branch::Mao };
        chart.lines[0].nature = NatureFacts { kin: "官鬼", branch: Branch::Zi };
        reading
    };
    let chinese = reading(Locale::Chinese, "钥匙丢了能找到吗");
    assert_says(&chinese, "证件、衣物、钥匙一类");
    assert_says(&chinese, "（家人或同住的人）发动化父母卯木，东西可能被顺手挪动");
    assert_says(&chinese, "应期：先看今日明日");
    assert_says(&reading(Locale::English, "Will I find my lost passport?"), "one of them may have moved it");
}

#[test]
fn the_opponent_who_feeds_the_asker_may_settle() {
    let mut lines = lines();
    lines[5].nature = NatureFacts { kin: "父母", branch: Branch::Mao };
    let english = charted(Locale::English, "Will I win the lawsuit?", lines.clone(), Vec::new());
    assert_says(&english, "it feeds your line, so they may lean toward settling");
    assert_says(&charted(Locale::Chinese, "官司能赢吗", lines, Vec::new()), "应生世，对方可能愿意和解");
}

#[test]
fn says_that_an_opposite_line_is_void_and_broken() {
    let mut lines = lines();
    lines[5].state = Some(StateFacts { is_month_broken: true, ..VOID });
    let english = charted(Locale::English, "Will I win the lawsuit?", lines, Vec::new());
    assert_says(&english, "It is void and broken by the month: there is little strength over there");
}
