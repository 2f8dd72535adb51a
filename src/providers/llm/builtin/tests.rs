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
        judgement: format!("counsel {number}."),
        image: format!("image {number}"),
        upper: trigram("坎", "water", "danger"),
        lower: trigram("震", "thunder", "movement"),
    }
}

fn line(position: u8, is_from_yang: bool) -> ChangingLine {
    ChangingLine { position, name: format!("line {position}"), is_from_yang, meaning: format!("meaning {position}.") }
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
本卦是 ䷂ 水雷屯（屯，zhūn，第3卦）。上卦坎为water，其性danger；下卦震为thunder，其性movement。其象为：image 3。

卦意：counsel 3.

此次只有一爻在动，要紧之处就在这里：
· line 1（第1爻，由阳变阴）：meaning 1.

变化所向，是变卦 ䷂ 水雷比（比，zhūn，第8卦）。其象为：image 8。顺着这个方向看：counsel 8.

内里的倾向，看互卦 ䷂ 水雷剥（剥，zhūn，第23卦）：image 23。它在暗处提醒你：counsel 23.

就事业而言，下卦震之movement好比你自己的状态，上卦坎之danger好比外在的处境。先想清楚此刻该主动推进，还是等候配合，再定一个近期可以完成的小目标，把卦意落到实处。

依据：from lines。以上文字由本服务的离线规则依照卦象结构写成，并非大语言模型所作；请当作静心思考的参考，重要的决定仍由你自己作出。";
    assert_eq!(interpret(&reading(Locale::Chinese)), expected);
}

#[test]
fn writes_an_english_reading() {
    let expected = "\
You asked: \"换工作 好吗\"
The primary hexagram is ䷂ 3, Difficulty at the Beginning (水雷屯 zhūn). Above stands ☵ water (kǎn), whose nature is danger; below stands ☵ thunder (kǎn), whose nature is movement. Its image: image 3.

Its counsel: counsel 3.

One line is changing, and that is where the weight lies:
- The line 1 (yang turning to yin): meaning 1.

The change leads toward the relating hexagram ䷂ 8, Holding Together (水雷比 zhūn): image 8. Seen from there: counsel 8.

The inner tendency shows in the nuclear hexagram ䷂ 23, Splitting Apart (水雷剥 zhūn): image 23. Quietly it adds: counsel 23.

For your work, the movement of thunder below is like your own state, and the danger of water above like what surrounds you. Decide whether this is a moment to push or to wait for others, then choose one small aim that you can finish soon.

Based on this: from lines. This text was written offline by the rules of this service from the structure of the hexagram, not by a language model. Take it as something to reflect on; the decision remains your own.";
    assert_eq!(interpret(&reading(Locale::English)), expected);
}

#[test]
fn wording_depends_on_the_number_of_changing_lines() {
    let tones = [
        (0, "六爻安静", "No line is changing"),
        (1, "只有一爻", "One line is changing"),
        (3, "有 3 爻在动", "3 lines are changing, and"),
        (5, "大幅转变", "shifting widely"),
        (6, "六爻皆动", "All six lines"),
    ];
    for (count, chinese, english) in tones {
        let change = |reading: &mut Reading| {
            reading.facts.changing = Some((1..=count).map(|it| line(it, it % 2 == 0)).collect());
        };
        assert!(text(change, Locale::Chinese).contains(chinese));
        assert!(text(change, Locale::English).contains(english));
    }
    let unknown = |reading: &mut Reading| reading.facts.changing = None;
    assert!(text(unknown, Locale::Chinese).contains("没有说明哪些爻在动"));
    assert!(text(unknown, Locale::English).contains("does not say which lines change"));
}

#[test]
fn does_not_repeat_a_hexagram_that_is_its_own_nuclear() {
    let own = |reading: &mut Reading| reading.facts.nuclear = reading.facts.primary.clone();
    assert!(text(own, Locale::Chinese).contains("互卦仍是本卦自身"));
    assert!(text(own, Locale::English).contains("is the primary one itself"));
}

#[test]
fn asks_for_a_hexagram_if_none_is_found() {
    let nothing = |reading: &mut Reading| {
        reading.facts = HexagramFacts { conflicts: vec!["lines unreadable".to_owned()], ..HexagramFacts::default() };
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
fn every_topic_has_distinct_advice() {
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
