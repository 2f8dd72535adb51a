//! The review queue: texts that moderation let pass although it suspects them.
//!
//! A moderator upholds the suspicion, which records a violation and clears a nickname that is still in use, or acquits
//! the text. A decision can be undone for a day. Unlike a violation, a review holds an excerpt of the text as written,
//! because nobody can judge a masked one; it is cleared a day after the decision and with the account.

use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::{
    phrase_warning::PhraseWarning,
    suspension_rules,
    violations::{self, Violation},
    words,
};
use crate::{
    config::Config,
    core::Core,
    domain::{
        Each,
        identity::users::{self, ProfileChange},
        messaging::user_notices::{self, UserNotice},
        moderation::engine::ContentType,
        money::ledger::Authority,
    },
    error::{Code, Error, Fault, FieldCode, Result},
    store::{Pending, Read, Row, RowResult, Write},
    types::{PageRequest, Paginated, Timestamp, UserId, named_enum},
};

/// Texts of one user that wait. Further ones pass without a review, so that nobody floods the queue.
const WAITING_PER_USER: i64 = 100;
/// Decisions in one request.
pub const MAX_DECISIONS: usize = 200;
/// The time in which a decision can be undone.
const UNDO_TIME: Duration = Duration::from_hours(24);

macro_rules! review_columns {
    () => {
        "id, user_id, content_type, violation_type, words, ways, excerpt, masked_text, provider, created_at, state, \
         decided_at, decided_by, violation_id"
    };
}

named_enum! {
    /// The state of a review.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReviewState {
        Waiting = "waiting",
        Upheld = "upheld",
        Acquitted = "acquitted",
    }
}

named_enum! {
    /// A moderator's decision about a text.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReviewDecision {
        /// The suspicion was right.
        Uphold = "uphold",
        /// The text is innocent.
        Acquit = "acquit",
    }
}

/// A text to be reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewDraft {
    /// The violation that it becomes if a moderator upholds it.
    pub violation: Violation,
    /// The ways in which its words were found.
    pub ways: Vec<&'static str>,
    /// The text as stored, around the first match.
    pub excerpt: String,
}

/// A stored review.
#[derive(Clone, Debug)]
pub struct Review {
    pub id: i64,
    pub user: UserId,
    pub content_type: String,
    pub violation_type: String,
    pub words: Vec<String>,
    pub ways: Vec<String>,
    /// Empty once it was cleared.
    pub excerpt: String,
    pub masked_text: String,
    pub provider: String,
    pub at: Timestamp,
    pub state: ReviewState,
    pub decided_at: Option<Timestamp>,
    pub decided_by: Option<String>,
    /// The violation that was recorded, if the suspicion was upheld.
    pub violation: Option<i64>,
}

named_enum! {
    /// The reason for which a decision about one text changed nothing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReviewFault {
        NotFound = "not_found",
        /// Somebody decided about the text before.
        AlreadyExists = "already_exists",
        /// The text waits: its decision was undone before, or there was none.
        AlreadyUndone = "already_undone",
        /// The decision is older than a day.
        TooLate = "too_late",
    }
}

impl ReviewFault {
    pub const fn code(self) -> Code {
        match self {
            Self::NotFound | Self::TooLate => Code::NotFound,
            Self::AlreadyExists | Self::AlreadyUndone => Code::AlreadyExists,
        }
    }

    /// Returns the sentence for operators, about a text.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::NotFound => "does not exist",
            Self::AlreadyExists => "was decided before; undo that decision first",
            Self::AlreadyUndone => "waits for a decision; there is none to undo",
            Self::TooLate => "was decided more than a day ago, so it is too late to undo",
        }
    }
}

/// The outcome for one text of a bulk decision.
#[derive(Clone, Debug)]
pub struct ReviewOutcome {
    pub id: i64,
    /// The new state, or the reason for which nothing changed.
    pub result: Result<ReviewState, ReviewFault>,
    /// The reason for which an allowed phrase does not acquit the text.
    pub warning: Option<PhraseWarning>,
}

impl ReviewOutcome {
    const fn new(id: i64, result: Result<ReviewState, ReviewFault>) -> Self {
        Self { id, result, warning: None }
    }

    /// Returns the name of the new state or of the fault.
    pub fn name(&self) -> &'static str {
        self.result.map_or_else(ReviewFault::name, ReviewState::name)
    }
}

/// A decision about several texts.
#[derive(Clone, Debug)]
pub struct BulkDecision {
    pub ids: Vec<i64>,
    pub decision: ReviewDecision,
    /// A phrase to allow from now on, with an acquittal.
    pub phrase: Option<String>,
}

/// Queues texts for review. A text that waits already, or one too many of a user, is left out.
pub fn add_in(tx: &Write<'_>, drafts: &[ReviewDraft]) -> Result<()> {
    drafts.iter().try_for_each(|draft| insert_in(tx, draft))
}

fn insert_in(tx: &Write<'_>, draft: &ReviewDraft) -> Result<()> {
    let ReviewDraft { violation, ways, excerpt } = draft;
    let waiting = "select count(*), count(case when excerpt = ?2 and content_type = ?3 then 1 end) from reviews \
                   where user_id = ?1 and state = 'waiting'";
    let (count, same): (i64, i64) =
        tx.one(waiting, (violation.user.0, excerpt, violation.content_type), |row| Ok((row.get(0)?, row.get(1)?)))?;
    if count >= WAITING_PER_USER || same > 0 || !users::exists_in(tx, violation.user)? {
        return Ok(());
    }
    tx.execute(
        "insert into reviews (user_id, content_type, violation_type, words, ways, excerpt, masked_text, provider, \
         created_at, state) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'waiting')",
        (
            violation.user.0,
            violation.content_type,
            &violation.violation_type,
            serde_json::to_string(&violation.words).map_err(Error::internal)?,
            serde_json::to_string(ways).map_err(Error::internal)?,
            excerpt,
            &violation.masked_text,
            &violation.provider,
            tx.now.0,
        ),
    )
    .map(drop)
}

/// Returns a page of reviews in a state: waiting ones oldest first, decided ones newest first.
pub fn list(core: &Core, state: ReviewState, page: PageRequest) -> Result<Paginated<Review>> {
    core.store.read(|tx| {
        let sql = if state == ReviewState::Waiting {
            concat!("select ", review_columns!(), " from reviews where state = ?1 order by id limit ?2 offset ?3")
        } else {
            concat!("select ", review_columns!(), " from reviews where state = ?1 order by id desc limit ?2 offset ?3")
        };
        let items = tx.all(sql, (state.name(), page.size, page.offset()), review_of)?;
        let total = tx.one("select count(*) from reviews where state = ?1", [state.name()], |row| row.get(0))?;
        Ok(Paginated { items, total })
    })
}

/// Counts the waiting texts, at most `most`.
pub fn count_waiting_in(tx: &Read<'_>, most: u32) -> Result<i64> {
    let sql = "select count(*) from (select id from reviews where state = 'waiting' limit ?1) as waiting";
    tx.one(sql, [most], |row| row.get(0))
}

/// Decides about several texts. Each has its own outcome; those that were decided already fail with [`ReviewFault::AlreadyExists`].
///
/// If a phrase was allowed, the caller applies it with [`super::acquittals::apply_phrase`].
///
/// # Errors
/// `invalid_parameters` for an invalid phrase, or one with another decision than an acquittal.
pub fn decide(core: &Core, bulk: BulkDecision, by: Authority) -> Pending<Vec<ReviewOutcome>> {
    let config = Arc::clone(&core.config);
    // Outside of the transaction: the first folding of the process builds its tables, and other writes would wait.
    if let Err(fault) = check_phrase(&config, &bulk) {
        return Pending::ready(Err(Error::field("phrase", fault)));
    }
    core.store.write(move |tx| {
        if let Some(phrase) = &bulk.phrase {
            words::allow_in(tx, phrase)?;
        }
        let decide = |&id: &i64| Ok(ReviewOutcome::new(id, decide_in(tx, &config, id, bulk.decision, &by)?));
        bulk.ids.iter().map(decide).collect()
    })
}

fn check_phrase(config: &Config, bulk: &BulkDecision) -> Result<(), Fault> {
    match &bulk.phrase {
        None => Ok(()),
        Some(_) if bulk.decision != ReviewDecision::Acquit => Err(Fault::new(
            FieldCode::NotAllowed,
            ("is only possible with the decision `acquit`", "仅在决定为 `acquit` 时可填"),
        )),
        Some(phrase) => words::check_phrase(phrase, config.limits.word as usize),
    }
}

/// Undoes decisions that are younger than a day. Cleared nicknames, allowed phrases and suspensions by rule stay.
pub fn undo(core: &Core, ids: Vec<i64>) -> Pending<Vec<ReviewOutcome>> {
    core.store.write(move |tx| ids.iter().map(|&id| Ok(ReviewOutcome::new(id, undo_in(tx, id)?))).collect())
}

/// Returns the users of reviews, for the audit.
pub fn users_of(core: &Core, ids: &[i64]) -> Result<Vec<UserId>> {
    core.store.read(|tx| {
        let user_of = |id: &i64| tx.first("select user_id from reviews where id = ?1", [*id], |row| row.get(0));
        ids.iter().filter_map(|id| user_of(id).map(|user| user.map(UserId)).transpose()).collect()
    })
}

fn decide_in(
    tx: &Write<'_>,
    config: &Config,
    id: i64,
    decision: ReviewDecision,
    by: &Authority,
) -> Result<Result<ReviewState, ReviewFault>> {
    let Some(review) = find_in(tx, id)? else { return Ok(Err(ReviewFault::NotFound)) };
    if review.state != ReviewState::Waiting {
        return Ok(Err(ReviewFault::AlreadyExists));
    }
    let (state, violation) = match decision {
        ReviewDecision::Acquit => (ReviewState::Acquitted, None),
        ReviewDecision::Uphold => (ReviewState::Upheld, Some(uphold_in(tx, config, &review, by)?)),
    };
    tx.execute(
        "update reviews set state = ?2, decided_at = ?3, decided_by = ?4, violation_id = ?5 where id = ?1",
        (id, state.name(), tx.now.0, &by.actor, violation),
    )?;
    Ok(Ok(state))
}

/// Records the violation and clears the nickname if the user still has it. Returns the id of the violation.
fn uphold_in(tx: &Write<'_>, config: &Config, review: &Review, by: &Authority) -> Result<i64> {
    let content_type = ContentType::from_name(&review.content_type).unwrap_or(ContentType::Question);
    let violation = Violation {
        user: review.user,
        content_type: content_type.name(),
        violation_type: review.violation_type.clone(),
        words: review.words.clone(),
        masked_text: review.masked_text.clone(),
        provider: review.provider.clone().into(),
    };
    let id = suspension_rules::record_in(tx, config, &violation)?;
    let is_current =
        content_type == ContentType::Nickname && users::profile_in(tx, review.user)?.nickname == review.excerpt;
    if is_current {
        let change = ProfileChange { nickname: Some(String::new()), ..ProfileChange::default() };
        users::change_profile_in(tx, review.user, &change)?;
        user_notices::send_in(tx, config, review.user, &UserNotice::NicknameReset { reason: &by.reason })?;
    }
    Ok(id)
}

fn undo_in(tx: &Write<'_>, id: i64) -> Result<Result<ReviewState, ReviewFault>> {
    let Some(review) = find_in(tx, id)? else { return Ok(Err(ReviewFault::NotFound)) };
    let Some(decided_at) = review.decided_at else { return Ok(Err(ReviewFault::AlreadyUndone)) };
    if !decided_at.is_within(UNDO_TIME, tx.now) {
        return Ok(Err(ReviewFault::TooLate));
    }
    if let Some(violation) = review.violation {
        violations::remove_in(tx, violation)?;
    }
    tx.execute(
        "update reviews set state = 'waiting', decided_at = null, decided_by = null, violation_id = null where id = ?1",
        [id],
    )?;
    Ok(Ok(ReviewState::Waiting))
}

/// Returns a review; `None` if there is none.
pub fn find(core: &Core, id: i64) -> Result<Option<Review>> {
    core.store.read(|tx| find_in(tx, id))
}

fn find_in(tx: &Read<'_>, id: i64) -> Result<Option<Review>> {
    let sql = concat!("select ", review_columns!(), " from reviews where id = ?1");
    tx.first(sql, [id], review_of)
}

/// Clears up to `limit` texts of decisions that cannot be undone any more, and returns their number.
pub fn clear_decided_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "update reviews set excerpt = '' where id in (select id from reviews \
         where decided_at < ?1 and excerpt <> '' limit ?2)",
        (tx.now.minus(UNDO_TIME).0, limit),
    )
}

/// Deletes up to `limit` reviews that are older than `age`, and returns their number.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from reviews where id in (select id from reviews where created_at < ?1 order by created_at limit ?2)",
        (tx.now.minus(age).0, limit),
    )
}

/// Deletes the user's reviews.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from reviews where user_id = ?1", [user.0]).map(drop)
}

/// Exports the user's reviews without the words that matched.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(
        "select content_type, violation_type, excerpt, state, created_at from reviews where user_id = ?1 order by id",
        [user.0],
        |row| {
            each(json!({
                "contentType": row.get::<String>(0)?,
                "violationType": row.get::<String>(1)?,
                "text": row.get::<String>(2)?,
                "state": row.get::<String>(3)?,
                "createdAt": Timestamp(row.get(4)?),
            }))
        },
    )
}

fn review_of(row: &Row<'_>) -> RowResult<Review> {
    let list = |index| row.get::<String>(index).map(|json| serde_json::from_str(&json).unwrap_or_default());
    Ok(Review {
        id: row.get(0)?,
        user: UserId(row.get(1)?),
        content_type: row.get(2)?,
        violation_type: row.get(3)?,
        words: list(4)?,
        ways: list(5)?,
        excerpt: row.get(6)?,
        masked_text: row.get(7)?,
        provider: row.get(8)?,
        at: Timestamp(row.get(9)?),
        state: row.get_parsed(10, ReviewState::from_name)?,
        decided_at: row.get::<Option<i64>>(11)?.map(Timestamp),
        decided_by: row.get(12)?,
        violation: row.get(13)?,
    })
}
