//! Rules that decide what happens to a text with a listed word, as a setting: `ads fuzzy nickname: block`, or
//! `ads fuzzy nickname low: review` for words of one severity.

use super::values::{MatchAction, RawSetting, SettingValue, quoted, text};

/// The word that stands for every value.
const ANY: &str = "any";
/// The ways in which a word is found, as the word engine names them.
pub const MATCH_WAYS: [&str; 10] =
    ["exact", "gap", "letters", "split", "emoji", "sound", "fuzzy", "initial", "shape", "reversed"];
/// The content types, as the word engine names them.
pub const CONTENT_TYPES: [&str; 4] = ["nickname", "signature", "question", "answer"];
/// The severities of words, as the word engine names them.
pub const SEVERITIES: [&str; 3] = ["low", "medium", "high"];

/// A rule about matches of words of a type and severity, found in a way, in texts of a content type. `None` stands for
/// all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRule {
    /// A type, or one of the tags.
    pub violation_type: Option<String>,
    pub way: Option<String>,
    pub content_type: Option<String>,
    pub severity: Option<String>,
    pub action: MatchAction,
}

impl MatchRule {
    fn parse(text: &str) -> Result<Self, String> {
        let malformed = || format!("`{text}` is not a rule, such as `ads fuzzy nickname: block`");
        let (matches, action) = text.rsplit_once(':').ok_or_else(malformed)?;
        let matches = matches.trim();
        let severity = matches.rsplit_once(' ').map(|(_, last)| last).filter(|last| SEVERITIES.contains(last));
        let matches = severity.map_or(matches, |severity| matches[..matches.len() - severity.len()].trim_end());
        let (rest, content_type) = matches.rsplit_once(' ').ok_or_else(malformed)?;
        let (kind, way) = rest.trim().rsplit_once(' ').ok_or_else(malformed)?;
        let selected = |value: &str| (value.trim() != ANY).then(|| value.trim().to_owned());
        let rule = Self {
            violation_type: selected(kind),
            way: selected(way),
            content_type: selected(content_type),
            severity: severity.map(ToOwned::to_owned),
            action: MatchAction::read(&RawSetting::Text(action.to_owned()))?,
        };
        let known = |value: &Option<String>, names: &[&str]| match value {
            Some(value) if !names.contains(&value.as_str()) => {
                Err(format!("`{value}` is not one of: {ANY}, {}", names.join(", ")))
            }
            _ => Ok(()),
        };
        known(&rule.content_type, &CONTENT_TYPES)?;
        known(&rule.way, &MATCH_WAYS)?;
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
        let severity = self.severity.as_ref().map(|severity| format!(" {severity}")).unwrap_or_default();
        quoted(format!("{kind} {way} {content}{severity}: {}", self.action.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_shows() {
        for rule in [
            "ads fuzzy nickname: block",
            "any sound any: review",
            "my own type any question: mask",
            "any any any high: block",
            "low any question low: review",
        ] {
            assert_eq!(MatchRule::parse(rule).unwrap().show(), format!("\"{rule}\""));
        }
    }

    #[test]
    fn names_the_fault() {
        for (text, fault) in [
            ("", "is not a rule"),
            ("ads: block", "is not a rule"),
            ("ads fuzzy: block", "is not a rule"),
            ("any any low: block", "is not a rule"),
            ("ads any nickname awful: block", "`awful` is not one of: any, nickname"),
            ("ads loud nickname: block", "`loud` is not one of: any, exact"),
            ("ads fuzzy poem: block", "`poem` is not one of: any, nickname"),
            ("ads fuzzy nickname: burn", "`burn` is not one of"),
        ] {
            let message = MatchRule::parse(text).unwrap_err();
            assert!(message.contains(fault), "{text}: {message}");
        }
    }
}
