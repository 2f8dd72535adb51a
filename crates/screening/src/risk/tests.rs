use std::fs;

use super::*;

/// Written by `tests/risk/train.py`, which reads the features beside them.
const TRAINING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/risk");
/// The class of harmless texts in files of sentences.
const NONE: &str = "none";

/// Returns the class and the text of each line.
fn sentences(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'))
}

fn class_of(text: &str) -> &'static str {
    classify(text).map_or(NONE, |risk| risk.class.name())
}

#[test]
fn the_files_have_no_faults() {
    assert_eq!(Rules::read(&RULES).1, Vec::<String>::new());
    assert_eq!(Model::read(WEIGHTS).err(), None);
}

#[test]
fn typical_questions_have_their_class() {
    let wrong: Vec<_> = sentences(include_str!("../../../../tests/risk/typical.tsv"))
        .map(|(class, text)| (class, class_of(text), text))
        .filter(|(class, found, _)| class != found)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn ordinary_texts_are_harmless() {
    let ordinary = include_str!("../../../../assets/ordinary-sentences.txt");
    let classics =
        [include_str!("../../../../assets/classics/lines.tsv"), include_str!("../../../../assets/hexagrams.tsv")];
    let texts: Vec<_> = ordinary.lines().chain(classics.iter().flat_map(|file| file.split(['\t', '\n']))).collect();
    let taken: Vec<_> = texts.iter().map(|text| (class_of(text), text)).filter(|(class, _)| *class != NONE).collect();
    assert!(taken.len() * 500 <= texts.len(), "{} of {}: {taken:?}", taken.len(), texts.len());
}

#[test]
fn disguises_and_spellings_do_not_matter() {
    for text in [
        "我想自杀",
        "我想自殺",
        "我 想 自 杀",
        "想自sha",
        "wo xiang zisha",
        "wǒ xiǎng zìshā",
        "ＫＭＳ",
        "k m s",
        "I WANT TO DIE",
        "i dont want to live anymore",
        "I don’t want to live anymore",
    ] {
        assert_eq!(class_of(text), "self_harm", "{text}");
    }
}

#[test]
fn an_act_that_has_begun_is_told_from_a_thought() {
    let begun = |text: &str| classify(text).is_some_and(|risk| risk.is_self_inflicted);
    for text in ["我吞了一瓶安眠药", "我已经割腕了，血止不住", "i took a whole bottle of pills to end it"]
    {
        assert!(begun(text), "{text}");
    }
    for text in ["我想自杀", "妈妈心口痛冒冷汗", "I want to die"] {
        assert!(!begun(text), "{text}");
    }
}

#[test]
fn the_gravest_class_of_several_texts_counts() {
    assert_eq!(classify_question("我想自杀", Some("感情")).map(|risk| risk.class), Some(RiskClass::SelfHarm));
    assert_eq!(classify_question("今年好吗", Some("自杀")).map(|risk| risk.class), Some(RiskClass::SelfHarm));
    assert_eq!(classify_question("今年好吗", Some("事业")), None);
    assert_eq!(classify(""), None);
}

#[test]
fn a_sentence_in_a_long_text_counts() {
    let long = |before: &str, sentence: &str, after: &str| format!("{before}{sentence}{after}");
    for (class, text) in [
        (
            "self_harm",
            long(
                "最近公司很忙，周末也在加班，老板让我带两个新人，下个月还要去上海出差，家里的猫也没人照顾。",
                "其实我早就不想活了，",
                "爸妈让我回老家考公务员，我一直没有答应，房子的租约也快到期了，不知道搬去哪里好。",
            ),
        ),
        (
            "emergency",
            long(
                "We moved in last spring and the garden is lovely. The neighbours are kind and the school is close. ",
                "My husband collapsed just now and he is not breathing. ",
                "Next month we wanted to visit my sister in Leeds. The dog needs a new vet as well.",
            ),
        ),
    ] {
        assert_eq!(class_of(&text), class, "{text}");
    }
    let ordinary = "最近公司很忙，周末也在加班，老板让我带两个新人，下个月还要去上海出差，家里的猫也没人照顾，房子的租约也快到期了。";
    for text in [format!("我早就不想活了，{ordinary}"), format!("{ordinary}我早就不想活了")] {
        assert_eq!(class_of(&text), "self_harm", "{text}");
    }
}

#[test]
fn long_texts_are_divided_into_parts_from_beginning_to_end() {
    let parts = |text: &str| PlainText::of(text).parts().collect::<Vec<_>>();
    let clauses = |lengths: &[usize]| lengths.iter().map(|length| "卦".repeat(*length) + "，").collect::<String>();
    assert_eq!(parts(&clauses(&[9, 9, 9])), []);
    assert_eq!(parts(&clauses(&[9, 9, 9, 4])), [0..20, 10..30, 20..35]);
    assert_eq!(parts(&clauses(&[9, 29])), [0..10, 10..40]);
}

#[test]
fn long_and_strange_texts_are_harmless() {
    for text in
        ["卦".repeat(4_000), "a".repeat(4_000), "zi".repeat(2_000), "\u{10FFFF}\0☯️".repeat(500), "1 ".repeat(2_000)]
    {
        assert_eq!(classify(&text), None, "{}", text.chars().take(9).collect::<String>());
    }
}

/// Writes the features of the sentences from which `tests/risk/train.py` computes the weights.
#[test]
#[ignore = "a part of tests/risk/train.py"]
fn writes_features_for_training() {
    let input = fs::read_to_string(format!("{TRAINING}/sentences.tsv")).unwrap();
    let features = |text: &str| {
        let plain = PlainText::of(text);
        model::features(&plain, &RECOGNISER.rules.matches(&plain)).join("\t")
    };
    let lines = input.lines().filter_map(|line| line.split_once('\t'));
    let output: Vec<_> = lines.map(|(class, text)| format!("{class}\t{}", features(text))).collect();
    fs::write(format!("{TRAINING}/features.tsv"), output.join("\n")).unwrap();
}
