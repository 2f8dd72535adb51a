//! Compares the rulings of both services on the same texts. Stores nothing.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{
    check::moderate_locally, engine::ContentType, external_moderator::account_of, ruling::Ruling, service::Moderation,
};
use crate::{
    concurrency::lock::lock_unpoisoned, error::Result, providers::moderation::ModerationResult, types::UserId,
};

/// The most texts that are moderated concurrently.
const CONCURRENCY: u32 = 4;

/// A text to compare.
#[derive(Clone, Debug)]
pub struct ComparedText {
    pub content: String,
    pub content_type: ContentType,
    pub user: Option<UserId>,
}

/// The ruling of one service, and its duration.
#[derive(Clone, Debug)]
pub struct TimedRuling {
    pub ruling: Ruling,
    pub took: Duration,
}

/// The rulings of both services.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub local: TimedRuling,
    /// The ruling, or the code of the failure.
    pub external: Result<TimedRuling, String>,
}

impl Comparison {
    /// Returns whether the services agree; `None` if the external moderator failed.
    pub fn agree(&self) -> Option<bool> {
        self.external.as_ref().ok().map(|external| external.ruling.allowed == self.local.ruling.allowed)
    }
}

/// Compares one text. Blocks on the external moderator.
pub fn compare(moderation: &Moderation, text: &ComparedText) -> Result<Comparison> {
    let begun = Instant::now();
    let ruling = moderate_locally(moderation, text.content_type, &text.content)?;
    let local = TimedRuling { ruling, took: begun.elapsed() };
    let account = text.user.map(|user| account_of(&moderation.core, user));
    let begun = Instant::now();
    let external = &moderation.external;
    let verdict = external.moderate(text.content_type, &text.content, account.as_deref());
    let timed = |verdict: ModerationResult| TimedRuling {
        ruling: Ruling::from_verdict(external.name(), &text.content, &verdict),
        took: begun.elapsed(),
    };
    Ok(Comparison { local, external: verdict.map(timed).map_err(|failure| failure.code) })
}

/// Compares many texts, some of them concurrently, and returns the results in their order.
pub fn compare_all(moderation: &Moderation, texts: &[ComparedText]) -> Result<Vec<Comparison>> {
    let next = Mutex::new(0..texts.len());
    let done = Mutex::new(Vec::with_capacity(texts.len()));
    let threads = CONCURRENCY.min(moderation.external.max_calls());
    std::thread::scope(|scope| {
        for _ in (0..threads).zip(texts) {
            scope.spawn(|| {
                loop {
                    let index = lock_unpoisoned(&next).next();
                    let Some(index) = index else { return };
                    let compared = compare(moderation, &texts[index]);
                    lock_unpoisoned(&done).push((index, compared));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, compared)| compared).collect()
}
