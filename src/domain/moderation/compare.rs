//! Asking both services about the same texts, side by side. Nothing is decided by it and nothing is remembered.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{Moderation, Ruling, engine::ContentType, external::account_of, judge_locally};
use crate::{concurrency::lock::lock_unpoisoned, error::Result, providers::moderation::Judgement, types::UserId};

/// Texts asked about at once, if the outside service takes as many.
const AT_ONCE: u32 = 4;

/// A text to ask about.
#[derive(Clone, Debug)]
pub struct Text {
    pub content: String,
    pub content_type: ContentType,
    pub user: Option<UserId>,
}

/// The verdict of one service.
#[derive(Clone, Debug)]
pub struct Opinion {
    pub ruling: Ruling,
    pub took: Duration,
}

/// The verdicts of both services.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub local: Opinion,
    /// The code of the failure, if the outside service has no opinion.
    pub external: Result<Opinion, String>,
}

impl Comparison {
    /// `None` unless there are two verdicts.
    pub fn agree(&self) -> Option<bool> {
        self.external.as_ref().ok().map(|external| external.ruling.allowed == self.local.ruling.allowed)
    }
}

/// Asks both services. Blocks on the outside one.
pub fn compare(moderation: &Moderation, text: &Text) -> Result<Comparison> {
    let begun = Instant::now();
    let ruling = judge_locally(moderation, text.content_type, &text.content)?;
    let local = Opinion { ruling, took: begun.elapsed() };
    let account = text.user.map(|user| account_of(&moderation.core, user));
    let begun = Instant::now();
    let external = &moderation.external;
    let judged = external.ask(text.content_type, &text.content, account.as_deref());
    let opinion = |judged: Judgement| Opinion {
        ruling: Ruling::of_judgement(external.name(), &text.content, &judged),
        took: begun.elapsed(),
    };
    Ok(Comparison { local, external: judged.map(opinion).map_err(|failure| failure.code) })
}

/// Asks both services about many texts, some of them at once, and answers in their order.
pub fn compare_all(moderation: &Moderation, texts: &[Text]) -> Result<Vec<Comparison>> {
    let next = Mutex::new(0..texts.len());
    let done = Mutex::new(Vec::with_capacity(texts.len()));
    let at_once = AT_ONCE.min(moderation.external.calls());
    std::thread::scope(|scope| {
        for _ in (0..at_once).zip(texts) {
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
