//! The terms of the chart in the words of a card. Chinese terms are shown as the API has them.

use crate::{
    domain::divination::{
        chart::{
            Branch, ChangeRelation, Element, Kin, LinePattern, LineRole, Progress, Spirit, Stage, Stem, StemBranch,
        },
        sessions::Method,
    },
    types::Locale,
};

pub(super) fn method(method: Method, locale: Locale) -> &'static str {
    let [chinese, english] = match method {
        Method::ThreeCoins => ["铜钱起卦", "three coins"],
        Method::YarrowStalks => ["蓍草起卦", "yarrow stalks"],
        Method::Manual => ["手动起卦", "cast by hand"],
        Method::Time => ["时间起卦", "cast by time"],
        Method::Numbers => ["数字起卦", "cast by numbers"],
    };
    in_language(locale, chinese, english)
}

pub(super) fn kin(kin: Kin, locale: Locale) -> &'static str {
    let english = match kin {
        Kin::Parents => "Parents",
        Kin::Siblings => "Siblings",
        Kin::Officials => "Officials",
        Kin::Wealth => "Wealth",
        Kin::Children => "Children",
    };
    in_language(locale, kin.name(), english)
}

pub(super) fn spirit(spirit: Spirit, locale: Locale) -> &'static str {
    let english = match spirit {
        Spirit::AzureDragon => "Azure Dragon",
        Spirit::VermilionBird => "Vermilion Bird",
        Spirit::HookedSnake => "Hooked Snake",
        Spirit::SoaringSerpent => "Soaring Serpent",
        Spirit::WhiteTiger => "White Tiger",
        Spirit::BlackTortoise => "Black Tortoise",
    };
    in_language(locale, spirit.name(), english)
}

pub(super) fn role(role: LineRole, locale: Locale) -> &'static str {
    let english = match role {
        LineRole::Subject => "Subject",
        LineRole::Object => "Object",
    };
    in_language(locale, role.name(), english)
}

pub(super) fn element(element: Element, locale: Locale) -> &'static str {
    let chinese = match element {
        Element::Wood => "木",
        Element::Fire => "火",
        Element::Earth => "土",
        Element::Metal => "金",
        Element::Water => "水",
    };
    in_language(locale, chinese, element.name())
}

pub(super) fn stage(stage: Stage, locale: Locale) -> &'static str {
    let [chinese, english] = match stage {
        Stage::Pure => ["本宫", "pure"],
        Stage::First => ["一世", "first generation"],
        Stage::Second => ["二世", "second generation"],
        Stage::Third => ["三世", "third generation"],
        Stage::Fourth => ["四世", "fourth generation"],
        Stage::Fifth => ["五世", "fifth generation"],
        Stage::Wandering => ["游魂", "wandering soul"],
        Stage::Returning => ["归魂", "returning soul"],
    };
    in_language(locale, chinese, english)
}

pub(super) fn pattern(pattern: LinePattern, locale: Locale) -> &'static str {
    let english = match pattern {
        LinePattern::SixClashes => "six clashes",
        LinePattern::SixCombinations => "six combinations",
    };
    in_language(locale, pattern.name(), english)
}

pub(super) fn relation(relation: ChangeRelation, locale: Locale) -> &'static str {
    let english = match relation {
        ChangeRelation::FeedsBack => "feeds it",
        ChangeRelation::ControlsBack => "controls it",
        ChangeRelation::Drains => "drains it",
        ChangeRelation::Exhausts => "exhausts it",
        ChangeRelation::Same => "same element",
    };
    in_language(locale, relation.name(), english)
}

pub(super) fn progress(progress: Progress, locale: Locale) -> &'static str {
    let english = match progress {
        Progress::Advancing => "advances",
        Progress::Retreating => "retreats",
    };
    in_language(locale, progress.name(), english)
}

/// Returns how a stem and a branch are read, such as Jia-Zi.
pub(super) fn sound(stem: Stem, branch: Branch) -> String {
    format!("{}-{}", stem_sound(stem), branch_sound(branch))
}

pub(super) fn sound_of(pair: StemBranch) -> String {
    sound(pair.stem(), pair.branch())
}

pub(super) fn branch_sound(branch: Branch) -> &'static str {
    const SOUNDS: [&str; 12] = ["Zi", "Chou", "Yin", "Mao", "Chen", "Si", "Wu", "Wei", "Shen", "You", "Xu", "Hai"];
    SOUNDS[branch as usize]
}

fn stem_sound(stem: Stem) -> &'static str {
    const SOUNDS: [&str; 10] = ["Jia", "Yi", "Bing", "Ding", "Wu", "Ji", "Geng", "Xin", "Ren", "Gui"];
    SOUNDS[stem as usize]
}

pub(super) fn in_language<T>(locale: Locale, chinese: T, english: T) -> T {
    match locale {
        Locale::Chinese => chinese,
        Locale::English => english,
    }
}
