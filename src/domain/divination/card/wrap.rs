//! Breaks text into lines by the estimated widths of its characters.

use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use crate::types::is_invisible;

/// Marks that one character may have. More would overlap the lines around it.
const MAX_MARKS: usize = 3;
/// The width of a line, in percent, from which on it is rather ended after a clause than filled.
const CLAUSE_FROM: u32 = 55;
const NEVER_FIRST: &str = "，。、；：？！）》」』”’…·,.;:?!)]}%";
const NEVER_LAST: &str = "（《「『“‘([{";
const CLAUSE_ENDS: &str = "，。；：？！";

/// A rule for the ends of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// Lines are filled.
    Anywhere,
    /// Lines end after a clause, unless they become too short.
    Clauses,
}

/// A part of a text that is not broken if it fits on a line: a word, or a Chinese character with its punctuation.
struct Unit {
    text: String,
    /// In thousandths of the size of letters.
    width: u32,
    /// True if white space stands before it.
    is_spaced: bool,
}

/// Returns the lines of a text in letters of a size, for a width in the unit of the size.
pub(super) fn wrapped(text: &str, size: u32, width: u32, rule: Break) -> Vec<String> {
    let width = width * 1000 / size.max(1);
    let (mut lines, mut line, mut used) = (Vec::new(), Vec::<Unit>::new(), 0);
    for unit in units(text).into_iter().flat_map(|unit| fitting(unit, width)) {
        let space = if unit.is_spaced && !line.is_empty() { SPACE } else { 0 };
        if used + space + unit.width > width {
            let rest = if rule == Break::Clauses { after_clause(&mut line, width) } else { Vec::new() };
            lines.push(joined(&line));
            used = width_of(&rest);
            line = rest;
        }
        used += unit.width + if unit.is_spaced && !line.is_empty() { SPACE } else { 0 };
        line.push(unit);
    }
    lines.push(joined(&line));
    lines.retain(|line| !line.is_empty());
    lines
}

/// Returns true if a text needs no second line.
pub(super) fn is_one_line(text: &str, size: u32, width: u32) -> bool {
    wrapped(text, size, width, Break::Anywhere).len() <= 1
}

/// Replaces white space and controls by spaces, and leaves out what is invisible, changes the direction of text or is
/// piled upon a character.
pub(super) fn cleaned(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for cluster in text.graphemes(true) {
        let mut marks = 0;
        for character in cluster.chars() {
            if character.is_whitespace() || character.is_control() {
                cleaned.push(' ');
            } else if matches!(character, '\u{200D}' | '\u{FE0F}') {
                // Joiner and selector of emoji.
                cleaned.push(character);
            } else if is_combining_mark(character) {
                marks += 1;
                if marks <= MAX_MARKS {
                    cleaned.push(character);
                }
            } else if !is_invisible(character) && !is_noncharacter(character) {
                cleaned.push(character);
            }
        }
    }
    cleaned.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_noncharacter(character: char) -> bool {
    matches!(character, '\u{FDD0}'..='\u{FDEF}') || u32::from(character) & 0xFFFE == 0xFFFE
}

const SPACE: u32 = 300;

fn units(text: &str) -> Vec<Unit> {
    let (mut units, mut is_spaced, mut may_break) = (Vec::<Unit>::new(), false, true);
    for cluster in text.graphemes(true) {
        let Some(first) = cluster.chars().next() else { continue };
        if first.is_whitespace() {
            (is_spaced, may_break) = (true, true);
            continue;
        }
        let is_ideograph = is_wide(first);
        let is_joined = !is_spaced && (NEVER_FIRST.contains(first) || !(may_break || is_ideograph));
        match units.last_mut().filter(|_| is_joined) {
            Some(unit) => {
                unit.text.push_str(cluster);
                unit.width += cluster_width(first);
            }
            None => units.push(Unit { text: cluster.to_owned(), width: cluster_width(first), is_spaced }),
        }
        is_spaced = false;
        may_break =
            (is_ideograph || NEVER_FIRST.contains(first) && is_wide_punctuation(first)) && !NEVER_LAST.contains(first);
    }
    units
}

/// Splits a unit that is longer than a line.
fn fitting(unit: Unit, width: u32) -> Vec<Unit> {
    if unit.width <= width {
        return vec![unit];
    }
    let mut parts = vec![Unit { text: String::new(), width: 0, is_spaced: unit.is_spaced }];
    for cluster in unit.text.graphemes(true) {
        let added = cluster.chars().next().map_or(0, cluster_width);
        if let Some(part) = parts.last_mut().filter(|part| part.width + added <= width) {
            part.text.push_str(cluster);
            part.width += added;
        } else {
            parts.push(Unit { text: cluster.to_owned(), width: added, is_spaced: false });
        }
    }
    parts
}

/// Takes off what follows the last clause that ends on a line, if the rest of the line is long enough.
fn after_clause(line: &mut Vec<Unit>, width: u32) -> Vec<Unit> {
    let ends = |unit: &Unit| unit.text.ends_with(|last| CLAUSE_ENDS.contains(last));
    let Some(place) = line.iter().rposition(ends) else { return Vec::new() };
    if width_of(&line[..=place]) * 100 < width * CLAUSE_FROM {
        return Vec::new();
    }
    line.split_off(place + 1)
}

fn width_of(line: &[Unit]) -> u32 {
    let spaces = line.iter().skip(1).filter(|unit| unit.is_spaced).count();
    line.iter().map(|unit| unit.width).sum::<u32>() + SPACE * u32::try_from(spaces).unwrap_or(0)
}

fn joined(line: &[Unit]) -> String {
    let mut text = String::new();
    for unit in line {
        if unit.is_spaced && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&unit.text);
    }
    text
}

/// Estimates the width of a character from its first code point, in thousandths of its size, rather too large.
fn cluster_width(first: char) -> u32 {
    match first {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '!' | '|' | '·' => 310,
        'f' | 'r' | 't' | 'I' | '(' | ')' | '[' | ']' | '{' | '}' | '/' | '\\' | '-' | '"' | ' ' => 420,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '&' => 950,
        'A'..='Z' | '<' | '>' | '+' | '=' | '~' | '#' | '^' | 'À'..='ɏ' | 'Ͱ'..='ӿ' => 730,
        '!'..='~' => 610,
        '\u{1F000}'..='\u{1FAFF}' => 1400,
        _ => 1000,
    }
}

fn is_wide(character: char) -> bool {
    matches!(character, '\u{2E80}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}' | '\u{FE30}'..='\u{FE4F}'
        | '\u{FF00}'..='\u{FF60}' | '\u{FFE0}'..='\u{FFE6}' | '\u{1F000}'..='\u{1FAFF}' | '\u{20000}'..='\u{3FFFD}')
}

fn is_wide_punctuation(character: char) -> bool {
    is_wide(character) || matches!(character, '…' | '”' | '’')
}
