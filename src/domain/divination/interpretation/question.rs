//! The question that a user asks about a casting.

use crate::types::{JsonText, Locale};

/// A question and the client's data about the casting.
#[derive(Clone, Debug)]
pub struct Question {
    pub question_type: Option<String>,
    /// Empty if the user asked about the hexagram alone.
    pub question: String,
    pub divination_data: Option<JsonText<'static>>,
    pub locale: Locale,
}
