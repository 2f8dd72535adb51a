//! Reads the positions of changing lines.
//!
//! Positions are 1 at the bottom to 6 at the top, by number or by name (初九, 三爻, "top"). A list with one invalid
//! position is rejected as a whole.

use serde_json::{Map, Value};

use super::{keys, normalize};

/// Reads the positions from a JSON value, ascending. An empty list means that nothing changes. Six flags, the first for
/// the bottom line, are positions too.
pub(super) fn from_value(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Array(items) => from_flags(items).or_else(|| tidy(items.iter().map(of_value).collect::<Option<_>>()?)),
        Value::Number(_) => Some(vec![of_value(value)?]),
        Value::String(text) => from_text(&normalize::normalize(text)),
        Value::Object(_) | Value::Bool(_) | Value::Null => None,
    }
}

/// Reads a list of numbers, or one number, that can only be counted from zero. Returns positions from 1.
pub(super) fn from_value_with_zero(value: &Value) -> Option<Vec<u8>> {
    let numbers = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let positions: Vec<u8> =
        numbers.iter().map(|number| u8::try_from(number.as_u64()?.checked_add(1)?).ok()).collect::<Option<_>>()?;
    tidy(positions).filter(|positions| positions.contains(&1))
}

/// Reads positions from normalised text: `2, 5`, `第三爻`, `初九、六二`, `无`. Text after the positions is ignored.
pub(super) fn from_text(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.trim_start();
    if ["无", "none", "没有", "静", "[]"].iter().any(|word| rest.starts_with(word)) {
        return Some(Vec::new());
    }
    let mut positions = Vec::new();
    loop {
        rest = skip_between(rest);
        let Some((position, after)) = at_start(rest) else {
            break;
        };
        let counted = after_counter(after);
        if counted.is_none() {
            positions.push(position);
        }
        rest = counted.unwrap_or(after);
    }
    if positions.is_empty() || rest.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    tidy(positions)
}

/// Returns the position that a whole key or word names: `1`, `line1`, `yao_3`, `初爻`, `top`.
pub(super) fn of_key(text: &str) -> Option<u8> {
    let text = keys::bare(text);
    let word = text
        .strip_prefix("line")
        .or_else(|| text.strip_prefix("yao"))
        .or_else(|| text.strip_prefix('第'))
        .unwrap_or(&text);
    let (position, rest) = at_start(word)?;
    matches!(rest, "" | "爻" | "line").then_some(position)
}

/// Parses a line name (初九, 六二, …) at the start: its position, whether it is yang, and the rest.
pub(super) fn line_name_at_start(text: &str) -> Option<(u8, bool, &str)> {
    let mut letters = text.chars();
    let (first, second) = (letters.next()?, letters.next()?);
    let (kind, role) = match (first, second) {
        ('初' | '上', kind) => (kind, first),
        (kind, role) => (kind, role),
    };
    let is_yang = match kind {
        '九' => true,
        '六' => false,
        _ => return None,
    };
    let position = match role {
        '初' => 1,
        '二' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '上' => 6,
        _ => return None,
    };
    Some((position, is_yang, letters.as_str()))
}

fn from_flags(items: &[Value]) -> Option<Vec<u8>> {
    if items.len() != 6 {
        return None;
    }
    let mut changing = Vec::new();
    for (item, position) in items.iter().zip(1..) {
        let is_changing = match item {
            Value::Bool(flag) => *flag,
            Value::Number(number) => match number.as_u64()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            _ => return None,
        };
        if is_changing {
            changing.push(position);
        }
    }
    Some(changing)
}

fn of_value(value: &Value) -> Option<u8> {
    match value {
        Value::Number(number) => {
            let position = u8::try_from(number.as_u64()?).ok()?;
            (1..=6).contains(&position).then_some(position)
        }
        Value::String(text) => {
            let text = normalize::normalize(text);
            line_name_at_start(&text).map(|(position, _, _)| position).or_else(|| of_key(&text))
        }
        Value::Object(fields) => of_fields(fields),
        Value::Array(_) | Value::Bool(_) | Value::Null => None,
    }
}

/// Reads a changing line as an object with its `position` (or `line`, `yao`, `name`).
fn of_fields(fields: &Map<String, Value>) -> Option<u8> {
    ["position", "pos", "line", "yao", "yaowei", "lineNumber", "name"]
        .iter()
        .find_map(|key| of_value(fields.get(*key)?))
}

fn tidy(mut positions: Vec<u8>) -> Option<Vec<u8>> {
    positions.sort_unstable();
    positions.dedup();
    positions.iter().all(|position| (1..=6).contains(position)).then_some(positions)
}

/// Parses one position at the start of the text. Line names come first, because 六 alone is the sixth position while 六二
/// is a yin line in the second.
fn at_start(text: &str) -> Option<(u8, &str)> {
    if let Some((position, _, rest)) = line_name_at_start(text) {
        return Some((position, rest));
    }
    for (word, position) in [
        ("bottom", 1),
        ("first", 1),
        ("second", 2),
        ("third", 3),
        ("fourth", 4),
        ("fifth", 5),
        ("sixth", 6),
        ("top", 6),
    ] {
        if let Some(rest) = text.strip_prefix(word) {
            return Some((position, rest));
        }
    }
    let first = text.chars().next()?;
    let position = match first {
        '1' | '初' | '一' => 1,
        '2' | '二' => 2,
        '3' | '三' => 3,
        '4' | '四' => 4,
        '5' | '五' => 5,
        '6' | '六' | '上' => 6,
        _ => return None,
    };
    let rest = &text[first.len_utf8()..];
    let is_longer_number = first.is_ascii_digit() && rest.starts_with(|it: char| it.is_ascii_digit());
    (!is_longer_number).then_some((position, rest))
}

/// Skips separators before and between positions.
fn skip_between(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| {
            letter.is_whitespace() || ",、:[]()\"'&+/第爻和及与是为在".contains(letter)
        });
        let word =
            ["and ", "lines ", "line ", "are ", "is ", "the ", "at "].iter().find_map(|word| rest.strip_prefix(word));
        match word {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// Returns the text after a counting word: the number before it counts lines instead of naming one, as in 2 个 and 三条.
fn after_counter(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix(['个', '条', '处'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_positions_in_all_notations() {
        let forms = [
            json!([2, 5]),
            json!([5, 2, 5]),
            json!(["2", "5"]),
            json!(["六二", "九五"]),
            json!(["二爻", "五爻"]),
            json!([false, true, false, false, true, false]),
            json!([0, 1, 0, 0, 1, 0]),
            json!([{"position": 2, "text": "x"}, {"position": 5}]),
            json!("2,5"),
            json!("[2, 5]"),
            json!("第二爻、第五爻"),
            json!("六二、九五"),
            json!("2 and 5"),
            json!("2个：二爻、五爻动"),
            json!("the second and fifth lines"),
        ];
        for form in forms {
            assert_eq!(from_value(&form), Some(vec![2, 5]), "{form}");
        }
    }

    #[test]
    fn recognises_names_of_top_and_bottom() {
        for text in ["初爻、上爻", "初六，上九", "1、6", "bottom, top", "初 上"] {
            assert_eq!(from_value(&json!(text)), Some(vec![1, 6]), "{text}");
        }
        assert_eq!(from_value(&json!(4)), Some(vec![4]));
        assert_eq!(from_value(&json!("六爻")), Some(vec![6]));
    }

    #[test]
    fn distinguishes_no_changes_from_unknown_changes() {
        for form in [json!([]), json!("无"), json!("無動爻"), json!("none"), json!([0, 0, 0, 0, 0, 0])] {
            assert_eq!(from_value(&form), Some(vec![]), "{form}");
        }
        for form in [json!(null), json!(""), json!(true), json!({}), json!("later")] {
            assert_eq!(from_value(&form), None, "{form}");
        }
    }

    #[test]
    fn rejects_a_list_with_an_invalid_position() {
        for form in [json!([2, 7]), json!([0]), json!(0), json!(7), json!("2, 12"), json!(["x"])] {
            assert_eq!(from_value(&form), None, "{form}");
        }
    }

    #[test]
    fn a_zero_means_that_lines_are_counted_from_zero() {
        assert_eq!(from_value_with_zero(&json!([0, 3])), Some(vec![1, 4]));
        assert_eq!(from_value_with_zero(&json!(0)), Some(vec![1]));
        for form in [json!([1, 3]), json!([0, 6]), json!(["0"]), json!([]), json!("0"), json!([0, u64::MAX])] {
            assert_eq!(from_value_with_zero(&form), None, "{form}");
        }
    }

    #[test]
    fn parses_positions_from_whole_keys() {
        assert_eq!(of_key("line1"), Some(1));
        assert_eq!(of_key("yao_6"), Some(6));
        assert_eq!(of_key("第三爻"), Some(3));
        assert_eq!(of_key("上爻"), Some(6));
        assert_eq!(of_key("line12"), None);
        assert_eq!(of_key("topic"), None);
        assert_eq!(of_key("line"), None);
    }
}
