//! The offline interpreter: it quotes the classical texts of a casting, explains its chart and responds immediately.
//!
//! Owns the wording of such an interpretation and gets all facts as plain data. Without a hexagram it asks for one
//! instead of inventing it. It never claims to be a language model. Every sentence about a casting names something that
//! is particular to it.

mod assessment;
mod auspice;
mod chinese;
mod english;
mod missing_person;
mod topic;
mod vocabulary;

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::{Branch, Element, Locale};

/// The input of an interpretation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub locale: Locale,
    /// The topic of the question, in the client's words: `career`, 感情, ….
    pub question_type: Option<String>,
    pub question: String,
    /// The asker's gender, if their profile names it.
    pub asker: Option<AskerGender>,
    pub facts: HexagramFacts,
    /// The classical texts to read; none if no hexagram is known.
    pub classic: Option<ClassicFacts>,
    /// The method, by its name in the API, if the service knows it.
    pub method: Option<&'static str>,
    /// The chart; none if no hexagram is known.
    pub chart: Option<ChartFacts>,
    /// Body and use, for castings by time or numbers.
    pub body_and_use: Option<BodyAndUseFacts>,
    pub missing_person: Option<MissingPerson>,
}

/// The facts about a question about a missing person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPerson {
    /// The question in lower case and simplified characters.
    pub question: String,
    pub written: Written,
}

/// The language and script of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Written {
    #[default]
    Simplified,
    Traditional,
    English,
}

/// The asker's gender, which decides which line stands for a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskerGender {
    Male,
    Female,
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
    pub element: Element,
    /// `pure`, `first`, … `fifth`, `wandering` or `returning`.
    pub stage: &'static str,
    /// 六冲 or 六合, of the primary and of the relating hexagram.
    pub pattern: Option<&'static str>,
    pub relating_pattern: Option<&'static str>,
    /// One for each trigram that repeats or reverses.
    pub echoes: Vec<EchoFacts>,
    /// Bottom up.
    pub lines: Vec<LineFacts>,
}

/// A trigram that repeats or reverses by the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoFacts {
    pub is_upper: bool,
    /// 伏吟, 卦反吟 or 爻反吟.
    pub kind: &'static str,
}

/// The time of a cast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentFacts {
    /// `2026-01-15 23:30` where the user is.
    pub local: String,
    /// Year, month, day and hour.
    pub pillars: [String; 4],
    pub void: [Branch; 2],
    pub month: Branch,
    pub day: Branch,
    /// The first day of each branch after the day of the cast, in the order of the branches.
    pub next_days: [MonthDay; 12],
}

/// A day of the year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonthDay {
    pub month: i8,
    pub day: i8,
}

/// A line of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFacts {
    /// 1 at the bottom.
    pub position: u8,
    pub nature: NatureFacts,
    /// 青龙, 朱雀, 勾陈, 螣蛇, 白虎 or 玄武; none if the time is unknown.
    pub spirit: Option<&'static str>,
    /// 世 or 应.
    pub role: Option<&'static str>,
    /// The state at the time of the cast; none if the time is unknown.
    pub state: Option<StateFacts>,
    /// 暗动 or 日破.
    pub clash_effect: Option<&'static str>,
    /// The line of a missing kin that is hidden under this one.
    pub hidden: Option<HiddenFacts>,
    /// The line into which it changes.
    pub becomes: Option<BecomesFacts>,
}

/// Kin and branch of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatureFacts {
    pub kin: &'static str,
    pub branch: Branch,
}

/// The state of a line at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct StateFacts {
    /// 旺相休囚死.
    pub strength: &'static str,
    pub is_void: bool,
    pub is_month_broken: bool,
    /// 生扶克泄耗, the effect of the day.
    pub day_effect: &'static str,
    pub is_day_combination: bool,
    /// 长生, 帝旺, 墓 or 绝, by the day.
    pub growth_stage: Option<&'static str>,
}

/// A hidden line (伏神).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenFacts {
    pub nature: NatureFacts,
    pub state: Option<StateFacts>,
}

/// The line into which a changing line turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BecomesFacts {
    pub nature: NatureFacts,
    pub state: Option<StateFacts>,
    /// 回头生, 回头克, 化泄, 化耗 or 比和.
    pub relation: &'static str,
    /// 进神 or 退神.
    pub progress: Option<&'static str>,
    pub is_clash: bool,
    pub is_combination: bool,
}

/// Body (体) and use (用) of a casting by time or numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyAndUseFacts {
    pub body: TrigramFacts,
    pub use_trigram: ActingFacts,
    /// The trigrams of the nuclear hexagram, the lower first.
    pub nuclear: [ActingFacts; 2],
    /// The trigram into which the use changes.
    pub changed: ActingFacts,
}

/// A trigram with its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrigramFacts {
    pub chinese_name: &'static str,
    pub pinyin: &'static str,
    pub element: Element,
}

/// A trigram that acts on the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActingFacts {
    pub trigram: TrigramFacts,
    /// 生体, 体生, 克体, 体克 or 比和.
    pub relation: &'static str,
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
    /// True if something was assumed to read the data, so that a reading must name its sources.
    #[serde(skip)]
    pub has_assumptions: bool,
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

/// Maximum characters quoted from a question.
const MAX_QUOTE_LENGTH: usize = 80;

/// Interprets the cast in words. Equal readings always yield equal text.
pub fn interpret(reading: &Reading) -> String {
    if let Some(missing) = &reading.missing_person {
        return missing_person::paragraph(reading, missing);
    }
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
