//! Assesses a chart: the line that stands for the matter (用神), its strength, what moves and acts on it, and the days at
//! which it may come true.
//!
//! Knows the rules of the six-line method and no words. The rules are those of 增删卜易: month and day decide the strength,
//! moving lines act, lines at rest do not, and a void or broken line acts only once it is filled or repaired.

use std::cmp::Ordering;

use super::topic::{Matter, Sought, Topic};
use super::{BecomesFacts, ChartFacts, HiddenFacts, LineFacts, NatureFacts, Reading, StateFacts};
use crate::{Branch, Element, ElementRelation};

/// A chart, read for a question.
#[derive(Debug)]
pub(super) struct Assessment<'a> {
    pub chart: &'a ChartFacts,
    pub matter: Matter,
    pub significator: Significator<'a>,
    /// None if the time is unknown.
    pub weight: Option<Weight>,
    /// The lines in motion, apart from the significator.
    pub movers: Vec<Mover<'a>>,
    /// A line that controls the significator feeds another that feeds it, which turns harm into help (贪生忘克).
    pub is_harm_diverted: bool,
    pub subject: &'a LineFacts,
    pub object: &'a LineFacts,
    /// The relation of the significator to the subject; none if they are the same line.
    pub bond: Option<Bond>,
    /// The relation of the object to the subject; none if one of them is the significator.
    pub sides: Option<Bond>,
    /// Further lines of the question's topic: the illness and its remedy, the rank in an exam.
    pub companions: Vec<Companion<'a>>,
    /// The stronger of both sides of a dispute.
    pub stronger_side: Option<Ordering>,
    pub outlook: Outlook,
    pub timings: Vec<Timing>,
    /// False if the data does not say which lines change.
    pub knows_changes: bool,
}

/// A further line that a topic looks at; none if the hexagram lacks its kin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Companion<'a> {
    pub kin: &'static str,
    pub line: Option<&'a LineFacts>,
}

/// The line that stands for the matter (用神).
#[derive(Clone, Copy, Debug)]
pub(super) struct Significator<'a> {
    /// The line itself, or the line above it (飞神) if it is hidden.
    pub line: &'a LineFacts,
    /// The hidden line, if the hexagram lacks the kin.
    pub hidden: Option<&'a HiddenFacts>,
    /// The reason why it was chosen among several of its kin.
    pub choice: Option<Choice>,
    /// The changing line that turns into the kin that the hexagram lacks.
    pub source: Option<&'a LineFacts>,
    /// The month or the day has the kin that the hexagram lacks.
    pub stands_in: Option<StandIn>,
}

/// The reason to choose one of several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Moving,
    AtSubject,
    AtObject,
    Stronger,
    Lower,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StandIn {
    Month,
    Day,
}

/// The strength of a line, summed up from month and day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Strong,
    Even,
    Weak,
}

/// A line in motion and its effect on the significator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mover<'a> {
    pub line: &'a LineFacts,
    /// Another line with the same nature, change and fate.
    pub twin: Option<&'a LineFacts>,
    /// The relation of its element to the significator's.
    pub relation: ElementRelation,
    pub fate: Fate,
}

/// The end of a movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing takes its force away.
    Lasting,
    /// The new line feeds it or advances.
    Growing,
    /// The new line controls it, retreats, or is void or broken; or the line itself is broken.
    Fading(Fading),
    /// The day combines with it and holds it (合绊).
    Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fading {
    ControlledBack,
    Retreating,
    MonthBroken,
    IntoVoid,
    IntoBreak,
}

/// The relation of another line to the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bond {
    pub relation: ElementRelation,
    pub tie: Option<Tie>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tie {
    Combination,
    Clash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outlook {
    Adverse,
    Mixed,
    Favourable,
}

/// A time at which the matter may come true (应期).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// The void is filled on the branch's day, or struck open on that of its opposite.
    Void(Branch),
    /// The break heals with the month's end, or on the days of the branch and its partner.
    MonthBreak { branch: Branch, month: Branch },
    /// The hidden line comes out on its own day, or when the line above it is struck away.
    Hidden { branch: Branch, above: Branch },
    /// A held line is freed by a clash.
    Bound(Branch),
    /// The grave of the line is struck open.
    Grave { grave: Branch },
    /// A moving line comes true on its own day, or on that of its partner.
    Moving(Branch),
    /// A line at rest is woken on its own day, or on that of its opposite.
    Resting(Branch),
    /// A weak line waits for the months of an element that feeds or repeats it.
    Season(Element),
    /// A line that does harm is held on the day of its partner, or struck on that of its opposite.
    Harm(Branch),
}

/// Assesses the chart; none without a chart of six lines with their roles.
pub(super) fn assess(reading: &Reading, matter: Matter) -> Option<Assessment<'_>> {
    let chart = reading.chart.as_ref()?;
    let with_role = |role| chart.lines.iter().find(|line| line.role == Some(role));
    let (subject, object) = (with_role("世")?, with_role("应")?);
    let significator = Significator::of(chart, matter.sought, subject, object);
    let nature = significator.nature();
    let movers = movers(chart, &significator);
    let has = |relation| movers.iter().any(|mover| mover.relation == relation && mover.is_effective());
    let is_harm_diverted = has(ElementRelation::Controls) && has(ElementRelation::Feeds);
    let is_open = significator.hidden.is_none();
    let is = |line: &LineFacts| is_open && significator.line.position == line.position;
    let mut assessment = Assessment {
        chart,
        matter,
        significator,
        weight: significator.score().map(Weight::of_score),
        movers,
        is_harm_diverted,
        subject,
        object,
        bond: (!is(subject)).then(|| Bond::between(nature, subject.nature)),
        sides: (!is(subject) && !is(object) && has_other_side(matter))
            .then(|| Bond::between(object.nature, subject.nature)),
        companions: companions(chart, matter, &significator),
        stronger_side: None,
        outlook: Outlook::Mixed,
        timings: Vec::new(),
        knows_changes: reading.facts.changing.is_some(),
    };
    if is(subject) && has_other_side(matter) && !matches!(matter.topic, Topic::Health | Topic::Other) {
        assessment.sides = Some(Bond::between(object.nature, subject.nature));
    }
    assessment.stronger_side = (matter.topic == Topic::Legal).then(|| match assessment.advantage() {
        2.. => Ordering::Greater,
        -1..=1 => Ordering::Equal,
        _ => Ordering::Less,
    });
    assessment.outlook = assessment.weigh();
    assessment.timings = assessment.timings();
    if !assessment.knows_changes {
        // Nobody knows whether the line rests.
        let has_time = chart.moment.is_some();
        assessment.timings.retain(|timing| has_time && !matches!(timing, Timing::Resting(_)));
    }
    Some(assessment)
}

/// Returns true if the object line stands for somebody or something that can help or hinder.
fn has_other_side(matter: Matter) -> bool {
    match matter.topic {
        Topic::Lost | Topic::Pets => false,
        Topic::Health => matter.person.is_none(),
        _ => true,
    }
}

impl<'a> Significator<'a> {
    fn of(chart: &'a ChartFacts, sought: Sought, subject: &'a LineFacts, object: &'a LineFacts) -> Self {
        let open = |line, choice| Self { line, hidden: None, choice, source: None, stands_in: None };
        let kin = match sought {
            Sought::Kin(kin) => kin,
            Sought::Subject => return open(subject, None),
            Sought::Object | Sought::Partner => return open(object, None),
        };
        let candidates: Vec<&LineFacts> = chart.lines.iter().filter(|line| line.nature.kin == kin).collect();
        if let [one] = candidates.as_slice() {
            return open(one, None);
        }
        if let Some((line, choice)) = best(&candidates) {
            return open(line, Some(choice));
        }
        let hidden =
            chart.lines.iter().find_map(|line| Some((line, line.hidden.as_ref()?)).filter(|it| it.1.nature.kin == kin));
        let Some((line, hidden)) = hidden else { return open(subject, None) };
        let becomes_it = |line: &&LineFacts| line.becomes.as_ref().is_some_and(|becomes| becomes.nature.kin == kin);
        let element = hidden.nature.branch.element();
        let stands_in = chart.moment.as_ref().and_then(|moment| match element {
            element if element == moment.day.element() => Some(StandIn::Day),
            element if element == moment.month.element() => Some(StandIn::Month),
            _ => None,
        });
        let source = chart.lines.iter().find(becomes_it);
        Self { line, hidden: Some(hidden), choice: None, source, stands_in }
    }

    pub(super) fn nature(&self) -> NatureFacts {
        self.hidden.map_or(self.line.nature, |hidden| hidden.nature)
    }

    pub(super) fn state(&self) -> Option<&'a StateFacts> {
        match self.hidden {
            Some(hidden) => hidden.state.as_ref(),
            None => self.line.state.as_ref(),
        }
    }

    pub(super) fn clash_effect(&self) -> Option<&'static str> {
        self.line.clash_effect.filter(|_| self.hidden.is_none())
    }

    /// Returns true if the line above a hidden one is void or broken and lets it out.
    pub(super) fn is_cover_open(&self) -> bool {
        self.hidden.is_some() && self.line.state.is_some_and(|state| state.is_void || state.is_month_broken)
    }

    fn score(&self) -> Option<i32> {
        self.state().map(|state| state_score(state, self.clash_effect(), self.becomes().is_some()))
    }

    /// Returns the line into which it changes.
    pub(super) fn becomes(&self) -> Option<&'a BecomesFacts> {
        self.line.becomes.as_ref().filter(|_| self.hidden.is_none())
    }
}

/// Returns the line to choose of several: one that moves, else the asker's, else the other side's, else the stronger.
fn best<'a>(candidates: &[&'a LineFacts]) -> Option<(&'a LineFacts, Choice)> {
    let only = |is_chosen: &dyn Fn(&LineFacts) -> bool| {
        let chosen: Vec<_> = candidates.iter().copied().filter(|line| is_chosen(line)).collect();
        if let [one] = chosen.as_slice() { Some(*one) } else { None }
    };
    let score = |line: &LineFacts| line_score(line).unwrap_or(0);
    let strongest = candidates.iter().map(|line| score(line)).max()?;
    only(&|line| line.becomes.is_some())
        .map(|line| (line, Choice::Moving))
        .or_else(|| only(&|line| line.role == Some("世")).map(|line| (line, Choice::AtSubject)))
        .or_else(|| only(&|line| line.role == Some("应")).map(|line| (line, Choice::AtObject)))
        .or_else(|| only(&|line| score(line) == strongest).map(|line| (line, Choice::Stronger)))
        .or_else(|| candidates.first().map(|line| (*line, Choice::Lower)))
}

impl Weight {
    /// Returns the strength of a line; none if the time is unknown.
    pub(super) fn of(line: &LineFacts) -> Option<Self> {
        line_score(line).map(Self::of_score)
    }

    fn of_score(score: i32) -> Self {
        match score {
            2.. => Self::Strong,
            -1..=1 => Self::Even,
            _ => Self::Weak,
        }
    }
}

fn line_score(line: &LineFacts) -> Option<i32> {
    line.state.as_ref().map(|state| state_score(state, line.clash_effect, line.becomes.is_some()))
}

/// Returns the score of a line by month and day.
fn state_score(state: &StateFacts, clash_effect: Option<&str>, is_moving: bool) -> i32 {
    let is_helped = state.is_helped_by_day();
    let month = match state.strength {
        _ if state.is_month_broken => -3,
        "旺" | "相" => 2,
        "休" | "囚" => -1,
        _ => -2,
    };
    let day = match state.day_effect {
        "生" | "扶" => 2,
        "克" => -2,
        _ => 0,
    };
    let growth = match state.growth_stage {
        Some("墓" | "绝") if !is_helped => -1,
        _ => 0,
    };
    let clash = match clash_effect {
        Some("日破") => -2,
        Some("暗动") => 1,
        _ => 0,
    };
    let void = match (state.is_void, is_moving || month + day > 0) {
        (false, _) => 0,
        (true, true) => -1,
        (true, false) => -2,
    };
    month + day + growth + clash + void
}

impl LineFacts {
    /// Returns true if the line changes, or if the day stirs it (暗动).
    pub(super) fn is_active(&self) -> bool {
        self.becomes.is_some() || self.clash_effect == Some("暗动")
    }
}

impl StateFacts {
    pub(super) fn is_helped_by_day(&self) -> bool {
        matches!(self.day_effect, "生" | "扶")
    }
}

impl Mover<'_> {
    /// Returns true if the movement reaches the significator.
    pub(super) fn is_effective(&self) -> bool {
        !matches!(self.fate, Fate::Fading(_) | Fate::Bound)
    }

    /// Returns true if the line stands for the asker or the other side.
    pub(super) fn has_role(&self) -> bool {
        self.line.role.is_some() || self.twin.is_some_and(|twin| twin.role.is_some())
    }

    fn is_like(&self, other: &Self) -> bool {
        let new_nature = |mover: &Self| mover.line.becomes.map(|becomes| becomes.nature);
        self.line.nature == other.line.nature && new_nature(self) == new_nature(other) && self.fate == other.fate
    }

    /// Returns true if the day stirs a line that does not change (暗动).
    pub(super) fn is_stirred(&self) -> bool {
        self.line.becomes.is_none()
    }
}

fn movers<'a>(chart: &'a ChartFacts, significator: &Significator<'a>) -> Vec<Mover<'a>> {
    let element = significator.nature().branch.element();
    let is_other = |line: &&LineFacts| significator.hidden.is_some() || line.position != significator.line.position;
    let is_moving = |line: &&LineFacts| line.is_active();
    let mover = |line: &'a LineFacts| Mover {
        line,
        twin: None,
        relation: line.nature.branch.element().relation_to(element),
        fate: Fate::of(line),
    };
    let mut movers: Vec<Mover<'a>> = Vec::new();
    for mover in chart.lines.iter().filter(is_other).filter(is_moving).map(mover) {
        match movers.iter_mut().find(|earlier| earlier.is_like(&mover)) {
            Some(earlier) => earlier.twin = Some(mover.line),
            None => movers.push(mover),
        }
    }
    movers
}

impl Fate {
    pub(super) fn of(line: &LineFacts) -> Self {
        let is_bound = line.becomes.is_some() && line.state.is_some_and(|state| state.is_day_combination);
        // A void line that moves, or that the day strikes, is not inert (动不为空, 冲空则起).
        let own = line.state.and_then(|state| state.is_month_broken.then_some(Fading::MonthBroken));
        let fading = line.becomes.and_then(|becomes| Fading::of_change(&becomes)).or(own);
        match (fading, line.becomes) {
            (Some(fading), _) => Self::Fading(fading),
            _ if is_bound => Self::Bound,
            (None, Some(BecomesFacts { relation: "回头生", .. } | BecomesFacts { progress: Some("进神"), .. })) => {
                Self::Growing
            }
            _ => Self::Lasting,
        }
    }
}

impl Fading {
    fn of_change(becomes: &BecomesFacts) -> Option<Self> {
        match becomes {
            BecomesFacts { relation: "回头克", .. } => Some(Self::ControlledBack),
            BecomesFacts { progress: Some("退神"), .. } => Some(Self::Retreating),
            BecomesFacts { state: Some(StateFacts { is_month_broken: true, .. }), .. } => Some(Self::IntoBreak),
            BecomesFacts { state: Some(StateFacts { is_void: true, .. }), .. } => Some(Self::IntoVoid),
            _ => None,
        }
    }
}

impl Bond {
    /// Returns the relation of one line to another.
    fn between(one: NatureFacts, other: NatureFacts) -> Self {
        let tie = if one.branch.combines_with(other.branch) {
            Some(Tie::Combination)
        } else if one.branch.clashes_with(other.branch) {
            Some(Tie::Clash)
        } else {
            None
        };
        Self { relation: one.branch.element().relation_to(other.branch.element()), tie }
    }
}

/// Returns the further lines that a topic looks at, apart from the significator.
fn companions<'a>(chart: &'a ChartFacts, matter: Matter, significator: &Significator<'a>) -> Vec<Companion<'a>> {
    let kins: &[&'static str] = match matter.topic {
        Topic::Health => &["官鬼", "子孙"],
        Topic::Study => &["父母", "官鬼"],
        Topic::Legal => &["官鬼"],
        _ => &[],
    };
    let chosen = significator.nature().kin;
    let companion = |kin: &&'static str| {
        let lines: Vec<&LineFacts> = chart.lines.iter().filter(|line| line.nature.kin == *kin).collect();
        Companion { kin, line: best(&lines).map(|(line, _)| line) }
    };
    kins.iter().filter(|kin| **kin != chosen).map(companion).collect()
}

impl Assessment<'_> {
    /// Returns true if the chart says more than that all is even.
    pub(super) fn is_telling(&self) -> bool {
        self.chart.moment.is_some() || (self.knows_changes && self.outlook != Outlook::Mixed)
    }

    /// Weighs all that acts on the matter.
    fn weigh(&self) -> Outlook {
        let has_time = self.chart.moment.is_some();
        let own = match self.matter.topic {
            Topic::Legal => self.advantage(),
            _ => self.significator_score(),
        };
        let score = own + self.movement_score();
        let threshold = if has_time { 2 } else { 1 };
        // Ties between the lines only temper a narrow result.
        match (score, self.tie_score()) {
            (score, tie) if score >= threshold && score + tie >= threshold => Outlook::Favourable,
            (score, tie) if score <= -threshold && score + tie <= -threshold => Outlook::Adverse,
            _ => Outlook::Mixed,
        }
    }

    /// Returns the strength of the asker's line less that of the other side's.
    fn advantage(&self) -> i32 {
        let side = |line: &LineFacts| line_score(line).unwrap_or(0) + change_score(line.becomes.as_ref());
        let relation = match Bond::between(self.object.nature, self.subject.nature).relation {
            ElementRelation::Controls => -1,
            ElementRelation::Feeds | ElementRelation::ControlledBy => 1,
            _ => 0,
        };
        side(self.subject) - side(self.object) + relation
    }

    fn significator_score(&self) -> i32 {
        let significator = &self.significator;
        let state = significator.score().unwrap_or(0);
        let hidden = significator.hidden.map_or(0, |hidden| {
            let above = significator.line.nature.branch.element();
            let by_above = match above.relation_to(hidden.nature.branch.element()) {
                ElementRelation::Controls => -1,
                ElementRelation::Feeds => 1,
                _ => 0,
            };
            let is_helped =
                significator.stands_in.is_some() || significator.source.is_some() || significator.is_cover_open();
            by_above - 1 + i32::from(is_helped)
        });
        state + hidden + change_score(significator.becomes())
    }

    fn movement_score(&self) -> i32 {
        let effect = |mover: &Mover<'_>| match (mover.relation, mover.fate) {
            (ElementRelation::Feeds, Fate::Growing) => 3,
            (ElementRelation::Feeds, Fate::Lasting) => 2,
            (ElementRelation::Controls, Fate::Growing | Fate::Lasting) if self.is_harm_diverted => 0,
            (ElementRelation::Controls, Fate::Growing) => -3,
            (ElementRelation::Controls, Fate::Lasting) => -2,
            (ElementRelation::Controls, _) | (ElementRelation::FedBy, Fate::Growing | Fate::Lasting) => -1,
            (ElementRelation::Same, Fate::Growing | Fate::Lasting) => 1,
            _ if self.fed_harm(mover).is_some() => -1,
            _ => 0,
        };
        let count = |mover: &Mover<'_>| 1 + i32::from(mover.twin.is_some());
        self.movers.iter().map(|mover| effect(mover) * count(mover)).sum()
    }

    /// Returns the moving line that does harm and that this one feeds (仇神动而生忌神).
    pub(super) fn fed_harm(&self, mover: &Mover<'_>) -> Option<&Mover<'_>> {
        if mover.relation != ElementRelation::ControlledBy || !mover.is_effective() || self.is_harm_diverted {
            return None;
        }
        self.movers.iter().find(|other| other.relation == ElementRelation::Controls && other.is_effective())
    }

    fn tie_score(&self) -> i32 {
        let bond = match self.bond {
            _ if !self.matter.topic.wants_union() => 0,
            Some(Bond { tie: Some(Tie::Combination), .. } | Bond { relation: ElementRelation::Feeds, .. }) => 1,
            Some(Bond { tie: Some(Tie::Clash), .. }) => -1,
            _ => 0,
        };
        let pattern = match self.chart.pattern {
            Some("六合") if self.matter.topic.wants_union() => 1,
            Some("六冲") if self.matter.topic.wants_union() => -1,
            _ => 0,
        };
        bond + pattern
    }

    /// Returns at most two times, the most telling first.
    fn timings(&self) -> Vec<Timing> {
        let significator = &self.significator;
        let branch = significator.nature().branch;
        let moment = self.chart.moment.as_ref();
        let state = significator.state();
        let is_moving = significator.becomes().is_some() || significator.clash_effect() == Some("暗动");
        let first = match (state, moment) {
            (Some(state), _) if state.is_void => Timing::Void(branch),
            (Some(state), Some(moment)) if state.is_month_broken => Timing::MonthBreak { branch, month: moment.month },
            _ if significator.hidden.is_some() => Timing::Hidden { branch, above: significator.line.nature.branch },
            (Some(state), _) if is_moving && state.is_day_combination => Timing::Bound(branch),
            (Some(state), Some(moment)) if state.growth_stage == Some("墓") && !state.is_helped_by_day() => {
                Timing::Grave { grave: moment.day }
            }
            _ if is_moving => Timing::Moving(branch),
            _ => Timing::Resting(branch),
        };
        let harm = self.movers.iter().find(|mover| {
            mover.relation == ElementRelation::Controls && mover.is_effective() && !self.is_harm_diverted
        });
        let second = match harm {
            Some(mover) => Some(Timing::Harm(mover.line.nature.branch)),
            None => (self.weight == Some(Weight::Weak)).then(|| Timing::Season(branch.element())),
        };
        std::iter::once(first).chain(second).collect()
    }
}

fn change_score(becomes: Option<&BecomesFacts>) -> i32 {
    let Some(becomes) = becomes else { return 0 };
    let relation = match becomes.relation {
        "回头生" => 2,
        "回头克" => -3,
        _ => 0,
    };
    let progress = match becomes.progress {
        Some("进神") => 1,
        Some("退神") => -1,
        _ => 0,
    };
    let state = becomes.state.is_some_and(|state| state.is_void || state.is_month_broken);
    relation + progress - i32::from(state)
}
