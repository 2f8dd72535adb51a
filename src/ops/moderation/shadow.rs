//! Shadow mode: a sample of texts on which the service that does not decide is asked as well, after the answer has
//! left. Where the two do not agree, the text is kept masked, so that an operator sees what a switch would change.
//!
//! Samples wait in memory, few of them; when too many wait, new ones are let go. Nobody ever waits for a shadow.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use super::{Ruling, engine::ContentType, judge_locally, policy::Service};
use crate::{
    app::App,
    error::{Error, Result},
    store::{Row, Write},
    types::{Listing, Page, Timestamp, fill_random},
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
    account: Option<String>,
    ruling: Ruling,
}

/// A text on which the services did not agree, as it is kept.
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
        app: &App,
        decided_by: Service,
        content_type: ContentType,
        text: &str,
        account: Option<String>,
        ruling: &Ruling,
    ) {
        if self.share <= 0.0 || !app.moderation.external.is_configured() || !self.is_drawn() {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING {
            let (text, ruling) = (text.to_owned(), ruling.clone());
            waiting.push_back(Sample { decided_by, content_type, text, account, ruling });
        }
    }

    fn is_drawn(&self) -> bool {
        let mut bytes = [0; 4];
        fill_random(&mut bytes).is_ok() && f64::from(u32::from_le_bytes(bytes)) < self.share * f64::from(u32::MAX)
    }

    fn next(&self) -> Option<Sample> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Asks about the samples that wait. For a job of its own, since the outside service takes its time.
pub fn ask_about_samples(app: &App) -> Result<()> {
    while let Some(sample) = app.moderation.shadow.next() {
        // A service that fails has no opinion.
        let Some(other) = opinion_of_other(app, &sample)? else { continue };
        if other.allowed != sample.ruling.allowed {
            keep(app, sample, other)?;
        }
    }
    Ok(())
}

fn opinion_of_other(app: &App, sample: &Sample) -> Result<Option<Ruling>> {
    match sample.decided_by.other() {
        Service::Local => judge_locally(app, sample.content_type, &sample.text).map(Some),
        Service::External => {
            let external = &app.moderation.external;
            let judged = external.ask(sample.content_type, &sample.text, sample.account.as_deref());
            Ok(judged.ok().map(|judged| Ruling::of_judgement(external.name(), &sample.text, &judged)))
        }
    }
}

fn keep(app: &App, sample: Sample, other: Ruling) -> Result<()> {
    let (decided_by, content_type) = (sample.decided_by, sample.content_type);
    let (local, external) = match decided_by {
        Service::Local => (sample.ruling, other),
        Service::External => (other, sample.ruling),
    };
    let kept = app.config.moderation.disagreements;
    app.store.write(move |tx| keep_in(tx, decided_by, content_type, &local, &external, kept)).wait()
}

fn keep_in(
    tx: &Write<'_>,
    decided_by: Service,
    content_type: ContentType,
    local: &Ruling,
    external: &Ruling,
    kept: u32,
) -> Result<()> {
    let refusing = if local.allowed { external } else { local };
    tx.execute(
        "insert into disagreements (content_type, decided_by, local_allowed, external_allowed, words, labels, \
         masked_text, created_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            content_type.as_str(),
            decided_by.as_str(),
            local.allowed,
            external.allowed,
            serde_json::to_string(&local.found).map_err(Error::internal)?,
            serde_json::to_string(&external.found).map_err(Error::internal)?,
            &refusing.masked_text,
            tx.now.0,
        ),
    )?;
    tx.execute("delete from disagreements where id <= (select max(id) from disagreements) - ?1", [kept]).map(drop)
}

/// Texts on which the services did not agree, newest first.
pub fn disagreements(app: &App, page: Page) -> Result<Listing<Disagreement>> {
    app.store.read(|tx| {
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
