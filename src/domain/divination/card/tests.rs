//! Cards of every cast fit, in both languages; lines are broken where people break them.

use liuyao::interpreter::Written;

use super::{
    CardOptions, Theme, WIDTH,
    wrap::{Break, cleaned, wrapped},
};
use crate::{
    domain::divination::{
        chart::DayStart,
        hexagram::{Cast, Hexagram},
        sessions::{Method, Session},
    },
    types::{Locale, Timestamp, UserId},
};

fn session(cast: Cast, question: &str) -> Session {
    Session {
        id: String::new(),
        user: UserId(1),
        sequence: 1,
        question: question.to_owned(),
        question_type: None,
        method: Method::YarrowStalks,
        numbers: Vec::new(),
        cast,
        cast_at: Timestamp(1_795_620_600_000),
        time_zone: "America/Argentina/ComodRivadavia".to_owned(),
        day_start: DayStart::At23,
        points_spent: 0,
        idempotency_key: None,
        interpretation: None,
        title: None,
        note: None,
        change: 1,
        created_at: Timestamp(0),
    }
}

fn card(cast: Cast, locale: Locale, question: Option<&str>) -> String {
    let written = if locale == Locale::English { Written::English } else { Written::Simplified };
    let options = CardOptions { written, theme: Theme::Auto, with_question: question.is_some(), brand: "Yarrow" };
    options.draw(&session(cast, question.unwrap_or_default()))
}

/// Returns the value of an attribute.
fn number(element: &str, name: &str) -> u32 {
    let after = element.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name} in {element}")).1;
    after.split_once('"').unwrap().0.parse().unwrap()
}

#[test]
fn every_cast_fits_its_card() {
    for locale in [Locale::Chinese, Locale::English] {
        for primary in Hexagram::all() {
            for relating in Hexagram::all() {
                let cast = Cast::from_hexagram(primary, &primary.differing_positions(relating));
                let svg = card(cast, locale, None);
                let height = number(svg.split_once("<rect class=\"b\"").unwrap().1, "height");
                assert!((500..1300).contains(&height), "{height}");
                for text in svg.split("<text ").skip(1) {
                    let (attributes, text) = text.split_once("</text>").unwrap().0.split_once('>').unwrap();
                    let attributes = format!(" {attributes}");
                    assert!(number(&attributes, "x") < WIDTH && number(&attributes, "y") < height, "{attributes}");
                    assert!(!text.is_empty() && text.chars().count() <= 55, "{text}");
                }
                for rectangle in svg.split("<rect class").skip(2) {
                    assert!(number(rectangle, "x") + number(rectangle, "width") <= WIDTH, "{rectangle}");
                }
            }
        }
    }
}

#[test]
fn a_long_question_is_cut() {
    let cast = Cast::from_hexagram(Hexagram::all().next().unwrap(), &[]);
    let height = |length: usize| {
        number(
            card(cast, Locale::Chinese, Some(&"问".repeat(length))).split_once("<rect class=\"b\"").unwrap().1,
            "height",
        )
    };
    assert!(height(300) > height(100));
    assert_eq!(height(1_000), height(10_000));
    assert!(card(cast, Locale::Chinese, Some(&"问".repeat(1_000))).contains("问…</text>"));
    assert_eq!(card(cast, Locale::Chinese, Some(" \u{200B}\u{202E} ")), card(cast, Locale::Chinese, None));
}

#[test]
fn chinese_lines_neither_begin_with_a_comma_nor_end_with_a_bracket() {
    let lines = wrapped("一二三四，五六七《八九》", 10, 40, Break::Anywhere);
    assert_eq!(lines, ["一二三", "四，五六", "七《八", "九》"]);
    assert_eq!(wrapped("一二三四五六。七八九十", 10, 80, Break::Clauses), ["一二三四五六。", "七八九十"]);
    assert_eq!(wrapped("一。三四五六七八九十", 10, 80, Break::Clauses), ["一。三四五六七八", "九十"]);
}

#[test]
fn words_stay_whole_unless_they_are_longer_than_a_line() {
    assert_eq!(wrapped("one two  three\nfour", 10, 50, Break::Anywhere), ["one two", "three", "four"]);
    assert_eq!(wrapped("aaaaaaaaaaaa", 10, 50, Break::Anywhere), ["aaaaaaaa", "aaaa"]);
    assert_eq!(wrapped("用Rust写，OK？", 10, 40, Break::Anywhere), ["用Rust", "写，", "OK？"]);
    assert!(wrapped("", 10, 50, Break::Anywhere).is_empty());
    assert_eq!(wrapped("，，，，，，", 10, 30, Break::Anywhere), ["，，，", "，，，"]);
}

#[test]
fn cleaning_leaves_what_can_be_seen() {
    for (text, expected) in [
        (" a\t b\r\n\u{2028}c ", "a b c"),
        ("x\u{202E}y\u{2066}\u{200F}\u{FEFF}z\u{0}\u{7F}", "xyz"),
        ("e\u{301}\u{302}\u{303}\u{304}\u{305}", "e\u{301}\u{302}\u{303}"),
        ("👨\u{200D}👩\u{200D}👧 ☯\u{FE0F}", "👨\u{200D}👩\u{200D}👧 ☯\u{FE0F}"),
        ("\u{FFFE}\u{FDD0}\u{1FFFF}ok", "ok"),
        ("שלום", "שלום"),
    ] {
        assert_eq!(cleaned(text), expected, "{text:?}");
    }
}
