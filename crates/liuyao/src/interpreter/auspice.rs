//! The judgement that a classical text passes, such as 吉 or 凶.

use super::ClassicText;

/// The clearest judgement of a text, with the clause that passes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Auspice {
    /// 吉, 亨 or 利.
    Good(&'static str),
    /// 凶, 厉, 吝, 勿用 or 为咎.
    Warning(&'static str),
}

impl Auspice {
    /// Returns the judgement of the text; none if it passes none, or both kinds.
    pub(super) fn of(text: &ClassicText) -> Option<Self> {
        let clauses = || text.text.split(['，', '。', '；', '！', '？', '、', '：']).map(str::trim);
        // 则 opens the consequence of a condition, such as 得敌 or 三人行, that need not hold.
        let clauses = || clauses().filter(|clause| !clause.starts_with('则'));
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
    ["凶", "厉", "吝", "勿用", "不利", "为咎"].iter().any(|word| clause.contains(word)) && !clause.contains("无不利")
}

fn is_good(clause: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| clause.contains(word));
    clause.contains("无不利") || (has(&["吉", "亨", "利", "有庆", "悔亡"]) && !has(&["不利", "用亨", "勿用"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auspice(text: &'static str) -> Option<Auspice> {
        let (chinese_name, english_name) = ("夬", "Resolution");
        let (label, position) = (None, None);
        Auspice::of(&ClassicText {
            hexagram: 43,
            chinese_name,
            english_name,
            label,
            position,
            is_main: true,
            text,
            plain: "",
        })
    }

    #[test]
    fn tells_blame_from_its_absence() {
        assert_eq!(auspice("壮于前趾，往不胜为咎。"), Some(Auspice::Warning("往不胜为咎")));
        assert_eq!(auspice("无咎。"), None);
        assert_eq!(auspice("复自道，何其咎，吉。"), Some(Auspice::Good("吉")));
    }

    #[test]
    fn skips_the_consequence_of_a_condition() {
        assert_eq!(auspice("不利有攸往，则利有攸往。"), Some(Auspice::Warning("不利有攸往")));
        assert_eq!(auspice("不耕获，不菑畬，则利有攸往。"), None);
    }
}
