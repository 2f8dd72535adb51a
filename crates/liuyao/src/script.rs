//! Chinese scripts: from traditional to simplified by characters, and back by words.
//!
//! The tables are those of `OpenCC`. The word that begins at a place and is longest wins.

use std::{collections::HashMap, sync::LazyLock};

/// Enclose text that [`to_traditional`] copies, such as a quotation. Both are removed.
const VERBATIM: [char; 2] = ['\u{E000}', '\u{E001}'];
/// Keeps words from being found across it, as around a value in a phrase: 金 and 发动 are not 金发. Is removed.
pub(crate) const BOUNDARY: char = '\u{E002}';

static SIMPLIFIED: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
    let rows = include_str!("../../../assets/traditional-simplified.tsv").lines();
    let rows = rows.filter(|row| !row.starts_with('#')).filter_map(|row| row.split_once('\t'));
    rows.filter_map(|(from, to)| Some((from.chars().next()?, to.chars().next()?))).collect()
});

type Words = Vec<(&'static str, &'static str)>;

/// The words by their first character, the longest first.
static TRADITIONAL: LazyLock<HashMap<char, Words>> = LazyLock::new(|| {
    let rows = include_str!("../../../assets/simplified-traditional.tsv").lines().skip(1);
    let mut words: HashMap<char, Words> = HashMap::new();
    for (from, to) in rows.filter_map(|row| row.split_once('\t')) {
        if let Some(first) = from.chars().next() {
            words.entry(first).or_default().push((from, to));
        }
    }
    for words in words.values_mut() {
        words.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    }
    words
});

/// Returns the text with its traditional characters simplified.
pub fn to_simplified(text: &str) -> String {
    text.chars().map(|letter| SIMPLIFIED.get(&letter).copied().unwrap_or(letter)).collect()
}

/// Returns the text in traditional characters, as Taiwan and Hong Kong write them.
pub fn to_traditional(text: &str) -> String {
    let mut converted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first == VERBATIM[0] {
            let inside = &rest[first.len_utf8()..];
            let (kept, after) = inside.split_once(VERBATIM[1]).unwrap_or((inside, ""));
            converted.push_str(kept);
            rest = after;
            continue;
        }
        if first == BOUNDARY {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let words = if first.is_ascii() { None } else { TRADITIONAL.get(&first) };
        let word = words.and_then(|words| words.iter().find(|(from, _)| rest.starts_with(from)));
        let length = word.map_or(first.len_utf8(), |(from, _)| from.len());
        converted.push_str(word.map_or(&rest[..length], |(_, to)| to));
        rest = &rest[length..];
    }
    converted
}

/// Marks text that must not change its script.
pub fn verbatim(text: &str) -> String {
    let [start, end] = VERBATIM;
    format!("{start}{}{end}", text.replace(VERBATIM, ""))
}

/// Returns the text without the marks around text to copy.
pub fn without_marks(text: &str) -> String {
    text.replace([VERBATIM[0], VERBATIM[1], BOUNDARY], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_decide_between_the_forms_of_a_character() {
        for (simplified, traditional) in [
            ("头发发展，里面干净，皇后后来", "頭髮發展，裡面乾淨，皇后後來"),
            ("用神伏藏，克伏神；旬空月破", "用神伏藏，克伏神；旬空月破"),
            ("余下的面条与历法、日历", "餘下的麵條與曆法、日曆"),
            ("越过水面，没有只去不回；沉迷在享乐里，回复正道", "越過水面，沒有只去不回；沉迷在享樂裡，回復正道"),
            ("后天的皇后，一只猫；干涸的山谷，五谷；联系关系", "後天的皇后，一隻貓；乾涸的山谷，五穀；聯繫關係"),
        ] {
            assert_eq!(to_traditional(simplified), traditional);
            assert_eq!(to_simplified(traditional), simplified);
        }
    }

    #[test]
    fn words_are_not_found_across_boundaries() {
        assert_eq!(to_traditional("酉金\u{E002}发动"), "酉金發動");
        assert_eq!(without_marks("酉金\u{E002}发动"), "酉金发动");
    }

    #[test]
    fn marked_text_is_copied() {
        assert_eq!(to_traditional("你问「\u{E000}升职吗\u{E001}」。"), "你問「升职吗」。");
        assert_eq!(without_marks("你问「\u{E000}升职吗\u{E001}」。"), "你问「升职吗」。");
    }
}
