//! Users' ratings of interpretations: helpful or not, with an optional note for the operators.
//!
//! A rating is stored in the record of the call, so it is deleted with it. The note is personal data and is erased with
//! the account; the rating itself stays for the rates.

use serde_json::{Value, json};

use crate::{
    core::Core,
    domain::{
        identity::users,
        moderation::{self, Moderation, ScreenedField, engine::ContentType, reviews},
        operations::account_erasures::is_not_being_erased,
    },
    error::{Code, Result},
    store::{Pending, Read, Row, RowResult, Write},
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// A user's rating of an interpretation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rating {
    pub is_helpful: bool,
    pub note: Option<String>,
    pub rated_at: Timestamp,
}

impl Rating {
    /// Returns the rating as exports show it.
    pub(super) fn into_json(self) -> Value {
        json!({ "helpful": self.is_helpful, "note": self.note, "ratedAt": self.rated_at })
    }
}

/// The ratings of interpretations by one model and prompt version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    pub provider: String,
    pub model: String,
    pub prompt_version: String,
    pub rated: i64,
    pub helpful: i64,
}

impl Rate {
    /// Returns the share of helpful ones in percent, rounded.
    pub fn helpful_percent(&self) -> i64 {
        (self.helpful * 200 + self.rated).checked_div(self.rated * 2).unwrap_or(0)
    }
}

/// A note of a user, with the interpretation that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub trace_id: String,
    pub user: UserId,
    pub provider: String,
    pub model: String,
    pub prompt_version: String,
    pub is_helpful: bool,
    pub text: String,
    pub rated_at: Timestamp,
}

/// The ratings of a period, and a page of the notes, newest first.
#[derive(Clone, Debug)]
pub struct RatingReport {
    pub rates: Vec<Rate>,
    pub notes: Paginated<Note>,
}

/// Screens the note and stores the rating in place of an earlier one.
///
/// # Errors
/// `not_found` for unknown interpretations, those of other users and failed calls; `content_rejected` if moderation
/// rejects the note.
pub fn rate(
    moderation: &Moderation,
    user: UserId,
    trace_id: String,
    is_helpful: bool,
    note: Option<String>,
) -> Pending<Rating> {
    let core = &moderation.core;
    let field = note.as_deref().map(|text| ScreenedField { name: "note", content_type: ContentType::Question, text });
    let mut screening = match moderation::screen(moderation, user, field.as_slice()) {
        Ok(screening) => screening,
        Err(refusal) => return refusal.record(core),
    };
    let (note, reviewed) = (screening.replacement("note").or(note), screening.take_reviews());
    core.store.write(move |tx| {
        reviews::add_in(tx, &reviewed)?;
        let rating = Rating { is_helpful, note, rated_at: tx.now };
        rate_in(tx, user, &trace_id, &rating)?;
        Ok(rating)
    })
}

/// Returns the ratings of `[from, to)`, by the time of the rating.
pub fn ratings(core: &Core, from: Timestamp, to: Timestamp, page: PageRequest) -> Result<RatingReport> {
    core.store.read(|tx| Ok(RatingReport { rates: rates_in(tx, from, to)?, notes: notes_in(tx, from, to, page)? }))
}

/// Returns the ratings of `[from, to)` by model and prompt version.
pub fn rates(core: &Core, from: Timestamp, to: Timestamp) -> Result<Vec<Rate>> {
    core.store.read(|tx| rates_in(tx, from, to))
}

fn rate_in(tx: &Write<'_>, user: UserId, trace_id: &str, rating: &Rating) -> Result<()> {
    // The record outlives the account, and the note must not.
    users::require_in(tx, user)?;
    let changed = tx.execute(
        "update interpretations set is_helpful = ?3, rating_note = ?4, rated_at = ?5 \
         where trace_id = ?1 and user_id = ?2 and status = 'succeeded'",
        (trace_id, user.0, rating.is_helpful, &rating.note, rating.rated_at.0),
    )?;
    if changed == 0 { Err(Code::NotFound.into()) } else { Ok(()) }
}

fn rates_in(tx: &Read<'_>, from: Timestamp, to: Timestamp) -> Result<Vec<Rate>> {
    tx.all(
        "select provider, model, prompt_version, count(*), sum(is_helpful) from interpretations \
         where rated_at >= ?1 and rated_at < ?2 group by provider, model, prompt_version \
         order by provider, model, prompt_version",
        (from.0, to.0),
        |row| {
            let (provider, model, prompt_version) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Rate { provider, model, prompt_version, rated: row.get(3)?, helpful: row.get(4)? })
        },
    )
}

fn notes_in(tx: &Read<'_>, from: Timestamp, to: Timestamp, page: PageRequest) -> Result<Paginated<Note>> {
    let items = tx.all(
        concat!(
            "select trace_id, user_id, provider, model, prompt_version, is_helpful, rating_note, rated_at \
             from interpretations where rating_note is not null and rated_at >= ?1 and rated_at < ?2 and ",
            is_not_being_erased!("interpretations.user_id"),
            " order by rated_at desc, id desc limit ?3 offset ?4"
        ),
        (from.0, to.0, page.size, page.offset()),
        note_of,
    )?;
    let count = concat!(
        "select count(*) from interpretations where rating_note is not null and rated_at >= ?1 and rated_at < ?2 and ",
        is_not_being_erased!("interpretations.user_id")
    );
    Ok(Paginated { items, total: tx.one(count, (from.0, to.0), |row| row.get(0))? })
}

fn note_of(row: &Row<'_>) -> RowResult<Note> {
    Ok(Note {
        trace_id: row.get(0)?,
        user: UserId(row.get(1)?),
        provider: row.get(2)?,
        model: row.get(3)?,
        prompt_version: row.get(4)?,
        is_helpful: row.get(5)?,
        text: row.get(6)?,
        rated_at: Timestamp(row.get(7)?),
    })
}
