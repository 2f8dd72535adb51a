//! The service that calls language models.

use std::sync::Arc;

use super::{
    admission_queue::AdmissionQueue, hourly_limit::UserCall, outcome_retry_queue::OutcomeRetryQueue,
    running_calls::NewCall,
};
use crate::{
    core::Core,
    domain::{
        divination::{
            budget,
            help::{self, Asker, HelpAnswer, HelpOccasion, HelpTexts},
            prompts::Prompts,
        },
        moderation::{
            Moderation,
            risk::{Risk, RiskClass},
        },
    },
    providers::llm::{ModelRequest, models::Models, offline},
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
    /// Answers to questions on which no model may give a verdict.
    pub help: HelpTexts,
    /// Limits running and queued calls.
    pub queue: AdmissionQueue,
    /// Outcomes that could not be stored yet.
    pub retry_queue: OutcomeRetryQueue,
}

impl ModelCalls {
    pub fn new(core: Core, moderation: Arc<Moderation>, models: Models, prompts: Prompts, help: HelpTexts) -> Self {
        let settings = &core.config.llm;
        let queue = AdmissionQueue::new(settings.max_concurrent_calls, settings.calls_per_user, settings.queue);
        Self { core, moderation, models, prompts, help, queue, retry_queue: OutcomeRetryQueue::default() }
    }

    /// Returns the call of the primary model that a request begins.
    pub fn new_call(&self, user: UserId, kind: UserCall, request: &ModelRequest) -> NewCall {
        let (provider, model) = self.responder(request);
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

    /// Returns the provider and the model that answer a request, unless the fallback is called.
    pub fn responder(&self, request: &ModelRequest) -> (&'static str, &str) {
        if request.service_answer.as_ref().is_some_and(|answer| answer.is_whole) {
            (offline::NAME, offline::MODEL)
        } else {
            (self.models.name(), self.models.model())
        }
    }

    /// Returns the answer to a question that needs help. The offline interpreter adds to it only in a casting about a
    /// missing person.
    pub fn help_for(&self, risk: Risk, question: &str, asker: &Asker, occasion: HelpOccasion) -> HelpAnswer {
        let answer = self.help.answer(risk, question, asker, occasion);
        HelpAnswer { is_whole: answer.is_whole || self.is_silent(risk.class, occasion), ..answer }
    }

    /// Returns true if no model is called for a question of this risk, so that it needs no permit.
    pub fn is_answered_alone(&self, risk: Option<Risk>, occasion: HelpOccasion) -> bool {
        risk.is_some_and(|risk| help::is_answered_alone(risk.class, occasion) || self.is_silent(risk.class, occasion))
    }

    /// Returns true if the offline interpreter answers.
    pub fn is_offline(&self) -> bool {
        self.models.name() == offline::NAME
    }

    /// Returns true if the model has nothing to add, because it is the offline interpreter.
    fn is_silent(&self, class: RiskClass, occasion: HelpOccasion) -> bool {
        let may_add = class == RiskClass::MissingPerson && occasion == HelpOccasion::Interpretation;
        self.is_offline() && !may_add
    }

    /// Tries again to store outcomes that could not be stored. A periodic job calls it.
    pub fn retry_outcomes(&self) {
        self.retry_queue.retry(&self.core.store);
    }
}
