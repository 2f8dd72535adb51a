//! Traverses the data and records every line, hexagram and changing position.
//!
//! Contradictory observations are left to the conclusion. Free text inside JSON is read only when no field has content,
//! because texts mention hexagrams that were never cast.

use serde_json::{Map, Value};

use super::super::catalog::Hexagram;
use super::keys::{self, HexagramKey, Key};
use super::{
    Content, Count, DEEPEST_LEVEL, HexagramRole, NameForm, Observed, ReadingFault, names, normalize, positions,
    six_lines, text,
};

/// A text longer than this under a hexagram's name is a description, not a name. In characters.
const LONGEST_NAME: usize = 24;

/// Field names longer than this are cut where they are reported. In characters.
const LONGEST_REPORTED_KEY: usize = 40;

/// The context of the value being traversed.
#[derive(Clone, Copy)]
struct Scope {
    /// The role of the enclosing hexagram; none at the top level.
    role: Option<HexagramRole>,
    /// True if a `name` or `number` here identifies that hexagram.
    is_named: bool,
    level: usize,
}

/// A field of an object with its classification.
struct Field<'a> {
    key: Key,
    path: String,
    value: &'a Value,
}

struct Traversal {
    observed: Observed,
    /// Texts in unclassified fields.
    texts: Vec<(String, String)>,
}

/// Records the observations in the data.
pub(super) fn observe(data: &str) -> Observed {
    let mut traversal = Traversal { observed: Observed::default(), texts: Vec::new() };
    let scope = Scope { role: None, is_named: false, level: 0 };
    traversal.text_or_json(data, "", scope);
    for (path, text) in traversal.texts {
        if !traversal.observed.evidence.iter().all(|it| matches!(it.content, Content::Recounted(..))) {
            break;
        }
        text::observe(&mut traversal.observed, &path, &text);
    }
    traversal.observed
}

impl Scope {
    fn deeper(self) -> Self {
        Self { level: self.level + 1, ..self }
    }

    /// Inside a hexagram.
    fn of(self, role: HexagramRole) -> Self {
        Self { role: Some(role), is_named: true, ..self.deeper() }
    }

    /// The scope inside an unclassified field, where a `name` may belong to anything.
    fn unnamed(self) -> Self {
        Self { is_named: false, ..self.deeper() }
    }

    fn place_or_primary(self) -> HexagramRole {
        self.role.unwrap_or(HexagramRole::Primary)
    }
}

impl Traversal {
    fn value(&mut self, value: &Value, path: &str, scope: Scope) {
        if scope.level > DEEPEST_LEVEL {
            self.observed.complain(path, ReadingFault::TooDeep);
            return;
        }
        match value {
            Value::Object(fields) => self.object(fields, path, scope),
            Value::Array(items) => self.array(value, items, path, scope),
            Value::String(text) => self.text_or_json(text, path, scope),
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    /// Parses text that may hold JSON, which may again hold text. Each turn counts as one level.
    fn text_or_json(&mut self, text: &str, path: &str, scope: Scope) {
        let text = text.trim_start_matches('\u{FEFF}').trim();
        let may_be_json = text.starts_with(['{', '[', '"']);
        match may_be_json.then(|| serde_json::from_str(text)) {
            Some(Ok(value)) => self.value(&value, path, scope.deeper()),
            _ if scope.role.is_none() && !text.is_empty() => {
                self.texts.push((path.to_owned(), normalize::normalize(text)));
            }
            _ => {}
        }
    }

    fn array(&mut self, value: &Value, items: &[Value], path: &str, scope: Scope) {
        let is_whole = path.is_empty() || scope.is_named;
        if let Some(six) = six_lines::from_value(value).filter(|_| is_whole) {
            let content = six.content(scope.place_or_primary());
            self.observed.notice(path, content);
            return;
        }
        for (index, item) in items.iter().enumerate() {
            self.value(item, &format!("{path}[{index}]"), scope.deeper());
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, path: &str, scope: Scope) {
        let fields: Vec<Field> = fields
            .iter()
            .map(|(name, value)| Field { key: keys::classify(name), path: joined(path, name), value })
            .collect();
        let is_cast = fields.iter().any(Field::describes_a_cast);
        for field in &fields {
            self.field(field, scope, is_cast);
        }
        if let Some(hexagram) = composed_of_trigrams(&fields) {
            let role = scope.place_or_primary();
            self.observed.notice_hexagram(path, role, hexagram, NameForm::Trigrams);
        }
    }

    fn field(&mut self, field: &Field, scope: Scope, is_cast: bool) {
        let (value, path) = (field.value, field.path.as_str());
        match field.key {
            Key::Hexagram { role, is_firm } => {
                let role = role.unwrap_or(scope.place_or_primary());
                self.hexagram(value, path, scope.of(role), is_firm);
            }
            Key::HexagramIdentifier(role) => {
                let role = role.unwrap_or(scope.place_or_primary());
                self.identity(value, path, scope.of(role), HexagramKey::Identifier, is_cast);
            }
            Key::Lines { role, is_firm } => {
                let role = role.unwrap_or(scope.place_or_primary());
                self.lines(value, path, scope, role, is_firm);
            }
            Key::Changing => self.changing(value, path, scope),
            Key::Identity(identity) => self.identity(value, path, scope, identity, is_cast),
            Key::UpperTrigram | Key::LowerTrigram | Key::Ignored => {}
            Key::Other => self.value(value, path, scope.unnamed()),
        }
    }

    /// Observes a field of a hexagram: the hexagram itself, or an object that describes it.
    fn hexagram(&mut self, value: &Value, path: &str, scope: Scope, is_firm: bool) {
        let role = scope.place_or_primary();
        match value {
            Value::Object(_) | Value::Array(_) => self.value(value, path, scope),
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                self.text_or_json(text, path, scope);
            }
            Value::String(text) => self.hexagram_text(text, path, role, is_firm),
            Value::Number(number) if is_firm => match number.as_u64().and_then(by_number) {
                Some(hexagram) => {
                    self.observed.notice_hexagram(path, role, hexagram, NameForm::Number);
                }
                None => self.six_or_problem(value, path, role, ReadingFault::NotAHexagram),
            },
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    fn hexagram_text(&mut self, raw: &str, path: &str, role: HexagramRole, is_firm: bool) {
        let text = normalize::normalize(raw.trim());
        if text.is_empty() || matches!(text.as_str(), "-" | "无" | "none" | "null") {
            return;
        }
        let named = names::hexagram(&text)
            .filter(|(_, form)| is_firm || !matches!(form, NameForm::Number | NameForm::EnglishName));
        if let Some((hexagram, form)) = named {
            self.observed.notice_hexagram(path, role, hexagram, form);
        } else if let Some(six) = six_lines::from_text(&text) {
            self.observed.notice(path, six.content(role));
        } else if !text::observe_value(&mut self.observed, path, role, &text) && is_firm {
            self.unread_name(path, text);
        }
    }

    fn unread_name(&mut self, path: &str, text: String) {
        if text.chars().count() <= LONGEST_NAME {
            self.observed.complain(path, ReadingFault::NotAHexagram);
        } else {
            self.texts.push((path.to_owned(), text));
        }
    }

    fn lines(&mut self, value: &Value, path: &str, scope: Scope, role: HexagramRole, is_firm: bool) {
        if let Some(six) = six_lines::from_value(value) {
            self.observed.notice(path, six.content(role));
            return;
        }
        match value {
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                if let Ok(inner) = serde_json::from_str::<Value>(text) {
                    self.lines_inside(&inner, path, scope.deeper(), role, is_firm);
                }
            }
            Value::Object(_) => self.value(value, path, scope.unnamed()),
            Value::Array(items) if is_firm && !items.is_empty() => {
                self.observed.complain(path, ReadingFault::NotSixLines);
            }
            Value::String(text) if is_firm && is_digits(text) => {
                self.observed.complain(path, ReadingFault::NotSixLines);
            }
            Value::Number(_) if is_firm => self.observed.complain(path, ReadingFault::NotSixLines),
            Value::String(text) => self.text_or_json(text, path, scope.unnamed()),
            _ => {}
        }
    }

    fn lines_inside(&mut self, value: &Value, path: &str, scope: Scope, role: HexagramRole, is_firm: bool) {
        if scope.level > DEEPEST_LEVEL {
            self.observed.complain(path, ReadingFault::TooDeep);
        } else {
            self.lines(value, path, scope, role, is_firm);
        }
    }

    /// A relating hexagram has no changing lines of its own, whatever its fields are called.
    fn changing(&mut self, value: &Value, path: &str, scope: Scope) {
        if scope.role == Some(HexagramRole::Relating) {
            return;
        }
        match (positions::from_value(value), value) {
            (Some(positions), _) => {
                self.observed.notice(path, Content::Changing(positions));
            }
            (None, Value::Object(_)) => self.value(value, path, scope.unnamed()),
            (None, Value::Array(_) | Value::Number(_)) => {
                self.observed.complain(path, ReadingFault::NotPositions);
                if let Some(positions) = positions::from_value_with_zero(value) {
                    self.observed.notice(path, Content::Recounted(positions, Count::FromZero));
                }
            }
            (None, Value::String(text)) if !text.trim().is_empty() => {
                self.observed.complain(path, ReadingFault::NotPositions);
            }
            (None, _) => {}
        }
    }

    /// Observes a `name` or a `number`. At the top level it may belong to a person. There it counts only if it is
    /// Chinese or a sign, or if the object describes a cast in other ways as well.
    fn identity(&mut self, value: &Value, path: &str, scope: Scope, identity: HexagramKey, is_cast: bool) {
        if matches!(value, Value::Object(_)) {
            self.value(value, path, scope.deeper());
            return;
        }
        let is_hexagram = scope.is_named || (scope.role.is_none() && is_cast);
        let Some((hexagram, form)) = identify(value, identity) else {
            return;
        };
        if is_hexagram || (scope.role.is_none() && is_telling(form)) {
            let role = scope.place_or_primary();
            self.observed.notice_hexagram(path, role, hexagram, form);
        }
    }

    fn six_or_problem(&mut self, value: &Value, path: &str, role: HexagramRole, problem: ReadingFault) {
        match six_lines::from_value(value) {
            Some(six) => self.observed.notice(path, six.content(role)),
            None => self.observed.complain(path, problem),
        }
    }
}

impl Field<'_> {
    /// Returns true if the field describes a cast by more than English names and numbers.
    fn describes_a_cast(&self) -> bool {
        match self.key {
            Key::Hexagram { is_firm, .. } | Key::Lines { is_firm, .. } => is_firm,
            Key::HexagramIdentifier(_) | Key::Changing => true,
            Key::UpperTrigram | Key::LowerTrigram => names::trigram_of_value(self.value).is_some(),
            Key::Identity(identity) => identify(self.value, identity).is_some_and(|(_, form)| is_telling(form)),
            Key::Ignored | Key::Other => false,
        }
    }
}

fn composed_of_trigrams(fields: &[Field]) -> Option<Hexagram> {
    let find = |wanted| {
        fields.iter().filter(|field| field.key == wanted).find_map(|field| names::trigram_of_value(field.value))
    };
    let (upper, lower) = (find(Key::UpperTrigram)?, find(Key::LowerTrigram)?);
    Some(Hexagram::from_trigrams(upper, lower))
}

/// Returns true if a name of this form is unlikely to name anything else.
fn is_telling(form: NameForm) -> bool {
    matches!(form, NameForm::Sign | NameForm::FullName | NameForm::ShortName)
}

fn identify(value: &Value, identity: HexagramKey) -> Option<(Hexagram, NameForm)> {
    let (hexagram, form) = match value {
        Value::String(text) => names::hexagram(&normalize::normalize(text))?,
        Value::Number(number) => (by_number(number.as_u64()?)?, NameForm::Number),
        _ => return None,
    };
    match (identity, form) {
        (HexagramKey::Identifier, NameForm::Number) => Some((hexagram, NameForm::Identifier)),
        (HexagramKey::Name, NameForm::Number) if value.is_number() => None,
        _ => Some((hexagram, form)),
    }
}

fn by_number(number: u64) -> Option<Hexagram> {
    Hexagram::from_number(u8::try_from(number).ok()?)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit() || ", ".contains(letter))
}

/// Field names come from the client and appear in reports: only letters and digits are kept.
fn joined(path: &str, key: &str) -> String {
    let key: String = key
        .chars()
        .take(LONGEST_REPORTED_KEY)
        .map(|letter| if letter.is_alphanumeric() { letter } else { '_' })
        .collect();
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
