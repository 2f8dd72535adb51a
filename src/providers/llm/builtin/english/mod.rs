//! The wording of an interpretation in English.

use super::topic::{self, Topic};
use super::{
    BecomesFacts, ChartFacts, ClassicFacts, ClassicText, HexagramDescription, HexagramFacts, LineFacts, NatureFacts,
    Reading, StateFacts, TrigramDescription, Weight, quoted,
};

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
            paragraphs.extend(reading.classic.as_ref().map(texts));
            paragraphs.extend(reading.chart.as_ref().map(chart));
            paragraphs.push(sides(reading, primary));
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
        "{question}\nThe primary hexagram is {}: {} above, {} below. {}{}",
        named(primary),
        trigram(&primary.upper),
        trigram(&primary.lower),
        changes(&reading.facts),
        occasion(reading),
    )
}

fn named(hexagram: &HexagramDescription) -> String {
    format!(
        "{} {}, {} ({} {})",
        hexagram.sign, hexagram.number, hexagram.english_name, hexagram.chinese_full_name, hexagram.pinyin
    )
}

fn trigram(trigram: &TrigramDescription) -> String {
    format!("{} {} ({})", trigram.sign, trigram.image, trigram.pinyin)
}

fn changes(facts: &HexagramFacts) -> String {
    let Some(lines) = facts.changing.as_deref() else {
        return "The data does not say which lines change, so nothing is said of them here.".to_owned();
    };
    let Some(relating) = &facts.relating else { return "No line is changing.".to_owned() };
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let (these, verb) = if let [one] = names.as_slice() {
        ((*one).to_owned(), "changes, and leads")
    } else {
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        (format!("{} and {last}", others.join(", ")), "change, and lead")
    };
    format!("The {these} {verb} to {}: {}.", named(relating), relating.image)
}

/// Returns the method and the time, as far as they are known.
fn occasion(reading: &Reading) -> String {
    let method = reading.method.and_then(method);
    let Some(moment) = reading.chart.as_ref().and_then(|chart| chart.moment.as_ref()) else {
        return method.map_or_else(String::new, |method| format!("\nIt was cast {method}."));
    };
    let ([year, month, day, hour], [first, second]) = (&moment.pillars, moment.void);
    let method = method.map_or_else(String::new, |method| format!("{method} "));
    format!(
        "\nIt was cast {method}at {} local time: year {year}, month {month}, day {day}, hour {hour}; {first} and {second} \
         are void.",
        moment.local
    )
}

fn method(name: &str) -> Option<&'static str> {
    match name {
        "three_coins" => Some("with three coins"),
        "yarrow_stalks" => Some("with yarrow stalks"),
        "manual" => Some("by your own hand"),
        "time" => Some("from its time by the plum blossom method"),
        "numbers" => Some("from your numbers by the plum blossom method"),
        _ => None,
    }
}

fn texts(classic: &ClassicFacts) -> String {
    let texts: Vec<String> = classic.texts.iter().map(|text| verse(text, classic.texts.len() > 1)).collect();
    format!("{}\n{}", rule(classic), texts.join("\n"))
}

fn rule(classic: &ClassicFacts) -> String {
    let main = classic.texts.first().map_or("", |text| text.english_name);
    match classic.rule {
        None => "First the judgement of the primary hexagram:".to_owned(),
        Some("none_changing") => "No line changes, so the judgement of the primary hexagram is read:".to_owned(),
        Some("one_changing") => "One line changes, so its text is read:".to_owned(),
        Some("two_changing") => "Two lines change, so both texts are read, the upper one above all:".to_owned(),
        Some("three_changing") => {
            format!("Three lines change, so both judgements are read, that of {main} above all:")
        }
        Some("four_changing") => {
            "Four lines change, so the two resting lines of the relating hexagram are read, the lower one above all:"
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
        (Some(place), _) => position(place),
        (None, Some(label)) => label,
        (None, None) => "judgement",
    };
    format!("- {}, {}, {part}{rank}: 「{}」 {}", text.hexagram, text.english_name, text.text, text.plain)
}

fn chart(chart: &ChartFacts) -> String {
    let with_role = |role| chart.lines.iter().find(|line| line.role == Some(role));
    let mut sentences = vec![format!("In the six-line method the hexagram belongs to the palace of {}.", chart.palace)];
    sentences.extend(with_role("世").map(|line| format!("Your own side is {}.", standing(line))));
    sentences.extend(with_role("应").map(|line| format!("The other side, or the matter, is {}.", standing(line))));
    if chart.moment.is_none() {
        sentences.push("The time of the casting is not known, so nothing is said of strength.".to_owned());
    }
    let moving = chart.lines.iter().filter_map(|line| Some(movement(line, line.becomes.as_ref()?)));
    let moving = moving.map(|sentence| format!("\n- {sentence}"));
    [sentences.join(" ")].into_iter().chain(moving).collect()
}

/// Returns place, nature and strength of a line.
fn standing(line: &LineFacts) -> String {
    let place = format!("the {}, {}", position(line.position), nature(line.nature));
    let Some(state) = &line.state else { return place };
    let weight = match Weight::of(state, line.clash_effect) {
        Weight::Strong => "on the whole strong",
        Weight::Even => "neither strong nor weak",
        Weight::Weak => "on the whole weak",
    };
    format!("{place}, {}: {weight}", conditions(state, line.clash_effect).join(", "))
}

fn conditions(state: &StateFacts, clash_effect: Option<&'static str>) -> Vec<&'static str> {
    let month = match state.strength {
        "旺" => "prosperous in the month",
        "相" => "supported by the month",
        "休" => "resting in the month",
        "囚" => "confined in the month",
        _ => "dead in the month",
    };
    let day = match state.day_effect {
        "生" => "fed by the day",
        "扶" => "backed by the day",
        "克" => "controlled by the day",
        "泄" => "drained by the day",
        _ => "spent on the day",
    };
    let mut conditions = vec![month, day];
    conditions.extend(state.is_void.then_some("void"));
    conditions.extend(state.is_month_broken.then_some("broken by the month"));
    conditions.extend(clash_effect.map(|effect| match effect {
        "暗动" => "stirred by the day",
        _ => "broken by the day",
    }));
    conditions
}

fn movement(line: &LineFacts, becomes: &BecomesFacts) -> String {
    let effect = match becomes.relation {
        "回头生" => "the new line feeds it, so this force probably lasts",
        "回头克" => "the new line controls it, so this force may not last",
        "化泄" => "it feeds the new line, so it may give more than it gets",
        "化耗" => "it controls the new line, so success may cost effort",
        _ => "the element stays the same, and so, on the whole, does its force",
    };
    let progress = match becomes.progress {
        Some("进神") => ", and it advances",
        Some(_) => ", and it retreats",
        None => "",
    };
    format!(
        "The {}, {}, becomes {}: {effect}{progress}.",
        position(line.position),
        nature(line.nature),
        nature(becomes.nature)
    )
}

fn position(position: u8) -> &'static str {
    let names = ["bottom line", "second line", "third line", "fourth line", "fifth line", "top line"];
    names.get(usize::from(position).saturating_sub(1)).copied().unwrap_or("")
}

fn nature(nature: NatureFacts) -> String {
    let kin = match nature.kin {
        "父母" => "Parents",
        "兄弟" => "Siblings",
        "官鬼" => "Officials",
        "妻财" => "Wealth",
        _ => "Children",
    };
    format!("{kin} ({} {})", nature.branch, nature.element)
}

/// Returns the trigrams of both sides, in the words of the question's topic.
fn sides(reading: &Reading, primary: &HexagramDescription) -> String {
    let (subject, other) = match topic::of(reading) {
        Topic::Career => ("For your work", "the workplace and its openings"),
        Topic::Love => ("For love", "the other person"),
        Topic::Health => ("For your health", "what acts on you from outside"),
        Topic::Wealth => ("For money", "the market"),
        Topic::Study => ("For your studies", "the subject and its examiners"),
        Topic::Family => ("For your family", "the others at home"),
        Topic::Travel => ("For the journey", "what you meet on the way"),
        Topic::Legal => ("For the dispute", "the other party and the judge"),
        Topic::Other => ("For what you ask", "what surrounds you"),
    };
    format!(
        "{subject}, the {} of {} below is like your own state, and the {} of {} above like {other}. Together: {}",
        primary.lower.attribute, primary.lower.image, primary.upper.attribute, primary.upper.image, primary.counsel,
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
