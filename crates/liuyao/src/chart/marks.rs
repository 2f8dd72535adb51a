//! Relations of several lines: triads, punishments, harms, and a single line that moves or rests.

use named_enum::named_enum;
use serde::Serialize;

use super::{CalendarMoment, ChartLine, ClashEffect, GrowthStage, Kin, LineRole};
use crate::{Branch, Element};

named_enum! {
    /// A relation of several lines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MarkKind {
        /// Three branches join into one element (三合局), at least two of them in motion (增删卜易, 三合章).
        Triad = "三合",
        /// The middle branch and one more, in motion.
        HalfTriad = "半合",
        /// 寅巳申 or 丑戌未 meet in motion, or 子 and 卯.
        Punishment = "三刑",
        /// Two branches in motion that spoil each other's partner (六害).
        Harm = "六害",
        /// A single line moves.
        SoleMover = "独发",
        /// A single line rests.
        SoleRester = "独静",
        /// The asker's line is 官鬼 and enters its grave (随官入墓).
        GraveWithOfficials = "随官入墓",
    }
}

/// Lines that stand in a relation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    pub kind: MarkKind,
    /// Positions from 1 at the bottom, ascending. A line counts also for the branch into which it changes.
    pub positions: Vec<u8>,
    /// The element of a triad.
    pub element: Option<Element>,
    /// The branch that completes a triad (虚一待用).
    pub waits_for: Option<Branch>,
}

/// First, middle and last branch of the triads, by element.
const TRIADS: [(Element, [Branch; 3]); 4] = [
    (Element::Water, [Branch::Shen, Branch::Zi, Branch::Chen]),
    (Element::Wood, [Branch::Hai, Branch::Mao, Branch::Wei]),
    (Element::Fire, [Branch::Yin, Branch::Wu, Branch::Xu]),
    (Element::Metal, [Branch::Si, Branch::You, Branch::Chou]),
];
const PUNISHMENTS: [&[Branch]; 3] =
    [&[Branch::Yin, Branch::Si, Branch::Shen], &[Branch::Chou, Branch::Xu, Branch::Wei], &[Branch::Zi, Branch::Mao]];

/// Returns the branch of the body of a hexagram: counted from 子 for a yang subject line, from 午 for a yin one.
pub(super) fn body_branch(lines: &[ChartLine; 6]) -> Branch {
    let subject = lines.iter().find(|line| line.role == Some(LineRole::Subject));
    let (position, is_yang) = subject.map_or((1, true), |line| (line.position, line.value % 2 == 1));
    let start = if is_yang { Branch::Zi } else { Branch::Wu };
    start.plus(usize::from(position) - 1)
}

impl ChartLine {
    /// Returns true if the line changes, or if the day stirs it (暗动).
    pub fn is_active(&self) -> bool {
        self.becomes.is_some() || self.clash_effect == Some(ClashEffect::Stirred)
    }

    /// Returns true if the line in motion has this branch or changes into it.
    fn moves_as(&self, branch: Branch) -> bool {
        self.becomes.is_some()
            && (self.nature.branch == branch || self.becomes.is_some_and(|new| new.nature.branch == branch))
    }
}

impl Mark {
    pub(super) fn of(lines: &[ChartLine; 6], moment: Option<&CalendarMoment>) -> Vec<Self> {
        let mut marks: Vec<Self> = TRIADS.iter().filter_map(|triad| Self::triad(lines, moment, *triad)).collect();
        let moving = |branch: Branch| lines.iter().find(|line| line.is_active() && line.nature.branch == branch);
        let mark = |kind, mut positions: Vec<u8>| {
            positions.sort_unstable();
            Self { kind, positions, element: None, waits_for: None }
        };
        for branches in PUNISHMENTS {
            let found: Option<Vec<u8>> = branches.iter().map(|branch| Some(moving(*branch)?.position)).collect();
            marks.extend(found.map(|positions| mark(MarkKind::Punishment, positions)));
        }
        for branch in Branch::ALL {
            // The branch that clashes with its partner.
            let other = Branch::ALL[(19 - branch as usize) % 12];
            if let (Some(one), Some(two)) = (moving(branch), moving(other))
                && branch as usize <= other as usize
            {
                marks.push(mark(MarkKind::Harm, vec![one.position, two.position]));
            }
        }
        let changing = |is_changing| lines.iter().filter(move |line| line.becomes.is_some() == is_changing);
        for (kind, is_changing) in [(MarkKind::SoleMover, true), (MarkKind::SoleRester, false)] {
            let positions: Vec<u8> = changing(is_changing).map(|line| line.position).collect();
            if positions.len() == 1 {
                marks.push(mark(kind, positions));
            }
        }
        let is_buried = |line: &&ChartLine| {
            line.role == Some(LineRole::Subject)
                && line.nature.kin == Kin::Officials
                && (line.state.is_some_and(|state| state.growth_stage == GrowthStage::Grave)
                    || line.becomes.is_some_and(|new| new.stage == GrowthStage::Grave))
        };
        let buried = lines.iter().find(is_buried);
        marks.extend(buried.map(|line| mark(MarkKind::GraveWithOfficials, vec![line.position])));
        marks
    }

    /// Returns the triad if at least two of its branches move. The third may rest, be that of the month or the day, or be
    /// awaited. Of two in motion without the third, one must be the middle branch.
    fn triad(
        lines: &[ChartLine; 6],
        moment: Option<&CalendarMoment>,
        (element, branches): (Element, [Branch; 3]),
    ) -> Option<Self> {
        let moves = |branch: Branch| lines.iter().any(|line| line.moves_as(branch));
        let is_own = |branch: Branch| lines.iter().any(|line| line.becomes.is_some() && line.nature.branch == branch);
        let rests = |branch: Branch| lines.iter().any(|line| line.nature.branch == branch);
        let is_timed = |branch: Branch| {
            moment
                .is_some_and(|moment| branch == moment.pillars.month.branch() || branch == moment.pillars.day.branch())
        };
        let is_void = |branch: Branch| moment.is_some_and(|moment| moment.void.contains(&branch));
        let missing: Vec<Branch> = branches.into_iter().filter(|branch| !moves(*branch)).collect();
        let of =
            |line: &&ChartLine| branches.iter().any(|branch| line.moves_as(*branch) || line.nature.branch == *branch);
        let positions: Vec<u8> = lines.iter().filter(of).map(|line| line.position).collect();
        let movers = lines.iter().filter(|line| branches.iter().any(|branch| line.moves_as(*branch))).count();
        let mark = |kind, waits_for| Self { kind, positions: positions.clone(), element: Some(element), waits_for };
        match missing.as_slice() {
            _ if movers < 2 => None,
            [] => {
                let void = branches.into_iter().find(|branch| is_void(*branch) && !is_timed(*branch));
                Some(mark(MarkKind::Triad, void))
            }
            [last] if rests(*last) || is_timed(*last) => {
                Some(mark(MarkKind::Triad, (is_void(*last) && !is_timed(*last)).then_some(*last)))
            }
            [last] if *last != branches[1] && is_own(branches[1]) => Some(mark(MarkKind::HalfTriad, Some(*last))),
            _ => None,
        }
    }
}
