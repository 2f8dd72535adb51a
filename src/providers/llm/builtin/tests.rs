use super::*;

fn description(number: u8, name: &str, english: &str) -> HexagramDescription {
    let trigram = |name: &str, image: &str, attribute: &str| TrigramDescription {
        sign: "☵".to_owned(),
        chinese_name: name.to_owned(),
        pinyin: "kǎn".to_owned(),
        english_name: "The Abysmal".to_owned(),
        image: image.to_owned(),
        attribute: attribute.to_owned(),
    };
    HexagramDescription {
        number,
        sign: "䷂".to_owned(),
        chinese_name: name.to_owned(),
        chinese_full_name: format!("水雷{name}"),
        pinyin: "zhūn".to_owned(),
        english_name: english.to_owned(),
        counsel: format!("counsel {number}."),
        image: format!("image {number}"),
        upper: trigram("坎", "water", "danger"),
        lower: trigram("震", "thunder", "movement"),
    }
}

fn line(position: u8, is_from_yang: bool) -> ChangingLine {
    ChangingLine { position, name: format!("line {position}"), is_from_yang }
}

fn reading(locale: Locale) -> Reading {
    Reading {
        locale,
        question_type: Some("career".to_owned()),
        question: "换工作 好吗".to_owned(),
        facts: HexagramFacts {
            primary: Some(description(3, "屯", "Difficulty at the Beginning")),
            relating: Some(description(8, "比", "Holding Together")),
            nuclear: Some(description(23, "剥", "Splitting Apart")),
            changing: Some(vec![line(1, true)]),
            evidence: vec!["from lines".to_owned()],
            conflicts: Vec::new(),
        },
        classic: Some(ClassicFacts { rule: Some("one_changing"), texts: vec![verse(true)] }),
        method: Some("three_coins"),
        chart: Some(chart()),
    }
}

fn verse(is_main: bool) -> ClassicText {
    ClassicText {
        hexagram: 3,
        chinese_name: "屯",
        english_name: "Difficulty at the Beginning",
        label: Some("初九"),
        position: Some(1),
        is_main,
        text: "磐桓，利居贞，利建侯。",
        plain: "plain sentence.",
    }
}

fn chart() -> ChartFacts {
    let nature = |kin, branch, element| NatureFacts { kin, branch, element };
    let state =
        |strength, is_void, day_effect| Some(StateFacts { strength, is_void, is_month_broken: false, day_effect });
    let line =
        |position, nature, role, state| LineFacts { position, nature, role, state, clash_effect: None, becomes: None };
    let becomes = BecomesFacts { nature: nature("官鬼", "未", "earth"), relation: "回头克", progress: None };
    ChartFacts {
        moment: Some(MomentFacts {
            local: "2026-01-15 23:30".to_owned(),
            pillars: ["乙巳", "己丑", "庚寅", "丙子"].map(ToOwned::to_owned),
            void: ["午", "未"],
        }),
        palace: "坎",
        lines: vec![
            LineFacts {
                becomes: Some(becomes),
                ..line(1, nature("兄弟", "子", "water"), None, state("死", false, "泄"))
            },
            line(2, nature("子孙", "寅", "wood"), Some("世"), state("囚", false, "扶")),
            line(5, nature("官鬼", "戌", "earth"), Some("应"), state("旺", true, "克")),
        ],
    }
}

fn text(change: impl FnOnce(&mut Reading), locale: Locale) -> String {
    let mut reading = reading(locale);
    change(&mut reading);
    interpret(&reading)
}

#[test]
fn writes_a_chinese_reading() {
    let expected = "\
你问的是「换工作 好吗」。
本卦是 ䷂ 水雷屯（屯，zhūn，第3卦），上卦坎为water，下卦震为thunder。line 1动，变卦是 ䷂ 水雷比（比，zhūn，第8卦），其象为：image 8。
此卦以三枚铜钱摇成，起于当地时间 2026-01-15 23:30：乙巳年己丑月庚寅日丙子时，旬空午未。

一爻动，读这一爻的爻辞：
屯·初九「磐桓，利居贞，利建侯。」plain sentence.

以六爻看，卦属坎宫。世爻是你这一边，在二爻子孙寅木，月令为囚、得日辰相扶，强弱相抵。应爻是对方或所问之事，在五爻官鬼戌土，月令为旺、受日辰所克、逢旬空，大致乏力。
· 初爻兄弟子水动，化官鬼未土：变出的爻回头来克它，这股力量恐难持久。

就事业而言，内卦震之movement近于你自己的状态，外卦坎之danger近于职场与机会。合起来是：counsel 3.

依据：from lines。以上文字由本服务的离线规则依照卦象结构写成，并非大语言模型所作；请当作静心思考的参考，重要的决定仍由你自己作出。";
    assert_eq!(interpret(&reading(Locale::Chinese)), expected);
}

#[test]
fn writes_an_english_reading() {
    let expected = "\
You asked: \"换工作 好吗\"
The primary hexagram is ䷂ 3, Difficulty at the Beginning (水雷屯 zhūn): ☵ water (kǎn) above, ☵ thunder (kǎn) below. The line 1 changes, and leads to ䷂ 8, Holding Together (水雷比 zhūn): image 8.
It was cast with three coins at 2026-01-15 23:30 local time: year 乙巳, month 己丑, day 庚寅, hour 丙子; 午 and 未 are void.

One line changes, so its text is read:
- 3, Difficulty at the Beginning, bottom line: 「磐桓，利居贞，利建侯。」 plain sentence.

In the six-line method the hexagram belongs to the palace of 坎. Your own side is the second line, Children (寅 wood), confined in the month, backed by the day: neither strong nor weak. The other side, or the matter, is the fifth line, Officials (戌 earth), prosperous in the month, controlled by the day, void: on the whole weak.
- The bottom line, Siblings (子 water), becomes Officials (未 earth): the new line controls it, so this force may not last.

For your work, the movement of thunder below is like your own state, and the danger of water above like the workplace and its openings. Together: counsel 3.

Based on this: from lines. This text was written offline by the rules of this service from the structure of the hexagram, not by a language model. Take it as something to reflect on; the decision remains your own.";
    assert_eq!(interpret(&reading(Locale::English)), expected);
}

#[test]
fn every_rule_has_its_words_and_marks_the_main_text() {
    for (rule, chinese, english) in [
        (None, "先读本卦的卦辞", "First the judgement"),
        (Some("none_changing"), "六爻不动", "No line changes"),
        (Some("one_changing"), "一爻动", "One line changes"),
        (Some("two_changing"), "以上面一爻为主", "the upper one above all"),
        (Some("three_changing"), "以屯为主", "that of Difficulty at the Beginning above all"),
        (Some("four_changing"), "以下面一爻为主", "the lower one above all"),
        (Some("five_changing"), "变卦中不动的一爻", "one resting line"),
        (Some("six_changing"), "六爻皆动，屯卦读初九", "has a text of its own, 初九"),
    ] {
        let change = |reading: &mut Reading| {
            reading.classic = Some(ClassicFacts { rule, texts: vec![verse(true), verse(false)] });
        };
        let (in_chinese, in_english) = (text(change, Locale::Chinese), text(change, Locale::English));
        assert!(
            in_chinese.contains(chinese) && in_chinese.contains("（主）") && in_chinese.contains("（辅）"),
            "{in_chinese}"
        );
        assert!(in_english.contains(english) && in_english.matches("(main)").count() == 1, "{in_english}");
    }
    let judgement = |reading: &mut Reading| {
        let text = ClassicText { label: None, position: None, ..verse(true) };
        reading.classic = Some(ClassicFacts { rule: Some("six_changing"), texts: vec![text] });
    };
    assert!(text(judgement, Locale::Chinese).contains("读变卦的卦辞：\n屯·卦辞「磐桓"));
    assert!(
        text(judgement, Locale::English)
            .contains("relating hexagram is read:\n- 3, Difficulty at the Beginning, judgement")
    );
}

#[test]
fn says_which_facts_are_missing() {
    let timeless = |reading: &mut Reading| {
        let chart = reading.chart.as_mut().unwrap();
        chart.moment = None;
        chart.lines.iter_mut().for_each(|line| line.state = None);
    };
    let chinese = text(timeless, Locale::Chinese);
    assert!(chinese.contains("此卦以三枚铜钱摇成。") && chinese.contains("不知道起卦的时间"), "{chinese}");
    assert!(!chinese.contains("月令"), "{chinese}");
    assert!(text(timeless, Locale::English).contains("The time of the casting is not known"));
    let unknown = |reading: &mut Reading| {
        reading.facts.changing = None;
        (reading.chart, reading.method) = (None, None);
    };
    assert!(text(unknown, Locale::Chinese).contains("没有说明哪些爻在动"));
    assert!(!text(unknown, Locale::Chinese).contains("世爻") && !text(unknown, Locale::Chinese).contains("此卦"));
    assert!(text(unknown, Locale::English).contains("does not say which lines change"));
    let still = |reading: &mut Reading| {
        reading.facts.changing = Some(Vec::new());
        reading.facts.relating = None;
    };
    assert!(text(still, Locale::Chinese).contains("六爻皆静"));
    assert!(text(still, Locale::English).contains("No line is changing."));
}

#[test]
fn needs_no_evidence_for_castings_of_the_service() {
    let own = |reading: &mut Reading| reading.facts.evidence.clear();
    assert!(!text(own, Locale::Chinese).contains("依据"));
    assert!(!text(own, Locale::English).contains("Based on this"));
}

#[test]
fn asks_for_a_hexagram_if_none_is_found() {
    let nothing = |reading: &mut Reading| {
        reading.facts = HexagramFacts { conflicts: vec!["lines unreadable".to_owned()], ..HexagramFacts::default() };
        (reading.classic, reading.chart) = (None, None);
    };
    let chinese = text(nothing, Locale::Chinese);
    assert!(chinese.starts_with("数据里没有读到可以确认的卦"));
    assert!(chinese.contains("{\"lines\": [7, 8, 8, 8, 7, 9]}"));
    assert!(chinese.contains("另外：lines unreadable。"));
    assert!(chinese.contains("并非大语言模型所作"));
    assert!(!chinese.contains("本卦是"));
    let english = text(nothing, Locale::English);
    assert!(english.starts_with("No hexagram could be found"));
    assert!(english.contains("none is made up"));
    assert!(english.contains("not by a language model"));
}

#[test]
fn does_not_treat_a_relating_hexagram_as_primary() {
    let alone = |reading: &mut Reading| {
        reading.facts.primary = None;
        reading.facts.nuclear = None;
        reading.facts.changing = None;
    };
    assert!(text(alone, Locale::Chinese).starts_with("数据里只读到变卦 ䷂ 水雷比"));
    assert!(text(alone, Locale::English).contains("names only the relating hexagram ䷂ 8"));
}

#[test]
fn refers_health_money_and_legal_questions_to_professionals() {
    let advice = [
        ("health", "请咨询医生", "see a doctor"),
        ("财运", "持牌的专业人士", "licensed professional"),
        ("legal", "请咨询律师", "ask a lawyer"),
    ];
    for (question_type, chinese, english) in advice {
        let change = |reading: &mut Reading| reading.question_type = Some(question_type.to_owned());
        assert!(text(change, Locale::Chinese).contains(chinese));
        assert!(text(change, Locale::English).contains(english));
    }
    assert!(!interpret(&reading(Locale::English)).contains("professional"));
}

#[test]
fn every_topic_has_its_own_words() {
    let topics = ["career", "love", "health", "wealth", "study", "family", "travel", "legal", "other"];
    for locale in [Locale::Chinese, Locale::English] {
        let mut texts: Vec<String> = topics
            .iter()
            .map(|topic| {
                text(
                    |reading| {
                        reading.question_type = Some((*topic).to_owned());
                        reading.question.clear();
                    },
                    locale,
                )
            })
            .collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), topics.len());
    }
}

#[test]
fn danger_comes_first() {
    let danger = |reading: &mut Reading| reading.question = "我不想活了".to_owned();
    assert!(text(danger, Locale::Chinese).starts_with("你的话里似乎藏着很深的痛苦"));
    assert!(text(danger, Locale::English).starts_with("Your words sound"));
}

#[test]
fn quotes_the_question_on_one_short_line() {
    assert_eq!(quoted(" a\n b\t\u{7}c "), Some("a b c".to_owned()));
    assert_eq!(quoted("\n \u{7}"), None);
    let quote = quoted(&"问".repeat(200)).unwrap();
    assert_eq!(quote.chars().count(), MAX_QUOTE_LENGTH + 1);
    assert!(quote.ends_with('…'));
    let empty = |reading: &mut Reading| reading.question.clear();
    assert!(text(empty, Locale::Chinese).starts_with("这一次没有写下具体的问题"));
    assert!(text(empty, Locale::English).starts_with("No question was written down"));
}
