//! Feedback to the operators.
//!
//! It needs no sign-in, so ids and phone numbers are unverified claims unless a token proves the user. Anonymous
//! feedback is limited by client network, which is deleted after a day.

use std::{net::IpAddr, time::Duration};

use serde_json::json;

use crate::{
    core::Core,
    domain::{
        Each,
        identity::{
            codes::client_network,
            users::{self, User},
        },
    },
    error::Result,
    store::{
        Pending, Read, Row, Write,
        sliding_window::{self, HOUR, Window},
    },
    types::{PageRequest, Paginated, PhoneNumber, Timestamp, UserId},
};

const CLIENT_NETWORK_RETENTION: Duration = Duration::from_hours(24);

/// The columns that [`feedback_of`] reads, in its order.
macro_rules! feedback_columns {
    () => {
        "id, user_id, phone_number, is_verified, content, created_at"
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
}

/// A filter for feedback.
#[derive(Clone, Debug)]
pub enum FeedbackFilter {
    All,
    Of(UserId),
}

/// Stores feedback.
///
/// # Errors
/// `too_many_requests`, with the time until the next is accepted.
pub fn submit(core: &Core, author: Author, content: String) -> Pending<Feedback> {
    let (per_user, per_client) = (core.config.limits.feedback_per_user, core.config.limits.feedback_per_client);
    core.store.write(move |tx| match &author {
        Author::User(user) => {
            users::require_in(tx, user.id)?;
            let newest_first = "select created_at from feedback where user_id = ?1 and is_verified = 1 \
                                and created_at <= ?3 order by created_at desc limit 1 offset ?2";
            let window = Window { newest_first, key: user.id.0, allowed: per_user, length: HOUR };
            sliding_window::require_open_in(tx, &[window])?;
            insert_in(tx, Some(user.id), user.phone_number.as_ref(), None, &content)
        }
        Author::Anonymous { client, user, phone_number } => {
            let network = client_network(*client);
            let newest_first = "select created_at from feedback where client_network = ?1 and created_at <= ?3 \
                                order by created_at desc limit 1 offset ?2";
            let window = Window { newest_first, key: &network, allowed: per_client, length: HOUR };
            sliding_window::require_open_in(tx, &[window])?;
            insert_in(tx, *user, phone_number.as_ref(), Some(&network), &content)
        }
    })
}

/// Lists feedback, newest first.
pub fn list(core: &Core, filter: &FeedbackFilter, page: PageRequest) -> Result<Paginated<Feedback>> {
    let (size, offset) = (page.size, page.offset());
    core.store.read(|tx| match filter {
        FeedbackFilter::All => Ok(Paginated {
            items: tx.all(select_feedback!("order by id desc limit ?1 offset ?2"), (size, offset), feedback_of)?,
            total: count_in(tx)?,
        }),
        FeedbackFilter::Of(user) => Ok(Paginated {
            items: tx.all(
                select_feedback!("where user_id = ?1 order by id desc limit ?2 offset ?3"),
                (user.0, size, offset),
                feedback_of,
            )?,
            total: tx.one("select count(*) from feedback where user_id = ?1", [user.0], |row| row.get(0))?,
        }),
    })
}

/// Exports the user's feedback, oldest first. Unverified claims are not included.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(select_feedback!("where user_id = ?1 and is_verified = 1 order by id"), [user.0], |row| {
        let Feedback { id, content, created_at, .. } = feedback_of(row)?;
        each(json!({ "id": id.to_string(), "content": content, "createdAt": created_at }))
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

fn insert_in(
    tx: &Write<'_>,
    user: Option<UserId>,
    phone_number: Option<&PhoneNumber>,
    client_network: Option<&str>,
    content: &str,
) -> Result<Feedback> {
    tx.one(
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
    )
}

fn feedback_of(row: &Row<'_>) -> rusqlite::Result<Feedback> {
    Ok(Feedback {
        id: row.get(0)?,
        user: row.get::<Option<i64>>(1)?.map(UserId),
        phone_number: row.get(2)?,
        is_verified: row.get(3)?,
        content: row.get(4)?,
        created_at: Timestamp(row.get(5)?),
    })
}
