//! Casts, lists, exports and deletes sessions.

use serde_json::{Value, json};

use super::{
    casting::Casting,
    interpretation,
    record::{self, Session},
    search::{self, SessionSearch},
    snapshot,
};
use crate::{
    core::Core,
    domain::{
        Each,
        divination::{
            chart::{CastTime, DayStart},
            hexagram::{Cast, Hexagram, Lines},
        },
        moderation::{self, Moderation, ScreenedField, engine::ContentType, reviews, risk::classify_question},
        money::points,
        operations::{
            deletions::{self, DeletedKind},
            free_space_scrub,
            idempotency::{IdempotentOutcome, IdempotentRequest},
        },
    },
    error::Result,
    store::{Pending, Read, Write},
    types::{CursorRange, CursorSlice, TimeZone, Timestamp, UserId, random_hex},
};

/// Sessions that an export holds in memory at once.
const EXPORT_BATCH: u32 = 100;

/// A request for a casting.
#[derive(Clone, Debug)]
pub struct SessionDraft {
    pub question: String,
    pub question_type: Option<String>,
    pub casting: Casting,
    /// The time of the casting, as reported by the user; now if `None`.
    pub cast_at: Option<Timestamp>,
    /// The user's time zone.
    pub time_zone: TimeZone,
    /// The user's day rule.
    pub day_start: DayStart,
}

/// A new session, and the balance of points after it.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub session: Session,
    pub balance: i64,
}

/// The user's own texts about a session. A text that is `None` stays, an empty one is deleted.
#[derive(Clone, Debug, Default)]
pub struct SessionAnnotation {
    pub title: Option<String>,
    pub note: Option<String>,
}

/// Casts, charges the price and stores the session in one transaction.
///
/// # Errors
/// `content_rejected` if moderation rejects the question; `insufficient_points`, `account_inconsistent`; those of
/// [`IdempotentRequest::run_in`].
pub fn cast(
    moderation: &Moderation,
    user: UserId,
    draft: SessionDraft,
    once: IdempotentRequest<NewSession>,
) -> Pending<IdempotentOutcome<NewSession>> {
    let core = &moderation.core;
    // Replays come before the screening, because the ruling may have changed since.
    match once.stored_response(core) {
        Ok(None) => {}
        Ok(Some(stored)) => return Pending::ready(Ok(IdempotentOutcome::Replayed(stored))),
        Err(error) => return Pending::ready(Err(error)),
    }
    let risk = classify_question(&draft.question, draft.question_type.as_deref());
    let fields = ScreenedField::of_question(&draft.question, draft.question_type.as_deref());
    let mut screening = match moderation::screen_question(moderation, user, risk, &fields) {
        Ok(screening) => screening,
        Err(refusal) => return refusal.record(core),
    };
    let reviewed = screening.take_reviews();
    let draft = SessionDraft {
        question: screening.replacement("question").unwrap_or(draft.question),
        question_type: screening.replacement("questionType").or(draft.question_type),
        ..draft
    };
    // A casting by time is cast before it is stored, so its time is fixed here.
    let cast_at = draft.cast_at.or_else(|| draft.casting.needs_time().then(|| core.clock.now()));
    let draft = SessionDraft { cast_at, ..draft };
    let time = CastTime {
        at: cast_at.unwrap_or_else(|| core.clock.now()),
        zone: draft.time_zone.clone(),
        day_start: draft.day_start,
    };
    let new = match random_hex::<16>().and_then(|id| Ok((id, draft.casting.lines(&time)?))) {
        Ok(new) => new,
        Err(error) => return Pending::ready(Err(error)),
    };
    // A question that needs help is answered with help, which costs nothing.
    let price = if risk.is_some() { 0 } else { core.config.points.cast };
    let key = once.key().map(ToOwned::to_owned);
    core.store.write_without_savepoint(move |tx| {
        once.run_in(tx, |tx| {
            // Only the first steps can fail, before they change anything.
            let cast = cast_in(tx, user, &draft, new, key.as_deref(), price)?;
            reviews::add_in(tx, &reviewed)?;
            Ok(cast)
        })
    })
}

/// Returns a slice of the user's sessions, newest first.
pub fn list(core: &Core, user: UserId, span: CursorRange) -> Result<CursorSlice<Session>> {
    let rows = core.store.read(|tx| record::list_before_in(tx, user, span.upper_bound(), span.rows_to_read()))?;
    Ok(span.slice(rows, |session| session.sequence))
}

/// Returns a slice of the user's sessions that contain all words, newest first.
pub fn search(core: &Core, user: UserId, words: &SessionSearch, span: CursorRange) -> Result<CursorSlice<Session>> {
    core.store.read(|tx| {
        let found = search::find_in(tx, user, words, span)?;
        let sessions = found.items.into_iter().map(|sequence| record::find_by_sequence_in(tx, user, sequence));
        Ok(CursorSlice { items: sessions.filter_map(Result::transpose).collect::<Result<_>>()?, next: found.next })
    })
}

/// Changes a session's title and note, which are screened like questions.
///
/// # Errors
/// `not_found`, also for another user's session; `content_rejected` if moderation rejects a text, and nothing is
/// changed then.
pub fn annotate(
    moderation: &Moderation,
    user: UserId,
    id: String,
    mut annotation: SessionAnnotation,
) -> Pending<Session> {
    let core = &moderation.core;
    // Before the texts are screened, so that a request for nothing causes no violations.
    if let Err(error) = record::find(core, user, &id) {
        return Pending::ready(Err(error));
    }
    let fields: Vec<_> = [("title", annotation.title.as_deref()), ("note", annotation.note.as_deref())]
        .into_iter()
        .filter_map(|(name, text)| {
            let text = text.filter(|text| !text.is_empty())?;
            Some(ScreenedField { name, content_type: ContentType::Question, text })
        })
        .collect();
    let mut screening = match moderation::screen(moderation, user, &fields) {
        Ok(screening) => screening,
        Err(refusal) => return refusal.record(core),
    };
    annotation.title = screening.replacement("title").or(annotation.title);
    annotation.note = screening.replacement("note").or(annotation.note);
    let reviewed = screening.take_reviews();
    core.store.write(move |tx| {
        reviews::add_in(tx, &reviewed)?;
        annotate_in(tx, user, &id, annotation)
    })
}

/// Deletes a session and leaves its anonymous snapshot.
///
/// # Errors
/// `not_found`, also for another user's session.
pub fn delete(core: &Core, user: UserId, id: String) -> Pending<()> {
    let home = core.config.limits.time_zone.clone();
    core.store.write(move |tx| {
        let session = record::find_in(tx, user, &id)?;
        interpretation::refund_running_in(tx, &session)?;
        let last = record::last_change_in(tx, user)?;
        erase_in(tx, &home, &session)?;
        deletions::record_in(tx, user, DeletedKind::Session, &[id], last)?;
        free_space_scrub::request_in(tx)
    })
}

/// Exports the user's sessions with the trace ids of their model calls, oldest first.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let mut last = 0;
    loop {
        let sessions = record::list_after_in(tx, user, last, EXPORT_BATCH)?;
        let Some(newest) = sessions.last() else { return Ok(()) };
        last = newest.sequence;
        for session in &sessions {
            each(to_json_in(tx, session)?)?;
        }
    }
}

/// Deletes up to `limit` sessions of a deleted user, and leaves their snapshots. Days follow the time zone `home`.
pub fn erase_user_in(tx: &Write<'_>, home: &TimeZone, user: UserId, limit: u32) -> Result<usize> {
    let sessions = record::list_before_in(tx, user, i64::MAX, limit)?;
    sessions.iter().try_for_each(|session| erase_in(tx, home, session))?;
    Ok(sessions.len())
}

fn to_json_in(tx: &Read<'_>, session: &Session) -> Result<Value> {
    Ok(json!({
        "id": session.id,
        "question": session.question,
        "questionType": session.question_type,
        "method": session.method.name(),
        "numbers": session.numbers,
        "lines": session.cast.lines().values(),
        "primaryHexagram": session.cast.primary().number(),
        "relatingHexagram": session.cast.relating().map(Hexagram::number),
        "castAt": session.cast_at,
        "timeZone": session.time_zone,
        "dayStart": session.day_start.name(),
        "pointsSpent": session.points_spent,
        "traceIds": record::calls_in(tx, &session.id)?,
        "interpretedAt": session.interpretation.as_ref().map(|interpreted| interpreted.at),
        "title": session.title,
        "note": session.note,
        "createdAt": session.created_at,
    }))
}

fn annotate_in(tx: &Write<'_>, user: UserId, id: &str, annotation: SessionAnnotation) -> Result<Session> {
    let SessionAnnotation { title, note } = annotation;
    let changed = |sent: Option<String>, stored: Option<String>| match sent {
        Some(text) => (!text.is_empty()).then_some(text),
        None => stored,
    };
    let stored = record::find_in(tx, user, id)?;
    let session = Session {
        title: changed(title, stored.title.clone()),
        note: changed(note, stored.note.clone()),
        change: record::next_change_in(tx, user)?,
        ..stored
    };
    record::set_annotation_in(tx, &session)?;
    Ok(session)
}

fn cast_in(
    tx: &Write<'_>,
    user: UserId,
    draft: &SessionDraft,
    (id, lines): (String, Lines),
    key: Option<&str>,
    price: u32,
) -> Result<NewSession> {
    let record::SessionNumbers { sequence, change } = record::next_numbers_in(tx, user)?;
    let balance = points::charge_cast_in(tx, user, price, format!("session:{id}"))?;
    let session = Session {
        id,
        user,
        sequence,
        question: draft.question.clone(),
        question_type: draft.question_type.clone(),
        method: draft.casting.method(),
        numbers: draft.casting.numbers().to_vec(),
        cast: Cast::from_lines(lines),
        cast_at: draft.cast_at.unwrap_or(tx.now),
        time_zone: draft.time_zone.to_string(),
        day_start: draft.day_start,
        points_spent: i64::from(price),
        idempotency_key: key.map(ToOwned::to_owned),
        interpretation: None,
        created_at: tx.now,
        title: None,
        note: None,
        change,
    };
    record::insert_in(tx, &session)?;
    Ok(NewSession { session, balance })
}

fn erase_in(tx: &Write<'_>, home: &TimeZone, session: &Session) -> Result<()> {
    snapshot::insert_in(tx, home, session)?;
    record::delete_in(tx, session)
}
