//! `/api/v1/hexagrams`: the sixty-four hexagrams and their classical texts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    concurrency::lock::lock_unpoisoned,
    config::LimitsConfig,
    domain::divination::hexagram::{Hexagram, LineClassic, Trigram},
    error::{Code, Fault, Result},
    http::{
        body::RawValue,
        classic_response::{ClassicalTextShown, example_cast},
        endpoint::Handler,
        params::{Nothing, Parameter, Rules, parameters, whole_number},
        public_content::{PublicContent, PublicJson, PublicResource},
        request_context::RequestContext,
    },
    types::Locale,
};

parameters! {
    HexagramParams(fields) {
        number: HexagramNumber = fields.path("number", "The number in the order of King Wen, 1 to 64.");
    }
}

/// One of the sixty-four.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Hexagram)]
pub struct HexagramShown {
    /// In the order of King Wen, 1 to 64.
    #[schema(example = 3)]
    number: u8,
    #[schema(example = "䷂")]
    sign: &'static str,
    #[schema(example = "屯")]
    chinese_name: &'static str,
    /// Including its trigrams.
    #[schema(example = "水雷屯")]
    chinese_full_name: &'static str,
    #[schema(example = "zhūn")]
    pinyin: &'static str,
    #[schema(example = "Difficulty at the Beginning")]
    english_name: &'static str,
    upper: TrigramShown,
    lower: TrigramShown,
}

/// One of the eight.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Trigram)]
pub struct TrigramShown {
    #[schema(example = "☵")]
    sign: &'static str,
    #[schema(example = "坎")]
    chinese_name: &'static str,
    #[schema(example = "kǎn")]
    pinyin: &'static str,
    #[schema(example = "The Abysmal")]
    english_name: &'static str,
}

/// All hexagrams.
#[derive(Serialize, ToSchema)]
pub struct HexagramList {
    /// In the order of King Wen.
    items: Vec<HexagramSummary>,
}

/// A hexagram with its judgement.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HexagramSummary {
    #[serde(flatten)]
    hexagram: HexagramShown,
    /// The short name in traditional characters.
    #[schema(example = "屯")]
    traditional_name: &'static str,
    /// The judgement (卦辞), without the name before it.
    judgement: ClassicalTextShown,
    /// The judgement in one plain sentence, in the language of `Accept-Language`.
    #[schema(example = "万物初生艰难，前景亨通而眼下不宜远行，先守正、立根基、找帮手。")]
    plain: &'static str,
}

/// A hexagram with all its classical texts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HexagramTexts {
    #[serde(flatten)]
    summary: HexagramSummary,
    /// The commentary on the judgement (彖).
    commentary: ClassicalTextShown,
    /// The image (大象).
    image: ClassicalTextShown,
    /// The six lines, bottom up.
    lines: [LineTexts; 6],
    /// The text for six changing lines (用九, 用六). Only hexagrams 1 and 2 have one.
    all_lines: Option<LineTexts>,
}

/// The texts of a line.
#[derive(Serialize, ToSchema)]
pub struct LineTexts {
    #[schema(example = "初九")]
    label: &'static str,
    /// The text of the line (爻辞).
    text: ClassicalTextShown,
    /// The image of the line (小象).
    image: ClassicalTextShown,
    /// The text in one plain sentence, in the language of `Accept-Language`.
    #[schema(example = "起步时徘徊难进，宜安居守正，先把人心和班底建立起来。")]
    plain: &'static str,
}

impl From<Hexagram> for HexagramShown {
    fn from(hexagram: Hexagram) -> Self {
        Self {
            number: hexagram.number(),
            sign: hexagram.sign(),
            chinese_name: hexagram.chinese_name(),
            chinese_full_name: hexagram.chinese_full_name(),
            pinyin: hexagram.pinyin(),
            english_name: hexagram.english_name(),
            upper: hexagram.upper().into(),
            lower: hexagram.lower().into(),
        }
    }
}

impl From<Trigram> for TrigramShown {
    fn from(trigram: Trigram) -> Self {
        Self {
            sign: trigram.sign(),
            chinese_name: trigram.chinese_name(),
            pinyin: trigram.pinyin(),
            english_name: trigram.english_name(),
        }
    }
}

impl PublicResource for HexagramList {
    fn example() -> Option<Self> {
        Some(Self { items: vec![HexagramSummary::of(example_cast().primary(), Locale::Chinese)] })
    }
}

impl PublicResource for HexagramTexts {
    fn example() -> Option<Self> {
        Some(Self::of(example_cast().primary(), Locale::Chinese))
    }
}

impl HexagramSummary {
    fn of(hexagram: Hexagram, locale: Locale) -> Self {
        Self {
            hexagram: hexagram.into(),
            traditional_name: hexagram.traditional_name(),
            judgement: hexagram.classical_judgement().into(),
            plain: hexagram.plain_judgement(locale),
        }
    }
}

impl HexagramTexts {
    fn of(hexagram: Hexagram, locale: Locale) -> Self {
        Self {
            summary: HexagramSummary::of(hexagram, locale),
            commentary: hexagram.classical_commentary().into(),
            image: hexagram.classical_image().into(),
            lines: hexagram.line_classics().map(|line| LineTexts::of(line, locale)),
            all_lines: hexagram.all_changing_classic().map(|line| LineTexts::of(line, locale)),
        }
    }
}

impl LineTexts {
    fn of(line: LineClassic, locale: Locale) -> Self {
        Self { label: line.label(), text: line.text().into(), image: line.image().into(), plain: line.plain(locale) }
    }
}

/// The responses about hexagrams. Each is built on its first request and shared by all later ones.
#[derive(Clone, Default)]
pub struct HexagramPages(Arc<Mutex<HashMap<PageKey, PublicContent>>>);

/// A hexagram, or none for the list, and a language.
type PageKey = (Option<Hexagram>, Locale);

impl HexagramPages {
    pub fn list(&self) -> impl Handler<Nothing, PublicJson<HexagramList>> + use<> {
        let pages = self.clone();
        move |context: RequestContext, _: Nothing| {
            let locale = context.locale();
            let items = || Hexagram::all().map(|hexagram| HexagramSummary::of(hexagram, locale)).collect();
            let list = pages.page((None, locale), || PublicContent::new(&HexagramList { items: items() }));
            async move { Ok(list?.choose(&context.headers)) }
        }
    }

    pub fn texts(&self) -> impl Handler<HexagramParams, PublicJson<HexagramTexts>> + use<> {
        let pages = self.clone();
        move |context: RequestContext, params: HexagramParams| {
            let locale = context.locale();
            let texts = params.number.hexagram().and_then(|hexagram| {
                pages.page((Some(hexagram), locale), || PublicContent::new(&HexagramTexts::of(hexagram, locale)))
            });
            async move { Ok(texts?.choose(&context.headers)) }
        }
    }

    fn page(
        &self,
        key: (Option<Hexagram>, Locale),
        build: impl FnOnce() -> Result<PublicContent>,
    ) -> Result<PublicContent> {
        let mut pages = lock_unpoisoned(&self.0);
        if let Some(page) = pages.get(&key) {
            return Ok(page.clone());
        }
        let page = build()?;
        pages.insert(key, page.clone());
        Ok(page)
    }
}

/// The number of a hexagram, which may not exist.
pub struct HexagramNumber(i64);

impl HexagramNumber {
    /// # Errors
    /// `not_found` outside 1 to 64.
    fn hexagram(&self) -> Result<Hexagram> {
        let found = u8::try_from(self.0).ok().and_then(Hexagram::from_number);
        found.ok_or_else(|| Code::NotFound.into())
    }
}

impl Parameter for HexagramNumber {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, i64::MIN..=i64::MAX).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": 64, "example": 3 })
    }
}
