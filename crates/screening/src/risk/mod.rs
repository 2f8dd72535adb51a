//! Recognises questions on which no oracle may give a verdict: about a life, a crime, or what ruins people.
//!
//! The class is decided on the text as sent. It is neither stored nor shown to staff. `assets/risk` has the words.

mod model;
mod rules;
mod text;

#[cfg(test)]
mod tests;

use std::{ops::Range, sync::LazyLock};

use model::{Known, Model, is_within};
use rules::{Effect, Match, Rules};
use text::PlainText;

use named_enum::named_enum;

pub use text::{Script, is_pinyin, script_of};

named_enum! {
    /// The class of a question that needs help instead of a verdict. If a question has several, the first one counts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum RiskClass {
        /// A life is in danger now.
        Emergency = "emergency",
        /// Thoughts of suicide or of hurting oneself.
        SelfHarm = "self_harm",
        /// Sexual approaches to a child, or its abuse.
        Minor = "minor",
        /// Violence and threats against the asker or others.
        Violence = "violence",
        MissingPerson = "missing_person",
        /// To stop or replace a treatment.
        StoppingMedicine = "stopping_medicine",
        /// A crime that the asker wants to commit.
        Crime = "crime",
        /// Bets with money that is borrowed or needed.
        Gambling = "gambling",
    }
}

impl RiskClass {
    /// Returns true if moderation never refuses such a text and records no violation.
    pub const fn is_exempt_from_moderation(self) -> bool {
        matches!(self, Self::Emergency | Self::SelfHarm | Self::Minor | Self::Violence | Self::MissingPerson)
    }
}

/// The risk of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Risk {
    pub class: RiskClass,
    /// True for an emergency that the asker caused to hurt themselves.
    pub is_self_inflicted: bool,
}

const RULES: [&str; 2] =
    [include_str!("../../../../assets/risk/zh.txt"), include_str!("../../../../assets/risk/en.txt")];
/// The least score of a part of a long text, which lacks the words around it.
const OF_PART: f32 = 1.0;
const WEIGHTS: &str = include_str!("../../../../assets/risk/weights.tsv");

/// The rules and the classifier.
struct Recogniser {
    rules: Rules,
    model: Model,
}

/// Read at first use. A test holds that the files have no faults.
static RECOGNISER: LazyLock<Recogniser> =
    LazyLock::new(|| Recogniser { rules: Rules::read(&RULES).0, model: Model::read(WEIGHTS).unwrap_or_default() });

/// Returns the risk of a text; none for an ordinary question. Of a long text, the gravest risk of its parts counts, too.
pub fn classify(text: &str) -> Option<Risk> {
    let plain = PlainText::of(text);
    let matches = RECOGNISER.rules.matches(&plain);
    let known = RECOGNISER.model.known(&plain);
    let whole = risk_of(&(0..plain.units.len()), &known, &matches, 0.0);
    let parts = plain.parts().filter_map(|part| risk_of(&part, &known, &matches, OF_PART));
    whole.into_iter().chain(parts).min_by_key(|risk| risk.class)
}

/// Returns the risk of a part of a text, if its score is above this one.
fn risk_of(part: &Range<usize>, known: &[Known], matches: &[Match], least: f32) -> Option<Risk> {
    let mut effects: Vec<Effect> = Vec::new();
    for found in matches.iter().filter(|found| is_within(&found.units, part)) {
        if !effects.contains(&found.effect) {
            effects.push(found.effect);
        }
    }
    if effects.contains(&Effect::Harmless) && !effects.iter().any(|effect| effect.names_class()) {
        return None;
    }
    let scores = RECOGNISER.model.scores(part, known, &effects);
    let score = |class: RiskClass| scores[class as usize];
    let class = RiskClass::ALL.into_iter().max_by(|one, other| score(*one).total_cmp(&score(*other)))?;
    if score(class) <= least {
        return None;
    }
    let has_begun = effects.contains(&Effect::BegunSelfHarm) && !effects.contains(&Effect::Context);
    let is_of_self_harm =
        |effect: &Effect| matches!(effect, Effect::BegunSelfHarm | Effect::Likely(RiskClass::SelfHarm));
    Some(match class {
        // What has begun is an emergency, also if the words are mostly about the wish to die.
        RiskClass::SelfHarm if has_begun => Risk { class: RiskClass::Emergency, is_self_inflicted: true },
        RiskClass::Emergency => Risk { class, is_self_inflicted: effects.iter().any(is_of_self_harm) },
        _ => Risk { class, is_self_inflicted: false },
    })
}

/// Returns a text in simplified characters and lower case, without disguises.
pub fn comparison_form(text: &str) -> String {
    PlainText::of(text).spaced()
}

/// Returns the risk of a question and its type.
pub fn classify_question(question: &str, question_type: Option<&str>) -> Option<Risk> {
    let of_type = question_type.and_then(classify);
    classify(question).into_iter().chain(of_type).min_by_key(|risk| risk.class)
}
