//! The paragraphs about the six-line chart in English.

use std::cmp::Ordering;

use super::super::assessment::{
    Assessment, Bond, Choice, Companion, Fading, Fate, Mover, StandIn, Tie, Timing, Weight,
};
use super::super::topic::{Sought, Topic};
use super::super::{BecomesFacts, EchoFacts, HiddenFacts, LineFacts, MomentFacts, Reading, StateFacts};
use super::terms;
use crate::{Branch, ElementRelation};

/// Above this many, only the lines that act on the matter are named.
const MAX_MOVERS: usize = 3;

pub(super) fn paragraphs(reading: &Reading, assessment: &Assessment<'_>) -> Vec<String> {
    let sections = [
        setting(reading, assessment) + " " + &matter(assessment),
        movement(reading, assessment),
        sides(assessment),
        timing(reading, assessment),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect()
}

/// Returns method, time and palace.
fn setting(reading: &Reading, assessment: &Assessment<'_>) -> String {
    let chart = assessment.chart;
    let method = reading.method.and_then(terms::method);
    let moment = chart.moment.as_ref().map(|moment| {
        let (date, time) = moment.local.split_once(' ').unwrap_or((&moment.local, ""));
        let ([_, month, day, _], [first, second]) = (&moment.pillars, moment.void.map(terms::animal));
        format!(
            "on {date} at {time} local time, {} day ({day}) in the {} month ({month}), when {first} and {second} are \
             void (out of play for these ten days)",
            terms::with_article(moment.day),
            terms::animal(moment.month)
        )
    });
    let cast = match (method, moment) {
        (Some(method), Some(moment)) => format!("{method}, {moment}. "),
        (Some(method), None) => format!("{method}. "),
        (None, Some(moment)) => format!("It was cast {moment}. "),
        (None, None) => String::new(),
    };
    let stage = match chart.stage {
        "pure" => "as its leading hexagram".to_owned(),
        "wandering" => "as its Wandering Soul".to_owned(),
        "returning" => "as its Returning Soul".to_owned(),
        stage => format!("in its {stage} generation"),
    };
    let missing = if chart.moment.is_none() {
        " The time of the casting is not known, so strength is left out and only the lines themselves are weighed."
    } else {
        ""
    };
    format!(
        "{cast}Read as a six-line chart, in which each line has a kin (such as Wealth), an animal and an element, the \
         hexagram belongs to the palace of {} ({}), {stage}.{missing}",
        terms::palace(chart.palace),
        terms::element(chart.element)
    )
}

/// Returns the line for the matter, its strength and its relation to the asker.
fn matter(assessment: &Assessment<'_>) -> String {
    let (matter, significator) = (assessment.matter, &assessment.significator);
    let chosen = terms::significator(matter.topic, matter.sought, matter.person, matter.partner);
    let mut sentences = vec![match significator.hidden {
        Some(hidden) => format!("{chosen}. {}", hidden_place(assessment, hidden)),
        None => format!("{chosen}. {}", open_place(assessment)),
    }];
    sentences.extend(significator.state().and_then(|state| strength(assessment, state)));
    sentences.extend(spirit(assessment).map(ToOwned::to_owned));
    sentences.extend(significator.becomes().map(own_change));
    sentences.extend(assessment.bond.map(|bond| bond_with_subject(assessment, bond)));
    sentences.extend(companions(assessment));
    if matter.topic == Topic::Lost {
        sentences.push(whereabouts(assessment));
    }
    sentences.join(" ")
}

fn open_place(assessment: &Assessment<'_>) -> String {
    let line = assessment.significator.line;
    let role = match (line.role, assessment.matter.sought) {
        (Some("世"), Sought::Kin(_)) if assessment.matter.person.is_some() => {
            ", which is also your own line: it touches you closely"
        }
        (Some("世"), Sought::Kin(_)) => ", which is also your own line, so the matter is in your hands",
        (Some("应"), Sought::Kin(_)) => ", which is also the line of the other side",
        _ => "",
    };
    match choice(assessment) {
        Some(choice) => format!("{choice}: {}{role}.", terms::place(line)),
        None => format!("Here it is {}{role}.", terms::place(line)),
    }
}

fn choice(assessment: &Assessment<'_>) -> Option<String> {
    let kin = assessment.significator.line.nature.kin;
    let count = assessment.chart.lines.iter().filter(|line| line.nature.kin == kin).count();
    let several = if count == 2 { "Of the two here" } else { "Of the three here" };
    let reason = match assessment.significator.choice? {
        Choice::Moving => "the one that moves decides",
        Choice::AtSubject => "the one in your own place decides",
        Choice::AtObject => "the one on the other side decides",
        Choice::Stronger => "the stronger one decides",
        Choice::Lower => "which weigh the same, the lower one is taken",
    };
    Some(format!("{several}, {reason}"))
}

fn hidden_place(assessment: &Assessment<'_>, hidden: &HiddenFacts) -> String {
    let (significator, kin) = (&assessment.significator, terms::kin(hidden.nature.kin));
    let above = significator.line;
    let relation = match above.nature.branch.element().relation_to(hidden.nature.branch.element()) {
        ElementRelation::Controls => "which holds it down",
        ElementRelation::Feeds => "which feeds it and helps it out",
        ElementRelation::FedBy => "which draws its strength away",
        ElementRelation::ControlledBy => "which it can break through once it is strong",
        ElementRelation::Same => "which has its own element and does it no harm",
    };
    let open = match above.state {
        Some(StateFacts { is_void: true, is_month_broken: true, .. }) => {
            " That line is void and broken and cannot keep it covered."
        }
        Some(StateFacts { is_void: true, .. }) => " That line is void and cannot keep it covered.",
        Some(StateFacts { is_month_broken: true, .. }) => " The month breaks that line, which cannot keep it covered.",
        _ => "",
    };
    let stands_in = match significator.stands_in {
        Some(StandIn::Day) => " But the day itself has its element, which is as good as a line in the open.",
        Some(StandIn::Month) => " But the month has its element, so within this month it is not missing.",
        None => "",
    };
    let source = significator.source.and_then(|line| Some((line, line.becomes.as_ref()?))).map(|(line, becomes)| {
        let (place, nature) = (terms::position(line.position), terms::nature(becomes.nature));
        format!(" The {place} also changes into {nature}, and that is where it may come from.")
    });
    format!(
        "No {kin} line is in the open: {} lies hidden beneath {}, {relation}.{open}{stands_in}{}",
        terms::nature(hidden.nature),
        terms::line(above),
        source.unwrap_or_default()
    )
}

fn strength(assessment: &Assessment<'_>, state: &StateFacts) -> Option<String> {
    let moment = assessment.chart.moment.as_ref()?;
    let significator = &assessment.significator;
    let branch = significator.nature().branch;
    let weight = weight(assessment.weight.unwrap_or(Weight::Even));
    let is_helped = state.is_helped_by_day();
    let by_time = month_and_day(state, branch, moment);
    let by_time = match by_time.strip_prefix("It ") {
        Some(rest) if significator.hidden.is_some() => format!("The hidden line {rest}"),
        _ => by_time,
    };
    let mut sentences = vec![format!("{by_time}; on the whole it is {weight}.")];
    sentences.extend(match state.growth_stage {
        Some("墓") if !is_helped => Some("The day is also its grave, where it is shut away.".to_owned()),
        Some("绝") if !is_helped => Some("On such a day its element is at its end.".to_owned()),
        _ => None,
    });
    sentences.extend(void(assessment, state).map(ToOwned::to_owned));
    sentences.extend(broken(state).map(ToOwned::to_owned));
    let day = terms::animal(moment.day);
    sentences.extend(significator.clash_effect().map(|effect| match effect {
        "暗动" => format!(
            "The {day} day strikes it, and being strong it is stirred: something is already on the move unseen."
        ),
        _ => format!("The {day} day strikes it, and being weak it breaks at a touch."),
    }));
    if state.is_day_combination {
        sentences.push(match significator.becomes() {
            Some(_) => format!("It moves, but the {day} day ties it down for now."),
            None => format!("The {day} day is its partner: someone or something holds on to it."),
        });
    }
    Some(sentences.join(" "))
}

/// Returns the effects of month and day on the line.
fn month_and_day(state: &StateFacts, branch: Branch, moment: &MomentFacts) -> String {
    let [month, day] = [moment.month, moment.day].map(terms::animal);
    let by_month = match state.strength {
        _ if state.is_month_broken => format!("The {month} month breaks it"),
        _ if branch == moment.month => format!("It is the very branch of the month ({month})"),
        "旺" => format!("It shares the element of the {month} month"),
        "相" if state.day_effect == "生" => return format!("Both the {month} month and the {day} day feed it"),
        "相" => format!("The {month} month feeds it"),
        "休" => format!("It spends its strength on the {month} month"),
        "囚" => format!("It strains against the {month} month"),
        _ if state.day_effect == "克" => return format!("Both the {month} month and the {day} day overcome it"),
        _ => format!("The {month} month overcomes it"),
    };
    let by_day = match state.day_effect {
        _ if branch == moment.day => format!("it is the very branch of the day ({day})"),
        "生" => format!("the {day} day feeds it"),
        "扶" => format!("the {day} day backs it"),
        "克" => format!("the {day} day overcomes it"),
        "泄" => format!("the {day} day draws on it"),
        _ => format!("the {day} day tires it"),
    };
    let but = if is_month_good(state) == state.is_helped_by_day() { "and" } else { "but" };
    format!("{by_month}, {but} {by_day}")
}

fn is_month_good(state: &StateFacts) -> bool {
    matches!(state.strength, "旺" | "相") && !state.is_month_broken
}

fn weight(weight: Weight) -> &'static str {
    match weight {
        Weight::Strong => "strong",
        Weight::Even => "neither strong nor weak",
        Weight::Weak => "weak",
    }
}

fn void(assessment: &Assessment<'_>, state: &StateFacts) -> Option<&'static str> {
    let is_helped = matches!(state.strength, "旺" | "相") || state.is_helped_by_day();
    state.is_void.then_some(match (assessment.significator.becomes(), is_helped && !state.is_month_broken) {
        (None, _) if assessment.significator.clash_effect() == Some("暗动") => {
            "It is void, yet the day strikes it awake."
        }
        (Some(_), _) => "It is void yet it moves, so nothing is settled until the void has passed.",
        (None, true) => "It is void but has strength behind it: absent for the moment, not gone.",
        (None, false) => "It is void and has no strength, so there may be little behind it.",
    })
}

fn broken(state: &StateFacts) -> Option<&'static str> {
    state.is_month_broken.then(|| {
        if state.is_helped_by_day() {
            "With the day's support it can mend once the month is out."
        } else {
            "It can do little while this month lasts."
        }
    })
}

fn spirit(assessment: &Assessment<'_>) -> Option<&'static str> {
    let has_spirit =
        assessment.significator.hidden.is_none() && !matches!(assessment.matter.topic, Topic::Lost | Topic::Pets);
    let spirit = assessment.significator.line.spirit.filter(|_| has_spirit)?;
    Some(terms::spirit(spirit))
}

fn own_change(becomes: &BecomesFacts) -> String {
    let effect = match becomes.relation {
        "回头生" => "which feeds it in return: it gains force as it goes",
        "回头克" => "which turns on it: it starts and may not finish, so mind the second half",
        "化泄" => "which it feeds, giving more than it gets",
        "化耗" => "which it has to overcome, so it costs effort",
        _ => "of the same element",
    };
    let progress = match becomes.progress {
        Some("进神") => ", a step forward, and the momentum grows",
        Some(_) => ", a step back, and the momentum ebbs",
        None => "",
    };
    let tie = match becomes {
        BecomesFacts { is_clash: true, .. } => " The two clash, so it may turn over halfway.",
        BecomesFacts { is_combination: true, .. } => " The two combine, so after the move it comes to rest.",
        _ => "",
    };
    let state = match becomes.state {
        Some(StateFacts { is_month_broken: true, .. }) => " The new line is broken by the month and cannot catch it.",
        Some(StateFacts { is_void: true, .. }) => " The new line is void, so for now it lands nowhere.",
        _ => "",
    };
    format!("It moves of itself and becomes {}, {effect}{progress}.{tie}{state}", terms::nature(becomes.nature))
}

fn bond_with_subject(assessment: &Assessment<'_>, bond: Bond) -> String {
    let relation = relation_to_subject(assessment, bond.relation);
    let tie = match bond.tie {
        _ if assessment.matter.topic == Topic::Lost => "",
        Some(Tie::Combination) => "; the two combine, which holds",
        Some(Tie::Clash) => "; the two clash, so there is no rest when they meet",
        None => "",
    };
    format!("You are {}{}; {relation}{tie}.", terms::line(assessment.subject), own_side(assessment))
}

fn relation_to_subject(assessment: &Assessment<'_>, relation: ElementRelation) -> &'static str {
    use ElementRelation::{ControlledBy, Controls, FedBy, Feeds, Same};
    match (assessment.matter.topic, assessment.matter.person, relation) {
        (Topic::Lost, _, Feeds | Controls) => "it comes toward your line, which favours finding it",
        (Topic::Lost, _, Same) => "it shares your element, so look where you usually are",
        (Topic::Lost, _, FedBy) => "you feed it, so the search will take patience",
        (Topic::Lost, _, ControlledBy) => "you overcome it: whoever looks will find",
        (_, Some(_), Feeds) => "it feeds you and spares you worry",
        (_, Some(_), Controls) => "it overcomes you: you carry the strain of this",
        (_, Some(_), Same) => "it shares your element, so the two of you are close",
        (_, Some(_), FedBy) => "you feed it: the care is yours to give",
        (_, Some(_), ControlledBy) if assessment.subject.is_active() => {
            "you overcome it, and too firm a hand would hurt"
        }
        (_, Some(_), ControlledBy) => "you overcome it: you have the say, so use it gently",
        (Topic::Children, None, FedBy) => "you feed it: it grows by your care",
        (Topic::Children, None, ControlledBy) => "you overcome it, and too much worry does harm",
        (Topic::Wealth | Topic::Business, None, Controls) => {
            "it overcomes you: money comes looking for you, and weighs on you when it does"
        }
        (Topic::Wealth | Topic::Business, None, ControlledBy) => {
            "you overcome it: it is there for the taking, with effort"
        }
        (_, None, Feeds) => "it feeds you, so the matter leans your way",
        (_, None, Controls) => "it overcomes you, so it presses on you",
        (_, None, Same) => "it shares your element, so you are of one mind",
        (_, None, FedBy) => "you feed it, so the giving is on your side",
        (_, None, ControlledBy) => "you overcome it: the initiative is yours, and haste would hurt it",
    }
}

/// Returns the state of the asker's own line.
fn own_side(assessment: &Assessment<'_>) -> String {
    let subject = assessment.subject;
    let (Some(state), Some(strength)) = (&subject.state, Weight::of(subject)) else { return String::new() };
    let void = match (state.is_void, subject.is_active()) {
        (true, true) => " and void, yet on the move",
        (true, false) => " and void, not yet decided",
        (false, _) => "",
    };
    format!(", {}{void}", weight(strength))
}

fn companions(assessment: &Assessment<'_>) -> Vec<String> {
    assessment.companions.iter().map(|companion| self::companion(assessment.matter.topic, *companion)).collect()
}

fn companion(topic: Topic, companion: Companion<'_>) -> String {
    let (what, missing) = match (topic, companion.kin) {
        (Topic::Health, "官鬼") => ("The illness", "its root does not show"),
        (Topic::Health, _) => ("The remedy", "the right one has yet to be found"),
        (Topic::Legal, _) => ("The court", "it has not really stepped in"),
        (_, "父母") => ("The paper", "the marks are still open"),
        _ => ("The ranking", "nothing is settled there yet"),
    };
    let Some(line) = companion.line else {
        return format!("{what} ({}) has no line of its own here: {missing}.", terms::kin(companion.kin));
    };
    let verdict = match (topic, companion.kin, Weight::of(line)) {
        (Topic::Health, "官鬼", Some(Weight::Strong)) => " and strong, so it has not spent itself",
        (Topic::Health, "官鬼", Some(Weight::Weak)) => " and weak, so it is not grave",
        (Topic::Health, _, Some(Weight::Strong)) => " and strong, so the treatment works",
        (Topic::Health, _, Some(Weight::Weak)) => " and weak, so the treatment has little hold yet",
        (Topic::Legal, _, Some(Weight::Strong)) if is_retreating(line) => {
            " and strong, but it steps back, so a decision may be put off"
        }
        (Topic::Legal, _, Some(Weight::Strong)) => " and strong, so it will not be put off",
        (Topic::Legal, _, Some(Weight::Weak)) => " and weak, so it is in no hurry",
        (_, "父母", Some(Weight::Strong)) => " and strong, which helps",
        (_, "父母", Some(Weight::Weak)) => " and weak, which costs marks",
        (_, _, Some(Weight::Strong)) => " and strong, a good sign for admission",
        (_, _, Some(Weight::Weak)) => " and weak, so the margin is narrow",
        _ => "",
    };
    let moving = if line.becomes.is_some() { "moving" } else { "at rest" };
    format!("{what} is {}, {moving}{verdict}.", terms::line(line))
}

fn is_retreating(line: &LineFacts) -> bool {
    line.becomes.is_some_and(|becomes| becomes.progress == Some("退神"))
}

fn whereabouts(assessment: &Assessment<'_>) -> String {
    let significator = &assessment.significator;
    let direction = terms::direction(significator.nature().branch);
    let place = match (significator.hidden, significator.line.position) {
        (Some(_), _) => "Being hidden, it lies under or inside something else",
        (None, 1..=3) => "It is in the lower trigram, so look at home or close by",
        (None, _) => "It is in the upper trigram, so look outside or farther off",
    };
    format!("{place}, toward the {direction}.")
}

/// Returns the lines in motion and their effect on the matter.
fn movement(reading: &Reading, assessment: &Assessment<'_>) -> String {
    let mut sentences = Vec::new();
    if reading.facts.changing.is_some() {
        let movers = &assessment.movers;
        let is_named = |mover: &&Mover<'_>| {
            movers.len() <= MAX_MOVERS
                || mover.has_role()
                || matches!(mover.relation, ElementRelation::Feeds | ElementRelation::Controls)
        };
        sentences.extend(movers.iter().filter(is_named).map(|mover| moving(assessment, mover)));
        match movers.len() - sentences.len() {
            0 => {}
            1 => sentences.push("One more line moves without much bearing on it.".to_owned()),
            rest => sentences.push(format!("{rest} more lines move without much bearing on it.")),
        }
        if assessment.is_harm_diverted {
            sentences.push("Passed on like this, the obstacle turns into help.".to_owned());
        }
        if movers.is_empty() && assessment.significator.becomes().is_none() {
            let still =
                "The other lines rest: nothing pushes from outside and nothing breaks in, so it stands on its own.";
            sentences.push(still.to_owned());
        }
    }
    sentences.extend(pattern(assessment));
    sentences.join(" ")
}

fn moving(assessment: &Assessment<'_>, mover: &Mover<'_>) -> String {
    let line = mover.line;
    let part = match line.role {
        Some("世") => "you",
        Some(_) if assessment.sides.is_some() => other(assessment),
        _ => terms::role(assessment.matter.topic, line.nature.kin),
    };
    let nature = terms::nature(line.nature);
    let place = match mover.twin {
        Some(twin) => {
            format!("The {} and the {}, both {nature}", terms::position(line.position), terms::position(twin.position))
        }
        None => format!("The {}, {nature}", terms::position(line.position)),
    };
    let is_one = mover.twin.is_none();
    let is_void = line.state.is_some_and(|state| state.is_void);
    let stand = if is_one { "stands" } else { "stand" };
    let verb = match (line.becomes, is_one) {
        (Some(becomes), true) => format!("changes into {}", terms::nature(becomes.nature)),
        (Some(becomes), false) => format!("change into {}", terms::nature(becomes.nature)),
        (None, true) if is_void => "is void, yet the day strikes it awake".to_owned(),
        (None, false) if is_void => "are void, yet the day strikes them awake".to_owned(),
        (None, true) => "is stirred by the day".to_owned(),
        (None, false) => "are stirred by the day".to_owned(),
    };
    format!("{place}, {stand} for {part} and {verb}: {}.", effect(assessment, mover))
}

fn effect(assessment: &Assessment<'_>, mover: &Mover<'_>) -> String {
    let day = assessment.chart.moment.as_ref().map_or("", |moment| terms::animal(moment.day));
    if mover.line.role == Some("世") {
        return own_movement(assessment, mover, day);
    }
    // The matter is read from the asker's own line if the question is about themselves.
    let matter = if assessment.bond.is_some() { "the matter" } else { "you" };
    let outweighs =
        if assessment.bond.is_some() { "the matter is stronger than it" } else { "you are stronger than it" };
    let fading = |fading| match fading {
        Fading::ControlledBack => "the line it becomes turns on it",
        Fading::Retreating => "it steps back",
        Fading::MonthBroken => "the month breaks it",
        Fading::IntoVoid => "it changes into the void",
        Fading::IntoBreak => "it changes into a broken line",
    };
    if let Some(harm) = assessment.fed_harm(mover) {
        let harm = terms::nature(harm.line.nature);
        return format!("it cannot hurt {matter}, but it strengthens {harm}, which can");
    }
    let is_kept_by_kin =
        assessment.matter.topic == Topic::Lost && mover.line.nature.kin == "兄弟" && !assessment.is_harm_diverted;
    match (mover.relation, mover.fate) {
        (ElementRelation::FedBy | ElementRelation::Controls, Fate::Growing) if is_kept_by_kin => {
            "one of them may have moved it, and it can travel farther, so ask soon".to_owned()
        }
        (ElementRelation::FedBy | ElementRelation::Controls, Fate::Lasting) if is_kept_by_kin => {
            "one of them may have moved it, so ask them first".to_owned()
        }
        (ElementRelation::Feeds, Fate::Lasting) => format!("it feeds {matter}, a real help"),
        (ElementRelation::Feeds, Fate::Growing) => {
            format!("it feeds {matter} and gathers strength, a help that grows")
        }
        (ElementRelation::Feeds, Fate::Fading(why)) => {
            format!("it would feed {matter}, but {}, so the help does not last", fading(why))
        }
        (ElementRelation::Feeds, Fate::Bound) => {
            format!("it would feed {matter}, but the {day} day ties it until something strikes it free")
        }
        (ElementRelation::Controls, Fate::Lasting | Fate::Growing) if assessment.is_harm_diverted => {
            format!("it would work against {matter}, but turns to feed the line that feeds it")
        }
        (ElementRelation::Controls, Fate::Lasting) => {
            format!("it works against {matter} and is the chief obstacle")
        }
        (ElementRelation::Controls, Fate::Growing) => {
            format!("it works against {matter}, and the obstacle is still growing")
        }
        (ElementRelation::Controls, Fate::Fading(why)) => {
            format!("it works against {matter}, but {}, so the obstacle does not last", fading(why))
        }
        (ElementRelation::Controls, Fate::Bound) => {
            format!("it would work against {matter}, but the {day} day ties it for now")
        }
        (ElementRelation::Same, Fate::Fading(why)) => {
            format!("it is of the same element, but {}, so do not count on it", fading(why))
        }
        (ElementRelation::Same, _) => {
            "it is of the same element, one more helper and one more thread to hold".to_owned()
        }
        (ElementRelation::FedBy, Fate::Fading(why)) => {
            format!("it draws strength from {matter}, but {}, so not for long", fading(why))
        }
        (ElementRelation::FedBy, _) => format!("it draws strength from {matter}"),
        (ElementRelation::ControlledBy, Fate::Fading(why)) => {
            format!("{outweighs}, and {}, so it does no harm", fading(why))
        }
        (ElementRelation::ControlledBy, _) => format!("{outweighs}, so it distracts without harm"),
    }
}

/// Returns the effect of the asker's own line in motion.
fn own_movement(assessment: &Assessment<'_>, mover: &Mover<'_>, day: &str) -> String {
    let own = match mover.fate {
        Fate::Lasting => "you are already on the move".to_owned(),
        Fate::Growing => "you are on the move and gain ground as you go".to_owned(),
        Fate::Bound => format!("you want to move, but the {day} day ties you"),
        Fate::Fading(Fading::ControlledBack) => "you want to move, and it would turn on you".to_owned(),
        Fate::Fading(Fading::Retreating) => "you are stepping back".to_owned(),
        Fate::Fading(_) => "you want to move but are not yet sure".to_owned(),
    };
    if let Some(harm) = assessment.fed_harm(mover) {
        let harm = terms::nature(harm.line.nature);
        return format!("{own}, and that strengthens {harm}, which works against the matter, so do not force it now");
    }
    let effect = match mover.relation {
        _ if !mover.is_effective() => "",
        ElementRelation::Feeds => ", and that helps the matter",
        ElementRelation::Controls => ", and pressing hard would harm the matter",
        ElementRelation::FedBy => ", and that takes strength from the matter",
        ElementRelation::Same => ", in step with the matter",
        ElementRelation::ControlledBy => ", though it hardly touches the matter",
    };
    own + effect
}

/// Returns the patterns of the whole casting.
fn pattern(assessment: &Assessment<'_>) -> Vec<String> {
    let (chart, topic) = (assessment.chart, assessment.matter.topic);
    let lines = match (chart.pattern, chart.relating_pattern) {
        (Some("六冲"), Some("六合")) => Some(
            "A hexagram of six clashes changes into one of six unions: it falls apart first and comes together later.",
        ),
        (Some("六合"), Some("六冲")) => Some(
            "A hexagram of six unions changes into one of six clashes: it comes together first, so guard the later part.",
        ),
        (Some("六冲"), _) => Some(clashing(topic)),
        (Some(_), _) => Some(combining(topic)),
        (None, Some("六冲")) => Some("It changes into a hexagram of six clashes, so the end may come loose."),
        (None, Some(_)) => Some("It changes into a hexagram of six unions, so the end can come together."),
        (None, None) => None,
    };
    lines.map(ToOwned::to_owned).into_iter().chain(echo(&chart.echoes, topic)).collect()
}

fn echo(echoes: &[EchoFacts], topic: Topic) -> Option<String> {
    let first = echoes.first()?;
    let (place, is_one) = match echoes {
        [_, _, ..] => ("Both trigrams", false),
        _ if first.is_upper => ("The upper trigram", true),
        _ => ("The lower trigram", true),
    };
    let change = match (first.kind, is_one) {
        ("伏吟", true) => "changes without changing its branches",
        ("伏吟", false) => "change without changing their branches",
        ("卦反吟", true) => "changes into the one facing it on King Wen's compass",
        ("卦反吟", false) => "change into those facing them on King Wen's compass",
        (_, true) => "changes all its branches into those they clash with",
        (_, false) => "change all their branches into those they clash with",
    };
    let meaning = match (first.kind, topic) {
        ("伏吟", _) => "much stirring, little progress",
        (_, Topic::Lost) => "what leaves comes back, so it may yet turn up",
        (_, Topic::Children) => "a step on the way may have to be repeated",
        _ => "what leaves comes back",
    };
    Some(format!("{place} {change}: {meaning}."))
}

fn clashing(topic: Topic) -> &'static str {
    match topic {
        Topic::Health | Topic::Pets => {
            "The lines clash in all three pairs: a new illness passes quickly, an old one needs care."
        }
        Topic::Legal => "The lines clash in all three pairs: the quarrel can break up quickly, with room to step back.",
        Topic::Study | Topic::Papers => {
            "The lines clash in all three pairs: plans may change midway, so settle things early."
        }
        Topic::Children => "The lines clash in all three pairs: an unsettled time that calls for rest.",
        Topic::Travel => "The lines clash in all three pairs: a sudden start, and changes on the road.",
        Topic::Lost => "The lines clash in all three pairs: it has been moved since.",
        topic if topic.wants_union() => {
            "The lines clash in all three pairs: what gathers fast scatters fast, so make an agreement that binds."
        }
        _ => "The lines clash in all three pairs: quick to come and quick to go.",
    }
}

fn combining(topic: Topic) -> &'static str {
    match topic {
        Topic::Health | Topic::Pets => "The lines combine in all three pairs: the illness clings, and mends slowly.",
        Topic::Legal => "The lines combine in all three pairs: the parties stay entangled for a while.",
        Topic::Study | Topic::Papers => "The lines combine in all three pairs: it comes about, though slowly.",
        Topic::Travel => "The lines combine in all three pairs: people or duties hold you, so you leave late.",
        Topic::Lost => "The lines combine in all three pairs: it is put away inside something, not scattered.",
        topic if topic.wants_union() => "The lines combine in all three pairs: it holds together, and takes its time.",
        _ => "The lines combine in all three pairs: it can take shape, though slowly.",
    }
}

/// Returns the relation of asker and other side, if the line for the matter is neither.
fn sides(assessment: &Assessment<'_>) -> String {
    let other = assessment.sides.map(|bond| other_side(assessment, bond));
    let stage = match assessment.chart.stage {
        "wandering" => Some("A Wandering Soul hexagram is restless: minds and places change.".to_owned()),
        "returning" => Some(
            "As a Returning Soul hexagram it goes round and comes home: good for keeping, less for leaving.".to_owned(),
        ),
        _ => None,
    };
    other.into_iter().chain(stage).collect::<Vec<_>>().join(" ")
}

/// Returns the name of the other side. A partner who has a line of their own is not named twice.
fn other(assessment: &Assessment<'_>) -> &'static str {
    match (assessment.matter.topic, assessment.matter.sought) {
        (Topic::Love, Sought::Kin(_)) => "the other side of the bond",
        (topic, _) => terms::other_side(topic),
    }
}

fn other_side(assessment: &Assessment<'_>, bond: Bond) -> String {
    let (object, other, topic) = (assessment.object, other(assessment), assessment.matter.topic);
    let relation = match bond.relation {
        ElementRelation::Feeds if topic == Topic::Legal => "it feeds your line, so they may lean toward settling",
        ElementRelation::Feeds if topic == Topic::Travel => "it feeds your line, so the place does you good",
        ElementRelation::ControlledBy if topic == Topic::Travel => {
            "your line overcomes it, so the place will not get the better of you"
        }
        ElementRelation::Same if bond.tie == Some(Tie::Clash) => "it shares your element",
        ElementRelation::Feeds => "it feeds your line and means to help",
        ElementRelation::Controls => "it overcomes your line and puts you under pressure",
        ElementRelation::Same => "it shares your element and stands where you stand",
        ElementRelation::FedBy => "your line feeds it, so it is you who give way",
        ElementRelation::ControlledBy => "your line overcomes it, so the initiative is yours",
    };
    let tie = match bond.tie {
        Some(Tie::Combination) => "; the two combine and can agree",
        Some(Tie::Clash) if bond.relation == ElementRelation::Same => ", yet the two clash",
        Some(Tie::Clash) => "; the two clash when they meet",
        None => "",
    };
    let state = match &object.state {
        Some(StateFacts { is_void: true, is_month_broken: true, .. }) => {
            ". It is void and broken by the month: there is little strength over there"
        }
        Some(StateFacts { is_void: true, .. }) if object.is_active() => {
            ". It is void, yet it moves: something is already under way over there"
        }
        Some(StateFacts { is_void: true, .. }) => ". It is void: nothing is settled over there",
        Some(StateFacts { is_month_broken: true, .. }) => ". The month breaks it: it has troubles of its own",
        _ => "",
    };
    let compared = match assessment.stronger_side {
        Some(Ordering::Greater) => ". Of the two sides, yours is the stronger",
        Some(Ordering::Equal) if are_both_weak(assessment) => ". Both sides are weak, and neither has the upper hand",
        Some(Ordering::Equal) => ". The two sides are evenly matched",
        Some(Ordering::Less) => ". Of the two sides, the other is the stronger",
        None => "",
    };
    format!("Opposite you, {}, stands for {other}: {relation}{tie}{state}{compared}.", terms::line(object))
}

fn are_both_weak(assessment: &Assessment<'_>) -> bool {
    [assessment.subject, assessment.object].into_iter().all(|line| Weight::of(line) == Some(Weight::Weak))
}

fn timing(reading: &Reading, assessment: &Assessment<'_>) -> String {
    if assessment.timings.is_empty() || reading.question.trim().is_empty() {
        return String::new();
    }
    let mut sentences: Vec<String> = assessment.timings.iter().map(|timing| time(assessment, *timing)).collect();
    let branch = assessment.significator.nature().branch;
    if matches!(assessment.matter.topic, Topic::Children | Topic::Legal | Topic::Study) {
        let start = terms::MONTHS[(branch as usize + 11) % 12];
        sentences.push(format!(
            "Such a matter takes long, so watch the {} month too, from early {start}.",
            terms::animal(branch)
        ));
    }
    let first = if assessment.matter.topic == Topic::Lost { "look today and tomorrow first; " } else { "" };
    format!("Days to watch: {first}{}", sentences.join(" "))
}

fn time(assessment: &Assessment<'_>, timing: Timing) -> String {
    let moment = assessment.chart.moment.as_ref();
    let day = |branch: Branch| match moment {
        Some(moment) => {
            let date = moment.next_days[branch as usize];
            let next = if branch == moment.day { "after today, next on" } else { "next on" };
            format!("{} day ({next} {} {})", terms::with_article(branch), date.day, terms::month(date.month))
        }
        None => format!("{} day", terms::with_article(branch)),
    };
    let partner = |branch: Branch| Branch::ALL[(13 - branch as usize) % 12];
    match timing {
        Timing::Void(branch) => format!(
            "a void line counts only once it is filled, perhaps on {}, or struck open, perhaps on {}.",
            day(branch),
            day(branch.plus(6))
        ),
        Timing::MonthBreak { branch, month } => format!(
            "probably not before the {} month is out, in early {}; then watch {} day, or {} day, its partner.",
            terms::animal(month),
            terms::MONTHS[month as usize],
            terms::with_article(branch),
            terms::with_article(partner(branch))
        ),
        Timing::Hidden { branch, above } if moment.is_some_and(|moment| moment.day == above.plus(6)) => {
            format!("today already strikes what covers the hidden line; it may also show itself on {}.", day(branch))
        }
        Timing::Hidden { branch, above } => format!(
            "the hidden line may show itself on {}, or on {}, which strikes away what covers it.",
            day(branch),
            day(above.plus(6))
        ),
        Timing::Bound(branch) => format!("it may come free on {}.", day(branch.plus(6))),
        Timing::Grave { grave } => format!("its grave may open on {}.", day(grave.plus(6))),
        Timing::Moving(branch) => format!(
            "a moving line tends to come true on its own day, {}, or on its partner's, {}.",
            day(branch),
            day(partner(branch))
        ),
        Timing::Resting(branch) => format!(
            "a line at rest tends to wake on its own day, {}, or on the day that clashes with it, {}.",
            day(branch),
            day(branch.plus(6))
        ),
        Timing::Season(element) => {
            format!(
                "The line is weak now; if the matter is a large one, it may have to wait for its season, {}.",
                terms::season(element)
            )
        }
        Timing::Harm(branch) => format!(
            "The obstacle may ease on {}, when it is struck, or {}, when it is held.",
            day(branch.plus(6)),
            day(partner(branch))
        ),
    }
}
