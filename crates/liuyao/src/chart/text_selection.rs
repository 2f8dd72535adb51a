//! The classical texts to read for a cast, by the seven rules of 朱熹 (易学启蒙).

use serde::{Serialize, Serializer};

use crate::{
    Locale,
    hexagram::{Cast, ClassicalText, Hexagram, Judgement, LineClassic},
};
use named_enum::named_enum;

named_enum! {
    /// A rule, named after the number of changing lines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SelectionRule {
        /// The judgement of the primary hexagram.
        NoneChanging = "none_changing",
        /// The changing line.
        OneChanging = "one_changing",
        /// Both changing lines, of which the upper is the main text.
        TwoChanging = "two_changing",
        /// Both judgements. The primary hexagram's is the main text if the bottom line changes.
        ThreeChanging = "three_changing",
        /// The two lines at rest of the relating hexagram, of which the lower is the main text.
        FourChanging = "four_changing",
        /// The line at rest of the relating hexagram.
        FiveChanging = "five_changing",
        /// The judgement of the relating hexagram; of 乾 and 坤 their text for six changing lines.
        SixChanging = "six_changing",
    }
}

named_enum! {
    /// The part of a hexagram's text.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SelectedPart {
        /// The text of the hexagram (卦辞).
        Judgement = "judgement",
        /// The text of a line (爻辞).
        Line = "line",
        /// The text for six changing lines, which only 乾 and 坤 have (用九, 用六).
        AllLines = "all_lines",
    }
}

/// The texts to read for a cast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextSelection {
    pub rule: SelectionRule,
    /// The main text first.
    pub texts: Vec<SelectedText>,
}

/// A text to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectedText {
    #[serde(serialize_with = "number")]
    pub hexagram: Hexagram,
    pub part: SelectedPart,
    /// The position of the line, 1 at the bottom.
    pub position: Option<u8>,
    pub is_main: bool,
}

impl TextSelection {
    pub fn of(cast: &Cast) -> Self {
        let (primary, changing) = (cast.primary(), cast.changing());
        let relating = cast.relating().unwrap_or(primary);
        let resting: Vec<u8> = (1..=6).filter(|position| !changing.contains(position)).collect();
        let [primary_text, relating_text] = [primary, relating].map(SelectedText::judgement);
        let (rule, texts) = match changing.as_slice() {
            [] => (SelectionRule::NoneChanging, vec![primary_text]),
            [_] => (SelectionRule::OneChanging, lines(primary, &changing)),
            [lower, upper] => (SelectionRule::TwoChanging, lines(primary, &[*upper, *lower])),
            [1, _, _] => (SelectionRule::ThreeChanging, vec![primary_text, relating_text]),
            [_, _, _] => (SelectionRule::ThreeChanging, vec![relating_text, primary_text]),
            [_, _, _, _] => (SelectionRule::FourChanging, lines(relating, &resting)),
            [_, _, _, _, _] => (SelectionRule::FiveChanging, lines(relating, &resting)),
            _ => (SelectionRule::SixChanging, vec![all_lines(primary).unwrap_or(relating_text)]),
        };
        let is_main = |(place, text)| SelectedText { is_main: place == 0, ..text };
        Self { rule, texts: texts.into_iter().enumerate().map(is_main).collect() }
    }

    /// Returns the judgement alone, for a hexagram whose changing lines are unknown.
    pub fn of_judgement(primary: Hexagram) -> Self {
        let judgement = SelectedText { is_main: true, ..SelectedText::judgement(primary) };
        Self { rule: SelectionRule::NoneChanging, texts: vec![judgement] }
    }

    /// The main text; none only if there are no texts at all.
    pub fn main(&self) -> Option<&SelectedText> {
        self.texts.first()
    }
}

impl SelectedText {
    pub fn text(&self) -> ClassicalText {
        self.line_classic().map_or_else(|| self.hexagram.classical_judgement(), LineClassic::text)
    }

    /// Returns the text in one plain sentence.
    pub fn plain(&self, locale: Locale) -> &'static str {
        self.line_classic().map_or_else(|| self.hexagram.plain_judgement(locale), |line| line.plain(locale))
    }

    /// Returns how the text judges, and the words by which it does so. Both scripts have the same number of characters.
    pub fn judgement_of(&self) -> Option<(Judgement, ClassicalText)> {
        let (judgement, simplified) = self.hexagram.judgement_at(match self.part {
            SelectedPart::Judgement => 0,
            SelectedPart::Line => self.position?,
            SelectedPart::AllLines => 7,
        })?;
        let text = self.text();
        let before = text.simplified.split_once(simplified)?.0.chars().count();
        let places: Vec<usize> = text.traditional.char_indices().map(|(place, _)| place).collect();
        let end = places.get(before + simplified.chars().count()).copied().unwrap_or(text.traditional.len());
        Some((judgement, ClassicalText { traditional: text.traditional.get(*places.get(before)?..end)?, simplified }))
    }

    /// Returns the texts of the line, or of 用九 or 用六; none for a judgement.
    pub fn line_classic(&self) -> Option<LineClassic> {
        match self.part {
            SelectedPart::Judgement => None,
            SelectedPart::Line => {
                let place = usize::from(self.position?).checked_sub(1)?;
                self.hexagram.line_classics().get(place).copied()
            }
            SelectedPart::AllLines => self.hexagram.all_changing_classic(),
        }
    }

    pub(super) fn judgement(hexagram: Hexagram) -> Self {
        Self { hexagram, part: SelectedPart::Judgement, position: None, is_main: false }
    }

    fn line(hexagram: Hexagram, position: u8) -> Self {
        Self { hexagram, part: SelectedPart::Line, position: Some(position), is_main: false }
    }
}

fn lines(hexagram: Hexagram, positions: &[u8]) -> Vec<SelectedText> {
    positions.iter().map(|position| SelectedText::line(hexagram, *position)).collect()
}

/// Writes a hexagram as its King Wen number.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn number<S: Serializer>(hexagram: &Hexagram, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(hexagram.number())
}

/// Returns the text for six changing lines, which 乾 and 坤 have.
fn all_lines(hexagram: Hexagram) -> Option<SelectedText> {
    let has_text = hexagram.all_changing_classic().is_some();
    has_text.then(|| SelectedText { part: SelectedPart::AllLines, ..SelectedText::judgement(hexagram) })
}
