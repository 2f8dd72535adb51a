use proptest::prelude::*;

use super::*;
use crate::{
    domain::divination::{
        chart::{CastTime, DayStart},
        hexagram::{self, Hexagram},
    },
    providers::llm::builtin::{MissingPerson, Written, interpret},
    types::{LanguageTag, TimeZone, Timestamp},
};

/// 2026-01-15 23:30 in Shanghai: 乙巳 己丑 庚寅 丙子.
const AT: Timestamp = Timestamp(1_768_491_000_000);

fn question(text: &str, locale: Locale) -> CastingQuestion {
    CastingQuestion {
        question_type: None,
        question: text.to_owned(),
        divination_data: None,
        cast: None,
        cast_time: Some(CastTime { at: AT, zone: "Asia/Shanghai".parse().unwrap(), day_start: DayStart::At23 }),
        method: Some("three_coins"),
        locale,
        tag: LanguageTag::default(),
    }
}

fn text(lines: &str, asked: &str, asker: Option<AskerGender>, locale: Locale) -> String {
    let facts = Facts::from_cast(Cast::from_lines(lines.parse().unwrap()));
    interpret(&reading(&question(asked, locale), &facts, asker))
}

fn chinese(lines: &str, asked: &str) -> String {
    text(lines, asked, None, Locale::Chinese)
}

fn expect_parts(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn a_chinese_reading_begins_with_the_verse_and_ends_with_counsel() {
    let expected = "\
你问的是「我今年换工作合适吗？」。
得 ䷐ 泽雷随（随，suí，第17卦），上兑为泽，下震为雷。九四、上六动，变为 ䷩ 风雷益（益，yì，第42卦）。

两爻动，读这两爻的爻辞，以上面一爻为主：
随·上六（主）「拘系之，乃从维之，王用亨于西山。」用绳系住，再三挽留，诚意像王在西山祭享一样深。
随·九四（辅）「随有获，贞凶。有孚在道，以明，何咎？」追随而有收获，若占为己有则凶；心诚、守道、光明，便没有过失。

泽雷随之象：雷潜在泽中，随时令而息。随时应变，择善而从；放下成见，该行则行，该歇则歇。事情往风雷益走：风与雷互相助长。

";
    let text = chinese("788976", "我今年换工作合适吗？");
    assert!(text.starts_with(expected), "{text}");
    expect_parts(
        &text,
        &[
            "此卦以三枚铜钱摇成，时当 2026-01-15 23:30（乙巳年己丑月庚寅日丙子时，旬空午未，暂时落空）；卦属震宫木，归魂卦。",
            "问工作，以官鬼（职位与上司）为用神，在五爻官鬼酉金。",
            "它得月令丑生为相，克日辰寅而耗力，又绝于日，强弱相抵。",
            "世爻是你，在三爻妻财辰土",
            "世生用神，是你在迁就和付出，又相合，牵得住。",
            "四爻父母亥水（合同与单位）发动化妻财未土",
            "应爻旬空又月破，那边使不上力",
            "可留意酉日（近的是1月23日），或卯日（近的是1月17日）",
            "合起来看，走得通，但不会一步到位",
            "并非大语言模型所作",
        ],
    );
    assert!(!text.contains("依据"), "{text}");
}

#[test]
fn an_english_reading_is_prose_about_the_casting() {
    let text = text("788976", "Will I get the job offer?", None, Locale::English);
    expect_parts(
        &text,
        &[
            "The answer is ䷐ Hexagram 17, Following (泽雷随 suí): lake above, thunder below. The fourth and top lines are \
             changing, and they lead to ䷩ Hexagram 42, Increase (风雷益 yì).",
            "a Tiger day (庚寅) in the Ox month (己丑), when Horse and Goat are void",
            "In a question about work, watch the Officer line (the post and those above you). Here it is the fifth line \
             (Rooster, metal). The Ox month feeds it, but the Tiger day tires it",
            "Opposite you, the top line, Wealth (Goat, earth), stands for the employer",
            "a Rooster day (next on 23 January)",
            "Taken together, there is a way through, but not in one step.",
        ],
    );
}

#[test]
fn the_profile_decides_the_line_of_a_partner() {
    let asked = "我们会结婚吗";
    let man = text("877777", asked, Some(AskerGender::Male), Locale::Chinese);
    expect_parts(&man, &["男问感情，以妻财为对方；卦里不见妻财，妻财寅木伏在二爻子孙亥水之下，飞神生伏神"]);
    expect_parts(&man, &["好在日辰的五行就是妻财"]);
    let woman = text("877777", asked, Some(AskerGender::Female), Locale::Chinese);
    expect_parts(&woman, &["女问感情，以官鬼为对方，在四爻官鬼午火，正临应位。", "它旬空"]);
    let unknown = chinese("877777", asked);
    expect_parts(&unknown, &["问感情而不论男女，以应爻为对方"]);
}

#[test]
fn voids_and_breaks_are_named_with_the_time_at_which_they_end() {
    // 戌 holds the subject of 乾 and is broken in the month of 辰.
    let mut asked = question("租的房子要不要续租", Locale::Chinese);
    asked.cast_time = Some(CastTime { at: Timestamp(1_775_804_400_000), ..asked.cast_time.unwrap() });
    let facts = Facts::from_cast(Cast::from_lines("777777".parse().unwrap()));
    let text = interpret(&reading(&asked, &facts, None));
    expect_parts(&text, &["它被月令辰冲为月破，被日辰寅克，大体乏力。月破无救，这个月里使不上劲。"]);
    expect_parts(&text, &["多半要出了辰月（五月初），再逢戌日补上或卯日相合", "五爻兄弟申金（竞争者与开销）暗动"]);
}

#[test]
fn castings_by_time_and_numbers_are_also_read_by_body_and_use() {
    let mut asked = question("How will my bakery do?", Locale::English);
    asked.method = Some("numbers");
    let facts = Facts::from_cast(Cast::from_lines("787987".parse().unwrap()));
    let text = interpret(&reading(&asked, &facts, None));
    expect_parts(&text, &["By the plum blossom method, you are the trigram lí (fire) (the body)"]);
    asked.method = Some("three_coins");
    assert!(!interpret(&reading(&asked, &facts, None)).contains("plum blossom"));
}

#[test]
fn a_hexagram_alone_is_read_without_time_and_movement() {
    for (locale, parts, absent) in [
        (
            Locale::Chinese,
            ["数据没有说明哪些爻在动", "起卦的时间不详", "下卦震之奋动近于你自己，上卦坎之险陷近于用人的一方。"],
            ["应期", "安静"],
        ),
        (
            Locale::English,
            [
                "does not say which lines change",
                "The time of the casting is not known",
                "the movement of thunder below is close to your own state",
            ],
            ["Days to watch", "at rest"],
        ),
    ] {
        let mut asked = question("换工作好吗", locale);
        (asked.cast_time, asked.method) = (None, None);
        let text = interpret(&reading(&asked, &hexagram::read("本卦：水雷屯"), None));
        expect_parts(&text, &parts);
        assert!(absent.iter().all(|part| !text.contains(part)), "{text}");
    }
}

#[test]
fn sources_are_named_only_if_something_was_assumed() {
    let asked = question("?", Locale::Chinese);
    let text = |data: &str| interpret(&reading(&asked, &hexagram::read(data), None));
    assert!(!text(r#"{"lines": [7, 8, 8, 9, 7, 6]}"#).contains("依据"));
    assert!(text(r#"{"benGua": "随", "bianGua": "益", "dong": [3, 5]}"#).contains("依据："));
}

#[test]
fn readings_of_different_castings_share_no_sentence_about_them() {
    // CastingQuestion and moment are the same, and the counsel is that of the topic.
    let common = [
        "模型",
        "你问的是",
        "2026",
        "合起来看",
        "model",
        "You asked",
        "In a question",
        "Taken together",
        "Keep your present",
        "decision remains",
    ];
    for (locale, separators) in [(Locale::Chinese, ['。', '\n']), (Locale::English, ['.', '\n'])] {
        let sentences = |lines: &str| {
            let text = text(lines, "我的工作, my job", None, locale);
            let is_own = |it: &&str| it.chars().count() > 12 && !common.iter().any(|word| it.contains(word));
            text.split(separators).filter(is_own).map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let (one, other) = (sentences("788976"), sentences("686868"));
        let shared: Vec<_> = one.iter().filter(|it| other.contains(it)).collect();
        assert!(shared.is_empty(), "{shared:?}");
    }
}

proptest! {
    #[test]
    fn every_casting_has_a_reading(
        lines in "[6-9]{6}",
        asked in "\\PC{0,40}",
        kind in proptest::option::of("\\PC{0,12}"),
        seconds in proptest::option::of(-3_000_000_000_i64..5_000_000_000),
        gender in proptest::option::of(proptest::bool::ANY),
        is_chinese: bool,
        is_numbers: bool,
    ) {
        let locale = if is_chinese { Locale::Chinese } else { Locale::English };
        let zone: TimeZone = "Asia/Shanghai".parse().unwrap();
        let asked = CastingQuestion {
            question_type: kind,
            cast_time: seconds.map(|second| CastTime { at: Timestamp(second * 1000), zone, day_start: DayStart::AtMidnight }),
            method: Some(if is_numbers { "numbers" } else { "yarrow_stalks" }),
            ..question(&asked, locale)
        };
        let asker = gender.map(|is_male| if is_male { AskerGender::Male } else { AskerGender::Female });
        let cast = Cast::from_lines(lines.parse().unwrap());
        let input = reading(&asked, &Facts::from_cast(cast), asker);
        let text = interpret(&input);
        prop_assert!(text.contains(cast.primary().chinese_full_name()));
        prop_assert_eq!(interpret(&input), text);
    }
}

#[test]
fn every_hexagram_and_topic_has_a_reading() {
    let topics =
        ["career", "love", "health", "wealth", "study", "family", "travel", "legal", "lost", "pets", "visa", "house"];
    for primary in Hexagram::all() {
        for topic in topics {
            for locale in [Locale::Chinese, Locale::English] {
                let asked = CastingQuestion { question_type: Some(topic.to_owned()), ..question("", locale) };
                let facts = Facts::from_cast(Cast::from_hexagram(primary, &[1, 4]));
                let text = interpret(&reading(&asked, &facts, None));
                assert!(!text.contains("  ") && !text.contains("。。") && !text.contains(".."), "{text}");
            }
        }
    }
}

#[test]
fn no_casting_gives_a_verdict_about_a_missing_person() {
    const LETTERS: [u8; 4] = *b"6789";
    for (locale, written, asked, person) in [
        (Locale::Chinese, Written::Simplified, "孩子走丢了", "「子孙」"),
        (Locale::Chinese, Written::Traditional, "老婆没回家", "應爻"),
        (Locale::English, Written::English, "my father did not come home", "the line of Parents"),
    ] {
        for number in 0..4_096_usize {
            let lines: String = (0..6).map(|line| char::from(LETTERS[number >> (2 * line) & 3])).collect();
            let facts = Facts::from_cast(Cast::from_lines(lines.parse().unwrap()));
            let reading = reading(&question(asked, locale), &facts, None);
            let missing = MissingPerson { question: asked.to_owned(), written };
            let text = interpret(&Reading { missing_person: Some(missing), ..reading });
            assert!(text.contains(person), "{text}");
            for verdict in
                ["应期", "應期", "吉", "凶", "宜", "合起来看", "妻财", "慢慢", "day of", "favour", "advise", "Wealth"]
            {
                assert!(!text.contains(verdict), "{verdict}: {text}");
            }
        }
    }
}
