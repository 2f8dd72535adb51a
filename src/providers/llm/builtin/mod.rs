//! The offline interpreter: it quotes the classical texts of a casting, explains its chart and responds immediately.
//!
//! Owns the wording of such an interpretation and gets all facts as plain data. Without a hexagram it asks for one
//! instead of inventing it. It never claims to be a language model. Every sentence about a casting names something that
//! is particular to it.

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
    /// The classical texts to read; none if no hexagram is known.
    pub classic: Option<ClassicFacts>,
    /// The method, by its name in the API, if the service knows it.
    pub method: Option<&'static str>,
    /// The chart, if the lines are known.
    pub chart: Option<ChartFacts>,
}

/// The classical texts to read for a cast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassicFacts {
    /// The name of the rule that selected the texts; none if the changing lines are unknown.
    pub rule: Option<&'static str>,
    /// The main text first.
    pub texts: Vec<ClassicText>,
}

/// A classical text with its plain sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassicText {
    /// The King Wen number.
    pub hexagram: u8,
    /// The short Chinese name of the hexagram.
    pub chinese_name: &'static str,
    pub english_name: &'static str,
    /// 九四 or 用九; none for the judgement.
    pub label: Option<&'static str>,
    /// The position of the line, 1 at the bottom.
    pub position: Option<u8>,
    pub is_main: bool,
    /// The classical text in simplified characters.
    pub text: &'static str,
    /// One sentence in the locale of the reading.
    pub plain: &'static str,
}

/// The chart of a cast, in the names of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartFacts {
    pub moment: Option<MomentFacts>,
    /// The trigram of the palace.
    pub palace: &'static str,
    pub lines: Vec<LineFacts>,
}

/// The time of a cast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentFacts {
    /// `2026-01-15 23:30` where the user is.
    pub local: String,
    /// Year, month, day and hour.
    pub pillars: [String; 4],
    pub void: [&'static str; 2],
}

/// A line of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFacts {
    /// 1 at the bottom.
    pub position: u8,
    pub nature: NatureFacts,
    /// 世 or 应.
    pub role: Option<&'static str>,
    /// The state at the time of the cast; none if the time is unknown.
    pub state: Option<StateFacts>,
    /// 暗动 or 日破.
    pub clash_effect: Option<&'static str>,
    /// The line into which it changes.
    pub becomes: Option<BecomesFacts>,
}

/// Kin, branch and element of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatureFacts {
    pub kin: &'static str,
    pub branch: &'static str,
    pub element: &'static str,
}

/// The state of a line at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateFacts {
    /// 旺相休囚死.
    pub strength: &'static str,
    pub is_void: bool,
    pub is_month_broken: bool,
    /// 生扶克泄耗, the effect of the day.
    pub day_effect: &'static str,
}

/// The line into which a changing line turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BecomesFacts {
    pub nature: NatureFacts,
    /// 回头生, 回头克, 化泄, 化耗 or 比和.
    pub relation: &'static str,
    /// 进神 or 退神.
    pub progress: Option<&'static str>,
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
    /// One or two sentences of our own; not the classical judgement.
    pub counsel: String,
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
}

/// The strength of a line, summed up from its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Strong,
    Even,
    Weak,
}

impl Weight {
    /// Weighs month and day, and what takes a line's force away.
    fn of(state: &StateFacts, clash_effect: Option<&str>) -> Self {
        let month = if matches!(state.strength, "旺" | "相") { 1 } else { -1 };
        let day = match state.day_effect {
            "生" | "扶" => 1,
            "克" => -1,
            _ => 0,
        };
        let losses = [state.is_void, state.is_month_broken, clash_effect == Some("日破")];
        let losses: i32 = losses.into_iter().map(i32::from).sum();
        match (month + day - losses).signum() {
            1 => Self::Strong,
            0 => Self::Even,
            _ => Self::Weak,
        }
    }
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
