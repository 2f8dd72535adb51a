//! Weighs the observed evidence and concludes which cast it describes.
//!
//! Six lines win over every name. Without them, two hexagrams form a cast, whose changing lines are their difference, or
//! a hexagram and its changing lines. Contradictions are reported, never silently dropped.

use super::super::cast::Cast;
use super::super::catalog::Hexagram;
use super::super::line::{Line, Lines};
use super::{
    AcceptedContent, Conflict, Content, Count, Evidence, Facts, HexagramRole, LineOrder, MOST_ENTRIES, NameForm,
    Observed, ReadingFault,
};

/// The hexagram chosen for one role, with its evidence.
struct Chosen {
    hexagram: Hexagram,
    found: Vec<Evidence>,
}

impl Chosen {
    /// Returns false if the hexagram is known only by a number that may be something else.
    fn is_firm(&self) -> bool {
        !self.found.iter().all(|it| matches!(it.content, Content::Hexagram { form: NameForm::Identifier, .. }))
    }

    /// Returns true if these changing lines lead to the other hexagram.
    fn leads_to(&self, relating: &Self, positions: &[u8]) -> bool {
        self.hexagram.with_lines_changed(positions) == relating.hexagram
    }
}

/// Concludes the facts of the cast.
pub(super) fn conclude(observed: Observed) -> Facts {
    let Observed { evidence, problems } = observed;
    let mut facts = from_lines(&evidence).unwrap_or_else(|| from_names(&evidence));
    let is_recounted =
        |path: &str| facts.found.iter().any(|it| it.path == path && matches!(it.content, Content::Recounted(..)));
    let contradictions = evidence
        .into_iter()
        .filter(|it| !(matches!(it.content, Content::Changing(_)) && is_recounted(&it.path)))
        .filter_map(|evidence| contradiction(evidence, &facts));
    let problems = problems.into_iter().filter(|problem| {
        !matches!(problem, Conflict::Unreadable { path, problem: ReadingFault::NotPositions } if is_recounted(path))
    });
    let mut conflicts = Vec::new();
    for conflict in contradictions.chain(problems) {
        if conflicts.len() < MOST_ENTRIES && !conflicts.contains(&conflict) {
            conflicts.push(conflict);
        }
    }
    facts.conflicts = conflicts;
    facts
}

fn from_lines(evidence: &[Evidence]) -> Option<Facts> {
    let (path, lines, order) = evidence.iter().find_map(|it| match it.content {
        Content::Lines { lines, order } => Some((&it.path, lines, order)),
        _ => None,
    })?;
    let named = best_name(evidence, HexagramRole::Primary);
    let is_top_down = order == LineOrder::BottomUp
        && named.is_some_and(|(_, named)| named != figure(lines) && named == figure(lines.reversed()));
    let (lines, order) = if is_top_down { (lines.reversed(), LineOrder::TopDown) } else { (lines, order) };
    let mut found = vec![Evidence { path: path.clone(), content: Content::Lines { lines, order } }];
    found.extend(named.filter(|_| is_top_down).map(|(evidence, _)| evidence.clone()));
    Some(with_cast(Cast::from_lines(lines), found))
}

fn from_names(evidence: &[Evidence]) -> Facts {
    let primary = choose(evidence, HexagramRole::Primary);
    let relating = choose(evidence, HexagramRole::Relating);
    let changing = evidence.iter().find_map(|it| match &it.content {
        Content::Changing(positions) => Some((it, positions)),
        _ => None,
    });
    match (primary, changing, relating) {
        (Some(primary), changing, Some(relating))
            if relating.is_firm() && changing.is_none_or(|(_, it)| !primary.leads_to(&relating, it)) =>
        {
            compared(primary, relating, evidence)
        }
        (Some(primary), Some((evidence, positions)), _) => {
            let mut found = primary.found;
            found.push(evidence.clone());
            with_cast(Cast::from_hexagram(primary.hexagram, positions), found)
        }
        (Some(primary), None, Some(relating)) => compared(primary, relating, evidence),
        (None, Some((evidence, positions)), Some(relating)) => turned_back(relating, evidence, positions),
        (primary, changing, relating) => Facts {
            primary: primary.as_ref().map(|it| it.hexagram),
            relating: relating.as_ref().map(|it| it.hexagram),
            changing: changing.map_or(Vec::new(), |(_, positions)| positions.clone()),
            found: primary
                .into_iter()
                .chain(relating)
                .flat_map(|it| it.found)
                .chain(changing.map(|(evidence, _)| evidence.clone()))
                .collect(),
            ..Facts::default()
        },
    }
}

/// Takes the difference of the two hexagrams as the changing lines. If the data has these lines too, but counts them in
/// another way, says so.
fn compared(primary: Chosen, relating: Chosen, evidence: &[Evidence]) -> Facts {
    let positions = primary.hexagram.differing_positions(relating.hexagram);
    let cast = Cast::from_hexagram(primary.hexagram, &positions);
    let mut found = primary.found;
    found.extend(relating.found);
    let recounted = evidence.iter().find_map(|it| recount(it, &positions));
    found.push(recounted.unwrap_or_else(|| concluded(Content::Compared(positions))));
    with_cast(cast, found)
}

/// Returns the evidence if its positions are the wanted ones, counted from zero or from the top.
fn recount(evidence: &Evidence, wanted: &[u8]) -> Option<Evidence> {
    let count = match &evidence.content {
        Content::Recounted(positions, count) => (positions == wanted).then_some(*count),
        Content::Changing(positions) if positions.is_empty() => None,
        Content::Changing(positions) => {
            let from_top: Vec<u8> = positions.iter().rev().map(|position| 7 - position).collect();
            let from_zero = positions.iter().map(|position| position + 1);
            if from_zero.eq(wanted.iter().copied()) {
                Some(Count::FromZero)
            } else {
                (from_top == wanted).then_some(Count::FromTop)
            }
        }
        _ => None,
    }?;
    Some(Evidence { path: evidence.path.clone(), content: Content::Recounted(wanted.to_vec(), count) })
}

fn turned_back(relating: Chosen, evidence: &Evidence, positions: &[u8]) -> Facts {
    let primary = relating.hexagram.with_lines_changed(positions);
    let mut found = relating.found;
    found.push(evidence.clone());
    found.push(concluded(Content::TurnedBack(primary)));
    with_cast(Cast::from_hexagram(primary, positions), found)
}

fn concluded(content: Content) -> Evidence {
    Evidence { path: String::new(), content }
}

fn with_cast(cast: Cast, found: Vec<Evidence>) -> Facts {
    Facts {
        cast: Some(cast),
        primary: Some(cast.primary()),
        relating: cast.relating(),
        changing: cast.changing(),
        found,
        conflicts: Vec::new(),
    }
}

/// Chooses yin and yang lines before every name. If they agree with the name only when read from the top down, they
/// were listed in that order.
fn choose(evidence: &[Evidence], role: HexagramRole) -> Option<Chosen> {
    let named = best_name(evidence, role);
    let drawn = hexagrams(evidence, role).find_map(|(evidence, hexagram, form)| match form {
        NameForm::YinYang(order) => Some((evidence, hexagram, order)),
        _ => None,
    });
    let Some((drawn, hexagram, order)) = drawn else {
        return named.map(|(evidence, hexagram)| Chosen { hexagram, found: vec![evidence.clone()] });
    };
    if let Some((name, named)) = named
        && order == LineOrder::BottomUp
        && named != hexagram
        && named == turned_over(hexagram)
    {
        let form = NameForm::YinYang(LineOrder::TopDown);
        let content = Content::Hexagram { role, hexagram: named, form };
        let path = drawn.path.clone();
        return Some(Chosen { hexagram: named, found: vec![Evidence { path, content }, name.clone()] });
    }
    Some(Chosen { hexagram, found: vec![drawn.clone()] })
}

/// Returns the most trustworthy name; the first of equals.
fn best_name(evidence: &[Evidence], role: HexagramRole) -> Option<(&Evidence, Hexagram)> {
    hexagrams(evidence, role)
        .filter(|(_, _, form)| !matches!(form, NameForm::YinYang(_)))
        .min_by_key(|(_, _, form)| *form)
        .map(|(evidence, hexagram, _)| (evidence, hexagram))
}

fn hexagrams(evidence: &[Evidence], wanted: HexagramRole) -> impl Iterator<Item = (&Evidence, Hexagram, NameForm)> {
    evidence.iter().filter_map(move |it| match it.content {
        Content::Hexagram { role, hexagram, form } if role == wanted => Some((it, hexagram, form)),
        _ => None,
    })
}

fn contradiction(evidence: Evidence, facts: &Facts) -> Option<Conflict> {
    let kept = match &evidence.content {
        Content::Lines { lines, order } => contradicted_lines(*lines, *order, facts),
        Content::Hexagram { role, hexagram, form } => contradicted_hexagram(*role, *hexagram, *form, facts),
        Content::Changing(positions) => contradicted_changes(positions, facts),
        Content::Recounted(..) | Content::Compared(_) | Content::TurnedBack(_) => None,
    }?;
    Some(Conflict::Contradiction { dropped: evidence, kept })
}

/// Lines listed in the other direction do not contradict.
fn contradicted_lines(lines: Lines, order: LineOrder, facts: &Facts) -> Option<AcceptedContent> {
    let kept = facts.cast?.lines();
    let is_same = lines == kept || order == LineOrder::BottomUp && lines.reversed() == kept;
    (!is_same).then_some(AcceptedContent::Lines(kept))
}

fn contradicted_hexagram(
    role: HexagramRole,
    hexagram: Hexagram,
    form: NameForm,
    facts: &Facts,
) -> Option<AcceptedContent> {
    let is_same = |kept: Hexagram| {
        let is_reversible = form == NameForm::YinYang(LineOrder::BottomUp);
        kept == hexagram || is_reversible && kept == turned_over(hexagram)
    };
    if form == NameForm::Identifier {
        return None;
    }
    match (role, facts.primary, facts.relating) {
        (HexagramRole::Primary, Some(kept), _) | (HexagramRole::Relating, _, Some(kept)) => {
            (!is_same(kept)).then_some(AcceptedContent::Hexagram(role, kept))
        }
        (HexagramRole::Relating, Some(primary), None) => {
            (facts.cast.is_some() && !is_same(primary)).then_some(AcceptedContent::NothingChanges)
        }
        _ => None,
    }
}

fn contradicted_changes(positions: &[u8], facts: &Facts) -> Option<AcceptedContent> {
    let kept = facts.cast?.changing();
    match kept.as_slice() {
        same if same == positions => None,
        [] => Some(AcceptedContent::NothingChanges),
        _ => Some(AcceptedContent::Changing(kept)),
    }
}

fn figure(lines: Lines) -> Hexagram {
    Hexagram::from_figure(lines.as_array().map(Line::is_yang))
}

fn turned_over(hexagram: Hexagram) -> Hexagram {
    let mut figure = hexagram.figure();
    figure.reverse();
    Hexagram::from_figure(figure)
}
