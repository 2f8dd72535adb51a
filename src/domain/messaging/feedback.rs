//! Feedback to the operators.
//!
//! It needs no sign-in, so ids and phone numbers are unverified claims unless a token proves the user. Anonymous
//! feedback is limited by client network, which is deleted after a day.
//!
//! The staff give feedback a state and an assignee. A reply reaches the user as a notification, so only feedback of a
//! signed-in user can have one.

use std::{net::IpAddr, sync::Arc, time::Duration};

use serde_json::json;

use super::user_notices::{self, UserNotice};
use crate::{
    config::{Config, LimitsConfig},
    core::Core,
    domain::{
        Each,
        identity::{
            codes::client_network,
            users::{self, User},
        },
        operations::{
            admins,
            idempotency::{IdempotentOutcome, IdempotentRequest},
            webhook_outbox::{self, NewWebhookEvent, WebhookKind},
        },
    },
    error::{Code, Error, Fault, FieldCode, RateLimit, Result, Sentence},
    store::{
        Pending, Read, Row, RowResult, Write,
        sliding_window::{self, HOUR, PURGE_BATCH, Window, WindowUse, window_rows},
    },
    types::{CursorRange, CursorSlice, PageRequest, Paginated, PhoneNumber, Timestamp, UserId, named_enum},
};

const CLIENT_NETWORK_RETENTION: Duration = Duration::from_hours(24);
/// Messages that are kept of a user, as many more that claim to be the user's, and as many that claim a phone number. So
/// the deletion of an account has a bounded number of them to delete.
const KEPT: u32 = 500;
/// The largest number of replies to one feedback.
const MAX_REPLIES: u32 = 50;

/// The columns that [`feedback_of`] reads, in its order.
macro_rules! feedback_columns {
    () => {
        "id, user_id, phone_number, is_verified, content, created_at, state, assignee"
    };
}

macro_rules! select_feedback {
    ($rest:literal) => {
        concat!("select ", feedback_columns!(), " from feedback ", $rest)
    };
}

/// The author of new feedback.
#[derive(Clone, Debug)]
pub enum Author {
    /// A user with a valid token.
    User(User),
    /// A sender without a token. User and phone number are claims.
    Anonymous { client: IpAddr, user: Option<UserId>, phone_number: Option<PhoneNumber> },
}

/// Stored feedback.
#[derive(Clone, Debug)]
pub struct Feedback {
    pub id: i64,
    pub user: Option<UserId>,
    pub phone_number: Option<String>,
    /// A token proved the user.
    pub is_verified: bool,
    pub content: String,
    pub created_at: Timestamp,
    pub state: FeedbackState,
    /// The name of an administrator.
    pub assignee: Option<String>,
}

named_enum! {
    /// The progress of the staff with feedback.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FeedbackState {
        Open = "open",
        InProgress = "in_progress",
        Closed = "closed",
    }
}

/// A reply of the staff.
#[derive(Clone, Debug)]
pub struct FeedbackReply {
    pub author: String,
    pub content: String,
    pub created_at: Timestamp,
}

/// Feedback with its replies, oldest first.
#[derive(Clone, Debug)]
pub struct FeedbackThread {
    pub feedback: Feedback,
    pub replies: Vec<FeedbackReply>,
}

/// A filter for feedback. An empty one matches all.
#[derive(Clone, Debug, Default)]
pub struct FeedbackFilter {
    /// The user, verified or claimed.
    pub user: Option<UserId>,
    pub state: Option<FeedbackState>,
    pub assignee: Option<String>,
}

/// The fields to change; the others stay.
#[derive(Clone, Debug, Default)]
pub struct FeedbackChange {
    pub state: Option<FeedbackState>,
    /// `Some(None)` removes the assignee.
    pub assignee: Option<Option<String>>,
}

/// Returns the limit on feedback of one user in an hour.
pub const fn user_limit(limits: &LimitsConfig) -> RateLimit {
    RateLimit { name: "feedback-user", quota: limits.feedback_per_user, window: HOUR }
}

/// Returns the limit on anonymous feedback of one client in an hour.
pub const fn client_limit(limits: &LimitsConfig) -> RateLimit {
    RateLimit { name: "feedback-client", quota: limits.feedback_per_client, window: HOUR }
}

/// Returns how much more feedback a user may send in the hour.
pub fn use_of_user_in(tx: &Read<'_>, user: UserId, limits: &LimitsConfig) -> Result<WindowUse> {
    window_of_user(user, user_limit(limits)).use_in(tx)
}

/// Returns how much more feedback a client may send in the hour without a token.
pub fn use_of_client_in(tx: &Read<'_>, client: IpAddr, limits: &LimitsConfig) -> Result<WindowUse> {
    window_of_client(&client_network(client), client_limit(limits)).use_in(tx)
}

fn window_of_user(user: UserId, limit: RateLimit) -> Window<i64> {
    let rows = window_rows!("feedback", "created_at", "user_id = ?1 and is_verified = 1");
    Window { limit, rows, key: user.0 }
}

fn window_of_client(network: &str, limit: RateLimit) -> Window<&str> {
    Window { limit, rows: window_rows!("feedback", "created_at", "client_network = ?1"), key: network }
}

/// Stores feedback.
///
/// # Errors
/// `too_many_requests`, with the time until the next is accepted.
pub fn submit(core: &Core, author: Author, content: String) -> Pending<Feedback> {
    let (per_user, per_client) = (user_limit(&core.config.limits), client_limit(&core.config.limits));
    core.store.write(move |tx| match &author {
        Author::User(user) => {
            users::require_in(tx, user.id)?;
            sliding_window::require_open_in(tx, &[window_of_user(user.id, per_user)])?;
            insert_in(tx, Some(user.id), user.phone_number.as_ref(), None, &content)
        }
        Author::Anonymous { client, user, phone_number } => {
            let network = client_network(*client);
            sliding_window::require_open_in(tx, &[window_of_client(&network, per_client)])?;
            insert_in(tx, *user, phone_number.as_ref(), Some(&network), &content)
        }
    })
}

/// Lists feedback, newest first.
pub fn list(core: &Core, filter: &FeedbackFilter, page: PageRequest) -> Result<Paginated<FeedbackThread>> {
    core.store.read(|tx| {
        let items = threads_in(tx, list_in(tx, filter, i64::MAX, page.size, page.offset())?)?;
        Ok(Paginated { items, total: count_matching_in(tx, filter, i64::MAX)? })
    })
}

/// Lists feedback by cursor, newest first, with the total up to a limit.
pub fn list_range(
    core: &Core,
    filter: &FeedbackFilter,
    range: CursorRange,
    counted: u32,
) -> Result<(CursorSlice<FeedbackThread>, i64)> {
    core.store.read(|tx| {
        let found = list_in(tx, filter, range.upper_bound(), range.rows_to_read(), 0)?;
        let CursorSlice { items, next } = range.slice(found, |feedback| feedback.id);
        let slice = CursorSlice { items: threads_in(tx, items)?, next };
        Ok((slice, count_matching_in(tx, filter, counted.into())?))
    })
}

/// Changes state and assignee.
///
/// # Errors
/// `not_found`; `invalid_parameters` for an assignee who is no administrator.
pub fn change(core: &Core, id: i64, change: FeedbackChange) -> Pending<FeedbackThread> {
    core.store.write(move |tx| {
        if let Some(Some(name)) = &change.assignee
            && !admins::exists_in(tx, name)?
        {
            let fault =
                Fault::new(FieldCode::UnknownValue, ("must be the name of an administrator", "须为管理员的名称"));
            return Err(Error::field("assignee", fault));
        }
        let changed = tx.first(
            concat!(
                "update feedback set state = coalesce(?2, state), assignee = case when ?3 then ?4 else assignee end \
                 where id = ?1 returning ",
                feedback_columns!()
            ),
            (id, change.state.map(FeedbackState::name), change.assignee.is_some(), change.assignee.flatten()),
            feedback_of,
        )?;
        thread_in(tx, changed.ok_or(Code::NotFound)?)
    })
}

/// A reply of the staff.
#[derive(Clone, Debug)]
pub struct NewReply {
    pub author: String,
    pub content: String,
    /// The state after it. By default open feedback is in progress then.
    pub state: Option<FeedbackState>,
}

/// Stores a reply and sends it to the user.
///
/// # Errors
/// `not_found`; `invalid_parameters` for feedback without a verified user, who could not be reached.
pub fn reply(
    core: &Core,
    id: i64,
    reply: NewReply,
    once: IdempotentRequest<FeedbackThread>,
) -> Pending<IdempotentOutcome<FeedbackThread>> {
    let config = Arc::clone(&core.config);
    core.store.write(move |tx| once.run_in(tx, |tx| reply_in(tx, &config, id, &reply)))
}

/// Returns the user of feedback, for the audit.
///
/// # Errors
/// `not_found`.
pub fn user_of(core: &Core, id: i64) -> Result<Option<UserId>> {
    let found = core.store.read(|tx| tx.first(select_feedback!("where id = ?1"), [id], feedback_of))?;
    Ok(found.ok_or(Code::NotFound)?.user)
}

/// Counts open feedback, up to a limit.
pub fn count_open_in(tx: &Read<'_>, limit: u32) -> Result<i64> {
    let filter = FeedbackFilter { state: Some(FeedbackState::Open), ..FeedbackFilter::default() };
    count_matching_in(tx, &filter, limit.into())
}

/// Exports the user's feedback with replies, oldest first. Unverified claims are not included.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(select_feedback!("where user_id = ?1 and is_verified = 1 order by id"), [user.0], |row| {
        let Feedback { id, content, created_at, state, .. } = feedback_of(row)?;
        let replies = replies_in(tx, id)?.into_iter();
        let replies = replies.map(|reply| json!({ "content": reply.content, "createdAt": reply.created_at }));
        each(json!({
            "id": id.to_string(),
            "content": content,
            "createdAt": created_at,
            "state": state.name(),
            "replies": replies.collect::<Vec<_>>(),
        }))
    })
}

/// Deletes the user's feedback, and unverified feedback with the user's id or phone number.
pub fn erase_user_in(tx: &Write<'_>, user: UserId, phone_number: Option<&PhoneNumber>) -> Result<()> {
    tx.execute("delete from feedback where user_id = ?1", [user.0])?;
    if let Some(phone_number) = phone_number {
        tx.execute("delete from feedback where phone_number = ?1 and is_verified = 0", [phone_number.as_str()])?;
    }
    Ok(())
}

pub fn count_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select count(*) from feedback", (), |row| row.get(0))
}

/// Returns up to `limit` entries after the given one, oldest first.
pub fn list_after_in(tx: &Read<'_>, after: Option<&Feedback>, limit: u32) -> Result<Vec<Feedback>> {
    tx.all(
        select_feedback!("where id > ?1 order by id limit ?2"),
        (after.map_or(i64::MIN, |feedback| feedback.id), limit),
        feedback_of,
    )
}

/// Deletes these entries and returns the number that still existed. Compares contents too, because ids can be reused.
pub fn delete_in(tx: &Write<'_>, feedback: &[Feedback]) -> Result<usize> {
    tx.execute_each(
        "delete from feedback where id = ?1 and created_at = ?2 and content = ?3",
        feedback.iter().map(|feedback| (feedback.id, feedback.created_at.0, &feedback.content)),
    )
}

/// Deletes the client networks of up to `limit` old entries.
pub fn delete_client_networks_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "update feedback set client_network = null where id in (select id from feedback \
         where client_network is not null and created_at <= ?1 order by created_at limit ?2)",
        (tx.now.minus(CLIENT_NETWORK_RETENTION).0, limit),
    )
}

fn list_in(tx: &Read<'_>, filter: &FeedbackFilter, before: i64, limit: u32, offset: i64) -> Result<Vec<Feedback>> {
    let state = filter.state.map(FeedbackState::name);
    match (filter.user, &filter.assignee, state) {
        (Some(user), assignee, state) => tx.all(
            select_feedback!(
                "where user_id = ?1 and id < ?2 and (state = ?3 or ?3 is null) and (assignee = ?4 or ?4 is null) \
                 order by id desc limit ?5 offset ?6"
            ),
            (user.0, before, state, assignee, limit, offset),
            feedback_of,
        ),
        (None, Some(assignee), state) => tx.all(
            select_feedback!(
                "where assignee = ?1 and id < ?2 and (state = ?3 or ?3 is null) order by id desc limit ?4 offset ?5"
            ),
            (assignee, before, state, limit, offset),
            feedback_of,
        ),
        (None, None, Some(state)) => tx.all(
            select_feedback!("where state = ?1 and id < ?2 order by id desc limit ?3 offset ?4"),
            (state, before, limit, offset),
            feedback_of,
        ),
        (None, None, None) => tx.all(
            select_feedback!("where id < ?1 order by id desc limit ?2 offset ?3"),
            (before, limit, offset),
            feedback_of,
        ),
    }
}

/// Counts the matches, up to a limit.
fn count_matching_in(tx: &Read<'_>, filter: &FeedbackFilter, limit: i64) -> Result<i64> {
    let state = filter.state.map(FeedbackState::name);
    match (filter.user, &filter.assignee, state) {
        (Some(user), assignee, state) => tx.one(
            "select count(*) from (select 1 from feedback where user_id = ?1 and (state = ?2 or ?2 is null) \
             and (assignee = ?3 or ?3 is null) limit ?4) as counted",
            (user.0, state, assignee, limit),
            |row| row.get(0),
        ),
        (None, Some(assignee), state) => tx.one(
            "select count(*) from (select 1 from feedback where assignee = ?1 and (state = ?2 or ?2 is null) limit ?3) \
             as counted",
            (assignee, state, limit),
            |row| row.get(0),
        ),
        (None, None, Some(state)) => tx.one(
            "select count(*) from (select 1 from feedback where state = ?1 limit ?2) as counted",
            (state, limit),
            |row| row.get(0),
        ),
        (None, None, None) => {
            tx.one("select count(*) from (select 1 from feedback limit ?1) as counted", [limit], |row| row.get(0))
        }
    }
}

fn threads_in(tx: &Read<'_>, feedback: Vec<Feedback>) -> Result<Vec<FeedbackThread>> {
    feedback.into_iter().map(|feedback| thread_in(tx, feedback)).collect()
}

fn thread_in(tx: &Read<'_>, feedback: Feedback) -> Result<FeedbackThread> {
    Ok(FeedbackThread { replies: replies_in(tx, feedback.id)?, feedback })
}

fn replies_in(tx: &Read<'_>, id: i64) -> Result<Vec<FeedbackReply>> {
    tx.all(
        "select author, content, created_at from feedback_replies where feedback_id = ?1 order by id limit ?2",
        (id, MAX_REPLIES),
        |row| Ok(FeedbackReply { author: row.get(0)?, content: row.get(1)?, created_at: Timestamp(row.get(2)?) }),
    )
}

fn reply_in(tx: &Write<'_>, config: &Config, id: i64, reply: &NewReply) -> Result<FeedbackThread> {
    let NewReply { author, content, state } = reply;
    let found = tx.first(select_feedback!("where id = ?1"), [id], feedback_of)?.ok_or(Code::NotFound)?;
    let rejected = |message: Sentence| Err(Error::field("text", Fault::new(FieldCode::NotAllowed, message)));
    let Some(user) = found.user.filter(|_| found.is_verified) else {
        return rejected(("cannot reach the sender, who was not signed in", "无法送达：发送者未登录").into());
    };
    if replies_in(tx, id)?.len() >= MAX_REPLIES as usize {
        return rejected(
            (
                format!("is one too many: the message has {MAX_REPLIES} replies, the maximum"),
                format!("回复已达上限 {MAX_REPLIES} 条"),
            )
                .into(),
        );
    }
    tx.execute(
        "insert into feedback_replies (feedback_id, author, content, created_at) values (?1, ?2, ?3, ?4)",
        (id, author, content, tx.now.0),
    )?;
    let state =
        state.unwrap_or(if found.state == FeedbackState::Open { FeedbackState::InProgress } else { found.state });
    tx.execute("update feedback set state = ?2 where id = ?1", (id, state.name()))?;
    user_notices::send_in(tx, config, user, &UserNotice::FeedbackReply { reply: content })?;
    let changed = tx.first(select_feedback!("where id = ?1"), [id], feedback_of)?.ok_or(Code::NotFound)?;
    thread_in(tx, changed)
}

fn insert_in(
    tx: &Write<'_>,
    user: Option<UserId>,
    phone_number: Option<&PhoneNumber>,
    client_network: Option<&str>,
    content: &str,
) -> Result<Feedback> {
    let feedback = tx.one(
        concat!(
            "insert into feedback (user_id, phone_number, is_verified, client_network, content, created_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6) returning ",
            feedback_columns!()
        ),
        (
            user.map(|user| user.0),
            phone_number.map(PhoneNumber::as_str),
            client_network.is_none(),
            client_network,
            content,
            tx.now.0,
        ),
        feedback_of,
    )?;
    delete_surplus_in(tx, &feedback)?;
    // Without a token the user is a claim.
    let (kind, user) = (WebhookKind::FeedbackSubmitted, feedback.user.filter(|_| feedback.is_verified));
    let data = json!({ "feedbackId": feedback.id.to_string() });
    webhook_outbox::record_in(tx, &NewWebhookEvent { kind, user, data, text: Some(content) })?;
    Ok(feedback)
}

/// Deletes messages beyond the newest of the sender.
fn delete_surplus_in(tx: &Write<'_>, newest: &Feedback) -> Result<()> {
    let of_user = "delete from feedback where id in (select id from feedback where user_id = ?1 and is_verified = ?2 \
                   order by created_at desc limit ?3 offset ?4)";
    if let Some(user) = newest.user {
        tx.execute(of_user, (user.0, newest.is_verified, PURGE_BATCH, KEPT))?;
    }
    let of_number = "delete from feedback where id in (select id from feedback where phone_number = ?1 \
                     and is_verified = 0 order by id desc limit ?2 offset ?3)";
    if let Some(number) = newest.phone_number.as_ref().filter(|_| !newest.is_verified) {
        tx.execute(of_number, (number, PURGE_BATCH, KEPT))?;
    }
    Ok(())
}

fn feedback_of(row: &Row<'_>) -> RowResult<Feedback> {
    Ok(Feedback {
        id: row.get(0)?,
        user: row.get::<Option<i64>>(1)?.map(UserId),
        phone_number: row.get(2)?,
        is_verified: row.get(3)?,
        content: row.get(4)?,
        created_at: Timestamp(row.get(5)?),
        state: row.get_parsed(6, FeedbackState::from_name)?,
        assignee: row.get(7)?,
    })
}
