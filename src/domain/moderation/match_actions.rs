//! The action that a match of the word list causes, by the type and severity of the word, the way it was found, and the
//! content type.

use super::engine::{ContentType, Match, Severity};
use crate::config::{MatchAction, MatchRule};

/// The rules for texts of one content type.
#[derive(Clone, Copy, Debug)]
pub struct MatchActions<'config> {
    pub rules: &'config [MatchRule],
    pub content_type: ContentType,
}

impl MatchActions<'_> {
    /// Returns the action of the first rule that applies. By default uncertain matches and words of low severity go to
    /// review, and others block.
    pub fn of(&self, found: &Match) -> MatchAction {
        let rule = self.rules.iter().find(|rule| self.applies(rule, found));
        rule.map_or_else(|| default_action(found), |rule| rule.action)
    }

    fn applies(&self, rule: &MatchRule, found: &Match) -> bool {
        let is = |selected: &Option<String>, name: &str| selected.as_ref().is_none_or(|selected| selected == name);
        let is_tagged = || rule.violation_type.as_ref().is_some_and(|tag| found.tags.contains(tag));
        (is(&rule.violation_type, &found.kind) || is_tagged())
            && is(&rule.severity, found.severity.name())
            && is(&rule.way, found.way.name())
            && is(&rule.content_type, self.content_type.name())
    }
}

fn default_action(found: &Match) -> MatchAction {
    let is_certain = found.way.is_certain() && found.severity > Severity::Low;
    if is_certain { MatchAction::Block } else { MatchAction::Review }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{CONTENT_TYPES, MATCH_WAYS, SEVERITIES},
        domain::moderation::engine::MatchWay,
    };

    fn found(kind: &str, way: MatchWay) -> Match {
        let (severity, tags) = (Severity::Medium, vec!["spam".to_owned()]);
        Match { word: "赌博".into(), kind: kind.into(), severity, tags, way, start: 0, end: 2, text: "赌博".into() }
    }

    fn rule(kind: Option<&str>, way: Option<&str>, content: Option<&str>, action: MatchAction) -> MatchRule {
        let [violation_type, way, content_type] = [kind, way, content].map(|name| name.map(ToOwned::to_owned));
        MatchRule { violation_type, way, content_type, severity: None, action }
    }

    #[test]
    fn the_setting_knows_all_names() {
        assert_eq!(MATCH_WAYS.to_vec(), MatchWay::ALL.map(MatchWay::name).to_vec());
        assert_eq!(SEVERITIES.to_vec(), Severity::ALL.map(Severity::name).to_vec());
        assert_eq!(CONTENT_TYPES.to_vec(), ContentType::ALL.map(ContentType::name).to_vec());
    }

    #[test]
    fn uncertain_matches_go_to_review_by_default() {
        let actions = MatchActions { rules: &[], content_type: ContentType::Question };
        let reviewed: Vec<_> =
            MatchWay::ALL.into_iter().filter(|way| actions.of(&found("ads", *way)) == MatchAction::Review).collect();
        assert_eq!(reviewed, [MatchWay::Fuzzy, MatchWay::Initial, MatchWay::Shape, MatchWay::Reversed]);
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        let rules = [
            rule(Some("ads"), Some("sound"), Some("question"), MatchAction::Mask),
            rule(Some("ads"), None, None, MatchAction::Review),
            rule(None, Some("fuzzy"), None, MatchAction::Block),
        ];
        let of = |content_type, kind: &str, way| MatchActions { rules: &rules, content_type }.of(&found(kind, way));
        assert_eq!(of(ContentType::Question, "ads", MatchWay::Sound), MatchAction::Mask);
        assert_eq!(of(ContentType::Nickname, "ads", MatchWay::Sound), MatchAction::Review);
        assert_eq!(of(ContentType::Nickname, "fraud", MatchWay::Sound), MatchAction::Block);
        assert_eq!(of(ContentType::Nickname, "fraud", MatchWay::Fuzzy), MatchAction::Block);
    }

    #[test]
    fn words_of_low_severity_go_to_review_by_default() {
        let of = |rules: &[MatchRule], severity, way| {
            let found = Match { severity, ..found("ads", way) };
            MatchActions { rules, content_type: ContentType::Question }.of(&found)
        };
        assert_eq!(of(&[], Severity::Low, MatchWay::Exact), MatchAction::Review);
        assert_eq!(of(&[], Severity::High, MatchWay::Exact), MatchAction::Block);
        assert_eq!(of(&[], Severity::High, MatchWay::Fuzzy), MatchAction::Review);
        let rules = ["high", "low"].map(|severity| MatchRule {
            severity: Some(severity.to_owned()),
            ..rule(None, None, None, if severity == "high" { MatchAction::Block } else { MatchAction::Mask })
        });
        assert_eq!(of(&rules, Severity::Low, MatchWay::Exact), MatchAction::Mask);
        assert_eq!(of(&rules, Severity::Medium, MatchWay::Fuzzy), MatchAction::Review);
        assert_eq!(of(&rules, Severity::High, MatchWay::Fuzzy), MatchAction::Block);
    }

    #[test]
    fn a_rule_names_a_type_or_a_tag() {
        let rules = [rule(Some("spam"), None, None, MatchAction::Mask)];
        let actions = MatchActions { rules: &rules, content_type: ContentType::Question };
        assert_eq!(actions.of(&found("ads", MatchWay::Exact)), MatchAction::Mask);
        let untagged = Match { tags: Vec::new(), ..found("ads", MatchWay::Exact) };
        assert_eq!(actions.of(&untagged), MatchAction::Block);
    }
}
