//! The chart of a cast, the selection of its texts, and castings by time and by numbers.
//!
//! A chart gives each line its stem, branch, kin and spirit, and its strength at the time of the cast. Everything follows
//! from the lines, the time, its zone and the day rule, so nothing of it is stored. No function panics or reads a clock.
//! Enums are written by their name, which is Chinese where the term has no settled translation.

mod solar_terms;
mod lunar;
mod calendar;
mod najia;
mod strength;
mod force;
mod pattern;
mod marks;
mod stars;
mod text_selection;
mod plum_blossom;

use serde::Serialize;

pub use calendar::{CALENDAR_YEARS, CalendarMoment, ClockKind, DayStart, Pillar, Pillars};
pub(crate) use force::{Force, cause_of_failure, is_nothing};
pub use lunar::LunarDate;
pub use marks::{Mark, MarkKind};
pub use najia::{Kin, LineNature, LineRole, Palace, Spirit, Stage, element as trigram_element};
pub use pattern::{Echo, EchoKind, Half, LinePattern};
pub use plum_blossom::{
    ActingTrigram, BodyAndUse, BodyRelation, BodyTrigram, CastSource, LineChoice, NumberedBranch, PlumBlossom,
    TrigramChoice,
};
pub use stars::{Star, StarPlace};
pub use strength::{BranchState, ChangeRelation, ClashEffect, DayEffect, GrowthStage, Progress, Strength};
pub use text_selection::{SelectedPart, SelectedText, SelectionRule, TextSelection};

use crate::hexagram::Cast;
pub use crate::{Branch, Element, ElementRelation, Stem, StemBranch};
use named_enum::named_enum;

named_enum! {
    /// The reason for a chart without a time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MissingMoment {
        /// The time or the time zone of the cast is not known.
        Unknown = "unknown",
        /// The time is outside the years 1900 to 2100.
        OutOfRange = "out_of_range",
    }
}

/// The chart of a cast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chart {
    /// The time of the cast. Null if it is unknown or out of range; then all that depends on it is absent.
    pub moment: Option<CalendarMoment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moment_missing: Option<MissingMoment>,
    /// The palace of the primary hexagram.
    pub palace: Palace,
    /// The pattern of the primary hexagram.
    pub pattern: Option<LinePattern>,
    /// The pattern of the relating hexagram.
    pub relating_pattern: Option<LinePattern>,
    /// Trigrams that repeat or reverse by the change.
    pub echoes: Vec<Echo>,
    /// The branch of the body of the hexagram (卦身).
    pub body_branch: Branch,
    /// Stars of the day and the month (神煞) with the branches that have them; empty if the time is unknown.
    pub stars: Vec<StarPlace>,
    /// Relations of several lines, such as 三合 and 独发.
    pub marks: Vec<Mark>,
    /// All lines of the relating hexagram, bottom up, with the kin that they are to the palace of the primary one.
    pub relating_lines: Option<[LineNature; 6]>,
    /// The lines, bottom up.
    pub lines: [ChartLine; 6],
}

/// A line of the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartLine {
    /// From 1 at the bottom to 6.
    pub position: u8,
    /// 6 old yin, 7 young yang, 8 young yin, 9 old yang.
    pub value: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spirit: Option<Spirit>,
    #[serde(flatten)]
    pub nature: LineNature,
    pub role: Option<LineRole>,
    /// The state of the line's branch at the time of the cast.
    #[serde(flatten)]
    pub state: Option<BranchState>,
    /// The effect of a clash with the day. Only lines at rest have one.
    pub clash_effect: Option<ClashEffect>,
    /// The kin that the hexagram lacks, hidden under this line.
    pub hidden: Option<HiddenLine>,
    /// The line into which a changing line turns.
    pub becomes: Option<ChangedLine>,
}

/// A hidden line (伏神).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HiddenLine {
    #[serde(flatten)]
    pub nature: LineNature,
    #[serde(flatten)]
    pub state: Option<BranchState>,
}

/// The line of the relating hexagram into which a changing line turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedLine {
    #[serde(flatten)]
    pub nature: LineNature,
    /// The effect on the line that changed.
    pub relation: ChangeRelation,
    pub progress: Option<Progress>,
    /// Its branch clashes with the old one.
    pub clash: bool,
    /// Its branch combines with the old one.
    pub combination: bool,
    /// The stage of growth of the old line on the new branch, such as 墓 (化墓) and 绝 (化绝).
    pub stage: GrowthStage,
    #[serde(flatten)]
    pub state: Option<BranchState>,
}

impl Chart {
    /// Returns the chart of a cast, without strength and spirits if it has no moment.
    pub fn new(cast: &Cast, moment: Result<CalendarMoment, MissingMoment>) -> Self {
        let moment_missing = moment.as_ref().err().copied();
        let moment = moment.ok();
        let primary = cast.primary();
        let palace = Palace::of(primary);
        let natures = palace.natures(primary);
        let relating = cast.relating().map(|relating| (relating, palace.natures(relating)));
        let lines = lines(*cast, palace, &natures, relating.as_ref().map(|(_, natures)| natures), moment.as_ref());
        Self {
            body_branch: marks::body_branch(&lines),
            stars: moment.as_ref().map(StarPlace::at).unwrap_or_default(),
            marks: Mark::of(&lines, moment.as_ref()),
            relating_lines: relating.map(|(_, natures)| natures),
            lines,
            moment,
            moment_missing,
            palace,
            pattern: LinePattern::of(&natures),
            relating_pattern: relating.as_ref().and_then(|(_, natures)| LinePattern::of(natures)),
            echoes: relating.map(|(relating, _)| Echo::of_change(primary, relating)).unwrap_or_default(),
        }
    }
}

fn lines(
    cast: Cast,
    palace: Palace,
    natures: &[LineNature; 6],
    relating: Option<&[LineNature; 6]>,
    moment: Option<&CalendarMoment>,
) -> [ChartLine; 6] {
    let state = |nature: LineNature| moment.map(|moment| BranchState::at(moment, nature.branch));
    let spirits = moment.map(|moment| Spirit::on_day(moment.pillars.day.stem()));
    let hidden = palace.hidden(natures);
    let mut position = 0;
    cast.lines().as_array().map(|line| {
        let place = usize::from(position);
        position += 1;
        let (nature, is_changing) = (natures[place], line.is_changing());
        let becomes = relating.filter(|_| is_changing).map(|relating| relating[place]);
        ChartLine {
            position,
            value: line.value(),
            spirit: spirits.map(|spirits| spirits[place]),
            nature,
            role: palace.role(position),
            state: state(nature),
            clash_effect: state(nature).filter(|_| !is_changing).and_then(BranchState::clash_effect),
            hidden: hidden[place].map(|nature| HiddenLine { nature, state: state(nature) }),
            becomes: becomes.map(|new| ChangedLine::new(nature, new, state(new))),
        }
    })
}

impl ChangedLine {
    fn new(old: LineNature, new: LineNature, state: Option<BranchState>) -> Self {
        Self {
            nature: new,
            relation: ChangeRelation::between(old.element, new.element),
            progress: Progress::between(old.branch, new.branch),
            clash: old.branch.clashes_with(new.branch),
            combination: old.branch.combines_with(new.branch),
            stage: GrowthStage::of(old.element, new.branch),
            state,
        }
    }
}

#[cfg(test)]
mod tests;
