//! The service that calls language models.

use std::sync::Arc;

use super::{
    admission_queue::AdmissionQueue, hourly_limit::UserCall, outcome_retry_queue::OutcomeRetryQueue,
    running_calls::NewCall,
};
use crate::{
    core::Core,
    domain::{
        divination::{budget, prompts::Prompts},
        moderation::Moderation,
    },
    providers::llm::{ModelRequest, models::Models},
    types::UserId,
};

/// Admission, the models with their circuit breakers, and outcomes that are not stored yet.
pub struct ModelCalls {
    pub core: Core,
    /// Screens the output of the models.
    pub moderation: Arc<Moderation>,
    /// The primary model and the fallback, each with its circuit breaker.
    pub models: Models,
    /// The instructions of the models.
    pub prompts: Prompts,
    /// Limits running and queued calls.
    pub queue: AdmissionQueue,
    /// Outcomes that could not be stored yet.
    pub retry_queue: OutcomeRetryQueue,
}

impl ModelCalls {
    pub fn new(core: Core, moderation: Arc<Moderation>, models: Models, prompts: Prompts) -> Self {
        let settings = &core.config.llm;
        let queue = AdmissionQueue::new(settings.max_concurrent_calls, settings.calls_per_user, settings.queue);
        Self { core, moderation, models, prompts, queue, retry_queue: OutcomeRetryQueue::default() }
    }

    /// Returns the call of the primary model that a request begins.
    pub fn new_call(&self, user: UserId, kind: UserCall, request: &ModelRequest) -> NewCall {
        let (provider, model) = (self.models.name(), self.models.model());
        NewCall {
            trace_id: request.trace_id.clone(),
            copy: self.core.store.copy_name().to_owned(),
            user,
            kind,
            provider,
            model: model.to_owned(),
            amount: budget::max_usage(&self.core.config.llm, provider, model, request),
        }
    }

    /// Tries again to store outcomes that could not be stored. A periodic job calls it.
    pub fn retry_outcomes(&self) {
        self.retry_queue.retry(&self.core.store);
    }
}
