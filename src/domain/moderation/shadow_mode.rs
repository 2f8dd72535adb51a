//! Shadow mode: the service that does not decide rules on a sample of texts, after the response is sent. Disagreements
//! are stored masked, so that operators see what a switch would change.
//!
//! Texts of deleted users are neither sent to the external moderator nor stored.

use std::time::Duration;

use serde_json::json;

use super::{
    check::moderate_locally, engine::ContentType, external_moderator::account_of, policy::Service, ruling::Ruling,
    service::Moderation, shadow_sampler::Sample,
};
use crate::{
    core::Core,
    domain::{Each, identity::users},
    error::{Error, Result},
    store::{Read, Row, RowResult, Write},
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// A stored text on which the services disagree.
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

/// Processes the waiting samples. Blocks on the external moderator, so it needs a job of its own.
pub fn process_samples(moderation: &Moderation) -> Result<()> {
    while let Some(sample) = moderation.shadow_sampler.next() {
        if !moderation.core.store.read(|tx| is_user_present_in(tx, sample.user))? {
            continue;
        }
        // A failed call of the external moderator yields no ruling.
        let Some(other) = other_ruling(moderation, &sample)? else { continue };
        if other.allowed != sample.ruling.allowed {
            store_disagreement(moderation, sample, other)?;
        }
    }
    Ok(())
}

fn other_ruling(moderation: &Moderation, sample: &Sample) -> Result<Option<Ruling>> {
    match sample.decided_by.other() {
        Service::Local => moderate_locally(moderation, sample.content_type, &sample.text).map(Some),
        Service::External => {
            let external = &moderation.external;
            let account = sample.user.map(|user| account_of(&moderation.core, user));
            let verdict = external.moderate(sample.content_type, &sample.text, account.as_deref());
            Ok(verdict.ok().map(|verdict| Ruling::from_verdict(external.name(), &sample.text, &verdict)))
        }
    }
}

fn store_disagreement(moderation: &Moderation, sample: Sample, other: Ruling) -> Result<()> {
    let (decided_by, content_type, user) = (sample.decided_by, sample.content_type, sample.user);
    let (local, external) = match decided_by {
        Service::Local => (sample.ruling, other),
        Service::External => (other, sample.ruling),
    };
    let limit = moderation.core.config.moderation.disagreements;
    let write = moderation.core.store.write(move |tx| {
        if !is_user_present_in(tx, user)? {
            return Ok(());
        }
        insert_in(tx, decided_by, content_type, user, &local, &external)?;
        tx.execute("delete from disagreements where id <= (select max(id) from disagreements) - ?1", [limit]).map(drop)
    });
    write.wait()
}

/// Returns true if the text has no user, or its user still exists.
fn is_user_present_in(tx: &Read<'_>, user: Option<UserId>) -> Result<bool> {
    user.map_or(Ok(true), |user| users::exists_in(tx, user))
}

fn insert_in(
    tx: &Write<'_>,
    decided_by: Service,
    content_type: ContentType,
    user: Option<UserId>,
    local: &Ruling,
    external: &Ruling,
) -> Result<()> {
    let rejection = if local.allowed { external } else { local };
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
            &rejection.masked_text,
            tx.now.0,
            user.map(|user| user.0),
        ),
    )
    .map(drop)
}

/// Deletes the disagreements of a user whose account is deleted.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from disagreements where user_id = ?1", [user.0]).map(drop)
}

/// Deletes up to `limit` disagreements that are older than `age`, and returns their number.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from disagreements where id in (select id from disagreements where created_at < ?1 limit ?2)",
        (tx.now.minus(age).0, limit),
    )
}

/// Exports the user's disagreements without the rulings.
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

/// Lists disagreements, newest first.
pub fn disagreements(core: &Core, page: PageRequest) -> Result<Paginated<Disagreement>> {
    core.store.read(|tx| {
        let items = tx.all(
            "select id, content_type, decided_by, local_allowed, external_allowed, words, labels, masked_text, \
             created_at from disagreements order by id desc limit ?1 offset ?2",
            (page.size, page.offset()),
            row_of,
        )?;
        Ok(Paginated { items, total: tx.one("select count(*) from disagreements", (), |row| row.get(0))? })
    })
}

fn row_of(row: &Row<'_>) -> RowResult<Disagreement> {
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
