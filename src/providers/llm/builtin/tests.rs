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
fn danger_comes_first() {
    assert!(interpret(&empty(Locale::Chinese, "我不想活了")).starts_with("你的话里似乎藏着很深的痛苦"));
    assert!(interpret(&empty(Locale::English, "I want to die")).starts_with("Your words sound"));
}

#[test]
fn quotes_the_question_on_one_short_line() {
    assert_eq!(quoted(" a\n b\t\u{7}c "), Some("a b c".to_owned()));
    assert_eq!(quoted("\n \u{7}"), None);
    let quote = quoted(&"问".repeat(200)).unwrap();
    assert_eq!(quote.chars().count(), MAX_QUOTE_LENGTH + 1);
    assert!(quote.ends_with('…'));
}
