//! Sessions: castings of the current generation, made and kept by the service.
//!
//! The lines fall from the system's random source with the exact odds of the method; the points and the session go
//! into one transaction. The surprise: a session is never just deleted. What is not personal about it stays behind as
//! a snapshot that nothing ties to the session, the ledger entry or the person; see [`snapshot`].

pub mod interpreting;
mod record;
pub mod snapshot;

use serde_json::{Value, json};

use crate::{
    core::Core,
    domain::{
        Each,
        divination::hexagram::{Cast, Hexagram, Lines, three_coins, yarrow_stalks},
        moderation::{self, Field, Moderation},
        money::points,
        operations::{
            free_space_scrub,
            idempotency::{Answered, Once},
        },
    },
    error::Result,
    store::{Pending, Read, Write},
    types::{Slice, Span, TimeZone, Timestamp, UserId, fill_random, named, random_hex},
};

pub use record::{Interpreted, Session};

/// Sessions of an export that are held in memory at once.
const EXPORTED_AT_ONCE: u32 = 100;

named! {
    /// How the lines came to be.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Method {
        ThreeCoins = "three_coins",
        YarrowStalks = "yarrow_stalks",
        Manual = "manual",
    }
}

/// What is to be cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Casting {
    ThreeCoins,
    YarrowStalks,
    /// The user threw coins or counted stalks, and says what fell.
    Manual(Lines),
}

impl Casting {
    pub const fn method(self) -> Method {
        match self {
            Self::ThreeCoins => Method::ThreeCoins,
            Self::YarrowStalks => Method::YarrowStalks,
            Self::Manual(_) => Method::Manual,
        }
    }

    fn lines(self) -> Result<Lines> {
        match self {
            Self::ThreeCoins => three_coins(fill_random),
            Self::YarrowStalks => yarrow_stalks(fill_random),
            Self::Manual(lines) => Ok(lines),
        }
    }
}

/// A casting as it is asked for.
#[derive(Clone, Debug)]
pub struct Draft {
    pub question: String,
    pub question_type: Option<String>,
    pub casting: Casting,
    /// When the user cast, by their own account; now if they do not say.
    pub cast_at: Option<Timestamp>,
    /// Where the user is.
    pub time_zone: TimeZone,
}

/// A session that was just made, and the points that are left.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub session: Session,
    pub balance: i64,
}

/// Casts, takes the price and keeps the session, all or nothing.
///
/// # Errors
/// `content_rejected` if the question may not stand; `insufficient_points`, `account_inconsistent`; those of
/// [`Once::run_in`].
pub fn cast(
    moderation: &Moderation,
    user: UserId,
    draft: Draft,
    once: Once<NewSession>,
) -> Pending<Answered<NewSession>> {
    let core = &moderation.core;
    // The answer to a repeated request comes before the screening, which may judge otherwise by now.
    match once.answered_before(core) {
        Ok(None) => {}
        Ok(Some(kept)) => return Pending::ready(Ok(Answered::Before(kept))),
        Err(error) => return Pending::ready(Err(error)),
    }
    let fields = Field::of_question(&draft.question, draft.question_type.as_deref());
    if let Some(refusal) = moderation::screen(moderation, user, &fields) {
        return refusal.record(core);
    }
    let new = match random_hex::<16>().and_then(|id| Ok((id, draft.casting.lines()?))) {
        Ok(new) => new,
        Err(error) => return Pending::ready(Err(error)),
    };
    let price = core.config.points.cast;
    let key = once.key().map(ToOwned::to_owned);
    core.store.write(move |tx| once.run_in(tx, |tx| cast_in(tx, user, &draft, new, key.as_deref(), price)))
}

/// A piece of the user's sessions, newest first.
pub fn list(core: &Core, user: UserId, span: Span) -> Result<Slice<Session>> {
    let rows = core.store.read(|tx| record::before_in(tx, user, span.upper_bound(), span.rows_to_read()))?;
    Ok(span.slice(rows, |session| session.sequence))
}

/// The user's session with this id.
///
/// # Errors
/// `not_found`, also for the session of somebody else.
pub fn find(core: &Core, user: UserId, id: &str) -> Result<Session> {
    core.store.read(|tx| record::find_in(tx, user, id))
}

/// Deletes a session for good, leaving its anonymous snapshot.
///
/// # Errors
/// `not_found`, also for the session of somebody else.
pub fn delete(core: &Core, user: UserId, id: String) -> Pending<()> {
    let home = core.config.limits.time_zone.clone();
    core.store.write(move |tx| {
        let session = record::find_in(tx, user, &id)?;
        erase_in(tx, &home, &session)?;
        free_space_scrub::request_in(tx)
    })
}

/// The user's sessions, the oldest first, with the model calls that each caused.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let mut last = 0;
    loop {
        let sessions = record::after_in(tx, user, last, EXPORTED_AT_ONCE)?;
        let Some(newest) = sessions.last() else { return Ok(()) };
        last = newest.sequence;
        for session in &sessions {
            each(exported_in(tx, session)?)?;
        }
    }
}

/// Deletes all sessions of a user who is leaving, each leaving its anonymous snapshot. Days are those of `home`.
pub fn erase_user_in(tx: &Write<'_>, home: &TimeZone, user: UserId) -> Result<()> {
    for session in record::before_in(tx, user, i64::MAX, u32::MAX)? {
        erase_in(tx, home, &session)?;
    }
    Ok(())
}

fn exported_in(tx: &Read<'_>, session: &Session) -> Result<Value> {
    Ok(json!({
        "id": session.id,
        "question": session.question,
        "questionType": session.question_type,
        "method": session.method.name(),
        "lines": session.cast.lines().values(),
        "primaryHexagram": session.cast.primary().number(),
        "relatingHexagram": session.cast.relating().map(Hexagram::number),
        "castAt": session.cast_at,
        "timeZone": session.time_zone,
        "pointsSpent": session.points_spent,
        "traceIds": record::calls_in(tx, &session.id)?,
        "interpretedAt": session.interpretation.as_ref().map(|interpreted| interpreted.at),
        "createdAt": session.created_at,
    }))
}

fn cast_in(
    tx: &Write<'_>,
    user: UserId,
    draft: &Draft,
    (id, lines): (String, Lines),
    key: Option<&str>,
    price: u32,
) -> Result<NewSession> {
    let balance = points::charge_cast_in(tx, user, price, format!("session:{id}"))?;
    let session = Session {
        id,
        user,
        sequence: record::next_sequence_in(tx, user)?,
        question: draft.question.clone(),
        question_type: draft.question_type.clone(),
        method: draft.casting.method(),
        cast: Cast::from_lines(lines),
        cast_at: draft.cast_at.unwrap_or(tx.now),
        time_zone: draft.time_zone.to_string(),
        points_spent: i64::from(price),
        idempotency_key: key.map(ToOwned::to_owned),
        interpretation: None,
        created_at: tx.now,
    };
    record::insert_in(tx, &session)?;
    Ok(NewSession { session, balance })
}

fn erase_in(tx: &Write<'_>, home: &TimeZone, session: &Session) -> Result<()> {
    snapshot::take_in(tx, home, session)?;
    record::delete_in(tx, session)
}
