//! The wording of an interpretation in English.

mod chart;
mod counsel;
mod terms;

use super::assessment::{Assessment, Outlook, assess};
use super::auspice::Auspice;
use super::topic::{self, Aspect, Matter, Topic};
use super::{
    ActingFacts, BodyAndUseFacts, ClassicFacts, ClassicText, HexagramDescription, HexagramFacts, Reading, TrigramFacts,
    quoted,
};

/// Returns the whole text, one paragraph per item.
pub(super) fn paragraphs(reading: &Reading) -> Vec<String> {
    let mut paragraphs = Vec::new();
    match &reading.facts.primary {
        Some(primary) => {
            let matter = Matter::of(reading);
            let assessment = assess(reading, matter);
            paragraphs.push(opening(reading, primary));
            paragraphs.extend(reading.classic.as_ref().map(texts));
            paragraphs.push(images(&reading.facts, primary));
            paragraphs.extend(reading.body_and_use.as_ref().map(body_and_use));
            paragraphs.extend(assessment.iter().flat_map(|assessment| chart::paragraphs(reading, assessment)));
            if reading.chart.as_ref().is_none_or(|chart| chart.moment.is_none()) {
                paragraphs.push(trigrams(matter.topic, primary));
            }
            paragraphs.push(conclusion(reading, matter, assessment.as_ref()));
        }
        None => paragraphs.extend(nothing_found(reading)),
    }
    paragraphs.extend(professionals(reading));
    paragraphs.push(foundation(&reading.facts));
    paragraphs
}

const WHAT_TO_SEND: &str = "To receive a reading, send any one of these: the six lines from the \
     bottom up as numbers (6 old yin, 7 young yang, 8 young yin, 9 old yang), such as \
     {\"lines\": [7, 8, 8, 8, 7, 9]}; or the primary hexagram and its changing lines, such as \
     \"Hexagram 3, changing lines: 1\"; or the primary and the relating hexagram by name, sign or \
     number.";

const DISCLOSURE: &str = "This text was written offline by rule from the casting, not by a language model. The decision \
     remains your own.";

fn opening(reading: &Reading, primary: &HexagramDescription) -> String {
    let question = match quoted(&reading.question) {
        Some(question) => format!("You asked: \"{question}\""),
        None => "No question was written down, so the hexagram speaks for itself.".to_owned(),
    };
    format!(
        "{question}\nThe answer is {}: {} above, {} below. {}",
        named(primary),
        primary.upper.image,
        primary.lower.image,
        changes(&reading.facts),
    )
    .trim_end()
    .to_owned()
}

fn named(hexagram: &HexagramDescription) -> String {
    format!(
        "{} Hexagram {}, {} ({} {})",
        hexagram.sign, hexagram.number, hexagram.english_name, hexagram.chinese_full_name, hexagram.pinyin
    )
}

fn changes(facts: &HexagramFacts) -> String {
    let Some(lines) = facts.changing.as_deref() else {
        return "The data does not say which lines change, so nothing is said of them here.".to_owned();
    };
    let Some(relating) = &facts.relating else { return String::new() };
    let places: Vec<&str> = lines.iter().map(|line| terms::ordinal(line.position)).collect();
    let lines = match places.as_slice() {
        [one] => format!("The {one} line is changing, and it leads"),
        [_, _, _, _, _, _] => "All six lines are changing, and they lead".to_owned(),
        [others @ .., last] => format!("The {} and {last} lines are changing, and they lead", others.join(", ")),
        [] => "The change leads".to_owned(),
    };
    format!("{lines} to {}.", named(relating))
}

fn texts(classic: &ClassicFacts) -> String {
    let texts: Vec<String> = classic.texts.iter().map(|text| verse(text, classic.texts.len() > 1)).collect();
    format!("{}\n{}", rule(classic), texts.join("\n"))
}

/// Returns the image of the hexagram and of the one that it leads to or contains.
fn images(facts: &HexagramFacts, primary: &HexagramDescription) -> String {
    let image = format!("The image of {}: {}. {}", primary.english_name, primary.image, primary.counsel);
    let further = match (&facts.relating, &facts.nuclear) {
        (Some(relating), _) => format!(" From there things move toward {}: {}.", relating.english_name, relating.image),
        (None, Some(nuclear)) if nuclear.number != primary.number => {
            format!(" Hidden within it, as the nuclear hexagram, is {}: {}.", nuclear.english_name, nuclear.image)
        }
        (None, _) => String::new(),
    };
    image + &further
}

fn rule(classic: &ClassicFacts) -> String {
    let main = classic.texts.first().map_or("", |text| text.english_name);
    match classic.rule {
        None => "First the judgement of the primary hexagram:".to_owned(),
        Some("none_changing") => "No line changes, so the judgement of the primary hexagram is read:".to_owned(),
        Some("one_changing") => "One line changes, so its text is read:".to_owned(),
        Some("two_changing") => "Two lines change, so both texts are read, with most weight on the upper:".to_owned(),
        Some("three_changing") => {
            format!("Three lines change, so both judgements are read, with most weight on that of {main}:")
        }
        Some("four_changing") => {
            "Four lines change, so the two resting lines of the relating hexagram are read, with most weight on the lower:"
                .to_owned()
        }
        Some("five_changing") => {
            "Five lines change, so the one resting line of the relating hexagram is read:".to_owned()
        }
        Some(_) => match classic.texts.first().and_then(|text| text.label) {
            Some(label) => format!("All six lines change, and for this {main} has a text of its own, {label}:"),
            None => "All six lines change, so the judgement of the relating hexagram is read:".to_owned(),
        },
    }
}

fn verse(text: &ClassicText, is_one_of_several: bool) -> String {
    let rank = if is_one_of_several && text.is_main { " (main)" } else { "" };
    let part = match (text.position, text.label) {
        (Some(place), _) => terms::position(place),
        (None, Some(label)) => label,
        (None, None) => "judgement",
    };
    format!("- {}, {part}{rank}: 「{}」 {}", text.english_name, text.text, text.plain)
}

fn body_and_use(facts: &BodyAndUseFacts) -> String {
    let effect = match facts.use_trigram.relation {
        "生体" => "it feeds you, so what comes from outside helps",
        "体生" => "you feed it, so you give more than you get",
        "克体" => "it overcomes you, so the matter weighs on you",
        "体克" => "you overcome it, so it can be done with effort",
        _ => "both share one element, so inside and outside agree",
    };
    let acting = |acting: &ActingFacts| {
        let relation = match acting.relation {
            "生体" => "helps you",
            "体生" => "draws on you",
            "克体" => "works against you",
            "体克" => "gives way to you",
            _ => "is of your own kind",
        };
        format!("{} {relation}", trigram(&acting.trigram))
    };
    let [lower, upper] = &facts.nuclear;
    let nuclear = if lower == upper { acting(lower) } else { format!("{}, and {}", acting(lower), acting(upper)) };
    format!(
        "By the plum blossom method, you are the trigram {} (the body), and the matter is {} (the use): {effect}. On the \
         way, in the nuclear hexagram, {nuclear}. In the end {}.",
        trigram(&facts.body),
        trigram(&facts.use_trigram.trigram),
        acting(&facts.changed),
    )
}

fn trigram(trigram: &TrigramFacts) -> String {
    format!("{} ({})", trigram.pinyin, terms::element(trigram.element))
}

/// Returns the trigrams as the two sides of the question.
fn trigrams(topic: Topic, primary: &HexagramDescription) -> String {
    let (lower, upper) = (&primary.lower, &primary.upper);
    format!(
        "Of the two trigrams, the {} of {} below is close to your own state, and the {} of {} above to that of {}.",
        lower.attribute,
        lower.image,
        upper.attribute,
        upper.image,
        terms::other_side(topic)
    )
}

/// Returns the counsel, and how verse and chart agree.
fn conclusion(reading: &Reading, matter: Matter, assessment: Option<&Assessment<'_>>) -> String {
    let main = reading.classic.as_ref().and_then(|classic| classic.texts.first());
    let auspice = main.and_then(Auspice::of);
    let charted = assessment.filter(|assessment| assessment.is_telling()).map(|assessment| assessment.outlook);
    let outlook = charted.unwrap_or(match auspice {
        Some(Auspice::Good(_)) => Outlook::Favourable,
        Some(Auspice::Warning(_)) => Outlook::Adverse,
        None => Outlook::Mixed,
    });
    let mut sentences =
        vec![format!("Taken together, {}", counsel::counsel(matter.topic, Aspect::of(reading, matter.topic), outlook))];
    sentences.extend(auspice.map(|auspice| agreement(auspice, charted).to_owned()));
    if topic::is_choice(reading) {
        let each = "You ask about a choice, and one casting answers for one side only; you could cast once for each and \
                    compare.";
        sentences.push(each.to_owned());
    }
    sentences.join(" ")
}

fn agreement(auspice: Auspice, charted: Option<Outlook>) -> &'static str {
    match (auspice, charted) {
        (Auspice::Good(_), Some(Outlook::Favourable)) => {
            "The text promises well and the chart has the strength for it."
        }
        (Auspice::Good(_), Some(Outlook::Mixed)) => {
            "The text promises well while the chart is only halfway: the direction is right, the time not quite ripe."
        }
        (Auspice::Good(_), Some(Outlook::Adverse)) => {
            "The text promises well but the chart lacks strength: the right road at the wrong hour."
        }
        (Auspice::Warning(_), Some(Outlook::Favourable)) => {
            "The chart is strong, yet the text warns: it can succeed, and the danger lies in how it is done."
        }
        (Auspice::Warning(_), Some(Outlook::Mixed)) => {
            "The text warns and the chart opens only halfway, so rather be slow."
        }
        (Auspice::Warning(_), Some(Outlook::Adverse)) => "Text and chart both advise you to stop for a while.",
        (Auspice::Good(_), None) => "This follows the text, which promises well.",
        (Auspice::Warning(_), None) => "This follows the text, which warns.",
    }
}

fn professionals(reading: &Reading) -> Option<String> {
    let sentences: Vec<&str> = topic::needing_a_professional(reading)
        .into_iter()
        .filter_map(|topic| match topic {
            Topic::Health => Some(
                "In matters of body and mind please see a doctor or another professional, and do \
                 not put off care because of a hexagram.",
            ),
            Topic::Wealth => Some(
                "For decisions about investments or loans please ask a licensed professional; \
                 this is not financial advice.",
            ),
            Topic::Legal => Some("In legal matters please ask a lawyer; this is not legal advice."),
            _ => None,
        })
        .collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn nothing_found(reading: &Reading) -> Vec<String> {
    let found = match &reading.facts.relating {
        Some(relating) => format!(
            "The data names only the relating hexagram {}, and no primary hexagram could be \
             established. So there is no reading here, and none is made up.",
            named(relating)
        ),
        None => "No hexagram could be found in the data. So there is no reading here, and none is \
                 made up."
            .to_owned(),
    };
    vec![found, WHAT_TO_SEND.to_owned()]
}

fn foundation(facts: &HexagramFacts) -> String {
    let mut sentences = Vec::new();
    if facts.has_assumptions && !facts.evidence.is_empty() {
        sentences.push(format!("Based on this: {}.", facts.evidence.join("; ")));
    }
    if !facts.conflicts.is_empty() {
        sentences.push(format!("Besides: {}.", facts.conflicts.join("; ")));
    }
    sentences.push(DISCLOSURE.to_owned());
    sentences.join(" ")
}
