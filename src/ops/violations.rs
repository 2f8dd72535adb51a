//! Texts that were refused: who sent them, why, and the text with what was found masked.

use crate::{
    error::{Error, Result},
    store::Write,
    types::UserId,
};

/// A refusal to be remembered.
#[derive(Clone, Debug)]
pub struct Violation {
    pub user: UserId,
    pub content_type: &'static str,
    /// The type of the first word found.
    pub violation_type: String,
    pub words: Vec<String>,
    pub masked_text: String,
    /// Which service refused.
    pub provider: &'static str,
}

pub fn record_in(tx: &Write<'_>, violation: &Violation) -> Result<()> {
    tx.execute(
        "insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (
            violation.user.0,
            violation.content_type,
            &violation.violation_type,
            serde_json::to_string(&violation.words).map_err(Error::internal)?,
            &violation.masked_text,
            violation.provider,
            tx.now.0,
        ),
    )
    .map(drop)
}
