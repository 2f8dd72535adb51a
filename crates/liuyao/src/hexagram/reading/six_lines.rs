//! Parses six lines in many notations.
//!
//! Accepts lists and strings of 6 to 9, of 0 and 1, and of words such as 少阳 or "old yin". Also lists of objects with a
//! value and a change mark, lists of three coins each, and an object with one key per line. Rejects any other count,
//! and lists with an unreadable line.

use serde_json::{Map, Value};

use super::super::catalog::Hexagram;
use super::super::line::{Line, Lines};
use super::positions;
use super::{Content, HexagramRole, LineOrder, NameForm, keys, normalize};

/// Six lines found in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SixLines {
    /// With changes.
    Cast(Lines, LineOrder),
    /// Yin and yang only, without changes.
    YinYang(Hexagram, LineOrder),
}

/// The known properties of one line.
#[derive(Clone, Copy, Debug)]
struct Mark {
    is_yang: bool,
    is_changing: Option<bool>,
    /// From 1 at the bottom, or from 0 in some data.
    position: Option<u8>,
}

impl SixLines {
    /// Returns the content of the six lines for a hexagram in this role. A relating hexagram has no changes.
    pub(super) fn content(self, role: HexagramRole) -> Content {
        match (self, role) {
            (Self::Cast(lines, order), HexagramRole::Primary) => Content::Lines { lines, order },
            (Self::Cast(lines, order), HexagramRole::Relating) => Content::Hexagram {
                role,
                hexagram: Hexagram::from_figure(lines.as_array().map(Line::is_yang)),
                form: NameForm::YinYang(order),
            },
            (Self::YinYang(hexagram, order), _) => Content::Hexagram { role, hexagram, form: NameForm::YinYang(order) },
        }
    }
}

/// Reads six lines from a JSON value.
pub(super) fn from_value(value: &Value) -> Option<SixLines> {
    match value {
        Value::Array(items) => six_lines(items.iter().map(mark_of_value)),
        Value::Object(fields) => from_fields(fields),
        Value::String(text) => from_text(&normalize::normalize(text)),
        Value::Number(number) => from_text(&number.to_string()),
        Value::Bool(_) | Value::Null => None,
    }
}

/// Reads six lines from a normalised text that holds nothing else, such as `789678` or `7, 8, …`.
pub(super) fn from_text(text: &str) -> Option<SixLines> {
    let text = text.trim();
    let is_digits = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits {
        return six_lines(text.chars().map(|digit| mark_of_text(&digit.to_string())));
    }
    let is_separator = |letter: char| ",、;|/[]()\n".contains(letter);
    six_tokens(text.split(is_separator))
        .or_else(|| six_tokens(text.split(|letter: char| is_separator(letter) || letter.is_whitespace())))
}

fn six_tokens<'a>(tokens: impl Iterator<Item = &'a str>) -> Option<SixLines> {
    six_lines(tokens.map(str::trim).filter(|token| !token.is_empty()).map(mark_of_text))
}

/// Parses an object with six keys, one per line: `{"1": 7, …}`, `{"line1": …}`, `{"初爻": …}`.
fn from_fields(fields: &Map<String, Value>) -> Option<SixLines> {
    let mut marks = Vec::new();
    for (key, value) in fields {
        let Some(position) = positions::of_key(key) else {
            continue;
        };
        let mark = mark_of_value(value)?;
        marks.push(Some(Mark { position: Some(position), ..mark }));
    }
    six_lines(marks.into_iter())
}

fn six_lines(marks: impl Iterator<Item = Option<Mark>>) -> Option<SixLines> {
    let marks: Vec<Mark> = marks.take(7).collect::<Option<_>>()?;
    let mut marks: [Mark; 6] = marks.try_into().ok()?;
    let order = if sort_by_position(&mut marks) { LineOrder::Stated } else { LineOrder::BottomUp };
    if marks.iter().all(|mark| mark.is_changing.is_none()) {
        let figure = marks.map(|mark| mark.is_yang);
        return Some(SixLines::YinYang(Hexagram::from_figure(figure), order));
    }
    let lines = marks.map(|mark| Line::new(mark.is_yang, mark.is_changing == Some(true)));
    Some(SixLines::Cast(Lines::new(lines), order))
}

/// Sorts the lines by position, if the positions are 1 to 6 or 0 to 5, each once.
fn sort_by_position(marks: &mut [Mark; 6]) -> bool {
    let mut positions = marks.map(|mark| mark.position);
    positions.sort_unstable();
    let is_complete = |first: u8| (first..).zip(positions).all(|(want, it)| it == Some(want));
    let complete = is_complete(1) || is_complete(0);
    if complete {
        marks.sort_by_key(|mark| mark.position);
    }
    complete
}

fn mark_of_value(value: &Value) -> Option<Mark> {
    match value {
        Value::Bool(is_yang) => Some(plain(*is_yang)),
        Value::Number(number) => mark_of_number(number.as_u64()?),
        Value::String(text) => mark_of_text(&normalize::normalize(text)),
        Value::Array(coins) => mark_of_coins(coins),
        Value::Object(fields) => mark_of_fields(fields),
        Value::Null => None,
    }
}

fn mark_of_number(number: u64) -> Option<Mark> {
    match number {
        0 => Some(plain(false)),
        1 => Some(plain(true)),
        _ => {
            let line = Line::try_from(u8::try_from(number).ok()?).ok()?;
            Some(Mark { is_changing: Some(line.is_changing()), ..plain(line.is_yang()) })
        }
    }
}

/// Three coins of 2 (tails, yin) or 3 (heads, yang) add up to the number of the line.
fn mark_of_coins(coins: &[Value]) -> Option<Mark> {
    let [first, second, third] = coins else {
        return None;
    };
    let coin = |coin: &Value| coin.as_u64().filter(|value| matches!(value, 2 | 3));
    mark_of_number(coin(first)? + coin(second)? + coin(third)?)
}

fn mark_of_text(text: &str) -> Option<Mark> {
    let word: String = text.chars().filter(|letter| !letter.is_whitespace() && !"_-".contains(*letter)).collect();
    let (is_yang, is_changing) = match word.as_str() {
        "6" | "老阴" | "oldyin" | "changingyin" | "yinchanging" | "movingyin" | "阴动" => (false, Some(true)),
        "7" | "少阳" | "youngyang" => (true, Some(false)),
        "8" | "少阴" | "youngyin" => (false, Some(false)),
        "9" | "老阳" | "oldyang" | "changingyang" | "yangchanging" | "movingyang" | "阳动" => (true, Some(true)),
        "1" | "阳" | "阳爻" | "yang" | "⚊" | "solid" | "true" => (true, None),
        "0" | "阴" | "阴爻" | "yin" | "⚋" | "broken" | "false" => (false, None),
        named => return mark_of_line_name(named),
    };
    Some(Mark { is_changing, ..plain(is_yang) })
}

/// Parses a traditional line name (初九, 六二), which has position and kind. The text of the line may follow.
fn mark_of_line_name(text: &str) -> Option<Mark> {
    let (position, is_yang, _) = positions::line_name_at_start(text)?;
    Some(Mark { position: Some(position), ..plain(is_yang) })
}

fn mark_of_fields(fields: &Map<String, Value>) -> Option<Mark> {
    let mut mark = None;
    let mut best = usize::MAX;
    let mut is_changing = None;
    let mut position = None;
    for (key, value) in fields {
        match keys::line_field(key) {
            keys::LineField::Value(rank) if rank < best => {
                if let Some(read) = mark_of_value(value) {
                    (mark, best) = (Some(read), rank);
                }
            }
            keys::LineField::IsYin => mark = value.as_bool().map(|is_yin| plain(!is_yin)).or(mark),
            keys::LineField::Changing => is_changing = flag(value).or(is_changing),
            keys::LineField::Position => position = small(value).or(position),
            keys::LineField::Value(_) | keys::LineField::Other => {}
        }
    }
    let mark = mark?;
    Some(Mark { is_changing: mark.is_changing.or(is_changing), position: position.or(mark.position), ..mark })
}

fn plain(is_yang: bool) -> Mark {
    Mark { is_yang, is_changing: None, position: None }
}

fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => match number.as_u64()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        _ => None,
    }
}

fn small(value: &Value) -> Option<u8> {
    match value {
        Value::Number(number) => u8::try_from(number.as_u64()?).ok(),
        Value::String(text) => positions::of_key(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cast(digits: &str, order: LineOrder) -> SixLines {
        SixLines::Cast(digits.parse().unwrap(), order)
    }

    fn yin_yang(number: u8, order: LineOrder) -> SixLines {
        SixLines::YinYang(Hexagram::from_number(number).unwrap(), order)
    }

    #[test]
    fn numbers_are_read_bottom_up_in_lists_and_strings() {
        let forms = [
            json!([7, 8, 9, 6, 7, 8]),
            json!(["7", "8", "9", "6", "7", "8"]),
            json!("789678"),
            json!(789_678),
            json!("7,8,9,6,7,8"),
            json!("７、８、９、６、７、８"),
            json!("[7, 8, 9, 6, 7, 8]"),
            json!(["少阳", "少阴", "老陽", "老陰", "少阳", "少阴"]),
            json!("young yang, young yin, old yang, old yin, young_yang, young-yin"),
            json!([[2, 2, 3], [3, 3, 2], [3, 3, 3], [2, 2, 2], [2, 3, 2], [3, 2, 3]]),
        ];
        for form in forms {
            assert_eq!(from_value(&form), Some(cast("789678", LineOrder::BottomUp)), "{form}");
        }
    }

    #[test]
    fn yin_and_yang_without_changes_yield_a_hexagram() {
        let forms = [
            json!([1, 0, 0, 0, 1, 0]),
            json!([true, false, false, false, true, false]),
            json!("100010"),
            json!(100_010),
            json!(["阳", "阴", "阴", "阴", "阳", "阴"]),
            json!(["yang", "yin", "yin", "yin", "yang", "yin"]),
            json!("⚊ ⚋ ⚋ ⚋ ⚊ ⚋"),
        ];
        for form in forms {
            assert_eq!(from_value(&form), Some(yin_yang(3, LineOrder::BottomUp)), "{form}");
        }
    }

    #[test]
    fn stated_positions_decide_the_order() {
        let top_down: Vec<Value> = [8, 7, 6, 9, 8, 7]
            .iter()
            .zip((1..=6).rev())
            .map(|(value, position)| json!({"position": position, "value": value}))
            .collect();
        assert_eq!(from_value(&json!(top_down)), Some(cast("789678", LineOrder::Stated)));
        let from_zero: Vec<Value> =
            [7, 8, 9, 6, 7, 8].iter().zip(0..).map(|(value, index)| json!({"index": index, "yao": value})).collect();
        assert_eq!(from_value(&json!(from_zero)), Some(cast("789678", LineOrder::Stated)));
        let keyed = json!({"6": 8, "5": 7, "4": 6, "3": 9, "2": 8, "1": 7, "note": "x"});
        assert_eq!(from_value(&keyed), Some(cast("789678", LineOrder::Stated)));
        let named = json!({"上爻": 0, "五爻": 1, "四爻": 0, "三爻": 0, "二爻": 0, "初爻": 1});
        assert_eq!(from_value(&named), Some(yin_yang(3, LineOrder::Stated)));
        let texts = json!(["上六", "九五：屯其膏", "六四", "六三", "六二", "初九：磐桓"]);
        assert_eq!(from_value(&texts), Some(yin_yang(3, LineOrder::Stated)));
    }

    #[test]
    fn objects_carry_kind_and_change() {
        let marked = json!([
            {"type": "yang", "changing": false},
            {"type": "yin", "changing": false},
            {"type": "yang", "changing": true},
            {"isYang": false, "isMoving": true},
            {"yinYang": "阳", "dong": 0},
            {"isYin": true},
        ]);
        assert_eq!(from_value(&marked), Some(cast("789678", LineOrder::BottomUp)));
    }

    #[test]
    fn rejects_anything_but_six_lines() {
        let others = [
            json!([7, 8, 9, 6, 7]),
            json!([7, 8, 9, 6, 7, 8, 7]),
            json!([7, 8, 9, 5, 7, 8]),
            json!([7, 8, 9, null, 7, 8]),
            json!("78967"),
            json!("seven"),
            json!(""),
            json!({}),
            json!({"1": 7}),
            json!([{}, {}, {}, {}, {}, {}]),
            json!(-5),
            json!(true),
        ];
        for other in others {
            assert_eq!(from_value(&other), None, "{other}");
        }
    }
}
