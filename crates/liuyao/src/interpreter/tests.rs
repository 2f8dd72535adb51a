use proptest::prelude::*;

use super::*;
use crate::{
    Branch, LocalTime, StemBranch,
    chart::{CalendarMoment, ChartLine, DayStart, MissingMoment},
    hexagram::{Cast, Hexagram, read},
};

fn zone() -> jiff::tz::TimeZone {
    jiff::tz::TimeZone::get("Asia/Shanghai").unwrap()
}

fn reading(written: Written, lines: &str, question: &str, moment: Option<CalendarMoment>) -> Reading {
    let cast = Cast::from_lines(lines.parse().unwrap());
    Reading {
        written,
        question_type: None,
        question: question.to_owned(),
        asker: None,
        facts: Facts::from_cast(cast),
        method: Some("three_coins"),
        chart: Some(Chart::new(&cast, moment.ok_or(MissingMoment::Unknown))),
        view: View::default(),
        is_about_missing_person: false,
    }
}

/// Returns a reading of six lines at 2026-01-15 23:30 in Shanghai: 乙巳 己丑 庚寅 丙子.
fn now(written: Written, lines: &str, question: &str) -> Reading {
    let local = LocalTime::at(1_768_491_000_000, &zone()).unwrap();
    reading(written, lines, question, CalendarMoment::new(local, DayStart::At23))
}

/// Returns a reading of six lines in a month, on a day.
fn dated(month: &str, day: &str, lines: &str, question: &str) -> Reading {
    let (month, day) = (Branch::from_name(month).unwrap(), StemBranch::from_name(day).unwrap());
    let noon = CalendarMoment::latest_noon(month, day, jiff::civil::date(2026, 1, 1), &zone()).unwrap();
    let moment = CalendarMoment::new(noon, DayStart::At23).unwrap();
    assert_eq!((moment.pillars.month.branch(), moment.pillars.day), (month, day));
    reading(Written::Simplified, lines, question, Some(moment))
}

/// Returns the reasons of a case, such as `month_helps`.
fn reasons(reading: &Reading) -> Vec<&'static str> {
    let matter = Matter::of(reading);
    let assessment = assess(reading.chart.as_ref().unwrap(), &matter, true).unwrap();
    assessment.evidence.iter().map(|evidence| evidence.reason.name()).collect()
}

fn expect_parts(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

/// Cases of 增删卜易 whose outcome the book tells.
#[test]
fn classical_cases_agree() {
    let (mut agree, mut opposite) = (0, Vec::new());
    for row in include_str!("../../tests/classical-cases.tsv").lines().skip(1) {
        let [month, day, lines, question, outcome] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let reading = dated(month, day, lines, question);
        let matter = Matter::of(&reading);
        let assessment = assess(reading.chart.as_ref().unwrap(), &matter, true).unwrap();
        match assessment.outlook {
            found if found.name() == outcome => agree += 1,
            Outlook::Mixed => {}
            _ => opposite.push(row),
        }
    }
    assert!(agree >= 24 && opposite.len() <= 1, "{agree} agree, opposite: {opposite:?}");
}

#[test]
fn a_chinese_reading_gives_answer_reasons_advice_text_and_chart() {
    let expected = "\
你今年换工作看来合适。

代表此事的是五爻官鬼酉金（职位与上司），眼下有力。有利的是用神得月令丑生扶，根基稳。动爻：四爻父母亥水（合同与单位）动化妻财未土，分去用神一些力气；上爻妻财未土（薪酬）动化兄弟卯木，本来生用神，却自身月破，帮不到底。世爻（你自己）在三爻妻财辰土，力量平平：用神生合世爻，事情向着你。

先拿到书面聘用，再提离职。

卦中经文（随·上六）「拘系之，乃从维之，王用亨于西山。」用绳系住，再三挽留，诚意像王在西山祭享一样深。

你问的是「我今年换工作合适吗？」。得 ䷐ 泽雷随（第17卦），九四、上六动，变为 ䷩ 风雷益（第42卦）。三枚铜钱摇成，2026-01-15 23:30（己丑月庚寅日，旬空午未）；震宫木，归魂卦。问工作，以官鬼（职位与上司）为用神；元神妻财，忌神子孙，仇神兄弟。

本文由离线规则依卦写成，并非大语言模型所作；决定仍由你作出。";
    assert_eq!(interpret(&now(Written::Simplified, "788976", "我今年换工作合适吗？")), expected);
}

#[test]
fn an_english_reading_is_prose_about_the_casting() {
    let text = interpret(&now(Written::English, "788976", "Will I get the job offer?"));
    assert!(text.starts_with("You will probably get the job offer.\n\n"), "{text}");
    expect_parts(
        &text,
        &[
            "The line for this matter is the fifth line, Officials (Rooster, metal) (the post and those above you), strong",
            "Time: around the Rabbit month (about March) (a strong line at rest wakes when it is struck).",
            "The answer is ䷐ Hexagram 17, Following (泽雷随 suí), with the fourth and top lines changing, which leads to ䷩",
            "a Tiger day (庚寅) in the Ox month (己丑), Horse and Goat void.",
        ],
    );
    let long = "Will the town council approve the plans for the new extension ".repeat(4);
    let quote = interpret(&now(Written::English, "788976", &long));
    assert!(quote.contains("approve the…\""), "{quote}");
}

#[test]
fn traditional_readings_quote_the_received_text() {
    let text = interpret(&now(Written::Traditional, "788976", "我的病会好嗎"));
    expect_parts(&text, &["你問的是「我的病会好嗎」", "䷐ 澤雷隨", "王用亨于西山", "月令丑"]);
    assert!(!text.contains('兇') && !text.contains('醜'), "{text}");
}

/// Readings that begin with a sentence or have a part, and rules that the book applies.
#[test]
fn readings_answer_as_they_are_asked() {
    for row in include_str!("../../tests/readings.tsv").lines().skip(1) {
        let [time, lines, question, part, expected] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let reading = match time.split_once(' ') {
            Some((month, day)) => dated(month, day, lines, question),
            None => now(Written::Simplified, lines, question),
        };
        let text = interpret(&reading);
        let is_so = match part {
            "begins" => text.starts_with(expected),
            "reason" => reasons(&reading).contains(&expected),
            _ => text.contains(expected),
        };
        assert!(is_so, "{row}: {text}");
    }
}

/// The answer, the strength of the line for the matter and the evidence agree, and no moving line is left out.
#[test]
fn no_answer_contradicts_its_evidence() {
    let questions =
        ["我能升职吗", "钥匙丢了能找到吗", "我的病能好吗", "这场官司能赢吗", "女朋友会跟我结婚吗", "这笔钱能到手吗"];
    for number in 0..360_usize {
        let day = StemBranch::from_place(i64::try_from(number * 7).unwrap());
        let lines: String =
            (0..6).map(|line| ['6', '7', '8', '9'][(number * 37 + line * 11) / (line + 1) % 4]).collect();
        let reading = dated(Branch::ALL[number % 12].name(), &day.to_string(), &lines, questions[number % 6]);
        let matter = Matter::of(&reading);
        let assessment = assess(reading.chart.as_ref().unwrap(), &matter, true).unwrap();
        let has = |reason| assessment.has(reason);
        let is_hurt =
            [Reason::MonthBreaks, Reason::DayBreaks, Reason::InGrave, Reason::VoidIndeed].into_iter().any(has);
        assert!(!is_hurt || assessment.weight != Some(Weight::Strong), "{lines} {day}");
        let most = assessment.evidence.iter().map(|it| it.weight).max().unwrap_or(0);
        let least = assessment.evidence.iter().map(|it| it.weight).min().unwrap_or(0);
        match assessment.outlook {
            Outlook::Favourable if assessment.weight == Some(Weight::Weak) => assert!(most >= 3, "{lines} {day}"),
            Outlook::Favourable => assert!(most > 0, "{lines} {day}"),
            Outlook::Adverse => assert!(least < 0, "{lines} {day}"),
            Outlook::Mixed => {}
        }
        let text = interpret(&reading);
        let (_, moves) = text.split_once("动爻").unwrap_or_default();
        let is_own = |line: &ChartLine| line.position == assessment.significator.line.position;
        for line in reading.chart.iter().flat_map(|chart| &chart.lines).filter(|line| line.becomes.is_some()) {
            let name = ["初爻", "二爻", "三爻", "四爻", "五爻", "上爻"][usize::from(line.position) - 1];
            assert!(
                moves.contains(name)
                    || is_own(line)
                        && (moves.contains("自己动") || moves.contains("神动而化") || moves.contains("爻动而化")),
                "{name}: {text}"
            );
        }
    }
}

#[test]
fn an_earth_line_that_the_day_strikes_is_not_helped_by_it() {
    // 戌 on a 辰 day in a 卯 month: struck, not supported; the void is struck today.
    let reading = dated("卯", "戊辰", "877878", "这笔钱能到手吗");
    let found = reasons(&reading);
    assert!(!found.contains(&"day_helps") && !found.contains(&"void_heals"), "{found:?}");
    let text = interpret(&reading);
    assert!(!text.contains("冲空") || text.contains("今日已被冲起"), "{text}");
    // 辰 on a 戌 day in a 戌 month: broken by both.
    let reading = dated("戌", "甲戌", "788778", "房子能买吗");
    assert!(!reasons(&reading).contains(&"stirred"), "{:?}", reasons(&reading));
}

#[test]
fn castings_by_time_and_numbers_are_also_read_by_body_and_use() {
    let mut asked = now(Written::English, "787987", "How will my bakery do?");
    asked.method = Some("numbers");
    expect_parts(&interpret(&asked), &["By the plum blossom method, you are the trigram lí (fire) (the body)"]);
    asked.method = Some("three_coins");
    assert!(!interpret(&asked).contains("plum blossom"));
}

#[test]
fn a_hexagram_alone_is_read_without_time_and_movement() {
    let facts = read("本卦：水雷屯");
    let cast = Cast::from_hexagram(facts.primary.unwrap(), &[]);
    for (written, parts, absent) in [
        (Written::Simplified, ["数据没有说明哪些爻在动", "起卦的时间不详", "这里以经文「"], ["应期", "安静"]),
        (
            Written::English,
            ["does not say which lines change", "The time of the casting is not known", "This follows the text"],
            ["Days to watch", "lines rest"],
        ),
    ] {
        let chart = Some(Chart::new(&cast, Err(MissingMoment::Unknown)));
        let asked = Reading { facts: facts.clone(), chart, method: None, ..now(written, "777777", "换工作好吗") };
        let text = interpret(&asked);
        expect_parts(&text, &parts);
        assert!(absent.iter().all(|part| !text.contains(part)), "{text}");
    }
}

#[test]
fn asks_for_a_hexagram_if_none_is_found() {
    let empty = Reading { facts: Facts::default(), chart: None, ..now(Written::Simplified, "777777", "") };
    expect_parts(
        &interpret(&empty),
        &["数据里没有读到可以确认的卦", "{\"lines\": [7, 8, 8, 8, 7, 9]}", "并非大语言模型所作"],
    );
    let english = interpret(&Reading { written: Written::English, ..empty });
    expect_parts(&english, &["No hexagram could be found", "none is made up", "not by a language model"]);
}

#[test]
fn sources_are_named_only_if_something_was_assumed() {
    let text = |data: &str| interpret(&Reading { facts: read(data), ..now(Written::Simplified, "777777", "?") });
    assert!(!text(r#"{"lines": [7, 8, 8, 9, 7, 6]}"#).contains("依据"));
    assert!(text(r#"{"benGua": "随", "bianGua": "益", "dong": [3, 5]}"#).contains("依据："));
}

#[test]
fn no_casting_gives_a_verdict_about_a_missing_person() {
    const LETTERS: [u8; 4] = *b"6789";
    for (written, asked, person) in [
        (Written::Simplified, "孩子走丢了", "「子孙」"),
        (Written::Traditional, "老婆没回家", "應爻"),
        (Written::English, "my father did not come home", "the line of Parents"),
    ] {
        for number in 0..4_096_usize {
            let lines: String = (0..6).map(|line| char::from(LETTERS[number >> (2 * line) & 3])).collect();
            let text = interpret(&Reading { is_about_missing_person: true, ..now(written, &lines, asked) });
            assert!(text.contains(person), "{text}");
            for verdict in
                ["应期", "應期", "吉", "凶", "宜", "合起来看", "妻财", "慢慢", "day of", "favour", "advise", "Wealth"]
            {
                assert!(!text.contains(verdict), "{verdict}: {text}");
            }
        }
    }
}

/// Returns what shows that a phrase or a value is missing.
fn flaw(text: &str) -> Option<&'static str> {
    let flaws =
        ["  ", "。。", "..", "；。", "：。", "，，", "，。", ": .", "{line", "{matter", "{day", "\u{E000}", "\u{E001}"];
    flaws.into_iter().find(|flaw| text.contains(flaw))
}

proptest! {
    #[test]
    fn every_casting_has_a_reading(
        lines in "[6-9]{6}",
        asked in prop_oneof!["\\PC{0,40}", "[a-z ?]{0,40}", "[我会他要还是不什么时候谁吗？]{0,20}"],
        kind in proptest::option::of("\\PC{0,12}"),
        seconds in proptest::option::of(-3_000_000_000_i64..5_000_000_000),
        gender in proptest::option::of(proptest::bool::ANY),
        written in proptest::sample::select(vec![Written::Simplified, Written::Traditional, Written::English]),
        view in proptest::sample::select(View::ALL.to_vec()),
        is_numbers: bool,
    ) {
        let moment = seconds.and_then(|second| {
            CalendarMoment::new(LocalTime::at(second * 1000, &zone())?, DayStart::AtMidnight)
        });
        let reading = Reading {
            question_type: kind,
            view,
            asker: gender.map(|is_male| if is_male { AskerGender::Male } else { AskerGender::Female }),
            method: Some(if is_numbers { "numbers" } else { "yarrow_stalks" }),
            ..reading(written, &lines, &asked, moment)
        };
        let text = interpret(&reading);
        let is_named = text.contains(reading.facts.primary.unwrap().sign());
        prop_assert!(is_named);
        prop_assert_eq!(interpret(&reading), text);
    }
}

#[test]
fn every_hexagram_topic_and_aim_has_a_reading() {
    let ask = ["", "会成吗", "什么时候", "是谁", "要不要做", "是不是骗局", "怕失败", "甲还是乙"];
    for primary in Hexagram::all() {
        for (place, topic) in Topic::ALL.into_iter().enumerate() {
            for written in [Written::Simplified, Written::Traditional, Written::English] {
                let cast = Cast::from_hexagram(primary, &[1, 4]);
                let lines = cast.lines().to_string();
                let asked = ask[(usize::from(primary.number()) + place) % ask.len()];
                let reading = Reading { question_type: Some(topic.name().to_owned()), ..now(written, &lines, asked) };
                let mut texts = View::ALL.map(|view| interpret(&Reading { view, ..reading.clone() }));
                for text in &texts {
                    assert_eq!(flaw(text), None, "{} {asked}: {text}", topic.name());
                }
                texts.sort_unstable();
                assert!(texts[0] != texts[1] && texts[1] != texts[2]);
            }
        }
    }
}

/// A release build takes up to 200 µs for a reading and 20 µs for a chart. The bounds here leave room for slow machines.
#[test]
fn charts_and_readings_are_fast() {
    let local = LocalTime::at(1_768_491_000_000, &zone()).unwrap();
    let casts: Vec<Cast> = (0..64)
        .map(|number| {
            let lines: String = (0..6).map(|line| if number >> line & 1 == 1 { '9' } else { '8' }).collect();
            Cast::from_lines(lines.parse().unwrap())
        })
        .collect();
    let ask = |cast: &Cast| now(Written::Traditional, &cast.lines().to_string(), "我今年能升职吗，什么时候");
    let readings: Vec<Reading> = casts.iter().map(ask).collect();
    let measure = |work: &dyn Fn() -> usize| {
        // The first run reads the tables.
        work();
        let start = cpu_time::ThreadTime::now();
        assert!(work() > 0);
        start.elapsed() / 64
    };
    let chart = measure(&|| {
        let at = || CalendarMoment::new(local, DayStart::At23).ok_or(MissingMoment::Unknown);
        casts.iter().map(|cast| Chart::new(cast, at()).lines.len()).sum()
    });
    let reading = measure(&|| readings.iter().map(|reading| interpret(reading).len()).sum());
    let slow = std::time::Duration::from_micros;
    assert!(chart < slow(400) && reading < slow(4_000), "chart {chart:?}, reading {reading:?}");
}

#[test]
fn every_rule_topic_and_outlook_has_its_phrases() {
    let rules: Vec<&str> = include_str!("../../../../assets/interpreter/rules.tsv").lines().skip(1).collect();
    let names: Vec<Option<&str>> = rules.iter().map(|rule| rule.split('\t').next()).collect();
    assert_eq!(names, Reason::ALL.map(|reason| Some(reason.name())));
    let topics = Topic::ALL.map(Topic::name);
    let outlooks = Outlook::ALL.map(Outlook::name);
    let aims = "fear fact unwelcome_fact fact_advice when who who_advice choice whether whether.act how how_open why";
    let mut keys: Vec<String> = Reason::ALL.iter().map(|reason| format!("reason.{}", reason.name())).collect();
    keys.extend(TimingRule::ALL.iter().map(|rule| format!("because.{}", rule.name())));
    keys.extend(["good", "mixed", "warning"].map(|judgement| format!("agreement.text.{judgement}")));
    keys.extend(outlooks.iter().flat_map(|outlook| aims.split(' ').map(move |aim| format!("{aim}.{outlook}"))));
    for topic in topics {
        keys.extend(["topic", "other"].map(|group| format!("{group}.{topic}")));
        keys.extend(["父母", "官鬼", "妻财", "子孙", "兄弟"].map(|kin| format!("role.{topic}.{kin}")));
        keys.extend(outlooks.map(|outlook| format!("wish.{topic}.{outlook}")));
    }
    for words in [Written::Simplified, Written::English].map(phrases::Phrases) {
        let missing: Vec<_> = keys.iter().filter(|key| words.find(key).is_none_or(str::is_empty)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
