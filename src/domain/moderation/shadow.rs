//! Shadow mode: samples texts and sends them to the service that does not decide, after the response was sent.
//! Disagreements are stored masked, so that an operator sees the effect of a switch.
//!
//! A few samples wait in memory; further ones are dropped. No request waits for a sample. Samples of deleted users are
//! neither sent nor stored.

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use serde_json::json;

use super::{Moderation, Ruling, engine::ContentType, external::account_of, judge_locally, policy::Service};
use crate::{
    concurrency::lock::lock_unpoisoned,
    core::Core,
    domain::{Each, identity::users},
    error::{Error, Result},
    store::{Read, Row, Write},
    types::{Listing, Page, Timestamp, UserId, random_bytes},
};

/// Samples that may wait.
const WAITING: usize = 256;

/// The samples that wait, and how large a share of all texts becomes one.
pub struct Shadow {
    share: f64,
    waiting: Mutex<VecDeque<Sample>>,
}

/// A text that was decided about.
struct Sample {
    decided_by: Service,
    content_type: ContentType,
    text: String,
    user: Option<UserId>,
    ruling: Ruling,
}

/// A stored disagreement between the services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    pub id: i64,
    pub content_type: String,
    pub decided_by: String,
    pub local_allowed: bool,
    pub external_allowed: bool,
    pub words: Vec<String>,
    pub labels: Vec<String>,
    pub masked_text: String,
    pub at: Timestamp,
}

impl Shadow {
    pub fn new(share: f64) -> Self {
        Self { share, waiting: Mutex::default() }
    }

    pub fn share(&self) -> f64 {
        self.share
    }

    /// Takes a text for a sample, perhaps.
    pub(super) fn offer(
        &self,
        decided_by: Service,
        content_type: ContentType,
        text: &str,
        user: Option<UserId>,
        ruling: &Ruling,
    ) {
        if self.share <= 0.0 || !self.is_drawn() {
            return;
        }
        let mut waiting = lock_unpoisoned(&self.waiting);
        if waiting.len() < WAITING {
            let (text, ruling) = (text.to_owned(), ruling.clone());
            waiting.push_back(Sample { decided_by, content_type, text, user, ruling });
        }
    }

    fn is_drawn(&self) -> bool {
        random_bytes().is_ok_and(|bytes| f64::from(u32::from_le_bytes(bytes)) < self.share * f64::from(u32::MAX))
    }

    fn next(&self) -> Option<Sample> {
        lock_unpoisoned(&self.waiting).pop_front()
    }
}

/// Asks about the samples that wait. For a job of its own, since the outside service takes its time.
pub fn ask_about_samples(moderation: &Moderation) -> Result<()> {
    while let Some(sample) = moderation.shadow.next() {
        if !moderation.core.store.read(|tx| is_wanted_in(tx, sample.user))? {
            continue;
        }
        // A service that fails has no opinion.
        let Some(other) = opinion_of_other(moderation, &sample)? else { continue };
        if other.allowed != sample.ruling.allowed {
            keep(moderation, sample, other)?;
        }
    }
    Ok(())
}

fn opinion_of_other(moderation: &Moderation, sample: &Sample) -> Result<Option<Ruling>> {
    match sample.decided_by.other() {
        Service::Local => judge_locally(moderation, sample.content_type, &sample.text).map(Some),
        Service::External => {
            let external = &moderation.external;
            let account = sample.user.map(|user| account_of(&moderation.core, user));
            let judged = external.ask(sample.content_type, &sample.text, account.as_deref());
            Ok(judged.ok().map(|judged| Ruling::of_judgement(external.name(), &sample.text, &judged)))
        }
    }
}

fn keep(moderation: &Moderation, sample: Sample, other: Ruling) -> Result<()> {
    let (decided_by, content_type, user) = (sample.decided_by, sample.content_type, sample.user);
    let (local, external) = match decided_by {
        Service::Local => (sample.ruling, other),
        Service::External => (other, sample.ruling),
    };
    let kept = moderation.core.config.moderation.disagreements;
    let write = moderation.core.store.write(move |tx| {
        if !is_wanted_in(tx, user)? {
            return Ok(());
        }
        keep_in(tx, decided_by, content_type, user, &local, &external)?;
        tx.execute("delete from disagreements where id <= (select max(id) from disagreements) - ?1", [kept]).map(drop)
    });
    write.wait()
}

/// Returns true if the text's user still exists. An operator's own text has no user.
fn is_wanted_in(tx: &Read<'_>, user: Option<UserId>) -> Result<bool> {
    user.map_or(Ok(true), |user| users::is_known_in(tx, user))
}

fn keep_in(
    tx: &Write<'_>,
    decided_by: Service,
    content_type: ContentType,
    user: Option<UserId>,
    local: &Ruling,
    external: &Ruling,
) -> Result<()> {
    let refusing = if local.allowed { external } else { local };
    tx.execute(
        "insert into disagreements (content_type, decided_by, local_allowed, external_allowed, words, labels, \
         masked_text, created_at, user_id) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            content_type.name(),
            decided_by.name(),
            local.allowed,
            external.allowed,
            serde_json::to_string(&local.found).map_err(Error::internal)?,
            serde_json::to_string(&external.found).map_err(Error::internal)?,
            &refusing.masked_text,
            tx.now.0,
            user.map(|user| user.0),
        ),
    )
    .map(drop)
}

/// Deletes the texts of a user who leaves.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from disagreements where user_id = ?1", [user.0]).map(drop)
}

/// Deletes up to `slice` disagreements older than `age` and returns the number deleted.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, slice: u32) -> Result<usize> {
    tx.execute(
        "delete from disagreements where id in (select id from disagreements where created_at < ?1 limit ?2)",
        (tx.now.minus(age).0, slice),
    )
}

/// Exports the user's disagreements.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(
        "select content_type, masked_text, created_at from disagreements where user_id = ?1 order by id",
        [user.0],
        |row| {
            each(json!({
                "contentType": row.get::<String>(0)?,
                "maskedText": row.get::<String>(1)?,
                "createdAt": Timestamp(row.get(2)?),
            }))
        },
    )
}

/// Texts on which the services did not agree, newest first.
pub fn disagreements(core: &Core, page: Page) -> Result<Listing<Disagreement>> {
    core.store.read(|tx| {
        let items = tx.all(
            "select id, content_type, decided_by, local_allowed, external_allowed, words, labels, masked_text, \
             created_at from disagreements order by id desc limit ?1 offset ?2",
            (page.size, page.offset()),
            row_of,
        )?;
        Ok(Listing { items, total: tx.one("select count(*) from disagreements", (), |row| row.get(0))? })
    })
}

fn row_of(row: &Row<'_>) -> rusqlite::Result<Disagreement> {
    let list = |index| row.get::<String>(index).map(|json| serde_json::from_str(&json).unwrap_or_default());
    Ok(Disagreement {
        id: row.get(0)?,
        content_type: row.get(1)?,
        decided_by: row.get(2)?,
        local_allowed: row.get(3)?,
        external_allowed: row.get(4)?,
        words: list(5)?,
        labels: list(6)?,
        masked_text: row.get(7)?,
        at: Timestamp(row.get(8)?),
    })
}
