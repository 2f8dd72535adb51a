use std::collections::{HashMap, HashSet};

use super::*;

const LOCALES: [Locale; 2] = [Locale::Chinese, Locale::English];

fn hexagram(number: u8) -> Hexagram {
    Hexagram::from_number(number).unwrap()
}

fn lines(hexagram: Hexagram) -> impl Iterator<Item = LineClassic> {
    hexagram.line_classics().into_iter().chain(hexagram.all_changing_classic())
}

fn all_lines() -> impl Iterator<Item = LineClassic> {
    Hexagram::all().flat_map(lines)
}

/// Returns every classical text, with the hexagram and the line it belongs to.
fn texts() -> Vec<(u8, &'static str, ClassicalText)> {
    let mut texts = Vec::new();
    for hexagram in Hexagram::all() {
        for text in [hexagram.classical_judgement(), hexagram.classical_commentary(), hexagram.classical_image()] {
            texts.push((hexagram.number(), "", text));
        }
        for line in lines(hexagram) {
            texts.extend([line.text(), line.image()].map(|text| (hexagram.number(), line.label(), text)));
        }
    }
    texts
}

fn is_han(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}')
}

#[test]
fn there_are_450_texts_with_their_commentaries_and_images() {
    assert_eq!(all_lines().count(), 386);
    assert_eq!(Hexagram::all().count() + all_lines().count(), 450);
    assert_eq!(texts().len(), 450 + 64 + 64 + 386);
}

#[test]
fn labels_follow_the_figure() {
    for hexagram in Hexagram::all() {
        for ((place, is_yang), line) in hexagram.figure().into_iter().enumerate().zip(hexagram.line_classics()) {
            let number = if is_yang { '九' } else { '六' };
            let expected = match place {
                0 => format!("初{number}"),
                5 => format!("上{number}"),
                _ => format!("{number}{}", ['二', '三', '四', '五'][place - 1]),
            };
            assert_eq!(line.label(), expected, "hexagram {}", hexagram.number());
        }
    }
}

#[test]
fn only_the_first_two_hexagrams_have_a_text_for_six_changes() {
    let found: Vec<_> = Hexagram::all()
        .filter_map(|hexagram| Some((hexagram.number(), hexagram.all_changing_classic()?)))
        .map(|(number, line)| (number, line.label(), line.text().simplified))
        .collect();
    assert_eq!(found, [(1, "用九", "见群龙无首，吉。"), (2, "用六", "利永贞。")]);
}

#[test]
fn texts_are_punctuated_sentences_without_markup() {
    for (hexagram, label, text) in texts() {
        for text in [text.traditional, text.simplified] {
            let at = format!("{hexagram} {label} {text}");
            assert!(text.chars().all(|character| is_han(character) || "，。：；？！".contains(character)), "{at}");
            assert!(text.starts_with(is_han) && text.ends_with(['。', '？', '！']), "{at}");
            assert!(text.chars().zip(text.chars().skip(1)).all(|(a, b)| is_han(a) || is_han(b)), "{at}");
            assert!(!text.starts_with("彖曰") && !text.starts_with("象曰"), "{at}");
        }
    }
}

#[test]
fn the_two_scripts_agree_character_by_character() {
    let table = include_str!("../../../../../assets/traditional-simplified.tsv");
    let simplified_forms: HashMap<char, char> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (traditional, simplified) = line.split_once('\t').unwrap();
            (traditional.parse().unwrap(), simplified.parse().unwrap())
        })
        .collect();
    for (hexagram, label, text) in texts() {
        let at = format!("{hexagram} {label} {}", text.traditional);
        assert_eq!(text.traditional.chars().count(), text.simplified.chars().count(), "{at}");
        for (traditional, simplified) in text.traditional.chars().zip(text.simplified.chars()) {
            let expected = match traditional {
                // 乾 is 干 only in the sense of "dry".
                '乾' if (hexagram, label) == (21, "九四") || (hexagram, label) == (21, "六五") => '干',
                // The simplified forms of the last three are outside the basic plane and missing from many fonts.
                '乾' | '餗' | '繻' | '纆' => traditional,
                '遯' => '遁',
                '闚' => '窥',
                '勑' => '敕',
                _ => *simplified_forms.get(&traditional).unwrap_or(&traditional),
            };
            assert_eq!(simplified, expected, "{at}");
        }
    }
}

#[test]
fn disputed_readings_are_those_of_the_edition() {
    let line = |number, position: usize| hexagram(number).line_classics()[position - 1];
    assert_eq!(line(24, 1).text().simplified, "不远复，无祗悔，元吉。");
    assert_eq!(line(24, 1).text().traditional, "不遠復，无祗悔，元吉。");
    assert!(line(53, 1).text().traditional.starts_with("鴻漸于干，"));
    assert!(line(44, 1).text().simplified.ends_with("羸豕孚蹢躅。"));
    assert!(line(47, 2).text().simplified.contains("利用享祀"));
    assert!(line(49, 2).text().simplified.starts_with("巳日乃革之"));
    assert!(line(29, 4).image().simplified.ends_with("刚柔际也。"));
    assert!(line(48, 5).text().traditional.starts_with("井冽，"));
    assert_eq!(line(43, 2).image().simplified, "有戎勿恤，得中道也。");
    assert!(hexagram(23).classical_image().simplified.starts_with("山附于地，剥，"));
    assert!(hexagram(1).classical_commentary().simplified.contains("保合大和，"));
    assert!(hexagram(24).classical_image().traditional.ends_with("后不省方。"));
    assert!(hexagram(49).classical_judgement().simplified.starts_with("巳日乃孚"));
    assert_eq!((hexagram(33).traditional_name(), hexagram(33).chinese_name()), ("遯", "遁"));
}

#[test]
fn every_plain_sentence_is_distinct_and_one_sentence() {
    for locale in LOCALES {
        let sentences: Vec<_> = Hexagram::all()
            .map(|hexagram| hexagram.plain_judgement(locale))
            .chain(all_lines().map(|line| line.plain(locale)))
            .collect();
        assert_eq!(sentences.len(), 450);
        assert_eq!(sentences.iter().collect::<HashSet<_>>().len(), 450);
        for sentence in sentences {
            match locale {
                Locale::Chinese => {
                    let length = sentence.chars().filter(|character| is_han(*character)).count();
                    assert!((15..=40).contains(&length), "{length}: {sentence}");
                    assert!(sentence.chars().all(|it| is_han(it) || "，；、：。".contains(it)), "{sentence}");
                    assert_eq!(sentence.find('。'), Some(sentence.len() - '。'.len_utf8()), "{sentence}");
                }
                Locale::English => {
                    let length = sentence.split(' ').count();
                    assert!((9..=25).contains(&length), "{length}: {sentence}");
                    assert!(sentence.is_ascii() && sentence.starts_with(char::is_uppercase), "{sentence}");
                    assert_eq!(sentence.find(['.', '?', '!']), Some(sentence.len() - 1), "{sentence}");
                }
            }
        }
    }
}

#[test]
fn every_text_has_a_judgement_in_its_own_words() {
    let mut count = 0;
    for hexagram in Hexagram::all() {
        let lines = hexagram.line_classics().into_iter().chain(hexagram.all_changing_classic()).map(LineClassic::text);
        for (position, text) in (0..).zip(std::iter::once(hexagram.classical_judgement()).chain(lines)) {
            let (_, clause) = hexagram.judgement_at(position).unwrap();
            assert!(text.simplified.contains(clause), "{} {position}: {clause}", hexagram.number());
            count += 1;
        }
        assert_eq!(hexagram.judgement_at(8), None);
    }
    assert_eq!(count, 450);
    let judgement = |number, position| Hexagram::from_number(number).unwrap().judgement_at(position).unwrap().0;
    // 无攸利 and 贞凶 beside 无咎 or 利.
    for (number, position) in [(19, 3), (25, 6), (34, 6), (54, 6), (4, 3), (27, 3), (32, 1), (54, 0), (45, 3)] {
        assert_eq!(judgement(number, position), Judgement::Warning, "{number} {position}");
    }
}
