//! The wording of an interpretation in English.

use super::topic::{self, Topic};
use super::{ChangingLine, HexagramDescription, HexagramFacts, Reading, TrigramDescription, quoted};

/// Returns the whole text, one paragraph per item.
pub(super) fn paragraphs(reading: &Reading) -> Vec<String> {
    let facts = &reading.facts;
    let mut paragraphs = Vec::new();
    if topic::is_danger(reading) {
        paragraphs.push(DANGER.to_owned());
    }
    match &facts.primary {
        Some(primary) => {
            paragraphs.push(opening(reading, primary));
            paragraphs.push(format!("Its counsel: {}", primary.judgement));
            paragraphs.push(changes(facts.changing.as_deref()));
            paragraphs.extend(direction(facts));
            paragraphs.extend(inner_tendency(primary, facts.nuclear.as_ref()));
            paragraphs.push(advice(reading, primary));
        }
        None => paragraphs.extend(nothing_found(reading)),
    }
    paragraphs.extend(professionals(reading));
    paragraphs.push(foundation(facts));
    paragraphs
}

const DANGER: &str = "Your words sound as if you were in great pain. Please do not carry this \
     alone: reach out now to someone you trust, or to your local emergency or crisis line. What \
     follows can wait.";

const WHAT_TO_SEND: &str = "To receive a reading, send any one of these: the six lines from the \
     bottom up as numbers (6 old yin, 7 young yang, 8 young yin, 9 old yang), such as \
     {\"lines\": [7, 8, 8, 8, 7, 9]}; or the primary hexagram and its changing lines, such as \
     \"Hexagram 3, changing lines: 1\"; or the primary and the relating hexagram by name, sign or \
     number.";

const DISCLOSURE: &str = "This text was written offline by the rules of this service from the \
     structure of the hexagram, not by a language model. Take it as something to reflect on; the \
     decision remains your own.";

fn opening(reading: &Reading, primary: &HexagramDescription) -> String {
    let question = match quoted(&reading.question) {
        Some(question) => format!("You asked: \"{question}\""),
        None => "No question was written down, so the hexagram speaks for itself.".to_owned(),
    };
    format!(
        "{question}\nThe primary hexagram is {}. Above stands {}; below stands {}. Its image: {}.",
        named(primary),
        trigram(&primary.upper),
        trigram(&primary.lower),
        primary.image,
    )
}

fn named(hexagram: &HexagramDescription) -> String {
    format!(
        "{} {}, {} ({} {})",
        hexagram.sign, hexagram.number, hexagram.english_name, hexagram.chinese_full_name, hexagram.pinyin
    )
}

fn trigram(trigram: &TrigramDescription) -> String {
    format!("{} {} ({}), whose nature is {}", trigram.sign, trigram.image, trigram.pinyin, trigram.attribute)
}

fn changes(changing: Option<&[ChangingLine]>) -> String {
    let Some(lines) = changing else {
        return "The data does not say which lines change, so nothing is said of them here.".to_owned();
    };
    let count = lines.len();
    let introduction = match count {
        0 => {
            return "No line is changing: the situation is fairly settled, and the counsel of the \
                    primary hexagram is the one to hold to."
                .to_owned();
        }
        1 => "One line is changing, and that is where the weight lies:".to_owned(),
        2 | 3 => format!("{count} lines are changing, and the movement gathers there:"),
        4 | 5 => format!(
            "{count} lines are changing: the situation is shifting widely, so look above all to \
             the relating hexagram:"
        ),
        _ => "All six lines are changing: the situation turns over as a whole, and the relating \
              hexagram is where it comes to rest:"
            .to_owned(),
    };
    let lines: Vec<String> = lines.iter().map(change).collect();
    format!("{introduction}\n{}", lines.join("\n"))
}

fn change(line: &ChangingLine) -> String {
    let turn = if line.is_from_yang { "yang turning to yin" } else { "yin turning to yang" };
    format!("- The {} ({turn}): {}", line.name, line.meaning)
}

fn direction(facts: &HexagramFacts) -> Option<String> {
    let relating = facts.relating.as_ref()?;
    Some(format!(
        "The change leads toward the relating hexagram {}: {}. Seen from there: {}",
        named(relating),
        relating.image,
        relating.judgement
    ))
}

fn inner_tendency(primary: &HexagramDescription, nuclear: Option<&HexagramDescription>) -> Option<String> {
    let nuclear = nuclear?;
    if nuclear.number == primary.number {
        return Some(
            "The nuclear hexagram is the primary one itself: what shows on the surface is also \
             the inner tendency."
                .to_owned(),
        );
    }
    Some(format!(
        "The inner tendency shows in the nuclear hexagram {}: {}. Quietly it adds: {}",
        named(nuclear),
        nuclear.image,
        nuclear.judgement
    ))
}

fn advice(reading: &Reading, primary: &HexagramDescription) -> String {
    let (subject, counsel) = match topic::of(reading) {
        Topic::Career => (
            "For your work",
            "Decide whether this is a moment to push or to wait for others, then choose one small \
             aim that you can finish soon.",
        ),
        Topic::Love => (
            "For love",
            "The hexagram speaks of how to meet each other, and not of another person's fate: say \
             honestly what you feel, and leave room for an answer.",
        ),
        Topic::Health => (
            "For your health",
            "The hexagram can remind you of the rhythm of rest, food and mood; it cannot replace \
             an examination or a treatment.",
        ),
        Topic::Wealth => (
            "For money",
            "The point is measure: first keep to what you can afford to lose, then think of gain, \
             and do not let every rise and fall change your pace.",
        ),
        Topic::Study => (
            "For your studies",
            "Turn the counsel into a daily task: keep a small and steady rhythm, and ask early \
             about what you do not understand.",
        ),
        Topic::Family => (
            "For your family",
            "Let the others finish before you speak; care shown in one small, definite act is \
             stronger than argument.",
        ),
        Topic::Travel => (
            "For the journey",
            "Leave a margin: check the plan, keep another route in reserve, and change the date \
             calmly if something stands in the way.",
        ),
        Topic::Legal => (
            "For the dispute",
            "First put facts and evidence in order, and where a settlement is possible, do not \
             fight on out of pride.",
        ),
        Topic::Other => (
            "For what you ask",
            "Bring the counsel back to your own situation: the sentence that touches you most is \
             often the place to begin.",
        ),
    };
    format!(
        "{subject}, the {} of {} below is like your own state, and the {} of {} above like what \
         surrounds you. {counsel}",
        primary.lower.attribute, primary.lower.image, primary.upper.attribute, primary.upper.image,
    )
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
                 this is no financial advice.",
            ),
            Topic::Legal => Some("In legal matters please ask a lawyer; this is no legal advice."),
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
    if !facts.evidence.is_empty() {
        sentences.push(format!("Based on this: {}.", facts.evidence.join("; ")));
    }
    if !facts.conflicts.is_empty() {
        sentences.push(format!("Besides: {}.", facts.conflicts.join("; ")));
    }
    sentences.push(DISCLOSURE.to_owned());
    sentences.join(" ")
}
