//! Reads a cast out of plain text, such as `本卦：水雷屯，变卦：水地比，动爻：初九`.
//!
//! A label (本卦, "changing lines", …) applies up to the next label or the end of the clause. Without labels only
//! unmistakable names are trusted: a sign, a full name, 第三卦, 屯卦. Several such names count only if a word such as 之 or 变
//! joins them, or if each of two stands beside its palace, as in a chart. 解卦 is never hexagram 40 here, because it nearly
//! always means "interpret".

use super::super::catalog::{Hexagram, Trigram};
use super::labels::{Label, TextPart, after_filler, parts};
use super::{
    Content, Evidence, HexagramRole, NameForm, Observed, ReadingFault, names, normalize, positions, six_lines,
};

/// A hexagram named somewhere in a text.
#[derive(Clone, Copy, Debug)]
struct Mention {
    hexagram: Hexagram,
    form: NameForm,
    /// True if its palace stands beside it, as in the heading of a chart: 震宫:泽雷随.
    has_palace: bool,
    /// End of the name in the text, in bytes.
    end: usize,
}

/// Words that may join a primary hexagram and its relating one.
const JOINTS: [&str; 14] =
    ["之", "变", "变为", "变成", "变卦", "化", "化为", "转", "转为", "至", "->", "=>", "→", "to"];

/// Characters that may precede 屯卦 without being part of another word.
const BEFORE_NAMED: &str = "得为是到了出占卜抽之变化成遇问是看个";

/// Characters of the longest digit sequence that can be a hexagram's number.
const LONGEST_NUMBER: usize = 8;

/// Observes normalised text.
pub(super) fn observe(observed: &mut Observed, path: &str, text: &str) {
    if let Some(six) = six_lines::from_text(text) {
        observed.notice(path, six.content(HexagramRole::Primary));
        return;
    }
    let before = observed.evidence.len();
    let parts = parts(text);
    for part in &parts {
        if let Some(label) = part.label {
            observe_labelled(observed, path, label, part.text);
        }
    }
    observe_trigrams(observed, path, &parts);
    if !observed.evidence[before..].iter().any(names_the_primary) {
        observe_mentions(observed, path, &parts);
    }
}

/// Observes the hexagram, and the one joined to it, in the normalised value of a hexagram field. Returns true if there
/// was one.
pub(super) fn observe_value(observed: &mut Observed, path: &str, role: HexagramRole, text: &str) -> bool {
    let Some(first) = named_value(text) else {
        return false;
    };
    observed.notice_hexagram(path, role, first.hexagram, first.form);
    if role == HexagramRole::Primary
        && let Some(second) = joined_to(text, first)
    {
        let role = HexagramRole::Relating;
        observed.notice_hexagram(path, role, second.hexagram, second.form);
    }
    true
}

fn names_the_primary(evidence: &Evidence) -> bool {
    match evidence.content {
        Content::Lines { .. } => true,
        Content::Hexagram { role, .. } => role == HexagramRole::Primary,
        Content::Changing(_) | Content::Recounted(..) | Content::Compared(_) | Content::TurnedBack(_) => false,
    }
}

fn observe_labelled(observed: &mut Observed, path: &str, label: Label, value: &str) {
    match label {
        Label::Hexagram(role) => {
            observe_value(observed, path, role, value);
        }
        Label::Changing => {
            if let Some(changing) = positions::from_text(after_filler(value)) {
                observed.notice(path, Content::Changing(changing));
            }
        }
        Label::Lines => {
            let value = after_filler(value).trim_end_matches([',', '.', '、', ' ']);
            if let Some(six) = six_lines::from_text(value) {
                observed.notice(path, six.content(HexagramRole::Primary));
            }
        }
        Label::Upper | Label::Lower | Label::Derived => {}
    }
}

/// Two labelled trigrams, or 上坎下震 and 坎上震下.
fn observe_trigrams(observed: &mut Observed, path: &str, parts: &[TextPart]) {
    let labelled = |wanted| {
        parts
            .iter()
            .filter(|part| part.label == Some(wanted))
            .find_map(|part| names::trigram_at_start(after_filler(part.text)))
            .map(|(trigram, _)| trigram)
    };
    let pair = labelled(Label::Upper)
        .zip(labelled(Label::Lower))
        .or_else(|| loose(parts).find_map(|(_, text)| stacked_trigrams(text)));
    if let Some((upper, lower)) = pair {
        let hexagram = Hexagram::from_trigrams(upper, lower);
        observed.notice_hexagram(path, HexagramRole::Primary, hexagram, NameForm::Trigrams);
    }
}

/// Observes names without labels: one, or two that are joined.
fn observe_mentions(observed: &mut Observed, path: &str, parts: &[TextPart]) {
    let mut mentions: Vec<(&str, Mention)> = Vec::new();
    for (_, text) in loose(parts) {
        mentions.extend(mentions_in(text).map(|mention| (text, mention)));
    }
    let Some((text, first)) = mentions.first().copied() else {
        return;
    };
    let headings: Vec<_> = mentions.iter().filter(|(_, mention)| mention.has_palace).collect();
    if let [(_, primary), (_, relating)] = headings[..] {
        observed.notice_hexagram(path, HexagramRole::Primary, primary.hexagram, primary.form);
        observed.notice_hexagram(path, HexagramRole::Relating, relating.hexagram, relating.form);
        return;
    }
    let second = joined_to(text, first);
    let is_told = |hexagram| hexagram == first.hexagram || second.is_some_and(|second| hexagram == second.hexagram);
    if !mentions.iter().all(|(_, mention)| is_told(mention.hexagram)) {
        observed.complain(path, ReadingFault::SeveralHexagrams);
        return;
    }
    observed.notice_hexagram(path, HexagramRole::Primary, first.hexagram, first.form);
    if let Some(second) = second {
        observed.notice_hexagram(path, HexagramRole::Relating, second.hexagram, second.form);
    }
}

fn loose<'a>(parts: &'a [TextPart<'a>]) -> impl Iterator<Item = (usize, &'a str)> {
    parts.iter().enumerate().filter(|(_, part)| part.label.is_none()).map(|(role, part)| (role, part.text))
}

/// Returns the hexagram that a labelled value names at its start, or else its first unmistakable name.
fn named_value(text: &str) -> Option<Mention> {
    let value = after_filler(text);
    named_at_start(value)
        .map(|(hexagram, form, rest)| Mention { hexagram, form, has_palace: false, end: text.len() - rest.len() })
        .or_else(|| mentions_in(text).next())
}

fn named_at_start(value: &str) -> Option<(Hexagram, NameForm, &str)> {
    names::sign_at_start(value)
        .or_else(|| names::full_name_at_start(value))
        .or_else(|| numbered_at_start(value))
        .or_else(|| names::short_name_at_start(value).filter(|(_, _, rest)| ends_a_name(rest)))
        .or_else(|| {
            let hexagram = names::english_name_at_start(value)?;
            Some((hexagram, NameForm::EnglishName, ""))
        })
}

/// A short name must not continue into another word: 师 but not 师傅.
fn ends_a_name(rest: &str) -> bool {
    let rest = rest.strip_prefix('卦').unwrap_or(rest);
    !rest.starts_with(normalize::is_ideograph) || JOINTS.iter().any(|joint| rest.starts_with(joint))
}

/// `3`, `#3`, `第3卦`, `第三卦`.
fn numbered_at_start(value: &str) -> Option<(Hexagram, NameForm, &str)> {
    let is_part = |letter: char| letter.is_ascii_digit() || "一二三四五六七八九十".contains(letter);
    let prefix =
        ["第", "#", "no. ", "no.", "number "].into_iter().find(|prefix| value.starts_with(prefix)).unwrap_or("");
    let digits = &value[prefix.len()..];
    // The scan is bounded: a text may be nothing but digits.
    let within_reach = digits.chars().take(LONGEST_NUMBER).take_while(|letter| is_part(*letter));
    let (number, rest) = digits.split_at(within_reach.map(char::len_utf8).sum());
    if rest.starts_with(is_part) {
        return None;
    }
    let is_chinese = number.starts_with(normalize::is_ideograph);
    if prefix == "第" && !rest.starts_with('卦') || is_chinese && prefix != "第" {
        return None;
    }
    let hexagram = names::hexagram_by_number(number)?;
    Some((hexagram, NameForm::Number, rest))
}

/// Returns the hexagram joined directly to a mention.
fn joined_to(text: &str, first: Mention) -> Option<Mention> {
    let is_space = |letter: char| letter.is_whitespace() || ",、卦()".contains(letter);
    let mut rest = text[first.end..].trim_start_matches(is_space);
    // A sign is often followed by its name, and a name by its sign.
    while let Some((hexagram, _, after)) = names::hexagram_at_start(rest)
        && hexagram == first.hexagram
    {
        rest = after.trim_start_matches(is_space);
    }
    let after = JOINTS.iter().filter_map(|joint| rest.strip_prefix(joint)).min_by_key(|after| after.len())?;
    let after = after.trim_start_matches([' ', ':', '(']);
    let (hexagram, form, rest) = named_at_start(after)?;
    Some(Mention { hexagram, form, has_palace: false, end: text.len() - rest.len() })
}

/// Returns every unmistakable name in the text.
fn mentions_in(text: &str) -> impl Iterator<Item = Mention> {
    let mut next = 0;
    std::iter::from_fn(move || {
        while let Some(letter) = text[next..].chars().next() {
            let start = next;
            if let Some(mention) = mention_at(text, start) {
                next = mention.end;
                return Some(mention);
            }
            next += letter.len_utf8();
        }
        None
    })
}

fn mention_at(text: &str, start: usize) -> Option<Mention> {
    let rest = &text[start..];
    let (hexagram, form, after) = names::sign_at_start(rest)
        .or_else(|| names::full_name_at_start(rest))
        .or_else(|| rest.starts_with('第').then(|| numbered_at_start(rest)).flatten())
        .or_else(|| suffixed_name(text, start))?;
    let has_palace = ends_with_palace(&text[..start]) || starts_with_palace(after);
    Some(Mention { hexagram, form, has_palace, end: text.len() - after.len() })
}

/// Returns true for text such as `震宫:`, before a name.
fn ends_with_palace(text: &str) -> bool {
    let text = text.trim_end_matches([' ', '\t', ':', '-']);
    let before = text.strip_suffix('宫').and_then(|text| text.char_indices().next_back().map(|(at, _)| &text[at..]));
    before.is_some_and(|trigram| names::trigram_at_start(trigram).is_some())
}

/// Returns true for text such as `(震宫`, after a name.
fn starts_with_palace(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t', '(', '[', '/', '-']);
    names::trigram_at_start(text).is_some_and(|(_, rest)| rest.starts_with('宫'))
}

/// Parses a short name followed by 卦, unless the preceding text makes it part of another word.
fn suffixed_name(text: &str, start: usize) -> Option<(Hexagram, NameForm, &str)> {
    let rest = &text[start..];
    if !rest.starts_with(normalize::is_ideograph) || rest.starts_with('解') {
        return None;
    }
    let mut letters = rest.chars().skip(1);
    let is_suffixed = letters.next() == Some('卦') || letters.next() == Some('卦');
    let is_free = text[..start]
        .chars()
        .next_back()
        .is_none_or(|before| !normalize::is_ideograph(before) || BEFORE_NAMED.contains(before));
    if !is_suffixed || !is_free {
        return None;
    }
    let (hexagram, form, after) = names::short_name_at_start(rest)?;
    Some((hexagram, form, after.strip_prefix('卦')?))
}

fn stacked_trigrams(text: &str) -> Option<(Trigram, Trigram)> {
    text.char_indices().find_map(|(start, letter)| {
        let rest = &text[start..];
        if letter == '上' {
            let (upper, rest) = names::trigram_at_start(&rest[letter.len_utf8()..])?;
            let (lower, _) = names::trigram_at_start(rest.strip_prefix('下')?)?;
            return Some((upper, lower));
        }
        let (upper, rest) = names::trigram_at_start(rest)?;
        let (lower, rest) = names::trigram_at_start(rest.strip_prefix('上')?)?;
        rest.starts_with('下').then_some((upper, lower))
    })
}
