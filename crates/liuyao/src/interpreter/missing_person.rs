//! The casting about a missing person: the tradition of the line that stands for them, without verdict, time or place.
//!
//! It follows the service's words about the police. A person is never read as a lost object, so 妻财 is not used.

use super::{Reading, phrases::Phrases, question::Person};
use crate::chart::{ChartLine, Kin, LineRole};

/// Returns the paragraph; empty if no hexagram is known.
pub(super) fn paragraph(reading: &Reading) -> String {
    let words = Phrases(reading.written);
    let (Some(primary), Some(chart)) = (reading.facts.primary, &reading.chart) else { return String::new() };
    let kin = Person::named_in(&reading.question).map(Person::kin).filter(|kin| *kin != Kin::Wealth);
    let is_theirs = |line: &&ChartLine| match kin {
        Some(kin) => line.nature.kin == kin,
        None => line.role == Some(LineRole::Object),
    };
    let who = match kin {
        Some(kin) => words.say("missing.kin", &[("kin", words.term("kin", kin.name()))]),
        None => words.get("missing.other").to_owned(),
    };
    let seen = match chart.lines.iter().find(is_theirs) {
        Some(line) => {
            let key = if line.becomes.is_some() { "missing.moves" } else { "missing.rests" };
            let position = words.term("position", &line.position.to_string());
            words.say(key, &[("position", position), ("branch", words.term("branch", line.nature.branch.name()))])
        }
        None => words.get("missing.hidden").to_owned(),
    };
    words.say(
        "missing",
        &[
            ("sign", primary.sign()),
            ("number", &primary.number().to_string()),
            ("english", primary.english_name()),
            ("who", &who),
            ("seen", &seen),
        ],
    )
}
