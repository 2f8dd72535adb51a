//! The offline interpreter: it describes the structure of a hexagram and responds immediately.
//!
//! Owns the wording of such an interpretation and gets all facts as plain data. Without a hexagram it asks for one
//! instead of inventing it. It never claims to be a language model, and every interpretation ends with its evidence.

mod chinese;
mod english;
mod topic;

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::types::Locale;

/// The input of an interpretation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub locale: Locale,
    /// The topic of the question, in the client's words: `career`, 感情, ….
    pub question_type: Option<String>,
    pub question: String,
    pub facts: HexagramFacts,
}

/// The known facts of the cast. Texts are in the locale of the reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HexagramFacts {
    pub primary: Option<HexagramDescription>,
    pub relating: Option<HexagramDescription>,
    pub nuclear: Option<HexagramDescription>,
    /// The changing lines from the bottom; `None` if the data does not say what changes.
    pub changing: Option<Vec<ChangingLine>>,
    /// The sources of the facts, one sentence each, without a full stop.
    pub evidence: Vec<String>,
    /// Values that were not used, one sentence each, without a full stop.
    pub conflicts: Vec<String>,
}

/// A hexagram with its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HexagramDescription {
    /// The King Wen number.
    pub number: u8,
    /// The Unicode sign.
    pub sign: String,
    /// Short, such as 屯.
    pub chinese_name: String,
    /// With the trigram images, such as 水雷屯.
    pub chinese_full_name: String,
    /// Pinyin of the short name, with tones.
    pub pinyin: String,
    pub english_name: String,
    /// One or two sentences.
    pub judgement: String,
    /// One clause without a full stop.
    pub image: String,
    pub upper: TrigramDescription,
    pub lower: TrigramDescription,
}

/// A trigram with its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrigramDescription {
    pub sign: String,
    pub chinese_name: String,
    pub pinyin: String,
    pub english_name: String,
    /// 水, water.
    pub image: String,
    /// 险陷, danger.
    pub attribute: String,
}

/// A line that turns into its opposite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangingLine {
    /// From 1 at the bottom to 6 at the top.
    pub position: u8,
    /// 初九; "bottom line".
    pub name: String,
    /// True if it changes from yang to yin, false if from yin to yang.
    pub is_from_yang: bool,
    /// One sentence.
    pub meaning: String,
}

/// Maximum characters quoted from a question.
const MAX_QUOTE_LENGTH: usize = 80;

/// Interprets the cast in words. Equal readings always yield equal text.
pub fn interpret(reading: &Reading) -> String {
    let paragraphs = match reading.locale {
        Locale::Chinese => chinese::paragraphs(reading),
        Locale::English => english::paragraphs(reading),
    };
    paragraphs.join("\n\n")
}

/// Returns the question shortened to one line; `None` if there is no question.
fn quoted(question: &str) -> Option<String> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let line: String = words.join(" ").chars().filter(|letter| !letter.is_control()).collect();
    if line.is_empty() {
        return None;
    }
    let mut quote: String = line.chars().take(MAX_QUOTE_LENGTH).collect();
    if quote.len() < line.len() {
        quote.push('…');
    }
    Some(quote)
}
