//! The paragraphs about the six-line chart in simplified Chinese.

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
        setting(reading, assessment) + &matter(assessment),
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
        let ([year, month, day, hour], [first, second]) = (&moment.pillars, moment.void.map(Branch::name));
        format!("时当 {}（{year}年{month}月{day}日{hour}时，旬空{first}{second}，暂时落空）", moment.local)
    });
    let cast = match (method, moment) {
        (Some(method), Some(moment)) => format!("此卦{method}，{moment}；"),
        (Some(method), None) => format!("此卦{method}；"),
        (None, Some(moment)) => format!("{moment}；"),
        (None, None) => String::new(),
    };
    let stage = match chart.stage {
        "pure" => "本宫卦",
        "first" => "一世卦",
        "second" => "二世卦",
        "third" => "三世卦",
        "fourth" => "四世卦",
        "fifth" => "五世卦",
        "wandering" => "游魂卦",
        _ => "归魂卦",
    };
    let missing = if chart.moment.is_none() {
        "起卦的时间不详，所以只看生克、世应与动变，不论旺衰。"
    } else {
        ""
    };
    format!("{cast}卦属{}宫{}，{stage}。{missing}", chart.palace, terms::element(chart.element))
}

/// Returns the line for the matter, its strength and its relation to the asker.
fn matter(assessment: &Assessment<'_>) -> String {
    let (matter, significator) = (assessment.matter, &assessment.significator);
    let chosen = terms::significator(matter.topic, matter.sought, matter.person, matter.partner);
    let place = match significator.hidden {
        Some(hidden) => hidden_place(assessment, hidden),
        None => format!("，{}{}", choice(assessment), open_place(assessment)),
    };
    let mut sentences = vec![format!("{chosen}{place}。")];
    sentences.extend(significator.state().map(|state| strength(assessment, state)));
    sentences.extend(spirit(assessment));
    sentences.extend(significator.becomes().map(|becomes| own_change(significator.line, becomes)));
    sentences.extend(assessment.bond.map(|bond| bond_with_subject(assessment, bond)));
    sentences.extend(companions(assessment));
    if matter.topic == Topic::Lost {
        sentences.push(whereabouts(assessment));
    }
    sentences.concat()
}

fn open_place(assessment: &Assessment<'_>) -> String {
    let line = assessment.significator.line;
    match (line.role, assessment.matter.sought) {
        (Some("世"), Sought::Kin(_)) if assessment.matter.person.is_some() => {
            format!("在{}，正持世，与你切身相关", terms::line(line))
        }
        (Some("世"), Sought::Kin(_)) => format!("在{}，正持世，事情就在你自己手上", terms::line(line)),
        (Some("应"), Sought::Kin(_)) => format!("在{}，正临应位", terms::line(line)),
        _ => format!("在{}", terms::line(line)),
    }
}

fn choice(assessment: &Assessment<'_>) -> String {
    let kin = assessment.significator.line.nature.kin;
    let count = assessment.chart.lines.iter().filter(|line| line.nature.kin == kin).count();
    let count = if count == 2 { "两" } else { "三" };
    match assessment.significator.choice {
        Some(Choice::Moving) => format!("{kin}{count}现，取发动的一爻，"),
        Some(Choice::AtSubject) => format!("{kin}{count}现，取近身的一爻，"),
        Some(Choice::AtObject) => format!("{kin}{count}现，取在应的一爻，"),
        Some(Choice::Stronger) => format!("{kin}{count}现，取较旺的一爻，"),
        Some(Choice::Lower) => format!("{kin}{count}现而难分高下，取居下的一爻，"),
        None => String::new(),
    }
}

fn hidden_place(assessment: &Assessment<'_>, hidden: &HiddenFacts) -> String {
    let (significator, kin) = (&assessment.significator, hidden.nature.kin);
    let above = significator.line;
    let relation = match above.nature.branch.element().relation_to(hidden.nature.branch.element()) {
        ElementRelation::Controls => "飞神克伏神，被压着出不来",
        ElementRelation::Feeds => "飞神生伏神，借得上力，容易引出来",
        ElementRelation::FedBy => "伏神生飞神，气被上面的爻耗去",
        ElementRelation::ControlledBy => "伏神克飞神，有力时能自己出来",
        ElementRelation::Same => "飞伏同气，藏着而不受压",
    };
    let open = if significator.is_cover_open() { "；飞神空破，盖不住它，容易露头" } else { "" };
    let stands_in = match significator.stands_in {
        Some(StandIn::Day) => format!("；好在日辰的五行就是{kin}，等于用神已经到场"),
        Some(StandIn::Month) => format!("；好在月令的五行就是{kin}，当月里用神不算缺位"),
        None => String::new(),
    };
    let source = significator.source.and_then(|line| Some((line, line.becomes.as_ref()?))).map(|(line, becomes)| {
        let (place, nature) = (terms::position(line.position), terms::nature(becomes.nature));
        format!("；又有{place}动而化出{nature}，事情从这一变里来")
    });
    format!(
        "；卦里不见{kin}，{}伏在{}之下，{relation}{open}{stands_in}{}",
        terms::nature(hidden.nature),
        terms::line(above),
        source.unwrap_or_default()
    )
}

fn strength(assessment: &Assessment<'_>, state: &StateFacts) -> String {
    let Some(moment) = &assessment.chart.moment else { return String::new() };
    let significator = &assessment.significator;
    let branch = significator.nature().branch;
    let weight = weight(assessment.weight.unwrap_or(Weight::Even));
    let is_helped = state.is_helped_by_day();
    let mut parts = vec![month(state, branch, moment), day(state, branch, moment)];
    parts.extend(match state.growth_stage {
        Some("墓") if !is_helped => Some("又入日墓".to_owned()),
        Some("绝") if !is_helped => Some("又绝于日".to_owned()),
        _ => None,
    });
    let day = moment.day.name();
    let clash = match significator.clash_effect() {
        Some("暗动") => format!("日辰{day}来冲，旺相逢冲为暗动，事情已在暗里起了变化。"),
        Some(_) => format!("日辰{day}来冲，休囚逢冲为日破，经不起碰。"),
        None => String::new(),
    };
    let combination = match (state.is_day_combination, significator.becomes()) {
        (true, Some(_)) => format!("它动而与日辰{day}相合，是合绊，想动却被牵住。"),
        (true, None) => format!("它与日辰{day}相合，有人有事在牵着它。"),
        (false, _) => String::new(),
    };
    let (void, broken) = (void(assessment, state), broken(state));
    format!("它{}，{weight}。{void}{broken}{clash}{combination}", parts.join("，"))
}

fn month(state: &StateFacts, branch: Branch, moment: &MomentFacts) -> String {
    let month = moment.month.name();
    match state.strength {
        _ if state.is_month_broken => format!("被月令{month}冲为月破"),
        _ if branch == moment.month => format!("临月建{month}"),
        "旺" => format!("与月令{month}同气为旺"),
        "相" => format!("得月令{month}生为相"),
        "休" => format!("生月令{month}而休"),
        "囚" => format!("克月令{month}而囚"),
        _ => format!("受月令{month}克为死"),
    }
}

fn day(state: &StateFacts, branch: Branch, moment: &MomentFacts) -> String {
    let day = moment.day.name();
    match state.day_effect {
        _ if branch == moment.day => format!("临日辰{day}"),
        "生" => format!("得日辰{day}生"),
        "扶" => format!("得日辰{day}扶"),
        "克" => format!("被日辰{day}克"),
        "泄" => format!("生日辰{day}而泄气"),
        _ => format!("克日辰{day}而耗力"),
    }
}

fn weight(weight: Weight) -> &'static str {
    match weight {
        Weight::Strong => "大体有力",
        Weight::Even => "强弱相抵",
        Weight::Weak => "大体乏力",
    }
}

fn void(assessment: &Assessment<'_>, state: &StateFacts) -> String {
    if !state.is_void {
        return String::new();
    }
    let is_helped = matches!(state.strength, "旺" | "相") || state.is_helped_by_day();
    let text = match (assessment.significator.becomes(), is_helped && !state.is_month_broken) {
        (Some(_), _) => "它旬空而发动，动不为空，眼下悬着，出空才见分晓。",
        (None, _) if assessment.significator.clash_effect() == Some("暗动") => "它虽旬空，冲空则起。",
        (None, true) => "它旬空而有气，是一时落空，不是没有。",
        (None, false) => "它旬空又无气，多半落不到实处。",
    };
    text.to_owned()
}

fn broken(state: &StateFacts) -> &'static str {
    match (state.is_month_broken, state.is_helped_by_day()) {
        (false, _) => "",
        (true, true) => "月破而有日辰扶助，出月可补。",
        (true, false) => "月破无救，这个月里使不上劲。",
    }
}

fn spirit(assessment: &Assessment<'_>) -> Option<String> {
    let has_spirit =
        assessment.significator.hidden.is_none() && !matches!(assessment.matter.topic, Topic::Lost | Topic::Pets);
    let spirit = assessment.significator.line.spirit.filter(|_| has_spirit)?;
    Some(format!("{}。", terms::spirit(spirit)))
}

fn own_change(line: &LineFacts, becomes: &BecomesFacts) -> String {
    let effect = match becomes.relation {
        "回头生" => "回头来生，越往后越有劲",
        "回头克" => "回头来克，有始难终，最要防后半段的变故",
        "化泄" => "去生变出的爻，付出多于所得",
        "化耗" => "去克变出的爻，成事要费力气",
        _ => "变后五行不变",
    };
    let progress = match becomes.progress {
        Some("进神") => "，是化进神，势头往前",
        Some(_) => "，是化退神，势头在收",
        None => "",
    };
    let state = match becomes.state {
        Some(StateFacts { is_month_broken: true, .. }) => "；变出的爻月破，接不住",
        Some(StateFacts { is_void: true, .. }) => "；变出的爻旬空，一时没有着落",
        _ => "",
    };
    let tie = match becomes {
        BecomesFacts { is_clash: true, .. } => "，又化冲，容易半路翻转",
        BecomesFacts { is_combination: true, .. } => "，又化合，动过之后会停下来",
        _ => "",
    };
    format!(
        "用神{}自己发动，化{}，{effect}{progress}{tie}{state}。",
        terms::position(line.position),
        terms::nature(becomes.nature)
    )
}

fn bond_with_subject(assessment: &Assessment<'_>, bond: Bond) -> String {
    let subject = assessment.subject;
    let own = own_side(assessment);
    let relation = relation_to_subject(assessment, bond.relation);
    let tie = match bond.tie {
        _ if assessment.matter.topic == Topic::Lost => "",
        Some(Tie::Combination) if assessment.matter.topic == Topic::Children => "，又相合，留得住",
        Some(Tie::Combination) => "，又相合，牵得住",
        Some(Tie::Clash) => "，又相冲，碰到一处就不安稳",
        None => "",
    };
    format!("世爻是你，在{}{own}；{relation}{tie}。", terms::line(subject))
}

fn relation_to_subject(assessment: &Assessment<'_>, relation: ElementRelation) -> &'static str {
    use ElementRelation::{ControlledBy, Controls, FedBy, Feeds, Same};
    match (assessment.matter.topic, assessment.matter.person, relation) {
        (Topic::Lost, _, Feeds | Controls) => "用神来就世爻，容易碰上",
        (Topic::Lost, _, Same) => "用神与世爻比和，多半就在常去的地方",
        (Topic::Lost, _, FedBy) => "世生用神，找它要费心",
        (Topic::Lost, _, ControlledBy) => "世克用神，肯找就有",
        (_, Some(_), Feeds) => "用神生世，能让你省心",
        (_, Some(_), Controls) => "用神克世，为此你担着压力",
        (_, Some(_), Same) => "用神与世爻比和，彼此贴心",
        (_, Some(_), FedBy) => "世生用神，是你在照应、付出",
        (_, Some(_), ControlledBy) if assessment.subject.is_active() => "世动而克用神，管得太紧反而伤了对方",
        (_, Some(_), ControlledBy) => "世克用神，你这边管得多，宜放宽些",
        (Topic::Children, None, FedBy) => "世生用神，是你在养着它",
        (Topic::Children, None, ControlledBy) => "世克用神，操心太过反而不利",
        (Topic::Love | Topic::Friends, None, ControlledBy) if assessment.subject.is_active() => {
            "世动而克用神，逼得太急会伤了对方"
        }
        (Topic::Love | Topic::Friends, None, ControlledBy) => "世克用神，主动在你，宜缓不宜急",
        (Topic::Wealth | Topic::Business, None, Controls) => "用神克世，是钱来找你，来了也压人",
        (Topic::Wealth | Topic::Business, None, ControlledBy) => "世克用神，是你去取它，取得到而费力",
        (_, None, Feeds) => "用神生世，事情是向着你的",
        (_, None, Controls) => "用神克世，这件事压着你",
        (_, None, Same) => "用神与世爻比和，彼此同气",
        (_, None, FedBy) => "世生用神，是你在迁就和付出",
        (_, None, ControlledBy) => "世克用神，主动在你，过急则伤它",
    }
}

/// Returns the state of the asker's own line.
fn own_side(assessment: &Assessment<'_>) -> String {
    let subject = assessment.subject;
    let (Some(state), Some(strength)) = (&subject.state, Weight::of(subject)) else { return String::new() };
    let void = match (state.is_void, subject.is_active()) {
        (true, true) => "、旬空而动，心里已在动",
        (true, false) => "、旬空，心里还没拿定",
        (false, _) => "",
    };
    format!("，{}{void}", weight(strength))
}

fn companions(assessment: &Assessment<'_>) -> Vec<String> {
    assessment.companions.iter().map(|companion| self::companion(assessment.matter.topic, *companion)).collect()
}

fn companion(topic: Topic, companion: Companion<'_>) -> String {
    let (what, missing) = match (topic, companion.kin) {
        (Topic::Health, "官鬼") => ("病症看官鬼", "病根隐而不显"),
        (Topic::Health, _) => ("医药看子孙", "对症的办法还没露面"),
        (Topic::Legal, _) => ("裁断看官鬼", "裁断的一方还没有真正介入"),
        (_, "父母") => ("试卷看父母", "卷面还看不出好坏"),
        _ => ("名次看官鬼", "名次还没有着落"),
    };
    let Some(line) = companion.line else { return format!("{what}，卦里伏藏不现，{missing}。") };
    let verdict = match (topic, companion.kin, Weight::of(line)) {
        (Topic::Health, "官鬼", Some(Weight::Strong)) => "，病势还盛",
        (Topic::Health, "官鬼", Some(Weight::Weak)) => "，病势不重",
        (Topic::Health, _, Some(Weight::Strong)) => "，治法得力",
        (Topic::Health, _, Some(Weight::Weak)) => "，治法眼下还不够得力",
        (Topic::Legal, _, Some(Weight::Strong)) if is_retreating(line) => "，有力而化退，裁断会往后拖",
        (Topic::Legal, _, Some(Weight::Strong)) => "，有力，拖不过去",
        (Topic::Legal, _, Some(Weight::Weak)) => "，无力，不急着裁断",
        (_, "父母", Some(Weight::Strong)) => "，卷面有利",
        (_, "父母", Some(Weight::Weak)) => "，卷面吃紧",
        (_, _, Some(Weight::Strong)) => "，名次有望",
        (_, _, Some(Weight::Weak)) => "，名次吃紧",
        _ => "",
    };
    let moving = if line.becomes.is_some() { "发动" } else { "安静" };
    format!("{what}，在{}，{moving}{verdict}。", terms::line(line))
}

fn is_retreating(line: &LineFacts) -> bool {
    line.becomes.is_some_and(|becomes| becomes.progress == Some("退神"))
}

fn whereabouts(assessment: &Assessment<'_>) -> String {
    let significator = &assessment.significator;
    let branch = significator.nature().branch;
    let place = match (significator.hidden, significator.line.position) {
        (Some(_), _) => "用神伏藏，东西被别的物件盖着或收着",
        (None, 1..=3) => "用神在内卦，多在家里或近处",
        (None, _) => "用神在外卦，多在外面或远处",
    };
    format!("{place}，方位看{}，在{}。", branch.name(), terms::direction(branch))
}

/// Returns the lines in motion and their effect on the matter.
fn movement(reading: &Reading, assessment: &Assessment<'_>) -> String {
    if reading.facts.changing.is_none() {
        return pattern(assessment);
    }
    let movers = &assessment.movers;
    let is_named = |mover: &&Mover<'_>| {
        movers.len() <= MAX_MOVERS
            || mover.has_role()
            || matches!(mover.relation, ElementRelation::Feeds | ElementRelation::Controls)
    };
    let named: Vec<String> = movers.iter().filter(is_named).map(|mover| moving(assessment, mover)).collect();
    let mut text = named.concat();
    text += match movers.len() - named.len() {
        0 => "",
        1 => "还有一爻也动，与用神牵涉不深。",
        2 => "还有两爻也动，与用神牵涉不深。",
        _ => "其余动爻与用神牵涉不深。",
    };
    if assessment.is_harm_diverted {
        text += "这样辗转相生，阻力反成了助力。";
    }
    if movers.is_empty() && assessment.significator.becomes().is_none() {
        text += "别的爻都安静，没有外力来推，也没有外力来破，成败就看用神自己。";
    }
    text + &pattern(assessment)
}

fn moving(assessment: &Assessment<'_>, mover: &Mover<'_>) -> String {
    let line = mover.line;
    let is_void = line.state.is_some_and(|state| state.is_void);
    let verb = match (mover.is_stirred(), is_void) {
        (true, true) => "旬空而被日辰冲起",
        (true, false) => "暗动",
        (false, true) => "旬空而发动",
        (false, false) => "发动",
    };
    let becomes = line.becomes.map(|becomes| format!("化{}", terms::nature(becomes.nature))).unwrap_or_default();
    let part = match line.role {
        Some("世") => "世爻，你自己",
        Some(_) if assessment.sides.is_some() => "应爻",
        _ => terms::role(assessment.matter.topic, line.nature.kin),
    };
    let twin = mover.twin.map(|twin| format!("与{}", terms::position(twin.position))).unwrap_or_default();
    let place = terms::position(line.position);
    format!("{place}{twin}{}（{part}）{verb}{becomes}，{}。", terms::nature(line.nature), effect(assessment, mover))
}

fn effect(assessment: &Assessment<'_>, mover: &Mover<'_>) -> String {
    let day = assessment.chart.moment.as_ref().map_or("", |moment| moment.day.name());
    let fading = |fading| match fading {
        Fading::ControlledBack => "被回头克",
        Fading::Retreating => "化退神",
        Fading::MonthBroken => "自身月破",
        Fading::IntoVoid => "化入旬空",
        Fading::IntoBreak => "化入月破",
    };
    if mover.line.role == Some("世") {
        return own_movement(assessment, mover, day);
    }
    if let Some(harm) = assessment.fed_harm(mover) {
        return format!("伤不到用神，却助长克它的{}，阻力更大", branch(harm));
    }
    let is_kept_by_kin =
        assessment.matter.topic == Topic::Lost && mover.line.nature.kin == "兄弟" && !assessment.is_harm_diverted;
    match (mover.relation, mover.fate) {
        (ElementRelation::FedBy | ElementRelation::Controls, Fate::Growing) if is_kept_by_kin => {
            "东西可能被顺手挪动，又越动越远，早些问他们".to_owned()
        }
        (ElementRelation::FedBy | ElementRelation::Controls, Fate::Lasting) if is_kept_by_kin => {
            "东西可能被顺手挪动，先问他们".to_owned()
        }
        (ElementRelation::Feeds, Fate::Lasting) => "来生用神，是实在的助力".to_owned(),
        (ElementRelation::Feeds, Fate::Growing) => "来生用神，又越动越旺，助力会加大".to_owned(),
        (ElementRelation::Feeds, Fate::Fading(why)) => format!("本是来生用神的，却{}，帮得了一时帮不到底", fading(why)),
        (ElementRelation::Feeds, Fate::Bound) => format!("本是来生用神的，被日辰{day}合住，要等冲开才使得上"),
        (ElementRelation::Controls, Fate::Lasting | Fate::Growing) if assessment.is_harm_diverted => {
            "本要克用神，却转去生那生用神的爻".to_owned()
        }
        (ElementRelation::Controls, Fate::Lasting) => "来克用神，是主要的阻力".to_owned(),
        (ElementRelation::Controls, Fate::Growing) => "来克用神，又越动越旺，阻力还在长".to_owned(),
        (ElementRelation::Controls, Fate::Fading(why)) => format!("虽来克用神，却{}，这股阻力撑不久", fading(why)),
        (ElementRelation::Controls, Fate::Bound) => format!("虽要克用神，被日辰{day}合住，暂时发作不了"),
        (ElementRelation::Same, Fate::Fading(why)) => format!("与用神同类，却{}，帮手靠不长", fading(why)),
        (ElementRelation::Same, _) => "与用神同类，添了帮手，也添了头绪".to_owned(),
        (ElementRelation::FedBy, Fate::Fading(why)) => format!("泄用神的气，好在{}，耗得不久", fading(why)),
        (ElementRelation::FedBy, _) => "泄用神的气，要分去不少力量".to_owned(),
        (ElementRelation::ControlledBy, Fate::Fading(why)) => format!("受用神所克，又{}，伤不到事情", fading(why)),
        (ElementRelation::ControlledBy, _) => "受用神所克，伤不到事情，只会分神".to_owned(),
    }
}

/// Returns branch and element of a line: 辰土.
fn branch(mover: &Mover<'_>) -> String {
    let branch = mover.line.nature.branch;
    format!("{}{}", branch.name(), terms::element(branch.element()))
}

/// Returns the effect of the asker's own line in motion.
fn own_movement(assessment: &Assessment<'_>, mover: &Mover<'_>, day: &str) -> String {
    let own = match mover.fate {
        Fate::Lasting => "你自己先动了".to_owned(),
        Fate::Growing => "你自己动，越动越有底气".to_owned(),
        Fate::Bound => format!("你自己想动，被日辰{day}牵住"),
        Fate::Fading(Fading::ControlledBack) => "你自己想动，动了反伤自己".to_owned(),
        Fate::Fading(Fading::Retreating) => "你自己在往后退".to_owned(),
        Fate::Fading(_) => "你自己想动，心还悬着".to_owned(),
    };
    if let Some(harm) = assessment.fed_harm(mover) {
        return format!("{own}，反去助长克用神的{}：此时不宜主动出手", branch(harm));
    }
    let effect = match mover.relation {
        _ if !mover.is_effective() => "",
        ElementRelation::Feeds => "，这一动是帮用神的",
        ElementRelation::Controls => "，逼得急了反而伤用神",
        ElementRelation::FedBy => "，用神的力气要分到你身上",
        ElementRelation::Same => "，与用神一路",
        ElementRelation::ControlledBy => "，却牵不动用神",
    };
    own + effect
}

/// Returns the patterns of the whole casting.
fn pattern(assessment: &Assessment<'_>) -> String {
    let (chart, topic) = (assessment.chart, assessment.matter.topic);
    let lines = match (chart.pattern, chart.relating_pattern) {
        (Some("六冲"), Some("六合")) => "六冲变六合，先散而后聚。",
        (Some("六合"), Some("六冲")) => "六合变六冲，先合而后散，防的是后段。",
        (Some("六冲"), _) => clashing(topic),
        (Some(_), _) => combining(topic),
        (None, Some("六冲")) => "变出六冲卦，收尾的时候容易散。",
        (None, Some(_)) => "变出六合卦，收尾的时候能拢到一处。",
        (None, None) => "",
    };
    format!("{lines}{}", echo(&chart.echoes, topic).unwrap_or_default())
}

fn echo(echoes: &[EchoFacts], topic: Topic) -> Option<String> {
    let first = echoes.first()?;
    let place = match echoes {
        [_, _, ..] => "内外卦",
        _ if first.is_upper => "外卦",
        _ => "内卦",
    };
    let (kind, meaning) = match (first.kind, topic) {
        ("伏吟", _) => ("伏吟", "动而不前，多是在原处打转"),
        (_, Topic::Lost) => ("反吟", "东西去而复返，还有机会回来"),
        (_, Topic::Children) => ("反吟", "中途可能要再来一次"),
        _ => ("反吟", "事情会去而复来"),
    };
    Some(format!("{place}{kind}，{meaning}。"))
}

fn clashing(topic: Topic) -> &'static str {
    match topic {
        Topic::Health | Topic::Pets => "六冲卦，新得的病逢冲容易好，久病则要当心。",
        Topic::Legal => "六冲卦，纠纷散得快，有各退一步的机会。",
        Topic::Study | Topic::Papers => "六冲卦，中途容易生变，早办早定。",
        Topic::Children => "六冲卦，气不安稳，宜静养。",
        Topic::Travel => "六冲卦，说走就走，路上也多变。",
        Topic::Lost => "六冲卦，东西已经挪过地方。",
        topic if topic.wants_union() => "六冲卦，聚得急也散得快，要有留得住的约定。",
        _ => "六冲卦，来得快，去得也快。",
    }
}

fn combining(topic: Topic) -> &'static str {
    match topic {
        Topic::Health | Topic::Pets => "六合卦，病势缠绵，好得慢。",
        Topic::Legal => "六合卦，官司牵扯不断，一时了不掉。",
        Topic::Study | Topic::Papers => "六合卦，能成，只是慢。",
        Topic::Travel => "六合卦，被人事牵住，出门会迟。",
        Topic::Lost => "六合卦，东西被收在里面，没有散出去。",
        topic if topic.wants_union() => "六合卦，拢得住，也容易拖。",
        _ => "六合卦，能成形，只是不快。",
    }
}

/// Returns the relation of asker and other side, if the line for the matter is neither.
fn sides(assessment: &Assessment<'_>) -> String {
    let mut text = assessment.sides.map(|bond| other_side(assessment, bond)).unwrap_or_default();
    text += match assessment.chart.stage {
        "wandering" => "游魂卦，心思和境况都在变，定不下来。",
        "returning" => "归魂卦，绕一圈还回到原处，利于守，不利于远去。",
        _ => "",
    };
    text
}

fn other_side(assessment: &Assessment<'_>, bond: Bond) -> String {
    let (object, other) = (assessment.object, terms::other_side(assessment.matter.topic));
    let relation = match bond.relation {
        ElementRelation::Feeds if assessment.matter.topic == Topic::Legal => "应生世，对方可能愿意和解",
        ElementRelation::Feeds if assessment.matter.topic == Topic::Travel => "应生世，那边对你有益",
        ElementRelation::ControlledBy if assessment.matter.topic == Topic::Travel => "世克应，那边的情形你应付得来",
        ElementRelation::Feeds => "应生世，肯帮你",
        ElementRelation::Controls => "应克世，对你有压力",
        ElementRelation::Same if bond.tie == Some(Tie::Clash) => "世应同气",
        ElementRelation::Same => "世应比和，立场相近",
        ElementRelation::FedBy => "世生应，是你迁就得多",
        ElementRelation::ControlledBy => "世克应，主动在你",
    };
    let tie = match bond.tie {
        Some(Tie::Combination) => "；世应相合，谈得拢",
        Some(Tie::Clash) if bond.relation == ElementRelation::Same => "而相冲，当面容易顶起来",
        Some(Tie::Clash) => "；世应相冲，当面容易顶起来",
        None => "",
    };
    let state = match &object.state {
        Some(StateFacts { is_void: true, is_month_broken: true, .. }) => "；应爻旬空又月破，那边使不上力",
        Some(StateFacts { is_void: true, .. }) if object.clash_effect == Some("暗动") => {
            "；应爻旬空，今日被冲起，那边已经动了"
        }
        Some(StateFacts { is_void: true, .. }) if object.is_active() => "；应爻旬空而发动，那边已经在动，出空才落实",
        Some(StateFacts { is_void: true, .. }) => "；应爻旬空，那边还没有定准",
        Some(StateFacts { is_month_broken: true, .. }) => "；应爻月破，那边自顾不暇",
        _ => "",
    };
    let compared = match assessment.stronger_side {
        Some(Ordering::Greater) => "；两边相比，你这边占先",
        Some(Ordering::Equal) if are_both_weak(assessment) => "；两边都弱，谁也压不倒谁",
        Some(Ordering::Equal) => "；两边相比，势均力敌",
        Some(Ordering::Less) => "；两边相比，对方占先",
        None => "",
    };
    format!("应爻是{other}，在{}：{relation}{tie}{state}{compared}。", terms::line(object))
}

fn are_both_weak(assessment: &Assessment<'_>) -> bool {
    [assessment.subject, assessment.object].into_iter().all(|line| Weight::of(line) == Some(Weight::Weak))
}

fn timing(reading: &Reading, assessment: &Assessment<'_>) -> String {
    if assessment.timings.is_empty() || reading.question.trim().is_empty() {
        return String::new();
    }
    let sentences: Vec<String> = assessment.timings.iter().map(|timing| time(assessment, *timing)).collect();
    let branch = assessment.significator.nature().branch.name();
    let (first, last) = match assessment.matter.topic {
        Topic::Lost => ("先看今日明日；", String::new()),
        Topic::Children | Topic::Legal | Topic::Study => ("", format!("；这类事要看得长些，也看{branch}月")),
        _ => ("", String::new()),
    };
    format!("应期：{first}{}{last}。", sentences.join("；"))
}

fn time(assessment: &Assessment<'_>, timing: Timing) -> String {
    let moment = assessment.chart.moment.as_ref();
    let day = |branch: Branch| match moment {
        Some(moment) => {
            let date = moment.next_days[branch as usize];
            let next = if branch == moment.day { "今日之后，下一个" } else { "近的" };
            format!("{}日（{next}是{}月{}日）", branch.name(), date.month, date.day)
        }
        None => format!("{}日", branch.name()),
    };
    let partner = |branch: Branch| Branch::ALL[(13 - branch as usize) % 12];
    match timing {
        Timing::Void(branch) => {
            format!("用神旬空，要出空才落实，可留意{}填实，或{}冲空", day(branch), day(branch.plus(6)))
        }
        Timing::MonthBreak { branch, month } => format!(
            "用神月破，多半要出了{}月（{}初），再逢{}日补上或{}日相合",
            month.name(),
            terms::month_end(month),
            branch.name(),
            partner(branch).name()
        ),
        Timing::Hidden { branch, above } if moment.is_some_and(|moment| moment.day == above.plus(6)) => {
            format!("用神伏藏，今日已冲开飞神，再留意{}它当值", day(branch))
        }
        Timing::Hidden { branch, above } => {
            format!("用神伏藏，可留意{}它当值，或{}冲开飞神，那时才露头", day(branch), day(above.plus(6)))
        }
        Timing::Bound(branch) => format!("用神被合住，可留意{}冲开", day(branch.plus(6))),
        Timing::Grave { grave } => format!("用神入墓，可留意{}冲开墓库", day(grave.plus(6))),
        Timing::Moving(branch) => {
            format!("用神在动，多应在逢值或逢合，可留意{}，或{}", day(branch), day(partner(branch)))
        }
        Timing::Resting(branch) => {
            format!("用神安静，多应在逢值或逢冲，可留意{}，或{}", day(branch), day(branch.plus(6)))
        }
        Timing::Season(element) => format!("它眼下乏力，事情若大，要等{}", terms::months(element)),
        Timing::Harm(branch) => {
            format!("克它的{}要到{}被冲、或{}被合，阻力才松", branch.name(), day(branch.plus(6)), day(partner(branch)))
        }
    }
}
