//! The action that a match of the word list causes, by the type of the word, the way it was found, and the content type.

use super::engine::{ContentType, Match, MatchWay};
use crate::config::{MatchAction, MatchRule};

/// The rules for texts of one content type.
#[derive(Clone, Copy, Debug)]
pub struct MatchActions<'config> {
    pub rules: &'config [MatchRule],
    pub content_type: ContentType,
}

impl MatchActions<'_> {
    /// Returns the action of the first rule that applies. By default uncertain matches go to review, and others block.
    pub fn of(&self, found: &Match) -> MatchAction {
        let rule = self.rules.iter().find(|rule| self.applies(rule, found));
        let action = rule.map_or_else(|| default_action(found.way), |rule| rule.action);
        // A part of a stream cannot be replaced once it has been sent.
        if self.content_type == ContentType::Answer && action == MatchAction::Mask {
            MatchAction::Block
        } else {
            action
        }
    }

    fn applies(&self, rule: &MatchRule, found: &Match) -> bool {
        let is = |selected: &Option<String>, name: &str| selected.as_ref().is_none_or(|selected| selected == name);
        is(&rule.violation_type, &found.kind)
            && is(&rule.way, found.way.name())
            && is(&rule.content_type, self.content_type.name())
    }
}

fn default_action(way: MatchWay) -> MatchAction {
    if way.is_certain() { MatchAction::Block } else { MatchAction::Review }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CONTENT_TYPES, MATCH_WAYS};

    fn found(kind: &str, way: MatchWay) -> Match {
        Match { word: "赌博".into(), kind: kind.into(), way, start: 0, end: 2, text: "赌博".into() }
    }

    fn rule(kind: Option<&str>, way: Option<&str>, content: Option<&str>, action: MatchAction) -> MatchRule {
        let [violation_type, way, content_type] = [kind, way, content].map(|name| name.map(ToOwned::to_owned));
        MatchRule { violation_type, way, content_type, action }
    }

    #[test]
    fn the_setting_knows_all_names() {
        assert_eq!(MATCH_WAYS.to_vec(), MatchWay::ALL.map(MatchWay::name).to_vec());
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
    fn model_responses_are_blocked_instead_of_masked() {
        let rules = [rule(None, None, None, MatchAction::Mask)];
        let actions = MatchActions { rules: &rules, content_type: ContentType::Answer };
        assert_eq!(actions.of(&found("ads", MatchWay::Exact)), MatchAction::Block);
    }
}
