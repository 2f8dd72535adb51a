//! Anonymous snapshots of deleted sessions, kept for statistics.
//!
//! Keys are random and rows are stored in their order, so that neither reveals when or for whom a snapshot was taken. A
//! snapshot has a day but no time, and the interpretation time in tenths of a second, because an exact duration could be
//! matched in other tables. Question types are the client's own text, so unusual ones are stored as `other`.

use std::time::Duration;

use super::record::Session;
use crate::{
    domain::divination::hexagram::Hexagram,
    error::Result,
    store::Write,
    types::{TimeZone, random_bytes},
};

/// Question types that are too common to identify anybody.
const COMMON_TYPES: [&str; 36] = [
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

/// Writes the session's snapshot. Days follow the time zone `home`.
pub(super) fn insert_in(tx: &Write<'_>, home: &TimeZone, session: &Session) -> Result<()> {
    let interpretation = session.interpretation.as_ref();
    tx.execute(
        "insert into session_snapshots (id, question_type, method, lines, primary_hexagram, relating_hexagram, \
         nuclear_hexagram, day, is_interpreted, interpretation_tenths, model, points_spent) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        (
            random_bytes::<16>()?,
            session.question_type.as_deref().map(common_type),
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

/// Returns tenths of a second, capped at an hour so that no rare value identifies a session.
fn tenths(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis().div_ceil(100)).unwrap_or(u32::MAX).min(36_000)
}

fn common_type(label: &str) -> &'static str {
    let label = label.trim().to_lowercase();
    COMMON_TYPES.into_iter().find(|common| *common == label).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_durations_up_to_tenths_and_caps_them_at_an_hour() {
        for (milliseconds, expected) in
            [(0, 0), (1, 1), (100, 1), (101, 2), (3_599_900, 35_999), (3_600_000, 36_000), (3_600_001, 36_000)]
        {
            assert_eq!(tenths(Duration::from_millis(milliseconds)), expected, "{milliseconds} ms");
        }
        assert_eq!(tenths(Duration::MAX), 36_000);
    }

    #[test]
    fn stores_only_common_question_types() {
        for (label, kept) in
            [("career", "career"), (" Love ", "love"), ("事业", "事业"), ("my aunt Mei", "other"), ("", "other")]
        {
            assert_eq!(common_type(label), kept, "{label}");
        }
    }
}
