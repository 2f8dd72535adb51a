//! The newest events of the server's log, for people without access to its standard error.
//!
//! The events are those that the log shows, so they hold no secret and no personal text. They wait in memory and are
//! written twice a second to the file of the network log, where commands find them too. The oldest are deleted.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::Mutex,
};

use super::network_log::NetworkLog;
use crate::{
    concurrency::lock::lock_unpoisoned,
    error::{Error, Result},
    metrics::Counter,
    store::{Read, Write},
    types::{Timestamp, named_enum},
};

/// Events that are kept.
pub const CAPACITY: u32 = 10_000;
/// Events that wait in memory. Further ones are dropped and counted.
const QUEUE: usize = 5000;
/// Rows in one write, and in one read of a search.
const BATCH_SIZE: u32 = 1000;
/// The longest text of an event, in characters.
const MAX_TEXT: usize = 4000;

named_enum! {
    /// The severity of an event, most severe first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum LogLevel {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
        Trace = "trace",
    }
}

/// An event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    pub at: Timestamp,
    pub level: LogLevel,
    /// The module that logged it.
    pub target: String,
    pub message: String,
    /// Values by name.
    pub fields: BTreeMap<String, String>,
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLogEvent {
    pub id: i64,
    pub event: LogEvent,
}

/// The events that are not written yet.
#[derive(Debug, Default)]
pub struct LogBuffer {
    waiting: Mutex<VecDeque<LogEvent>>,
    /// Events that came faster than the disk took them.
    pub dropped: Counter,
}

impl LogBuffer {
    /// Queues an event, cut to a bounded length.
    pub fn record(&self, mut event: LogEvent) {
        shorten(&mut event.message);
        event.fields.values_mut().for_each(shorten);
        let mut waiting = lock_unpoisoned(&self.waiting);
        if waiting.len() < QUEUE {
            waiting.push_back(event);
        } else {
            self.dropped.add(1);
        }
    }
}

fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(end);
        text.push('…');
    }
}

/// Writes all queued events and deletes the oldest beyond the capacity. Blocks.
///
/// # Errors
/// Storage errors; the events of the failed write are lost.
pub fn flush(buffer: &LogBuffer, log: &NetworkLog) -> Result<()> {
    let mut waiting: Vec<_> = mem::take(&mut *lock_unpoisoned(&buffer.waiting)).into();
    let mut outcome = Ok(());
    while !waiting.is_empty() {
        let rest = waiting.split_off(waiting.len().min(BATCH_SIZE as usize));
        outcome = outcome.and(log.store().write(move |tx| insert_in(tx, &waiting)).wait());
        waiting = rest;
    }
    outcome
}

fn insert_in(tx: &Write<'_>, events: &[LogEvent]) -> Result<()> {
    for event in events {
        let fields = serde_json::to_string(&event.fields).map_err(Error::internal)?;
        tx.execute(
            "insert into server_log (at, level, target, message, fields) values (?1, ?2, ?3, ?4, ?5)",
            (event.at.0, event.level.name(), &event.target, &event.message, fields),
        )?;
    }
    let sql = "delete from server_log where id <= (select max(id) from server_log) - ?1";
    tx.execute(sql, [CAPACITY]).map(drop)
}

/// Deletes all stored events. Blocks.
///
/// # Errors
/// Storage errors.
pub fn clear(log: &NetworkLog) -> Result<()> {
    log.store().write(|tx| tx.execute("delete from server_log", ())).wait().map(drop)
}

/// The conditions that an event must meet.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    /// The least severe level.
    pub level: Option<LogLevel>,
    /// The beginning of the module's path, with or without the program's name.
    pub target: Option<String>,
    /// A part of the message, of a value or of the name of a field, in any case.
    pub text: Option<String>,
    pub request_id: Option<String>,
    pub trace_id: Option<String>,
    /// Only events with a smaller id.
    pub before: Option<i64>,
}

impl LogQuery {
    fn is_met(&self, event: &LogEvent) -> bool {
        let has_field = |name: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| event.fields.get(name).is_some_and(|value| value == wanted))
        };
        self.level.is_none_or(|level| event.level <= level)
            && self.target.as_ref().is_none_or(|target| has_target(&event.target, target))
            && has_field("request_id", &self.request_id)
            && has_field("trace_id", &self.trace_id)
            && self.text.as_ref().is_none_or(|text| contains(event, &text.to_lowercase()))
    }
}

fn has_target(path: &str, wanted: &str) -> bool {
    let begins = |path: &str| path.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    begins(path) || path.split_once("::").is_some_and(|(_, below)| begins(below))
}

fn contains(event: &LogEvent, text: &str) -> bool {
    event.message.to_lowercase().contains(text)
        || event.fields.iter().any(|(name, value)| format!("{name}={value}").to_lowercase().contains(text))
}

/// The found events, and the id to continue before.
#[derive(Clone, Debug, Default)]
pub struct FoundLogEvents {
    /// Newest first.
    pub events: Vec<StoredLogEvent>,
    /// Nothing if there are no further ones.
    pub next: Option<i64>,
}

/// Searches the stored events, newest first. Reads at most [`CAPACITY`] rows.
///
/// # Errors
/// Storage errors.
pub fn search(log: &NetworkLog, query: &LogQuery, limit: usize) -> Result<FoundLogEvents> {
    let mut found = FoundLogEvents::default();
    let mut before = query.before.unwrap_or(i64::MAX);
    loop {
        let rows = log.read(|tx| list_before_in(tx, before))?;
        let Some(last) = rows.last() else { return Ok(found) };
        before = last.id;
        for row in rows.into_iter().filter(|row| query.is_met(&row.event)) {
            if found.events.len() == limit {
                found.next = found.events.last().map(|last| last.id);
                return Ok(found);
            }
            found.events.push(row);
        }
    }
}

fn list_before_in(tx: &Read<'_>, before: i64) -> Result<Vec<StoredLogEvent>> {
    tx.all(
        "select id, at, level, target, message, fields from server_log where id < ?1 order by id desc limit ?2",
        (before, BATCH_SIZE),
        |row| {
            let (level, fields): (String, String) = (row.get(2)?, row.get(5)?);
            let event = LogEvent {
                at: Timestamp(row.get(1)?),
                level: LogLevel::from_name(&level).unwrap_or(LogLevel::Info),
                target: row.get(3)?,
                message: row.get(4)?,
                fields: serde_json::from_str(&fields).unwrap_or_default(),
            };
            Ok(StoredLogEvent { id: row.get(0)?, event })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(target: &str, fields: &[(&str, &str)]) -> LogEvent {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (target, message) = (target.to_owned(), "A job failed".to_owned());
        LogEvent { at: Timestamp(1), level: LogLevel::Warn, target, message, fields }
    }

    #[test]
    fn filters_by_level_target_text_and_ids() {
        let event = event("yarrow::http::guard", &[("request_id", "r1"), ("status", "503")]);
        let is_met = |query: LogQuery| query.is_met(&event);
        let level = |level| LogQuery { level: Some(level), ..LogQuery::default() };
        assert!(is_met(level(LogLevel::Warn)) && is_met(level(LogLevel::Debug)) && !is_met(level(LogLevel::Error)));
        for (target, is_expected) in
            [("yarrow", true), ("http", true), ("http::guard", true), ("htt", false), ("guard", false)]
        {
            let query = LogQuery { target: Some(target.into()), ..LogQuery::default() };
            assert_eq!(is_met(query), is_expected, "{target}");
        }
        for (text, is_expected) in [("JOB", true), ("status=50", true), ("missing", false)] {
            let query = LogQuery { text: Some(text.into()), ..LogQuery::default() };
            assert_eq!(is_met(query), is_expected, "{text}");
        }
        for (id, is_expected) in [("r1", true), ("r", false)] {
            let query = LogQuery { request_id: Some(id.into()), ..LogQuery::default() };
            assert_eq!(is_met(query), is_expected, "{id}");
        }
        assert!(!is_met(LogQuery { trace_id: Some("r1".into()), ..LogQuery::default() }));
    }

    #[test]
    fn drops_and_counts_what_comes_too_fast_and_cuts_long_texts() {
        let buffer = LogBuffer::default();
        let mut long = event("yarrow", &[]);
        long.message = "长".repeat(2 * MAX_TEXT);
        for _ in 0..QUEUE + 3 {
            buffer.record(long.clone());
        }
        assert_eq!(buffer.dropped.get(), 3);
        let waiting = lock_unpoisoned(&buffer.waiting);
        assert_eq!((waiting.len(), waiting[0].message.chars().count()), (QUEUE, MAX_TEXT + 1));
    }
}
