//! The words that introduce a hexagram, its lines or its changes in text.
//!
//! A label applies to the text after it, up to the next label or the end of the clause.

use super::HexagramRole;

/// The meaning of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Hexagram(HexagramRole),
    Changing,
    Lines,
    Upper,
    Lower,
    /// A hexagram that follows from the primary one and must not be mistaken for it.
    Derived,
}

/// A part of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextPart<'a> {
    pub(super) label: Option<Label>,
    pub(super) text: &'a str,
}

/// The first match counts, so longer labels precede their own prefixes.
const LABELS: [(&str, Label); 50] = [
    ("本卦", Label::Hexagram(HexagramRole::Primary)),
    ("主卦", Label::Hexagram(HexagramRole::Primary)),
    ("原卦", Label::Hexagram(HexagramRole::Primary)),
    ("正卦", Label::Hexagram(HexagramRole::Primary)),
    ("得卦", Label::Hexagram(HexagramRole::Primary)),
    ("卦名", Label::Hexagram(HexagramRole::Primary)),
    ("变卦", Label::Hexagram(HexagramRole::Relating)),
    ("之卦", Label::Hexagram(HexagramRole::Relating)),
    ("互卦", Label::Derived),
    ("错卦", Label::Derived),
    ("综卦", Label::Derived),
    ("动爻", Label::Changing),
    ("变爻", Label::Changing),
    ("六爻", Label::Lines),
    ("爻象", Label::Lines),
    ("上卦", Label::Upper),
    ("外卦", Label::Upper),
    ("下卦", Label::Lower),
    ("内卦", Label::Lower),
    ("primary hexagram", Label::Hexagram(HexagramRole::Primary)),
    ("original hexagram", Label::Hexagram(HexagramRole::Primary)),
    ("present hexagram", Label::Hexagram(HexagramRole::Primary)),
    ("main hexagram", Label::Hexagram(HexagramRole::Primary)),
    ("relating hexagram", Label::Hexagram(HexagramRole::Relating)),
    ("changed hexagram", Label::Hexagram(HexagramRole::Relating)),
    ("resulting hexagram", Label::Hexagram(HexagramRole::Relating)),
    ("transformed hexagram", Label::Hexagram(HexagramRole::Relating)),
    ("future hexagram", Label::Hexagram(HexagramRole::Relating)),
    ("second hexagram", Label::Hexagram(HexagramRole::Relating)),
    ("nuclear hexagram", Label::Derived),
    ("changing to hexagram", Label::Hexagram(HexagramRole::Relating)),
    ("changes to hexagram", Label::Hexagram(HexagramRole::Relating)),
    ("changing lines", Label::Changing),
    ("changing line", Label::Changing),
    ("moving lines", Label::Changing),
    ("moving line", Label::Changing),
    ("changing to", Label::Hexagram(HexagramRole::Relating)),
    ("changes to", Label::Hexagram(HexagramRole::Relating)),
    ("upper trigram", Label::Upper),
    ("lower trigram", Label::Lower),
    ("six lines", Label::Lines),
    ("bengua", Label::Hexagram(HexagramRole::Primary)),
    ("biangua", Label::Hexagram(HexagramRole::Relating)),
    ("primary", Label::Hexagram(HexagramRole::Primary)),
    ("relating", Label::Hexagram(HexagramRole::Relating)),
    ("nuclear", Label::Derived),
    ("hexagram", Label::Hexagram(HexagramRole::Primary)),
    ("lines", Label::Lines),
    ("upper", Label::Upper),
    ("lower", Label::Lower),
];

/// Splits the text at every label and at the end of every clause.
pub(super) fn parts(text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let mut label = None;
    let mut start = 0;
    let mut next = 0;
    while let Some(letter) = text[next..].chars().next() {
        let found = label_at(text, next);
        let is_end = matches!(letter, '\n' | '。' | ';');
        if found.is_some() || is_end {
            parts.push(TextPart { label, text: &text[start..next] });
            next += found.map_or(letter.len_utf8(), |(word, _)| word.len());
            (label, start) = (found.map(|(_, label)| label), next);
        } else {
            next += letter.len_utf8();
        }
    }
    parts.push(TextPart { label, text: &text[start..] });
    parts
}

fn label_at(text: &str, start: usize) -> Option<(&'static str, Label)> {
    let rest = &text[start..];
    let is_word_before = text[..start].chars().next_back().is_some_and(|letter| letter.is_ascii_alphanumeric());
    LABELS.into_iter().find(|(word, _)| {
        let Some(after) = rest.strip_prefix(word) else {
            return false;
        };
        let is_word_after = after.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        !word.is_ascii() || !(is_word_before || is_word_after)
    })
}

/// Skips fillers between a label and its value.
pub(super) fn after_filler(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest =
            rest.trim_start_matches(|letter: char| letter.is_whitespace() || ":=-\"'「『“《【([是为".contains(letter));
        let word = ["is ", "was ", "of ", "are ", "number "].iter().find_map(|word| rest.strip_prefix(word));
        match word {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_at_the_next_label_or_clause() {
        let found: Vec<(Option<Label>, &str)> =
            parts("问事。本卦:屯,变卦:比;谢谢").into_iter().map(|part| (part.label, part.text)).collect();
        let expected = [
            (None, "问事"),
            (None, ""),
            (Some(Label::Hexagram(HexagramRole::Primary)), ":屯,"),
            (Some(Label::Hexagram(HexagramRole::Relating)), ":比"),
            (None, "谢谢"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn english_labels_are_whole_words() {
        assert_eq!(parts("headlines and uppercase")[0].label, None);
        assert_eq!(parts("headlines and uppercase").len(), 1);
        assert_eq!(parts("lines: 3")[1].label, Some(Label::Lines));
    }

    #[test]
    fn skips_fillers() {
        assert_eq!(after_filler(": 「屯」"), "屯」");
        assert_eq!(after_filler(" is number 3"), "3");
        assert_eq!(after_filler(""), "");
    }
}
