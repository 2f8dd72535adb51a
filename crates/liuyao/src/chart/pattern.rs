//! Patterns of a whole cast: clashes and combinations of its halves, and changes that repeat or reverse a trigram.

use serde::Serialize;

use super::najia::LineNature;
use crate::{
    Branch,
    hexagram::{Hexagram, Trigram},
};
use named_enum::named_enum;

named_enum! {
    /// The relation between the lower and the upper lines of a hexagram, if it is the same for all three pairs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LinePattern {
        SixClashes = "六冲",
        SixCombinations = "六合",
    }
}

named_enum! {
    /// Half of a hexagram.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Half {
        Lower = "lower",
        Upper = "upper",
    }
}

named_enum! {
    /// The kind of a change that leads back to the same branches or to their opposites.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EchoKind {
        /// The branches stay: 乾 and 震 change into each other.
        Repeating = "伏吟",
        /// The trigram changes into the one on the opposite side of the Later Heaven order: 乾巽, 坎离, 震兑, 坤艮.
        TrigramReversing = "卦反吟",
        /// All branches change into those that they clash with: 坤 and 巽 change into each other.
        LineReversing = "爻反吟",
    }
}

/// A trigram that repeats or reverses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Echo {
    pub half: Half,
    pub kind: EchoKind,
}

impl LinePattern {
    pub fn of(natures: &[LineNature; 6]) -> Option<Self> {
        let has_all = |is_pair: fn(Branch, Branch) -> bool| {
            (0..3).all(|line| is_pair(natures[line].branch, natures[line + 3].branch))
        };
        if has_all(Branch::clashes_with) {
            Some(Self::SixClashes)
        } else if has_all(Branch::combines_with) {
            Some(Self::SixCombinations)
        } else {
            None
        }
    }
}

impl EchoKind {
    pub fn of_change(old: Trigram, new: Trigram) -> Option<Self> {
        // Numbers of the Earlier Heaven order: 乾 1, 兑 2, 离 3, 震 4, 巽 5, 坎 6, 艮 7, 坤 8.
        let pair = (old.number().min(new.number()), old.number().max(new.number()));
        match pair {
            (1, 4) => Some(Self::Repeating),
            (1, 5) | (3, 6) | (2, 4) | (7, 8) => Some(Self::TrigramReversing),
            (5, 8) => Some(Self::LineReversing),
            _ => None,
        }
    }
}

impl Echo {
    pub fn of_change(primary: Hexagram, relating: Hexagram) -> Vec<Self> {
        let halves =
            [(Half::Lower, primary.lower(), relating.lower()), (Half::Upper, primary.upper(), relating.upper())];
        let echo = |(half, old, new)| Some(Self { half, kind: EchoKind::of_change(old, new)? });
        halves.into_iter().filter_map(echo).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::najia::Palace;

    fn natures(hexagram: Hexagram) -> [LineNature; 6] {
        Palace::of(hexagram).natures(hexagram)
    }

    #[test]
    fn ten_hexagrams_clash_and_eight_combine() {
        let names = |pattern| {
            let has = |hexagram: &Hexagram| LinePattern::of(&natures(*hexagram)) == Some(pattern);
            Hexagram::all().filter(has).map(Hexagram::chinese_name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(LinePattern::SixClashes), "乾 坤 无妄 坎 离 大壮 震 艮 巽 兑");
        assert_eq!(names(LinePattern::SixCombinations), "泰 否 豫 贲 复 困 旅 节");
    }

    #[test]
    fn echoes_follow_from_the_branches() {
        for old in Trigram::all() {
            for new in Trigram::all() {
                let [from, to] = [old, new].map(|trigram| natures(Hexagram::from_trigrams(trigram, trigram)));
                let is_all = |is_pair: fn(Branch, Branch) -> bool| {
                    (0..3).all(|line| is_pair(from[line].branch, to[line].branch))
                };
                let kind = EchoKind::of_change(old, new);
                let message = format!("{} {}", old.chinese_name(), new.chinese_name());
                assert_eq!(kind == Some(EchoKind::Repeating), old != new && is_all(|a, b| a == b), "{message}");
                assert_eq!(kind == Some(EchoKind::LineReversing), is_all(Branch::clashes_with), "{message}");
            }
        }
    }
}
