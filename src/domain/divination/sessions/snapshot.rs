//! What stays of a deleted session: what may be counted, and nothing by which it could be found again.
//!
//! A snapshot's key is drawn for it alone and its rows stand in that order, so that neither says when or for whom it
//! was taken. It has a day and no time, and the speed of the interpretation in tenths of a second, because an exact
//! duration would be found in other tables. A question type is the client's own text: unless it is one of the usual
//! ones it is kept as `other`.

use std::time::Duration;

use crate::{
    domain::divination::{hexagram::Hexagram, sessions::Session},
    error::Result,
    store::Write,
    types::{TimeZone, random_bytes},
};

/// Question types that tell nobody apart.
const USUAL_TYPES: [&str; 36] = [
    "career",
    "work",
    "job",
    "business",
    "wealth",
    "money",
    "finance",
    "love",
    "relationship",
    "marriage",
    "family",
    "health",
    "study",
    "exam",
    "travel",
    "legal",
    "decision",
    "daily",
    "general",
    "other",
    "事业",
    "工作",
    "财运",
    "感情",
    "爱情",
    "姻缘",
    "婚姻",
    "家庭",
    "健康",
    "学业",
    "考试",
    "出行",
    "官司",
    "决策",
    "综合",
    "其他",
];

/// Writes the session's snapshot. Days are those of `home`.
pub(super) fn take_in(tx: &Write<'_>, home: &TimeZone, session: &Session) -> Result<()> {
    let interpretation = session.interpretation.as_ref();
    tx.execute(
        "insert into session_snapshots (id, question_type, method, lines, primary_hexagram, relating_hexagram, \
         nuclear_hexagram, day, is_interpreted, interpretation_tenths, model, points_spent) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        (
            random_bytes::<16>()?,
            session.question_type.as_deref().map(usual_type),
            session.method.name(),
            session.cast.lines().to_string(),
            session.cast.primary().number(),
            session.cast.relating().map(Hexagram::number),
            session.cast.nuclear().number(),
            home.today(session.created_at).to_string(),
            interpretation.is_some(),
            interpretation.map(|interpreted| tenths(interpreted.duration)),
            interpretation.map(|interpreted| &interpreted.model),
            session.points_spent,
        ),
    )
    .map(drop)
}

/// Up to an hour, so that no value stands alone.
fn tenths(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis().div_ceil(100)).unwrap_or(u32::MAX).min(36_000)
}

fn usual_type(label: &str) -> &'static str {
    let label = label.trim().to_lowercase();
    USUAL_TYPES.into_iter().find(|usual| *usual == label).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_usual_question_types_are_kept() {
        for (label, kept) in
            [("career", "career"), (" Love ", "love"), ("事业", "事业"), ("my aunt Mei", "other"), ("", "other")]
        {
            assert_eq!(usual_type(label), kept, "{label}");
        }
    }
}
