//! The offline interpreter: it quotes the classical texts of a casting, assesses its chart for the question, and answers in
//! the sense in which the question was asked.
//!
//! Phrases are in `assets/interpreter/phrases.tsv`, in simplified Chinese and English; traditional characters are converted
//! by words. Without a hexagram it asks for one instead of inventing it. It never claims to be a language model.

mod assessment;
mod missing_person;
mod phrases;
mod question;
mod restatement;
mod writing;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use assessment::{Assessment, Evidence, Outlook, Reason, Timing, TimingRule, Weight, assess};
pub use question::{Aim, Matter, Person, Sought, Topic};

use crate::{ChineseScript, Locale, chart::Chart, hexagram::Facts, script};

/// The input of an interpretation.
#[derive(Clone, Debug)]
pub struct Reading {
    pub written: Written,
    /// The topic of the question, in the client's words: `career`, 感情, ….
    pub question_type: Option<String>,
    pub question: String,
    /// The asker's gender, if their profile names it.
    pub asker: Option<AskerGender>,
    pub facts: Facts,
    /// The method, by its name in the API, if the service knows it.
    pub method: Option<&'static str>,
    /// The chart; none if no hexagram is known. Of a hexagram whose changing lines are unknown, that of its lines at rest.
    pub chart: Option<Chart>,
    pub view: View,
    /// True for a question about a missing person, who is never read as a lost object.
    pub is_about_missing_person: bool,
}

/// The side from which a casting is read. Each gives another text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// The line for the matter, with evidence.
    #[default]
    Matter,
    /// The way from one hexagram to the next.
    Images,
    /// Each line, from the bottom.
    Lines,
}

impl View {
    pub const ALL: [Self; 3] = [Self::Matter, Self::Images, Self::Lines];
}

/// The language and script of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Written {
    #[default]
    Simplified,
    Traditional,
    English,
}

impl Written {
    pub const fn locale(self) -> Locale {
        match self {
            Self::Simplified | Self::Traditional => Locale::Chinese,
            Self::English => Locale::English,
        }
    }

    /// Returns the script of Chinese.
    pub const fn script(self) -> Option<ChineseScript> {
        match self {
            Self::Simplified => Some(ChineseScript::Simplified),
            Self::Traditional => Some(ChineseScript::Traditional),
            Self::English => None,
        }
    }

    /// Returns a text of ours in this script.
    pub fn convert(self, text: &str) -> String {
        match self {
            Self::Traditional => script::to_traditional(text),
            Self::Simplified | Self::English => script::without_marks(text),
        }
    }
}

/// The asker's gender, which decides which line stands for a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AskerGender {
    Male,
    Female,
}

/// Interprets the cast in words. Equal readings always yield equal text.
pub fn interpret(reading: &Reading) -> String {
    let text = if reading.is_about_missing_person {
        missing_person::paragraph(reading)
    } else {
        writing::paragraphs(reading).join("\n\n")
    };
    reading.written.convert(&text)
}

/// Returns the interpreter's view of question and chart as data; none without a chart.
pub fn analysis(reading: &Reading) -> Option<serde_json::Value> {
    let matter = Matter::of(reading);
    let assessment = assess(reading.chart.as_ref()?, &matter, reading.facts.cast.is_some())?;
    Some(writing::analysis(reading, &matter, &assessment))
}
