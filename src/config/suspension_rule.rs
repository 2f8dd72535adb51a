//! Rules that suspend users after rejected texts, as a setting: `3 gambling in 7 days: account for 30 days`.

use std::time::Duration;

use super::values::{RawSetting, SettingValue, quoted, text};
use crate::types::SuspensionScope;

/// The name that stands for all types.
const ANY_TYPE: &str = "any";
const EXAMPLE: &str = "3 gambling in 7 days: account for 30 days";

/// A rule that suspends a user after a number of rejected texts in a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspensionRule {
    pub count: u32,
    /// The violation type that counts; `None` for all.
    pub violation_type: Option<String>,
    /// The time in which the texts are counted.
    pub window: Duration,
    pub scope: SuspensionScope,
    /// The length of the suspension.
    pub length: Duration,
}

impl SuspensionRule {
    fn parse(text: &str) -> Result<Self, String> {
        let malformed = || format!("`{text}` is not a rule, such as `{EXAMPLE}`");
        let (condition, measure) = text.split_once(':').ok_or_else(malformed)?;
        let (count, rest) = condition.trim().split_once(' ').ok_or_else(malformed)?;
        let (kind, window) = rest.rsplit_once(" in ").ok_or_else(malformed)?;
        let (scope, length) = measure.split_once(" for ").ok_or_else(malformed)?;
        let kind = kind.trim();
        let rule = Self {
            count: count.parse().map_err(|_| malformed())?,
            violation_type: (kind != ANY_TYPE).then(|| kind.to_owned()),
            window: duration(window)?,
            scope: SuspensionScope::from_name(scope.trim()).ok_or_else(|| {
                let scopes = SuspensionScope::ALL.map(SuspensionScope::name).join(", ");
                format!("`{}` is not one of: {scopes}", scope.trim())
            })?,
            length: duration(length)?,
        };
        if rule.count == 0 || kind.is_empty() || rule.window.is_zero() || rule.length.is_zero() {
            return Err(format!("`{text}`: number, type and times must not be empty or 0"));
        }
        Ok(rule)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    Duration::read(&RawSetting::Text(text.trim().to_owned()))
}

impl SettingValue for SuspensionRule {
    const SHAPE: &'static str = "rule";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        Self::parse(text(raw)?)
    }

    fn show(&self) -> String {
        let kind = self.violation_type.as_deref().unwrap_or(ANY_TYPE);
        let (window, length) = (self.window.show(), self.length.show());
        let (window, length) = (window.trim_matches('"'), length.trim_matches('"'));
        quoted(format!("{} {kind} in {window}: {} for {length}", self.count, self.scope.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_shows() {
        for rule in [EXAMPLE, "5 any in 12 hours: nickname for 1 day", "2 my type in 30 days: review for 60 days"] {
            let parsed = SuspensionRule::parse(rule).unwrap();
            assert_eq!(parsed.show(), format!("\"{rule}\""));
        }
        assert_eq!(SuspensionRule::parse("5 any in 1 day: review for 1 day").unwrap().violation_type, None);
    }

    #[test]
    fn names_the_fault() {
        for (text, fault) in [
            ("", "is not a rule"),
            ("3 gambling: account for 30 days", "is not a rule"),
            ("many gambling in 7 days: account for 30 days", "is not a rule"),
            ("3 gambling in 7 days: account", "is not a rule"),
            ("3 gambling in 7 days: everything for 3 days", "`everything` is not one of"),
            ("3 gambling in a while: account for 3 days", "`a while` is not a duration"),
            ("0 gambling in 7 days: account for 3 days", "must not be empty or 0"),
            ("3 gambling in 7 days: account for 0 s", "must not be empty or 0"),
        ] {
            let message = SuspensionRule::parse(text).unwrap_err();
            assert!(message.contains(fault), "{text}: {message}");
        }
    }
}
