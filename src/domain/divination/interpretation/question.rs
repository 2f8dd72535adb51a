//! The question that a user asks about a casting.

use crate::{
    domain::divination::{chart::CastTime, hexagram::Cast},
    providers::llm::builtin::View,
    types::{JsonText, LanguageTag, Locale},
};

/// A question and the client's data about the casting.
#[derive(Clone, Debug)]
pub struct CastingQuestion {
    pub question_type: Option<String>,
    /// Empty if the user asked about the hexagram alone.
    pub question: String,
    pub divination_data: Option<JsonText<'static>>,
    /// The cast, if the service stores it. Otherwise it is read from the client's data.
    pub cast: Option<Cast>,
    /// The time and place of the cast, if known.
    pub cast_time: Option<CastTime>,
    /// The method's name in the API, if known.
    pub method: Option<&'static str>,
    pub locale: Locale,
    /// The region and script that the client prefers.
    pub tag: LanguageTag,
    /// The side from which the offline interpreter reads it.
    pub view: View,
}
