//! Assesses a chart for a question: the line that stands for the matter (用神), the evidence for and against, and the days at
//! which it may come true.
//!
//! Knows the rules of the six-line method and no words. Each rule stands once, as a [`Reason`].
//! Month and day decide the strength; moving lines act, lines at rest do not; what is void or broken acts later.

use std::sync::LazyLock;

use named_enum::named_enum;
use serde::Serialize;

use super::question::{Aim, Matter, Sought, Topic};
use crate::{
    Branch, Element, ElementRelation,
    chart::{
        BranchState, CalendarMoment, ChangeRelation, ChangedLine, Chart, ChartLine, ClashEffect, DayEffect, Force,
        GrowthStage, HiddenLine, Kin, LineNature, LinePattern, LineRole, MarkKind, Progress, is_nothing,
    },
};

named_enum! {
    /// A rule that counts for or against the matter. `assets/interpreter/rules.tsv` has its meaning, its chapter of
    /// 增删卜易 and its weight.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Reason {
        IsMonth = "is_month", MonthHelps = "month_helps", MonthRests = "month_rests", MonthControls = "month_controls",
        MonthBreaks = "month_breaks", MonthCombines = "month_combines", MonthBinds = "month_binds",
        DayCombines = "day_combines", DayBinds = "day_binds", IsDay = "is_day", DayHelps = "day_helps",
        DayControls = "day_controls", Stirred = "stirred", DayBreaks = "day_breaks", InGrave = "in_grave",
        InExtinction = "in_extinction", VoidForNow = "void_for_now", VoidIndeed = "void_indeed",
        VoidHeals = "void_heals", VoidHarms = "void_harms", ClashHeals = "clash_heals", ClashHarms = "clash_harms",
        Hidden = "hidden", HiddenHelped = "hidden_helped", HiddenOpened = "hidden_opened", FedBack = "fed_back",
        ControlledBack = "controlled_back", Advances = "advances", Retreats = "retreats",
        ChangesIntoNothing = "changes_into_nothing", ChangesIntoGrave = "changes_into_grave",
        ChangesIntoExtinction = "changes_into_extinction", SourceMoves = "source_moves", SourceGrows = "source_grows",
        SourceFails = "source_fails", HarmMoves = "harm_moves", HarmGrows = "harm_grows", HarmFails = "harm_fails",
        HarmDiverted = "harm_diverted", HarmHeld = "harm_held", RivalFeedsHarm = "rival_feeds_harm",
        PeerMoves = "peer_moves", Drained = "drained", Aside = "aside", TriadHelps = "triad_helps",
        TriadHarms = "triad_harms", InPunishment = "in_punishment", InSpoiling = "in_spoiling",
        AtSubject = "at_subject", HarmAtSubject = "harm_at_subject", FeedsSubject = "feeds_subject",
        ComesToSubject = "comes_to_subject", ControlsSubject = "controls_subject", SubjectFails = "subject_fails",
        SubjectVoid = "subject_void", OtherVoid = "other_void", OtherWilling = "other_willing",
        OtherGives = "other_gives", OtherPresses = "other_presses", OtherWithholds = "other_withholds",
        OtherPowerless = "other_powerless", SubjectBecomesIt = "subject_becomes_it", ChildrenFree = "children_free",
        OfficialsAtSubject = "officials_at_subject", GraveWithOfficials = "grave_with_officials",
        CompanionStrong = "companion_strong", CompanionWeak = "companion_weak", RankAtSubject = "rank_at_subject",
        RankHarmed = "rank_harmed", AskerStronger = "asker_stronger", OtherStronger = "other_stronger",
        CourtHelps = "court_helps", CourtHarms = "court_harms", Unions = "unions", UnionStruck = "union_struck",
        Clashes = "clashes", ClashesToUnions = "clashes_to_unions", UnionsToClashes = "unions_to_clashes",
        Reversing = "reversing", Repeating = "repeating",
    }
}

named_enum! {
    /// The answer of a chart.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Outlook {
        Adverse = "adverse",
        Mixed = "mixed",
        Favourable = "favourable",
    }
}

named_enum! {
    /// The strength of a line by month and day.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Weight {
        Weak = "weak",
        Even = "even",
        Strong = "strong",
    }
}

named_enum! {
    /// The reason to choose one of several lines (用神两现章).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Choice {
        Moving = "moving",
        AtSubject = "at_subject",
        AtObject = "at_object",
        Stronger = "stronger",
        Lower = "lower",
    }
}

/// A rule that applies, the line that it is about, and how much it counts; positive for the matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub reason: Reason,
    pub weight: i32,
    /// The position of the line.
    pub position: Option<u8>,
}

named_enum! {
    /// A rule for the time at which the matter may come true (应期章), by its phrase (`timing`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TimingRule {
        Void = "void",
        VoidStruck = "void_struck",
        MonthBreak = "month_break",
        Hidden = "hidden",
        Bound = "bound",
        Grave = "grave",
        Triad = "triad",
        Moving = "moving",
        Resting = "resting",
        RestingStruck = "resting_struck",
        Season = "season",
    }
}

/// A time at which the matter may come true: the days or months of branches, or for a weak line those of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    pub rule: TimingRule,
    pub branches: Vec<Branch>,
    pub element: Element,
}

/// The line that stands for the matter (用神).
#[derive(Clone, Copy, Debug)]
pub struct Significator<'a> {
    /// The line itself, or the line above it (飞神) if it is hidden.
    pub line: &'a ChartLine,
    pub hidden: Option<&'a HiddenLine>,
    /// The reason why it was chosen among several of its kin.
    pub choice: Option<Choice>,
}

/// A chart, read for a question.
#[derive(Debug)]
pub struct Assessment<'a> {
    pub chart: &'a Chart,
    pub matter: &'a Matter,
    /// The line that is weighed: 用神, but the asker's own in a dispute, where 官鬼 is the court.
    pub significator: Significator<'a>,
    /// None if the time is unknown.
    pub weight: Option<Weight>,
    pub subject: &'a ChartLine,
    pub object: &'a ChartLine,
    /// The line of the other person whose act or mind is asked about, if it is not the significator.
    pub other: Option<&'a ChartLine>,
    pub evidence: Vec<Evidence>,
    pub outlook: Outlook,
    pub timing: Option<Timing>,
    /// False if the data does not say which lines change.
    pub knows_changes: bool,
}

impl Reason {
    /// Returns true if the rule is about a line in motion.
    pub(super) const fn is_movement(self) -> bool {
        self as usize >= Self::FedBack as usize && self as usize <= Self::TriadHarms as usize
            || matches!(self, Self::SubjectBecomesIt | Self::ChildrenFree)
    }

    /// Returns true if the rule is about what the asker's or the other person's line does.
    pub(super) const fn is_of_sides(self) -> bool {
        self as usize >= Self::HarmAtSubject as usize && self as usize <= Self::OtherPowerless as usize
    }

    /// Returns true if the rule takes strength from a line that it does not make weak alone.
    const fn holds_back(self) -> bool {
        use Reason::{DayBreaks, InExtinction, InGrave, MonthBreaks, VoidForNow, VoidIndeed};
        matches!(self, MonthBreaks | DayBreaks | VoidForNow | VoidIndeed | InGrave | InExtinction)
    }

    /// Returns how much the rule counts, positive for the matter. Movement counts more than strength, as 增删卜易 has it.
    pub(super) fn weight(self) -> i32 {
        WEIGHTS.get(self as usize).copied().unwrap_or(0)
    }
}

/// The weights of the rules, in the order of [`Reason`].
static WEIGHTS: LazyLock<Vec<i32>> = LazyLock::new(|| {
    let rows = include_str!("../../../../assets/interpreter/rules.tsv").lines().skip(1);
    rows.filter_map(|row| row.split('\t').nth(1)?.parse().ok()).collect()
});

impl Weight {
    /// Returns the strength of a line; none if the time is unknown.
    pub(super) fn of(line: &ChartLine) -> Option<Self> {
        line.state.map(|_| Self::of_reasons(&line_reasons(line)))
    }

    /// Returns the strength by the rules about month and day. What is void, broken or in its grave is not strong.
    fn of_reasons(reasons: &[Reason]) -> Self {
        match reasons.iter().map(|reason| reason.weight()).sum() {
            2.. if reasons.iter().any(|reason| reason.holds_back()) => Self::Even,
            2.. => Self::Strong,
            -1..=1 => Self::Even,
            _ => Self::Weak,
        }
    }
}

/// Returns true if a line feeds another, or combines with it.
fn favours(line: LineNature, other: LineNature) -> bool {
    line.branch.combines_with(other.branch) || line.element.relation_to(other.element) == ElementRelation::Feeds
}

/// Returns true if a line controls another, and does not combine with it.
fn presses(line: LineNature, other: LineNature) -> bool {
    !line.branch.combines_with(other.branch) && line.element.relation_to(other.element) == ElementRelation::Controls
}

/// Returns true if a line is void and at rest.
fn is_empty(line: &ChartLine) -> bool {
    !line.is_active() && line.state.is_some_and(|state| state.void && !state.day_clash)
}

/// Returns the rules about month, day and void that apply to a line; none if the time is unknown.
pub(super) fn line_reasons(line: &ChartLine) -> Vec<Reason> {
    line.state.map_or_else(Vec::new, |state| state_reasons(state, line.clash_effect, line.becomes.is_some()))
}

/// Returns the force of a line by month, day and its own change.
fn side_force(line: &ChartLine) -> i32 {
    line_reasons(line).into_iter().map(Reason::weight).sum::<i32>()
        + line.becomes.map_or(0, |new| match new.relation {
            ChangeRelation::FeedsBack => 2,
            ChangeRelation::ControlsBack => -3,
            _ => 0,
        })
}

/// Returns the rules about month, day and void that apply to a branch.
fn state_reasons(state: BranchState, clash: Option<ClashEffect>, is_moving: bool) -> Vec<Reason> {
    use crate::chart::Strength::{Confined, Dead, Prosperous, Resting, Supported};
    let is_helped = state.is_helped_by_day();
    let mut found = vec![match state.strength {
        _ if state.month_break => Reason::MonthBreaks,
        Prosperous | Supported => Reason::MonthHelps,
        Dead if state.month_combination => Reason::MonthBinds,
        Resting | Confined if state.month_combination => Reason::MonthCombines,
        Resting | Confined => Reason::MonthRests,
        Dead => Reason::MonthControls,
    }];
    let is_joined = state.day_combination && !is_moving;
    match state.day_effect {
        _ if is_helped => found.push(Reason::DayHelps),
        DayEffect::Controls if is_joined => found.push(Reason::DayBinds),
        DayEffect::Controls => found.push(Reason::DayControls),
        _ if is_joined => found.push(Reason::DayCombines),
        _ => {}
    }
    match state.growth_stage {
        GrowthStage::Grave if !is_helped && !state.is_strong_in_month() => found.push(Reason::InGrave),
        GrowthStage::Extinction if !is_helped && !state.is_strong_in_month() => found.push(Reason::InExtinction),
        _ => {}
    }
    match clash {
        Some(ClashEffect::Stirred) => found.push(Reason::Stirred),
        Some(ClashEffect::Broken) => found.push(Reason::DayBreaks),
        None => {}
    }
    if state.void && clash != Some(ClashEffect::Stirred) {
        let has_strength = is_moving || (is_helped && !state.month_break) || state.is_strong_in_month();
        found.push(if has_strength { Reason::VoidForNow } else { Reason::VoidIndeed });
    }
    found
}

impl<'a> Significator<'a> {
    fn of(chart: &'a Chart, sought: Sought, subject: &'a ChartLine, object: &'a ChartLine) -> Self {
        let open = |line, choice| Self { line, hidden: None, choice };
        let kin = match sought {
            Sought::Kin(kin) => kin,
            Sought::Subject => return open(subject, None),
            Sought::Object | Sought::Partner => return open(object, None),
        };
        let candidates: Vec<&ChartLine> = chart.lines.iter().filter(|line| line.nature.kin == kin).collect();
        match (candidates.as_slice(), best(&candidates)) {
            ([one], _) => return open(one, None),
            (_, Some((line, choice))) => return open(line, Some(choice)),
            _ => {}
        }
        let hidden =
            |line: &'a ChartLine| line.hidden.as_ref().filter(|hidden| hidden.nature.kin == kin).map(|it| (line, it));
        match chart.lines.iter().find_map(hidden) {
            Some((line, hidden)) => Self { line, hidden: Some(hidden), choice: None },
            None => open(subject, None),
        }
    }

    pub(super) fn nature(&self) -> LineNature {
        self.hidden.map_or(self.line.nature, |hidden| hidden.nature)
    }

    pub(super) fn state(&self) -> Option<BranchState> {
        self.hidden.map_or(self.line.state, |hidden| hidden.state)
    }

    /// Returns the line into which it changes.
    pub(super) fn becomes(&self) -> Option<ChangedLine> {
        self.line.becomes.filter(|_| self.hidden.is_none())
    }

    pub(super) fn clash_effect(&self) -> Option<ClashEffect> {
        self.line.clash_effect.filter(|_| self.hidden.is_none())
    }

    pub(super) fn is(&self, line: &ChartLine) -> bool {
        self.hidden.is_none() && self.line.position == line.position
    }
}

/// Returns the line to choose of several: one that moves, else the asker's, else the other side's, else the stronger.
fn best<'a>(candidates: &[&'a ChartLine]) -> Option<(&'a ChartLine, Choice)> {
    let only = |is_chosen: &dyn Fn(&ChartLine) -> bool| {
        let chosen: Vec<_> = candidates.iter().copied().filter(|line| is_chosen(line)).collect();
        if let [one] = chosen.as_slice() { Some(*one) } else { None }
    };
    let score = |line: &ChartLine| line_reasons(line).into_iter().map(Reason::weight).sum::<i32>();
    let strongest = candidates.iter().map(|line| score(line)).max()?;
    only(&|line| line.becomes.is_some())
        .map(|line| (line, Choice::Moving))
        .or_else(|| only(&|line| line.role == Some(LineRole::Subject)).map(|line| (line, Choice::AtSubject)))
        .or_else(|| only(&|line| line.role == Some(LineRole::Object)).map(|line| (line, Choice::AtObject)))
        .or_else(|| only(&|line| score(line) == strongest).map(|line| (line, Choice::Stronger)))
        .or_else(|| candidates.first().map(|line| (*line, Choice::Lower)))
}

/// Assesses the chart for the matter.
pub fn assess<'a>(chart: &'a Chart, matter: &'a Matter, knows_changes: bool) -> Option<Assessment<'a>> {
    let with_role = |role| chart.lines.iter().find(|line| line.role == Some(role));
    let (subject, object) = (with_role(LineRole::Subject)?, with_role(LineRole::Object)?);
    let weighed = if matter.topic == Topic::Legal { Sought::Subject } else { matter.sought };
    let significator = Significator::of(chart, weighed, subject, object);
    // The line opposite stands for another person whose kin is hidden or is the asker's own line.
    let is_person = matter.other.as_ref().is_some_and(|other| other.line == matter.sought) && matter.person.is_none();
    let is_shown = |it: &Significator| it.hidden.is_none() && it.line.position != subject.position;
    let is_seen = !is_person || weighed == Sought::Subject || is_shown(&significator);
    let significator = if is_seen { significator } else { Significator::of(chart, Sought::Object, subject, object) };
    let other = matter.other.as_ref().map(|other| Significator::of(chart, other.line, subject, object));
    let other = other.filter(|_| !is_person).map(|other| if is_shown(&other) { other.line } else { object });
    let other = other.filter(|other| !significator.is(other));
    let reasons = |state| state_reasons(state, significator.clash_effect(), significator.becomes().is_some());
    let mut assessment = Assessment {
        chart,
        matter,
        significator,
        weight: significator.state().map(|state| Weight::of_reasons(&reasons(state))),
        subject,
        object,
        other,
        evidence: Vec::new(),
        outlook: Outlook::Mixed,
        timing: None,
        knows_changes,
    };
    assessment.collect();
    assessment.outlook = assessment.weigh();
    assessment.timing = assessment.timing();
    Some(assessment)
}

impl<'a> Assessment<'a> {
    /// Returns true if the chart says more than that all is even.
    pub(super) fn is_telling(&self) -> bool {
        self.chart.moment.is_some() || (self.knows_changes && self.outlook != Outlook::Mixed)
    }

    /// Returns the kin that feeds 用神, that controls it, and that feeds the latter: 元神, 忌神, 仇神.
    pub(super) fn gods(&self) -> [Kin; 3] {
        let element = self.significator.nature().element;
        let kin = |relation| {
            let other = Element::ALL.into_iter().find(|other| other.relation_to(element) == relation);
            Kin::of(other.unwrap_or(element), self.chart.palace.element)
        };
        [kin(ElementRelation::Feeds), kin(ElementRelation::Controls), kin(ElementRelation::ControlledBy)]
    }

    /// Returns true for an illness that is not said to be old (疾病章).
    fn is_new_illness(&self) -> bool {
        self.matter.topic == Topic::Health && !self.matter.has("long")
    }

    fn is_old_illness(&self) -> bool {
        self.matter.topic == Topic::Health && self.matter.has("long") && self.matter.aim != Aim::Fact
    }

    /// Returns true if the asker fears 官鬼: in journeys, illness, danger and lost things.
    fn fears_officials(&self) -> bool {
        matches!(self.matter.topic, Topic::Travel | Topic::Health | Topic::Legal | Topic::Lost)
            && (self.matter.sought == Sought::Subject || self.matter.topic == Topic::Legal)
    }

    fn add(&mut self, reason: Reason, line: Option<&ChartLine>) {
        let position = line.map(|line| line.position);
        self.evidence.push(Evidence { reason, weight: reason.weight(), position });
    }

    /// Returns the line towards which the other person leans.
    pub(super) fn toward(&self) -> LineNature {
        if self.matter.person.is_some() { self.significator.nature() } else { self.subject.nature }
    }

    /// Adds the leaning of the other person towards the thing and the asker. What a line in motion does to the thing is told
    /// with the lines in motion.
    fn add_other(&mut self) {
        let Some(other) = self.other else { return };
        let (nature, thing, toward) = (other.nature, self.significator.nature(), self.toward());
        let (is_thing, is_able) = (self.matter.person.is_none(), Weight::of(other) != Some(Weight::Weak));
        let is_told = is_thing && other.is_active() && (favours(nature, thing) || presses(nature, thing));
        let reasons = [
            (is_thing && favours(nature, thing), Reason::OtherGives),
            (favours(nature, toward), Reason::OtherWilling),
            (is_able && is_thing && presses(nature, thing), Reason::OtherWithholds),
            (is_able && presses(nature, toward), Reason::OtherPresses),
        ];
        let leaning = reasons.into_iter().find(|(applies, _)| *applies && !is_told).map(|(_, reason)| reason);
        for reason in leaning.into_iter().chain(is_empty(other).then_some(Reason::OtherVoid)) {
            self.add(reason, Some(other));
        }
    }

    /// Returns true if the line for the matter is that of the other person.
    pub(super) fn is_of_other(&self) -> bool {
        self.other.is_none() && self.matter.other.as_ref().is_some_and(|other| other.line == self.matter.sought)
    }

    /// Returns true if the question suspects the person of the line for the matter: what counts is if they act against the
    /// asker, and a weak line does not.
    fn is_suspicion(&self) -> bool {
        let is_of_relative = self.matter.person.is_some() && self.matter.has("dealings");
        self.matter.is_unwelcome && (is_of_relative || self.is_of_other() && self.matter.person.is_none())
    }

    fn add_suspicion(&mut self) {
        let (nature, toward) = (self.significator.nature(), self.subject.nature);
        let is_idle = self.significator.state().is_some_and(|state| state.void) || self.weight == Some(Weight::Weak);
        let reasons = [
            (favours(nature, toward), Reason::OtherWilling),
            (is_idle, Reason::OtherPowerless),
            (presses(nature, toward), Reason::OtherPresses),
        ];
        let found = reasons.into_iter().find(|(applies, _)| *applies && !self.significator.is(self.subject));
        if let Some((_, reason)) = found {
            self.add(reason, Some(self.significator.line));
        }
    }

    fn collect(&mut self) {
        if self.is_suspicion() {
            return self.add_suspicion();
        }
        self.add_strength();
        self.add_own_change();
        self.add_movers();
        self.add_marks();
        self.add_subject();
        self.add_other();
        self.add_topic();
        self.add_pattern();
    }

    /// Adds month, day and void of the significator; an illness reads void and clash by its age.
    fn add_strength(&mut self) {
        let significator = self.significator;
        let line = Some(significator.line);
        if let (Some(state), Some(moment)) = (significator.state(), &self.chart.moment) {
            let branch = significator.nature().branch;
            for reason in state_reasons(state, significator.clash_effect(), significator.becomes().is_some()) {
                let reason = match reason {
                    Reason::MonthHelps if branch == moment.pillars.month.branch() => Reason::IsMonth,
                    Reason::DayHelps if branch == moment.pillars.day.branch() => Reason::IsDay,
                    Reason::VoidForNow | Reason::VoidIndeed if self.is_new_illness() => Reason::VoidHeals,
                    Reason::VoidForNow | Reason::VoidIndeed if self.is_old_illness() => Reason::VoidHarms,
                    other => other,
                };
                self.add(reason, line);
            }
        }
        let Some(hidden) = significator.hidden else { return };
        let cover = significator.line;
        let is_open = cover.state.is_some_and(|state| state.void || state.month_break || state.day_clash);
        let is_fed = cover.nature.element.relation_to(hidden.nature.element) == ElementRelation::Feeds;
        let becomes_it =
            self.chart.lines.iter().any(|line| line.becomes.is_some_and(|new| new.nature.kin == hidden.nature.kin));
        let is_timed = hidden.state.is_some_and(|state| state.is_helped_by_day() || state.is_strong_in_month());
        self.add(Reason::Hidden, line);
        // A broken or buried line stays hidden, though its cover opens.
        let is_lost = self.evidence.iter().any(|it| it.reason.holds_back()) && self.weight == Some(Weight::Weak);
        if is_timed {
            self.add(Reason::HiddenHelped, line);
        } else if (is_open || is_fed || becomes_it) && !is_lost {
            self.add(Reason::HiddenOpened, line);
        }
    }

    fn add_own_change(&mut self) {
        let Some(new) = self.significator.becomes() else { return };
        let has_help = |state: BranchState| state.is_helped_by_day() || state.is_strong_in_month();
        let is_strong = self.significator.state().is_some_and(has_help);
        let line = Some(self.significator.line);
        match new.relation {
            ChangeRelation::FeedsBack if !is_nothing(&new) => self.add(Reason::FedBack, line),
            ChangeRelation::ControlsBack if !is_nothing(&new) => self.add(Reason::ControlledBack, line),
            _ => {}
        }
        match new.progress {
            Some(Progress::Advancing) => self.add(Reason::Advances, line),
            Some(Progress::Retreating) => self.add(Reason::Retreats, line),
            None => {}
        }
        if new.state.is_some_and(|state| state.void) && self.is_new_illness() {
            self.add(Reason::VoidHeals, line);
        } else if is_nothing(&new) && new.relation != ChangeRelation::ControlsBack {
            self.add(Reason::ChangesIntoNothing, line);
        }
        match new.stage {
            // A strong line is not buried (旺不入墓).
            _ if is_strong => {}
            GrowthStage::Grave => self.add(Reason::ChangesIntoGrave, line),
            GrowthStage::Extinction if new.relation != ChangeRelation::FeedsBack => {
                self.add(Reason::ChangesIntoExtinction, line);
            }
            _ => {}
        }
    }

    /// Returns the lines in motion apart from the significator, with their relation to it.
    pub(super) fn movers(&self) -> Vec<(&'a ChartLine, ElementRelation)> {
        let element = self.significator.nature().element;
        let lines = self.chart.lines.iter().filter(|line| line.is_active() && !self.significator.is(line));
        lines.map(|line| (line, line.nature.element.relation_to(element))).collect()
    }

    /// Returns true if the line would harm, but frees the asker of what they fear.
    fn frees(&self, line: &ChartLine) -> bool {
        self.fears_officials()
            && line.nature.kin == Kin::Children
            && self.chart.lines.iter().any(|other| {
                other.nature.kin == Kin::Officials && (other.is_active() || other.role == Some(LineRole::Subject))
            })
    }

    fn add_movers(&mut self) {
        let movers = self.movers();
        let acts = |relation| movers.iter().any(|(line, of)| *of == relation && Force::of(line).acts());
        let (is_fed, is_harmed) = (self.is_fed(), acts(ElementRelation::Controls));
        let kin = self.significator.nature().kin;
        let is_freed = movers.iter().any(|(line, _)| self.frees(line) && Force::of(line).acts());
        let in_triad = |line: &ChartLine| {
            let triads = self.chart.marks.iter().filter(|mark| mark.kind == MarkKind::Triad);
            triads.flat_map(|mark| &mark.positions).any(|position| *position == line.position)
        };
        for (line, relation) in &movers {
            let force = Force::of(line);
            let reason = match (relation, force) {
                _ if self.frees(line) && force.acts() => Reason::ChildrenFree,
                (ElementRelation::Controls, _) if line.nature.kin == Kin::Officials && is_freed => Reason::HarmFails,
                (ElementRelation::Controls, _) if line.becomes.is_some_and(|new| new.nature.kin == kin) => continue,
                (ElementRelation::Feeds, Force::Growing) => Reason::SourceGrows,
                (ElementRelation::Feeds, Force::Lasting) => Reason::SourceMoves,
                (ElementRelation::Feeds, _) => Reason::SourceFails,
                (ElementRelation::Controls, _) if force.acts() && is_fed => Reason::HarmDiverted,
                (ElementRelation::Controls, Force::Growing) => Reason::HarmGrows,
                (ElementRelation::Controls, Force::Lasting) => Reason::HarmMoves,
                (ElementRelation::Controls, Force::Held) => Reason::HarmHeld,
                (ElementRelation::Controls, Force::Failing) => Reason::HarmFails,
                (ElementRelation::ControlledBy, _) if force.acts() && is_harmed && !is_fed => Reason::RivalFeedsHarm,
                (ElementRelation::Same, _) if force.acts() => Reason::PeerMoves,
                (ElementRelation::FedBy, _) if force.acts() => Reason::Drained,
                _ if in_triad(line) || line.becomes.is_some_and(|new| new.nature.kin == kin) => continue,
                _ => Reason::Aside,
            };
            self.add(reason, Some(line));
        }
    }

    /// Returns true if a line or a triad in motion feeds the significator, so that harm turns into help (贪生忘克).
    fn is_fed(&self) -> bool {
        let element = self.significator.nature().element;
        let feeds = |other: Element| other.relation_to(element) == ElementRelation::Feeds;
        self.movers().iter().any(|(line, _)| feeds(line.nature.element) && Force::of(line).acts())
            || self.chart.marks.iter().any(|mark| mark.kind == MarkKind::Triad && mark.element.is_some_and(feeds))
    }

    /// Adds triads, and punishment and harm of the significator's own branch.
    fn add_marks(&mut self) {
        let element = self.significator.nature().element;
        let is_fed = self.is_fed();
        for mark in &self.chart.marks {
            let own = mark.positions.iter().filter_map(|position| self.line_at(*position));
            let own = own.into_iter().find(|line| self.significator.is(line));
            match mark.kind {
                MarkKind::Punishment if own.is_some() => self.add(Reason::InPunishment, own),
                MarkKind::Harm if own.is_some() => self.add(Reason::InSpoiling, own),
                _ => {}
            }
            let (Some(of), MarkKind::Triad) = (mark.element, mark.kind) else { continue };
            let members = mark.positions.iter().filter_map(|position| self.line_at(*position));
            let line = members.into_iter().find(|line| line.becomes.is_some());
            match of.relation_to(element) {
                ElementRelation::Feeds | ElementRelation::Same => self.add(Reason::TriadHelps, line),
                ElementRelation::Controls if !is_fed => self.add(Reason::TriadHarms, line),
                _ => {}
            }
        }
    }

    /// Adds the relation of the matter to the asker's line.
    fn add_subject(&mut self) {
        let (subject, significator) = (self.subject, self.significator);
        let line = Some(subject);
        let nature = significator.nature();
        if significator.is(subject) {
            if matches!(self.matter.sought, Sought::Kin(_)) && self.matter.topic != Topic::Legal {
                self.add(Reason::AtSubject, line);
            }
            return;
        }
        if self.matter.person.is_some() {
            return;
        }
        let is_kin = matches!(self.matter.sought, Sought::Kin(_));
        let is_wealth = nature.kin == Kin::Wealth && self.matter.topic != Topic::Love;
        let is_able = self.weight != Some(Weight::Weak);
        let comes = presses(nature, subject.nature);
        let becomes_it = is_kin && subject.becomes.is_some_and(|new| new.nature.kin == nature.kin);
        let is_open = self.matter.topic.wants_union() && self.matter.topic != Topic::Study;
        let reasons = [
            (becomes_it, Reason::SubjectBecomesIt),
            (is_kin && !becomes_it && presses(subject.nature, nature), Reason::HarmAtSubject),
            (favours(nature, subject.nature), Reason::FeedsSubject),
            (comes && is_wealth && is_able, Reason::ComesToSubject),
            (comes && !is_wealth && is_able && self.is_of_other(), Reason::OtherPresses),
            (
                comes && !(is_able && (is_wealth || self.is_of_other())) && significator.line.is_active(),
                Reason::ControlsSubject,
            ),
            (is_open && is_empty(subject), Reason::SubjectVoid),
        ];
        for (_, reason) in reasons.into_iter().filter(|(applies, _)| *applies) {
            self.add(reason, line);
        }
        if is_open && self.other.is_none() && !significator.is(self.object) && is_empty(self.object) {
            self.add(Reason::OtherVoid, Some(self.object));
        }
        let fails = subject.becomes.is_none()
            && subject.state.is_some_and(|state| {
                state.month_break && !state.is_helped_by_day() || subject.clash_effect == Some(ClashEffect::Broken)
            });
        if fails {
            self.add(Reason::SubjectFails, line);
        }
    }

    /// Adds the rules of single topics: exams, illness, journeys and disputes.
    fn add_topic(&mut self) {
        let chart = self.chart;
        if self.fears_officials() {
            let subject = self.subject;
            if subject.nature.kin == Kin::Officials {
                self.add(Reason::OfficialsAtSubject, Some(subject));
            }
            let is_weak = subject.state.is_some_and(|state| !state.is_helped_by_day() && !state.is_strong_in_month());
            if is_weak && chart.marks.iter().any(|mark| mark.kind == MarkKind::GraveWithOfficials) {
                self.add(Reason::GraveWithOfficials, Some(subject));
            }
        }
        match self.matter.topic {
            Topic::Study if self.matter.is_exam() => self.add_exam(),
            Topic::Legal => {
                let relation = match self.object.nature.element.relation_to(self.subject.nature.element) {
                    ElementRelation::Controls => -1,
                    ElementRelation::Feeds | ElementRelation::ControlledBy => 1,
                    _ => 0,
                };
                match side_force(self.subject) - side_force(self.object) + relation {
                    2.. => self.add(Reason::AskerStronger, Some(self.object)),
                    ..=-2 => self.add(Reason::OtherStronger, Some(self.object)),
                    _ => {}
                }
                self.add_court();
            }
            _ => {}
        }
    }

    /// Adds the side to which 官鬼 leans, if it has force.
    fn add_court(&mut self) {
        use ElementRelation::{Controls, Feeds};
        let Some(court) = self.court() else { return };
        let is_side = [self.subject, self.object].iter().any(|side| side.position == court.position);
        if is_side || Weight::of(court).is_none_or(|weight| weight == Weight::Weak) {
            return;
        }
        match [self.subject, self.object].map(|side| court.nature.element.relation_to(side.nature.element)) {
            [Controls, _] => self.add(Reason::CourtHarms, Some(court)),
            [Feeds, _] | [_, Controls] => self.add(Reason::CourtHelps, Some(court)),
            _ => {}
        }
    }

    /// Returns the line of 官鬼, the court or a thief; none if it is hidden.
    pub(super) fn court(&self) -> Option<&'a ChartLine> {
        let lines: Vec<&ChartLine> = self.chart.lines.iter().filter(|line| line.nature.kin == Kin::Officials).collect();
        best(&lines).map(|(line, _)| line)
    }

    /// Adds rank and paper of an exam, and 子孙, which harms the rank (功名章).
    fn add_exam(&mut self) {
        let is_rank = self.matter.sought == Sought::Kin(Kin::Officials);
        self.add_companion(if is_rank { Kin::Parents } else { Kin::Officials });
        let subject = self.subject;
        match subject.nature.kin {
            Kin::Officials if !is_rank => self.add(Reason::RankAtSubject, Some(subject)),
            Kin::Children if !is_rank && self.matter.person.is_none() && subject.becomes.is_none() => {
                self.add(Reason::RankHarmed, Some(subject));
            }
            _ => {}
        }
        let harms = |line: &&ChartLine| line.nature.kin == Kin::Children && line.is_active() && Force::of(line).acts();
        if let Some(line) = self.chart.lines.iter().find(harms).filter(|_| !is_rank && self.matter.person.is_none()) {
            self.add(Reason::RankHarmed, Some(line));
        }
    }

    fn add_companion(&mut self, kin: Kin) {
        let lines: Vec<&ChartLine> = self.chart.lines.iter().filter(|line| line.nature.kin == kin).collect();
        let Some((line, _)) = best(&lines) else { return };
        match Weight::of(line) {
            Some(Weight::Strong) => self.add(Reason::CompanionStrong, Some(line)),
            Some(Weight::Weak) => self.add(Reason::CompanionWeak, Some(line)),
            _ => {}
        }
    }

    fn add_pattern(&mut self) {
        use LinePattern::{SixClashes, SixCombinations};
        let chart = self.chart;
        let is_struck = |line: &ChartLine| line.state.is_some_and(|state| state.day_clash || state.month_break);
        match (chart.pattern, chart.relating_pattern) {
            (Some(SixClashes), _) | (_, Some(SixClashes)) if self.is_new_illness() => {
                self.add(Reason::ClashHeals, None);
            }
            (Some(SixClashes), _) | (_, Some(SixClashes)) if self.is_old_illness() => {
                self.add(Reason::ClashHarms, None);
            }
            _ if !self.matter.topic.wants_union() => {}
            (Some(SixClashes), Some(SixCombinations)) => self.add(Reason::ClashesToUnions, None),
            (Some(SixCombinations), Some(SixClashes)) => self.add(Reason::UnionsToClashes, None),
            (Some(SixClashes), _) => self.add(Reason::Clashes, None),
            (Some(SixCombinations), _) if is_struck(self.significator.line) => {
                self.add(Reason::UnionStruck, None);
            }
            (Some(SixCombinations), _) => self.add(Reason::Unions, None),
            _ => {}
        }
        if let Some(echo) = chart.echoes.first() {
            let is_repeating = echo.kind == crate::chart::EchoKind::Repeating;
            self.add(if is_repeating { Reason::Repeating } else { Reason::Reversing }, None);
        }
    }

    pub(super) fn has(&self, reason: Reason) -> bool {
        self.evidence.iter().any(|it| it.reason == reason)
    }

    pub fn score(&self) -> i32 {
        self.evidence.iter().map(|evidence| evidence.weight).sum()
    }

    /// Returns the answer. A weak line needs a rule that carries it, such as a source in motion.
    fn weigh(&self) -> Outlook {
        // A theft shows in 官鬼, and not in what was taken.
        if self.matter.topic == Topic::Lost && self.matter.aim == Aim::Fact && self.matter.is_unwelcome {
            return match self.court() {
                Some(thief) if thief.is_active() => Outlook::Adverse,
                Some(thief) if Weight::of(thief) == Some(Weight::Strong) => Outlook::Mixed,
                _ => Outlook::Favourable,
            };
        }
        let is_carried = || self.evidence.iter().any(|evidence| evidence.weight >= 3);
        match self.score() {
            2.. if self.weight != Some(Weight::Weak) || is_carried() => Outlook::Favourable,
            ..=-2 => Outlook::Adverse,
            _ => Outlook::Mixed,
        }
    }

    /// Returns the lines of the two things between which the asker chooses: what is kept is the asker's own line, and what
    /// is new the one opposite.
    pub(super) fn sides(&self) -> Option<[&'a ChartLine; 2]> {
        self.matter.options.as_ref()?;
        Some(if self.matter.stays == 0 { [self.subject, self.object] } else { [self.object, self.subject] })
    }

    /// Returns the lines in motion that feed or control a side, with true for those that feed it.
    pub(super) fn movers_on(&self, side: &ChartLine) -> impl Iterator<Item = (&'a ChartLine, bool)> {
        let (element, position) = (side.nature.element, side.position);
        let others = self.chart.lines.iter().filter(move |line| line.is_active() && line.position != position);
        others.filter(|line| Force::of(line).acts()).filter_map(move |line| {
            match line.nature.element.relation_to(element) {
                ElementRelation::Feeds => Some((line, true)),
                ElementRelation::Controls => Some((line, false)),
                _ => None,
            }
        })
    }

    /// Returns the side to which the chart leans in a choice or a question of fact: favourable for the first of two things.
    pub(super) fn chosen(&self) -> Outlook {
        let nature = self.significator.nature();
        let force = |side: &ChartLine| {
            let moved = self.movers_on(side).map(|(_, feeds)| if feeds { 2 } else { -2 }).sum::<i32>();
            let nearness = i32::from(self.significator.is(side) || favours(nature, side.nature));
            // Of two sides of equal force, the one nearer to the line for the matter is ahead.
            2 * (side_force(side) + moved) + nearness
        };
        let by_sides = self.sides().map(|[first, second]| force(first) - force(second));
        let is_open = matches!(self.matter.aim, Aim::Choice | Aim::Fact) && !self.matter.is_unwelcome;
        let by_weight = || self.weight.map_or(0, |weight| weight as i32 - Weight::Even as i32);
        let lean = match by_sides {
            Some(lean) => lean,
            None if !is_open || self.outlook != Outlook::Mixed => return self.outlook,
            None if self.score() == 0 => by_weight(),
            None => self.score(),
        };
        match lean {
            1.. => Outlook::Favourable,
            0 => Outlook::Mixed,
            _ => Outlook::Adverse,
        }
    }

    /// Returns the evidence that decides the answer: the heaviest on its side, or against a mixed one.
    pub(super) fn decider(&self, answer: Outlook) -> Option<&Evidence> {
        let sign = if answer == Outlook::Favourable { 1 } else { -1 };
        let is_choice = self.matter.aim == Aim::Choice;
        let acts = self.matter.other.as_ref().is_some_and(|other| other.acts);
        // The acts of others do not turn on the asker, nor a decision on the wishes of others.
        let is_aside = |reason| match reason {
            Reason::HarmAtSubject | Reason::SubjectFails | Reason::SubjectVoid => acts,
            reason => is_choice && reason.is_of_sides() && self.other.is_some(),
        };
        let found = self.evidence.iter().filter(|it| it.weight * sign > 0 && !is_aside(it.reason));
        found.max_by_key(|it| it.weight.abs())
    }

    /// Returns the most telling time; none if nothing is known of it.
    fn timing(&self) -> Option<Timing> {
        let significator = &self.significator;
        let branch = significator.nature().branch;
        let moment: Option<&CalendarMoment> = self.chart.moment.as_ref();
        let state = significator.state();
        let is_moving = significator.becomes().is_some() || significator.clash_effect() == Some(ClashEffect::Stirred);
        let helps = |element: Element| {
            matches!(element.relation_to(branch.element()), ElementRelation::Feeds | ElementRelation::Same)
        };
        let mut triads =
            self.chart.marks.iter().filter(|mark| mark.kind == MarkKind::Triad && mark.element.is_some_and(helps));
        let triad = triads.find_map(|mark| mark.waits_for);
        let is_weak = self.weight == Some(Weight::Weak);
        let partner = Branch::ALL[(13 - branch as usize) % 12];
        let (rule, branches) = match (state, moment) {
            _ if triad.is_some() => (TimingRule::Triad, vec![triad?]),
            (Some(state), Some(_)) if state.month_break => (TimingRule::MonthBreak, vec![branch, partner]),
            (Some(state), _) if state.void && state.day_clash && !self.matter.is_slow => {
                (TimingRule::VoidStruck, vec![branch])
            }
            (Some(state), _) if state.void => (TimingRule::Void, vec![branch, branch.plus(6)]),
            _ if significator.hidden.is_some() => {
                (TimingRule::Hidden, vec![branch, significator.line.nature.branch.plus(6)])
            }
            (Some(state), _) if is_moving && state.day_combination => (TimingRule::Bound, vec![branch.plus(6)]),
            (Some(state), Some(moment)) if state.growth_stage == GrowthStage::Grave && !state.is_helped_by_day() => {
                (TimingRule::Grave, vec![moment.pillars.day.branch().plus(6)])
            }
            _ if is_weak && self.matter.is_slow => (TimingRule::Season, Vec::new()),
            _ if is_moving => (TimingRule::Moving, vec![branch, partner]),
            _ if self.weight == Some(Weight::Strong) => (TimingRule::RestingStruck, vec![branch.plus(6)]),
            _ => (TimingRule::Resting, vec![branch]),
        };
        // Nobody knows whether a line rests if the changes are unknown.
        let is_telling =
            self.knows_changes || moment.is_some() && !matches!(rule, TimingRule::Resting | TimingRule::RestingStruck);
        is_telling.then_some(Timing { rule, branches, element: branch.element() })
    }

    pub(super) fn line_at(&self, position: u8) -> Option<&'a ChartLine> {
        self.chart.lines.get(usize::from(position).checked_sub(1)?)
    }
}
