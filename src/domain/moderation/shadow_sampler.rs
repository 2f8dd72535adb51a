//! The samples of shadow mode that wait for processing.

use std::{collections::VecDeque, sync::Mutex};

use super::{engine::ContentType, policy::Service, ruling::Ruling};
use crate::{
    concurrency::lock::lock_unpoisoned,
    types::{UserId, random_bytes},
};

/// Maximum number of waiting samples. Further ones are dropped.
const CAPACITY: usize = 256;

/// Draws a random share of all texts as samples. The queue is in memory and bounded, so requests never wait for it.
pub struct ShadowSampler {
    sample_rate: f64,
    waiting: Mutex<VecDeque<Sample>>,
}

/// A text and its ruling.
pub(super) struct Sample {
    pub(super) decided_by: Service,
    pub(super) content_type: ContentType,
    pub(super) text: String,
    pub(super) user: Option<UserId>,
    pub(super) ruling: Ruling,
}

impl ShadowSampler {
    pub fn new(sample_rate: f64) -> Self {
        Self { sample_rate, waiting: Mutex::default() }
    }

    pub fn sample_rate(&self) -> f64 {
        self.sample_rate
    }

    /// Queues a text as a sample, with the probability of the sample rate.
    pub(super) fn offer(
        &self,
        decided_by: Service,
        content_type: ContentType,
        text: &str,
        user: Option<UserId>,
        ruling: &Ruling,
    ) {
        if self.sample_rate <= 0.0 || !self.is_drawn() {
            return;
        }
        let mut waiting = lock_unpoisoned(&self.waiting);
        if waiting.len() < CAPACITY {
            let (text, ruling) = (text.to_owned(), ruling.clone());
            waiting.push_back(Sample { decided_by, content_type, text, user, ruling });
        }
    }

    fn is_drawn(&self) -> bool {
        random_bytes().is_ok_and(|bytes| f64::from(u32::from_le_bytes(bytes)) < self.sample_rate * f64::from(u32::MAX))
    }

    pub(super) fn next(&self) -> Option<Sample> {
        lock_unpoisoned(&self.waiting).pop_front()
    }
}
