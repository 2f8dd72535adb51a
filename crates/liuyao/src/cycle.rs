//! Five elements, ten stems, twelve branches and the cycle of sixty pairs.
//!
//! Relations between elements and between branches are arithmetic on their order, so that no table repeats them. Enum
//! names are the values in JSON.

use std::fmt;

use named_enum::named_enum;

named_enum! {
    /// One of the five elements, in the order in which each feeds the next.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Element {
        Wood = "wood",
        Fire = "fire",
        Earth = "earth",
        Metal = "metal",
        Water = "water",
    }
}

named_enum! {
    /// One of the ten heavenly stems (天干).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Stem {
        Jia = "甲",
        Yi = "乙",
        Bing = "丙",
        Ding = "丁",
        Wu = "戊",
        Ji = "己",
        Geng = "庚",
        Xin = "辛",
        Ren = "壬",
        Gui = "癸",
    }
}

named_enum! {
    /// One of the twelve earthly branches (地支).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Branch {
        Zi = "子",
        Chou = "丑",
        Yin = "寅",
        Mao = "卯",
        Chen = "辰",
        Si = "巳",
        Wu = "午",
        Wei = "未",
        Shen = "申",
        You = "酉",
        Xu = "戌",
        Hai = "亥",
    }
}

named_enum! {
    /// The relation of one element to another in the cycles of feeding (生) and control (克).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ElementRelation {
        Same = "same",
        Feeds = "feeds",
        Controls = "controls",
        ControlledBy = "controlled_by",
        FedBy = "fed_by",
    }
}

/// A stem and a branch: one of the sixty pairs (干支) that count years, months, days and double hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StemBranch {
    /// The place in the cycle from 甲子, which is 0; always below 60.
    place: u8,
}

impl Element {
    pub fn relation_to(self, other: Self) -> ElementRelation {
        const BY_DISTANCE: [ElementRelation; 5] = [
            ElementRelation::Same,
            ElementRelation::Feeds,
            ElementRelation::Controls,
            ElementRelation::ControlledBy,
            ElementRelation::FedBy,
        ];
        BY_DISTANCE[(other as usize + 5 - self as usize) % 5]
    }
}

impl Branch {
    pub fn element(self) -> Element {
        use Element::{Earth, Fire, Metal, Water, Wood};
        const ELEMENTS: [Element; 12] =
            [Water, Earth, Wood, Wood, Earth, Fire, Fire, Earth, Metal, Metal, Earth, Water];
        ELEMENTS[self as usize]
    }

    /// Returns true for opposite branches (六冲), such as 子 and 午.
    pub fn clashes_with(self, other: Self) -> bool {
        (self as usize + 6) % 12 == other as usize
    }

    /// Returns true for the six combining pairs (六合), such as 子 and 丑.
    pub fn combines_with(self, other: Self) -> bool {
        (self as usize + other as usize) % 12 == 1
    }

    /// Returns the branch this many places later; the order wraps around.
    #[must_use]
    pub fn plus(self, places: usize) -> Self {
        Self::ALL[(self as usize + places) % 12]
    }
}

impl StemBranch {
    /// Returns the pair at a place of the endless sequence in which 甲子 is place 0.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the remainder is from 0 to 59")]
    pub fn from_place(place: i64) -> Self {
        Self { place: place.rem_euclid(60) as u8 }
    }

    /// Returns the pair of a lunar year, named by the Gregorian year in which it begins.
    pub fn of_lunar_year(year: u16) -> Self {
        Self::from_place(i64::from(year) - 4)
    }

    /// Returns the pair with this stem and branch; none if they never meet, such as 甲丑.
    pub fn from_parts(stem: Stem, branch: Branch) -> Option<Self> {
        (0..60).map(Self::from_place).find(|pair| pair.stem() == stem && pair.branch() == branch)
    }

    /// Reads both characters, such as 甲子.
    pub fn from_name(name: &str) -> Option<Self> {
        let (stem, branch) = name.split_at_checked(name.chars().next()?.len_utf8())?;
        Self::from_parts(Stem::from_name(stem)?, Branch::from_name(branch)?)
    }

    pub fn stem(self) -> Stem {
        Stem::ALL[usize::from(self.place % 10)]
    }

    pub fn branch(self) -> Branch {
        Branch::ALL[usize::from(self.place % 12)]
    }

    /// Returns the two branches without a stem in this pair's decade: the void branches (旬空) of a day.
    pub fn void_branches(self) -> [Branch; 2] {
        let first = self.branch().plus(22 - self.stem() as usize);
        [first, first.plus(1)]
    }
}

/// Writes both characters, such as 甲子.
impl fmt::Display for StemBranch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.stem().name())?;
        formatter.write_str(self.branch().name())
    }
}

impl serde::Serialize for StemBranch {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_feed_the_next_and_control_the_one_after() {
        use ElementRelation::{ControlledBy, Controls, FedBy, Feeds, Same};
        let of_wood = Element::ALL.map(|other| Element::Wood.relation_to(other));
        assert_eq!(of_wood, [Same, Feeds, Controls, ControlledBy, FedBy]);
        assert_eq!(Element::Metal.relation_to(Element::Wood), Controls);
        assert_eq!(Element::Water.relation_to(Element::Metal), FedBy);
    }

    #[test]
    fn branches_clash_and_combine_in_six_pairs() {
        let pairs = |is_pair: fn(Branch, Branch) -> bool| {
            let pair =
                |a: Branch| Branch::ALL.into_iter().filter(move |b| (a as usize) < *b as usize && is_pair(a, *b));
            let name = |a: Branch, b: Branch| format!("{}{}", a.name(), b.name());
            Branch::ALL.into_iter().flat_map(|a| pair(a).map(move |b| name(a, b))).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(pairs(Branch::clashes_with), "子午 丑未 寅申 卯酉 辰戌 巳亥");
        assert_eq!(pairs(Branch::combines_with), "子丑 寅亥 卯戌 辰酉 巳申 午未");
    }

    #[test]
    fn the_cycle_has_sixty_pairs() {
        let names: Vec<_> = (0..60).map(|place| StemBranch::from_place(place).to_string()).collect();
        assert_eq!((names[0].as_str(), names[12].as_str(), names[59].as_str()), ("甲子", "丙子", "癸亥"));
        assert_eq!(StemBranch::from_place(-1).to_string(), "癸亥");
        assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), 60);
    }
}
