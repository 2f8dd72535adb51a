//! Stars (神煞): branches that a day or a month distinguishes. They colour a reading and decide nothing.
//!
//! Rules as in 增删卜易 (星煞章) where schools differ, such as 天乙贵人 of 庚 and 辛.

use named_enum::named_enum;
use serde::Serialize;

use super::CalendarMoment;
use crate::{Branch, Stem};

named_enum! {
    /// A star.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Star {
        /// Helpers in need, by the day's stem.
        Nobleman = "天乙贵人",
        /// Income, by the day's stem.
        Salary = "禄神",
        /// Excess, by the day's stem.
        Blade = "羊刃",
        /// Learning, by the day's stem.
        Scholar = "文昌",
        /// Movement, by the day's branch.
        PostHorse = "驿马",
        /// Attraction, by the day's branch.
        PeachBlossom = "桃花",
        /// Command, by the day's branch.
        General = "将星",
        /// Solitude and art, by the day's branch.
        Canopy = "华盖",
        /// Loss, by the day's branch.
        Robbery = "劫煞",
        /// Healing, by the month.
        Physician = "天医",
        /// Gladness, by the season.
        Joy = "天喜",
    }
}

/// The branches that a star distinguishes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StarPlace {
    pub star: Star,
    pub branches: Vec<Branch>,
}

impl StarPlace {
    pub(super) fn at(moment: &CalendarMoment) -> Vec<Self> {
        let (stem, day, month) =
            (moment.pillars.day.stem(), moment.pillars.day.branch(), moment.pillars.month.branch());
        let salary = salary(stem);
        // The triad of the day's branch begins at 申, 巳, 寅 or 亥.
        let start = Branch::Shen.plus(12 - 3 * (day as usize % 4));
        let places = [
            (Star::Nobleman, nobleman(stem).to_vec()),
            (Star::Salary, vec![salary]),
            (Star::Blade, vec![salary.plus(1)]),
            (Star::Scholar, vec![scholar(stem)]),
            (Star::PostHorse, vec![start.plus(6)]),
            (Star::PeachBlossom, vec![start.plus(1)]),
            (Star::General, vec![start.plus(4)]),
            (Star::Canopy, vec![start.plus(8)]),
            (Star::Robbery, vec![start.plus(9)]),
            (Star::Physician, vec![month.plus(11)]),
            (Star::Joy, vec![joy(month)]),
        ];
        places.into_iter().map(|(star, branches)| Self { star, branches }).collect()
    }
}

fn nobleman(stem: Stem) -> [Branch; 2] {
    match stem {
        Stem::Jia | Stem::Wu => [Branch::Chou, Branch::Wei],
        Stem::Yi | Stem::Ji => [Branch::Zi, Branch::Shen],
        Stem::Bing | Stem::Ding => [Branch::Hai, Branch::You],
        Stem::Geng | Stem::Xin => [Branch::Yin, Branch::Wu],
        Stem::Ren | Stem::Gui => [Branch::Mao, Branch::Si],
    }
}

fn salary(stem: Stem) -> Branch {
    match stem {
        Stem::Jia => Branch::Yin,
        Stem::Yi => Branch::Mao,
        Stem::Bing | Stem::Wu => Branch::Si,
        Stem::Ding | Stem::Ji => Branch::Wu,
        Stem::Geng => Branch::Shen,
        Stem::Xin => Branch::You,
        Stem::Ren => Branch::Hai,
        Stem::Gui => Branch::Zi,
    }
}

fn scholar(stem: Stem) -> Branch {
    match stem {
        Stem::Jia => Branch::Si,
        Stem::Yi => Branch::Wu,
        Stem::Bing | Stem::Wu => Branch::Shen,
        Stem::Ding | Stem::Ji => Branch::You,
        Stem::Geng => Branch::Hai,
        Stem::Xin => Branch::Zi,
        Stem::Ren => Branch::Yin,
        Stem::Gui => Branch::Mao,
    }
}

/// 春戌夏丑秋辰冬未.
fn joy(month: Branch) -> Branch {
    match month {
        Branch::Yin | Branch::Mao | Branch::Chen => Branch::Xu,
        Branch::Si | Branch::Wu | Branch::Wei => Branch::Chou,
        Branch::Shen | Branch::You | Branch::Xu => Branch::Chen,
        Branch::Hai | Branch::Zi | Branch::Chou => Branch::Wei,
    }
}
