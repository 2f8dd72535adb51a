//! JSON as text: a table of its list, or of its members, in their order.

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::table::format;

/// A JSON value whose members keep their order.
enum Json {
    Scalar(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn parse(raw: &str) -> serde_json::Result<Self> {
        Ok(match raw.bytes().next() {
            Some(b'{') => {
                let members: IndexMap<String, Box<RawValue>> = serde_json::from_str(raw)?;
                let parse = |(name, value): (String, Box<RawValue>)| Ok((name, Self::parse(value.get())?));
                Self::Object(members.into_iter().map(parse).collect::<serde_json::Result<_>>()?)
            }
            Some(b'[') => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(raw)?;
                Self::List(items.iter().map(|item| Self::parse(item.get())).collect::<serde_json::Result<_>>()?)
            }
            Some(b'"') => Self::Scalar(serde_json::from_str(raw)?),
            _ => Self::Scalar(
                match raw {
                    "null" => "",
                    "true" => "yes",
                    "false" => "no",
                    number => number,
                }
                .to_owned(),
            ),
        })
    }

    /// Formats a value that stands in one cell.
    fn cell(&self) -> String {
        match self {
            Self::Scalar(text) => text.clone(),
            Self::List(values) => values.iter().map(Self::cell).collect::<Vec<_>>().join(", "),
            Self::Object(members) => {
                let cells = members.iter().map(|(_, value)| value.cell()).filter(|text| !text.is_empty());
                cells.collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn member(&self, name: &str) -> String {
        match self {
            Self::Object(members) => {
                members.iter().find(|(other, _)| other == name).map(|(_, value)| value.cell()).unwrap_or_default()
            }
            _ => String::new(),
        }
    }

    fn is_table(&self) -> bool {
        matches!(self, Self::List(rows) if rows.iter().any(|row| matches!(row, Self::Object(_))))
    }
}

/// Formats JSON.
///
/// # Errors
/// Text that is no JSON.
pub fn text_of(json: &str) -> serde_json::Result<String> {
    Ok(match Json::parse(json)? {
        Json::Scalar(text) if text.is_empty() => "Done.".to_owned(),
        Json::Scalar(text) => text,
        Json::List(rows) => table(&rows),
        Json::Object(members) => object("", &members),
    })
}

/// Formats an object: its plain members, then the others. A list comes first, with one line of the plain members.
fn object(title: &str, members: &[(String, Json)]) -> String {
    let is_part = |value: &Json| value.is_table() || matches!(value, Json::Object(_));
    let parts = members.iter().filter(|(_, value)| is_part(value)).map(|(name, value)| match value {
        Json::Object(inner) => object(&words(name, ' '), inner),
        Json::List(rows) if name == "items" => table(rows),
        Json::List(rows) => format!("{}\n{}", words(name, ' '), table(rows)),
        Json::Scalar(_) => String::new(),
    });
    let plain = members.iter().filter(|(name, value)| !is_part(value) && !is_repeated(name));
    let plain = plain.map(|(name, value)| (words(name, ' '), value.cell())).filter(|(_, text)| !text.is_empty());
    let plain: Vec<_> = plain.collect();
    let mut texts: Vec<_> = parts.filter(|text| !text.is_empty()).collect();
    if members.iter().any(|(name, _)| name == "items") {
        texts.splice(0..0, (!title.is_empty()).then(|| title.to_owned()));
        texts.push(plain.iter().map(|(name, text)| format!("{name} {text}")).collect::<Vec<_>>().join(", "));
        return texts.join("\n");
    }
    let width = plain.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut lines: Vec<_> = (!title.is_empty()).then(|| title.to_owned()).into_iter().collect();
    let indent = if title.is_empty() { "" } else { "  " };
    lines.extend(plain.iter().map(|(name, text)| format!("{indent}{name:width$}  {text}")));
    if !plain.is_empty() {
        texts.insert(0, lines.join("\n"));
    }
    texts.join("\n\n")
}

/// Returns true for a member that stands a second time under the name of the first API generation.
fn is_repeated(name: &str) -> bool {
    name.contains('_')
}

/// Formats rows, with a column for each member of the first that any row has a value of.
fn table(rows: &[Json]) -> String {
    let Some(Json::Object(first)) = rows.first() else {
        return rows.iter().map(Json::cell).collect::<Vec<_>>().join("\n");
    };
    let names = first.iter().map(|(name, _)| name.as_str()).filter(|name| !is_repeated(name));
    let names: Vec<_> = names.filter(|name| rows.iter().any(|row| !row.member(name).is_empty())).collect();
    let cells = |row: &Json| names.iter().map(|name| row.member(name)).collect::<Vec<_>>();
    format(names.iter().map(|name| words(name, ' ')), rows.iter().map(cells))
}

/// Separates the words of a name, such as those of `createdAt`.
pub fn words(name: &str, separator: char) -> String {
    let mut words = String::with_capacity(name.len() + 2);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            words.push(separator);
        }
        words.push(character.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_columns_keep_their_order() {
        let text = text_of(r#"{"userId":"7","isDone":true,"rows":[{"b":1,"a":null},{"b":2,"a":["x","y"]}]}"#).unwrap();
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let at = |part: &str| lines.iter().position(|line| line == part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(at("user id 7") < at("is done yes") && at("is done yes") < at("rows"), "{text}");
        assert!(at("b a") < at("2 x, y"), "{text}");
    }

    #[test]
    fn the_number_of_rows_comes_after_the_list() {
        let text = text_of(r#"{"total":1,"items":[{"id":"3"}]}"#).unwrap();
        assert!(text.find("id").unwrap() < text.find("total").unwrap(), "{text}");
        assert_eq!(text_of(r#"["a","b"]"#).unwrap(), "a\nb");
    }
}
