//! The moderation service and its run-time state.

use super::{
    active_list::ActiveWordList, external_moderator::ExternalModerator, external_quota::ExternalQuota,
    shadow_sampler::ShadowSampler,
};
use crate::{core::Core, providers::moderation::TextModerator};

/// The word list, the external moderator and the samples of shadow mode.
pub struct Moderation {
    pub core: Core,
    pub word_list: ActiveWordList,
    pub external: ExternalModerator,
    /// The hourly quota of texts per user for the external moderator.
    pub external_quota: ExternalQuota,
    pub shadow_sampler: ShadowSampler,
}

impl Moderation {
    pub fn new(core: Core, moderator: Option<Box<dyn TextModerator>>) -> Self {
        let settings = &core.config.moderation;
        Self {
            word_list: ActiveWordList::new(core.store.clone(), settings.slang),
            external: ExternalModerator::new(moderator, core.clock.clone(), settings),
            external_quota: ExternalQuota::default(),
            shadow_sampler: ShadowSampler::new(settings.shadow_sample_rate),
            core,
        }
    }

    /// Returns true if checking a text may block: on the external moderator, or on the first compilation of the word list.
    pub fn may_block(&self) -> bool {
        self.external.is_configured() || !self.word_list.is_compiled()
    }
}
