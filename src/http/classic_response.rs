//! The classical texts of a casting in responses, and the selection to read.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::divination::{
        chart::{SelectedPart, SelectedText, SelectionRule, TextSelection},
        hexagram::{Cast, ClassicalText, Line, LineClassic, Lines},
    },
    http::openapi::enums::{SelectedPartName, SelectionRuleName},
    providers::llm::builtin::Written,
};

/// A classical text in both scripts.
#[derive(Serialize, ToSchema)]
#[schema(as = ClassicalText)]
pub struct ClassicalTextShown {
    #[schema(example = "元亨，利貞。勿用有攸往，利建侯。")]
    traditional: &'static str,
    #[schema(example = "元亨，利贞。勿用有攸往，利建侯。")]
    simplified: &'static str,
}

/// The classical texts of a casting.
#[derive(Serialize, ToSchema)]
#[schema(example = json!(Classic::of(example_cast(), Written::Simplified)))]
pub struct Classic {
    /// The judgement (卦辞) of the primary hexagram.
    judgement: ClassicalTextShown,
    /// The line texts (爻辞) of the primary hexagram, bottom up.
    lines: [ClassicalTextShown; 6],
    reading: TextSelectionShown,
}

/// The texts to read, by the seven rules of 朱熹.
#[derive(Serialize, ToSchema)]
#[schema(as = TextSelection)]
pub struct TextSelectionShown {
    #[schema(value_type = SelectionRuleName)]
    rule: SelectionRule,
    /// The main text first.
    texts: Vec<SelectedTextShown>,
}

/// A text to read.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SelectedText)]
pub struct SelectedTextShown {
    /// The number of the hexagram, of the primary or the relating one.
    #[schema(example = 3)]
    hexagram: u8,
    #[schema(value_type = SelectedPartName)]
    part: SelectedPart,
    /// The position of the line, 1 at the bottom. Null for other parts.
    #[schema(example = 6)]
    position: Option<u8>,
    #[schema(example = true)]
    is_main: bool,
    /// The name of the line, or 用九 or 用六. Null for a judgement.
    #[schema(example = "上六")]
    label: Option<&'static str>,
    text: ClassicalTextShown,
    /// The text in one plain sentence, in the user's language and script.
    #[schema(example = "骑着马徘徊不进，泪中带血，困到这一步难以长久。")]
    plain: String,
}

impl From<ClassicalText> for ClassicalTextShown {
    fn from(text: ClassicalText) -> Self {
        Self { traditional: text.traditional, simplified: text.simplified }
    }
}

impl Classic {
    pub fn of(cast: Cast, written: Written) -> Self {
        let (primary, selection) = (cast.primary(), TextSelection::of(&cast));
        Self {
            judgement: primary.classical_judgement().into(),
            lines: primary.line_classics().map(|line| line.text().into()),
            reading: TextSelectionShown {
                rule: selection.rule,
                texts: selection.texts.into_iter().map(|text| SelectedTextShown::of(text, written)).collect(),
            },
        }
    }
}

impl SelectedTextShown {
    fn of(selected: SelectedText, written: Written) -> Self {
        Self {
            hexagram: selected.hexagram.number(),
            part: selected.part,
            position: selected.position,
            is_main: selected.is_main,
            label: selected.line_classic().map(LineClassic::label),
            text: selected.text().into(),
            plain: written.convert(selected.plain(written.locale())),
        }
    }
}

/// Returns the casting of the examples in the API document: 屯, whose top line changes.
pub fn example_cast() -> Cast {
    use Line::{OldYin, YoungYang, YoungYin};
    Cast::from_lines(Lines::new([YoungYang, YoungYin, YoungYin, YoungYin, YoungYang, OldYin]))
}
