use std::collections::HashSet;

use super::*;

const LOCALES: [Locale; 2] = [Locale::Chinese, Locale::English];

fn hexagram(number: u8) -> Hexagram {
    Hexagram::from_number(number).unwrap()
}

#[test]
fn signs_follow_the_unicode_order() {
    for (place, hexagram) in (0..).zip(Hexagram::all()) {
        let sign = char::from_u32(0x4DC0 + place).unwrap();
        assert_eq!(hexagram.sign(), sign.to_string());
        assert_eq!(Hexagram::from_sign(sign), Some(hexagram));
    }
    for (place, trigram) in (0..).zip(Trigram::all()) {
        let sign = char::from_u32(0x2630 + place).unwrap();
        assert_eq!(trigram.sign(), sign.to_string());
        assert_eq!(Trigram::from_sign(sign), Some(trigram));
    }
    assert_eq!(Hexagram::from_sign('\u{4DBF}'), None);
    assert_eq!(Hexagram::from_sign('\u{4E00}'), None);
    assert_eq!(Trigram::from_sign('乾'), None);
}

#[test]
fn rejects_numbers_outside_1_to_64() {
    assert_eq!(Hexagram::from_number(0), None);
    assert_eq!(Hexagram::from_number(65), None);
    assert_eq!(Hexagram::from_number(64).map(Hexagram::number), Some(64));
}

#[test]
fn pairs_are_inversions_or_complements() {
    for odd in (1..64).step_by(2) {
        let first = hexagram(odd).figure();
        let second = hexagram(odd + 1).figure();
        let mut inverted = first;
        inverted.reverse();
        if inverted == first {
            assert_eq!(second, first.map(|is_yang| !is_yang), "pair {odd}");
        } else {
            assert_eq!(second, inverted, "pair {odd}");
        }
    }
}

#[test]
fn full_names_contain_the_trigram_images() {
    for hexagram in Hexagram::all() {
        let (upper, lower) = (hexagram.upper(), hexagram.lower());
        let expected = if upper == lower {
            format!("{}为{}", hexagram.chinese_name(), upper.image(Locale::Chinese))
        } else {
            format!("{}{}{}", upper.image(Locale::Chinese), lower.image(Locale::Chinese), hexagram.chinese_name())
        };
        assert_eq!(hexagram.chinese_full_name(), expected);
    }
}

#[test]
fn doubled_trigrams_have_the_trigram_names() {
    let doubled = [(1, '☰'), (2, '☷'), (29, '☵'), (30, '☲'), (51, '☳'), (52, '☶'), (57, '☴'), (58, '☱')];
    for (number, sign) in doubled {
        let trigram = Trigram::from_sign(sign).unwrap();
        assert_eq!(Hexagram::from_trigrams(trigram, trigram).number(), number);
        assert_eq!(hexagram(number).chinese_name(), trigram.chinese_name());
        assert_eq!(hexagram(number).pinyin(), trigram.pinyin());
    }
}

#[test]
fn trigrams_compose_every_hexagram_exactly_once() {
    let mut numbers = HashSet::new();
    for upper in Trigram::all() {
        for lower in Trigram::all() {
            let hexagram = Hexagram::from_trigrams(upper, lower);
            assert_eq!((hexagram.upper(), hexagram.lower()), (upper, lower));
            let (bottom, top) = (lower.figure(), upper.figure());
            assert_eq!(hexagram.figure()[..3], bottom);
            assert_eq!(hexagram.figure()[3..], top);
            assert_eq!(Hexagram::from_figure(hexagram.figure()), hexagram);
            numbers.insert(hexagram.number());
        }
    }
    assert_eq!(numbers.len(), 64);
}

#[test]
fn known_figures_have_their_numbers() {
    let known = [
        (3, "100010", "屯", "水雷屯", "zhūn", "Difficulty at the Beginning"),
        (11, "111000", "泰", "地天泰", "tài", "Peace"),
        (24, "100000", "复", "地雷复", "fù", "Return"),
        (31, "001110", "咸", "泽山咸", "xián", "Influence"),
        (44, "011111", "姤", "天风姤", "gòu", "Coming to Meet"),
        (50, "011101", "鼎", "火风鼎", "dǐng", "The Cauldron"),
        (63, "101010", "既济", "水火既济", "jì jì", "After Completion"),
    ];
    for (number, lines, name, full_name, pinyin, english) in known {
        let hexagram = hexagram(number);
        let figure: Vec<bool> = lines.chars().map(|line| line == '1').collect();
        assert_eq!(hexagram.figure()[..], figure);
        assert_eq!(hexagram.chinese_name(), name);
        assert_eq!(hexagram.chinese_full_name(), full_name);
        assert_eq!(hexagram.pinyin(), pinyin);
        assert_eq!(hexagram.english_name(), english);
    }
}

#[test]
fn every_text_is_present_distinct_and_in_its_language() {
    for locale in LOCALES {
        let counsels: HashSet<_> = Hexagram::all().map(|it| it.counsel(locale)).collect();
        let images: HashSet<_> = Hexagram::all().map(|it| it.image(locale)).collect();
        assert_eq!((counsels.len(), images.len()), (64, 64));
    }
    for hexagram in Hexagram::all() {
        assert!(hexagram.counsel(Locale::Chinese).ends_with('。'));
        assert!(hexagram.counsel(Locale::English).ends_with('.'));
        assert!(hexagram.counsel(Locale::English).is_ascii());
        assert!(hexagram.image(Locale::English).is_ascii());
        assert!(!hexagram.image(Locale::English).ends_with('.'));
        assert!(!hexagram.image(Locale::Chinese).ends_with('。'));
        assert!(hexagram.image(Locale::Chinese).chars().all(|letter| !letter.is_ascii()));
    }
}

#[test]
fn names_are_distinct() {
    let columns: [fn(Hexagram) -> &'static str; 3] =
        [Hexagram::chinese_name, Hexagram::chinese_full_name, Hexagram::english_name];
    for column in columns {
        let names: HashSet<_> = Hexagram::all().map(column).collect();
        assert_eq!(names.len(), 64);
    }
    // Only 履 and 旅 have the same pinyin.
    let sounds: HashSet<_> = Hexagram::all().map(Hexagram::pinyin).collect();
    assert_eq!(sounds.len(), 63);
}

#[test]
fn repeated_nuclear_ends_in_the_known_cycle() {
    for hexagram in Hexagram::all() {
        let figure = hexagram.figure();
        let expected = [figure[1], figure[2], figure[3], figure[2], figure[3], figure[4]];
        assert_eq!(hexagram.nuclear(), Hexagram::from_figure(expected));
        let core = hexagram.nuclear().nuclear().number();
        assert!([1, 2, 63, 64].contains(&core), "{core}");
    }
    assert_eq!(hexagram(1).nuclear().number(), 1);
    assert_eq!(hexagram(3).nuclear().number(), 23);
    assert_eq!(hexagram(63).nuclear().number(), 64);
    assert_eq!(hexagram(64).nuclear().number(), 63);
}

#[test]
fn changing_the_differing_lines_yields_the_other_hexagram() {
    for from in Hexagram::all() {
        for to in Hexagram::all() {
            let positions = from.differing_positions(to);
            assert_eq!(from.with_lines_changed(&positions), to);
            assert_eq!(to.with_lines_changed(&positions), from);
            assert_eq!(positions.is_empty(), from == to);
        }
    }
    assert_eq!(hexagram(3).with_lines_changed(&[0, 7, 255]), hexagram(3));
}

#[test]
fn trigrams_are_counted_in_the_earlier_heaven_order() {
    let names: String = (1..=8).map(|count| Trigram::counted(count).chinese_name()).collect();
    assert_eq!(names, "乾兑离震巽坎艮坤");
    for trigram in Trigram::all() {
        assert_eq!(Trigram::counted(u64::from(trigram.number())), trigram);
        assert_eq!(Trigram::counted(u64::from(trigram.number()) + 8), trigram);
    }
    assert_eq!([0, u64::MAX].map(|count| Trigram::counted(count).chinese_name()), ["坤", "艮"]);
}
