//! The strength of a line at a time, and the effect of a change on the line that changes.

use serde::Serialize;

use super::calendar::CalendarMoment;
use crate::{Branch, Element, ElementRelation};
use named_enum::named_enum;

named_enum! {
    /// The strength of an element in a month (旺相休囚死).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Strength {
        /// The element of the month.
        Prosperous = "旺",
        /// Fed by the month.
        Supported = "相",
        /// It feeds the month.
        Resting = "休",
        /// It controls the month.
        Confined = "囚",
        /// Controlled by the month.
        Dead = "死",
    }
}

named_enum! {
    /// The effect of the day's element on a line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DayEffect {
        /// The day feeds the line.
        Feeds = "生",
        /// The day has the line's element.
        Supports = "扶",
        /// The day controls the line.
        Controls = "克",
        /// The line feeds the day.
        Drains = "泄",
        /// The line controls the day.
        Exhausts = "耗",
        /// The day has the line's element and strikes it: 辰 and 戌, 丑 and 未. It helps no more than it harms.
        Strikes = "冲",
    }
}

named_enum! {
    /// The stage of growth (长生十二宫) in which a branch finds a line, in their order. 长生, 帝旺, 墓 and 绝 decide most.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GrowthStage {
        Birth = "长生",
        Bath = "沐浴",
        Attire = "冠带",
        Office = "临官",
        Peak = "帝旺",
        Decline = "衰",
        Sickness = "病",
        Death = "死",
        Grave = "墓",
        Extinction = "绝",
        Conception = "胎",
        Nurture = "养",
    }
}

named_enum! {
    /// The effect of a clash with the day on a line at rest.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ClashEffect {
        /// A strong line is set in motion without changing (暗动).
        Stirred = "暗动",
        /// A weak line is broken (日破).
        Broken = "日破",
    }
}

named_enum! {
    /// The effect that the new line has on the line that changed into it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ChangeRelation {
        /// The new line feeds the old one.
        FeedsBack = "回头生",
        /// The new line controls the old one.
        ControlsBack = "回头克",
        /// The old line feeds the new one.
        Drains = "化泄",
        /// The old line controls the new one.
        Exhausts = "化耗",
        Same = "比和",
    }
}

named_enum! {
    /// A change within an element that moves along the branches.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Progress {
        Advancing = "进神",
        Retreating = "退神",
    }
}

/// The state of a branch at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own in the answer")]
pub struct BranchState {
    pub strength: Strength,
    /// The day's void branches (旬空) include it.
    pub void: bool,
    /// The month clashes with it (月破).
    pub month_break: bool,
    /// The month combines with it (月合).
    pub month_combination: bool,
    pub day_effect: DayEffect,
    /// The day clashes with it (日冲).
    pub day_clash: bool,
    /// The day combines with it (日合).
    pub day_combination: bool,
    pub growth_stage: GrowthStage,
}

impl Strength {
    pub fn in_month(element: Element, month: Element) -> Self {
        match element.relation_to(month) {
            ElementRelation::Same => Self::Prosperous,
            ElementRelation::FedBy => Self::Supported,
            ElementRelation::Feeds => Self::Resting,
            ElementRelation::Controls => Self::Confined,
            ElementRelation::ControlledBy => Self::Dead,
        }
    }

    /// Returns true for the two strong states (旺, 相).
    pub fn is_strong(self) -> bool {
        matches!(self, Self::Prosperous | Self::Supported)
    }
}

impl DayEffect {
    pub fn on(branch: Branch, day: Branch) -> Self {
        match branch.element().relation_to(day.element()) {
            ElementRelation::Same if branch.clashes_with(day) => Self::Strikes,
            ElementRelation::FedBy => Self::Feeds,
            ElementRelation::Same => Self::Supports,
            ElementRelation::ControlledBy => Self::Controls,
            ElementRelation::Feeds => Self::Drains,
            ElementRelation::Controls => Self::Exhausts,
        }
    }
}

impl GrowthStage {
    /// Returns the stage of an element on a branch. Earth grows with water, as the six-line method has it.
    pub fn of(element: Element, branch: Branch) -> Self {
        let birth = match element {
            Element::Wood => Branch::Hai,
            Element::Fire => Branch::Yin,
            Element::Metal => Branch::Si,
            Element::Water | Element::Earth => Branch::Shen,
        };
        Self::ALL[(branch as usize + 12 - birth as usize) % 12]
    }
}

impl BranchState {
    pub fn at(moment: &CalendarMoment, branch: Branch) -> Self {
        let (month, day) = (moment.pillars.month.branch(), moment.pillars.day.branch());
        let element = branch.element();
        Self {
            strength: Strength::in_month(element, month.element()),
            void: moment.void.contains(&branch),
            month_break: month.clashes_with(branch),
            month_combination: month.combines_with(branch),
            day_effect: DayEffect::on(branch, day),
            day_clash: day.clashes_with(branch),
            day_combination: day.combines_with(branch),
            growth_stage: GrowthStage::of(element, day),
        }
    }

    /// Returns the effect of a clash with the day on a line at rest. A line that the month breaks is not strong, also if it
    /// has the month's element (增删卜易, 日破章).
    pub fn clash_effect(self) -> Option<ClashEffect> {
        let effect =
            if self.strength.is_strong() && !self.month_break { ClashEffect::Stirred } else { ClashEffect::Broken };
        self.day_clash.then_some(effect)
    }
}

impl ChangeRelation {
    pub fn between(old: Element, new: Element) -> Self {
        match old.relation_to(new) {
            ElementRelation::FedBy => Self::FeedsBack,
            ElementRelation::ControlledBy => Self::ControlsBack,
            ElementRelation::Feeds => Self::Drains,
            ElementRelation::Controls => Self::Exhausts,
            ElementRelation::Same => Self::Same,
        }
    }
}

impl Progress {
    /// Returns the movement of a change within an element. Earth moves to the next of its four branches.
    pub fn between(old: Branch, new: Branch) -> Option<Self> {
        if old.element() != new.element() {
            return None;
        }
        let step = if old.element() == Element::Earth { 3 } else { 1 };
        if old.plus(step) == new {
            Some(Self::Advancing)
        } else if new.plus(step) == old {
            Some(Self::Retreating)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strength_follows_the_seasons() {
        let seasons = [
            (Element::Wood, "旺相死囚休"),
            (Element::Fire, "休旺相死囚"),
            (Element::Earth, "囚休旺相死"),
            (Element::Metal, "死囚休旺相"),
            (Element::Water, "相死囚休旺"),
        ];
        for (month, strengths) in seasons {
            let found: String = Element::ALL.map(|element| Strength::in_month(element, month).name()).concat();
            assert_eq!(found, strengths, "wood, fire, earth, metal, water in a month of {}", month.name());
        }
    }

    #[test]
    fn lines_advance_and_retreat_within_their_element() {
        let advancing = ["亥子", "寅卯", "巳午", "申酉", "丑辰", "辰未", "未戌", "戌丑"];
        for old in Branch::ALL {
            for new in Branch::ALL {
                let is_listed =
                    |a: Branch, b: Branch| advancing.contains(&format!("{}{}", a.name(), b.name()).as_str());
                let expected = match (is_listed(old, new), is_listed(new, old)) {
                    (true, _) => Some(Progress::Advancing),
                    (_, true) => Some(Progress::Retreating),
                    _ => None,
                };
                assert_eq!(Progress::between(old, new), expected, "{} {}", old.name(), new.name());
            }
        }
    }

    #[test]
    fn elements_grow_in_twelve_stages() {
        let stages = |element| Branch::ALL.map(|branch| GrowthStage::of(element, branch).name()).join(" ");
        assert_eq!(stages(Element::Wood), "沐浴 冠带 临官 帝旺 衰 病 死 墓 绝 胎 养 长生");
        assert_eq!(stages(Element::Fire), "胎 养 长生 沐浴 冠带 临官 帝旺 衰 病 死 墓 绝");
        assert_eq!(stages(Element::Metal), "死 墓 绝 胎 养 长生 沐浴 冠带 临官 帝旺 衰 病");
        assert_eq!(stages(Element::Water), "帝旺 衰 病 死 墓 绝 胎 养 长生 沐浴 冠带 临官");
        assert_eq!(stages(Element::Earth), stages(Element::Water));
    }
}
