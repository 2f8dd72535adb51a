//! Anonymous snapshots of deleted sessions, kept for statistics.
//!
//! Keys are random and rows are stored in their order, so that neither reveals when or for whom a snapshot was taken. A
//! snapshot has a day but no time, and the interpretation time in tenths of a second, because an exact duration could be
//! matched in other tables. Question types are the client's own text, so unusual ones are stored as `other`.
//!
//! Only counts are read, of at least [`LEAST_COUNT`] snapshots. Each count is of one month, so that no two of them differ
//! by a few snapshots.

use std::{collections::BTreeMap, time::Duration};

use super::record::Session;
use crate::{
    core::Core,
    domain::divination::hexagram::Hexagram,
    error::Result,
    store::Write,
    types::{TimeZone, named_enum, random_bytes},
};

/// The smallest count that is shown.
pub const LEAST_COUNT: i64 = 10;

named_enum! {
    /// The property by which snapshots are counted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SnapshotProperty {
        Month = "month",
        QuestionType = "question_type",
        Method = "method",
        PrimaryHexagram = "primary_hexagram",
        ChangingLines = "changing_lines",
    }
}

/// The number of snapshots of a month with the same value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotCount {
    /// Such as `2026-01`.
    pub month: String,
    pub property: SnapshotProperty,
    /// The type, the method, the hexagram's number, or the positions of the changing lines from the bottom, such as `1,4`.
    /// Empty for the month itself, for no type and for no changing line.
    pub value: String,
    pub count: i64,
}

/// Counts the snapshots by each property, month by month, and leaves out small counts. Reads all snapshots.
///
/// # Errors
/// Storage errors.
pub fn counts(core: &Core) -> Result<Vec<SnapshotCount>> {
    let mut counts: BTreeMap<(String, SnapshotProperty, String), i64> = BTreeMap::new();
    core.store.read(|tx| {
        tx.each(
            "select substr(day, 1, 7) as month, coalesce(question_type, ''), method, primary_hexagram, lines, count(*) \
             from session_snapshots group by 1, 2, 3, 4, 5",
            (),
            |row| {
                let (month, count): (String, i64) = (row.get(0)?, row.get(5)?);
                let hexagram: i64 = row.get(3)?;
                for (property, value) in [
                    (SnapshotProperty::Month, String::new()),
                    (SnapshotProperty::QuestionType, row.get(1)?),
                    (SnapshotProperty::Method, row.get(2)?),
                    (SnapshotProperty::PrimaryHexagram, format!("{hexagram:02}")),
                    (SnapshotProperty::ChangingLines, changing_lines(&row.get::<String>(4)?)),
                ] {
                    *counts.entry((month.clone(), property, value)).or_default() += count;
                }
                Ok(())
            },
        )
    })?;
    let shown = counts.into_iter().filter(|(_, count)| *count >= LEAST_COUNT);
    Ok(shown.map(|((month, property, value), count)| SnapshotCount { month, property, value, count }).collect())
}

/// Returns the positions of old lines, which change, from the bottom.
fn changing_lines(lines: &str) -> String {
    let changing = lines.chars().zip(1..).filter(|(line, _)| matches!(line, '6' | '9'));
    changing.map(|(_, position): (char, u8)| position.to_string()).collect::<Vec<_>>().join(",")
}

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
