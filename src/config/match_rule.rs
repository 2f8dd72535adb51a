//! Rules that decide what happens to a text with a listed word, as a setting: `ads fuzzy nickname: block`.

use super::values::{MatchAction, RawSetting, SettingValue, quoted, text};

/// The word that stands for every value.
const ANY: &str = "any";
/// The ways in which a word is found, as the word engine names them.
pub const MATCH_WAYS: [&str; 10] =
    ["exact", "gap", "letters", "split", "emoji", "sound", "fuzzy", "initial", "shape", "reversed"];
/// The content types, as the word engine names them.
pub const CONTENT_TYPES: [&str; 4] = ["nickname", "signature", "question", "answer"];

/// A rule about matches of a type of words, found in a way, in texts of a content type. `None` stands for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRule {
    pub violation_type: Option<String>,
    pub way: Option<String>,
    pub content_type: Option<String>,
    pub action: MatchAction,
}

impl MatchRule {
    fn parse(text: &str) -> Result<Self, String> {
        let malformed = || format!("`{text}` is not a rule, such as `ads fuzzy nickname: block`");
        let (matches, action) = text.rsplit_once(':').ok_or_else(malformed)?;
        let (rest, content_type) = matches.trim().rsplit_once(' ').ok_or_else(malformed)?;
        let (kind, way) = rest.trim().rsplit_once(' ').ok_or_else(malformed)?;
        let selected = |value: &str| (value.trim() != ANY).then(|| value.trim().to_owned());
        let rule = Self {
            violation_type: selected(kind),
            way: selected(way),
            content_type: selected(content_type),
            action: MatchAction::read(&RawSetting::Text(action.to_owned()))?,
        };
        let known = |value: &Option<String>, names: &[&str]| match value {
            Some(value) if !names.contains(&value.as_str()) => {
                Err(format!("`{value}` is not one of: {ANY}, {}", names.join(", ")))
            }
            _ => Ok(()),
        };
        known(&rule.way, &MATCH_WAYS)?;
        known(&rule.content_type, &CONTENT_TYPES)?;
        Ok(rule)
    }
}

impl SettingValue for MatchRule {
    const SHAPE: &'static str = "rule";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        Self::parse(text(raw)?)
    }

    fn show(&self) -> String {
        let name = |value: &Option<String>| value.as_deref().unwrap_or(ANY).to_owned();
        let (kind, way, content) = (name(&self.violation_type), name(&self.way), name(&self.content_type));
        quoted(format!("{kind} {way} {content}: {}", self.action.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_shows() {
        for rule in ["ads fuzzy nickname: block", "any sound any: review", "my own type any question: mask"] {
            assert_eq!(MatchRule::parse(rule).unwrap().show(), format!("\"{rule}\""));
        }
    }

    #[test]
    fn names_the_fault() {
        for (text, fault) in [
            ("", "is not a rule"),
            ("ads: block", "is not a rule"),
            ("ads fuzzy: block", "is not a rule"),
            ("ads loud nickname: block", "`loud` is not one of: any, exact"),
            ("ads fuzzy poem: block", "`poem` is not one of: any, nickname"),
            ("ads fuzzy nickname: burn", "`burn` is not one of"),
        ] {
            let message = MatchRule::parse(text).unwrap_err();
            assert!(message.contains(fault), "{text}: {message}");
        }
    }
}
