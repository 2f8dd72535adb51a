//! The judgement that a classical text passes, such as 吉 or 凶.

use super::ClassicText;

/// The clearest judgement of a text, with the clause that passes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Auspice {
    /// 吉, 亨 or 利.
    Good(&'static str),
    /// 凶, 厉, 吝 or 勿用.
    Warning(&'static str),
}

impl Auspice {
    /// Returns the judgement of the text; none if it passes none, or both kinds.
    pub(super) fn of(text: &ClassicText) -> Option<Self> {
        let clauses = || text.text.split(['，', '。', '；', '！', '？', '、', '：']).map(str::trim);
        let warning = clauses().find(|clause| is_warning(clause));
        let good = clauses().find(|clause| is_good(clause));
        match (good, warning) {
            (Some(good), None) => Some(Self::Good(good)),
            (None, Some(warning)) => Some(Self::Warning(warning)),
            _ => None,
        }
    }
}

fn is_warning(clause: &str) -> bool {
    ["凶", "厉", "吝", "勿用", "不利"].iter().any(|word| clause.contains(word)) && !clause.contains("无不利")
}

fn is_good(clause: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| clause.contains(word));
    clause.contains("无不利") || (has(&["吉", "亨", "利", "有庆", "悔亡"]) && !has(&["不利", "用亨", "勿用"]))
}
