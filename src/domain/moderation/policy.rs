//! The moderation policy: two switches in the database.
//!
//! Each text reads both in one statement. A change by any process therefore applies to the next text, and one text is
//! never decided by two policies.

use super::external_moderator::ExternalModerator;
use crate::{
    core::Core,
    domain::operations::settings,
    error::{Code, Error, Result},
    store::{Pending, Read},
    types::named_enum,
};

const SERVICE: &str = "moderation.service";
const FALLBACK: &str = "moderation.fallback";

named_enum! {
    /// The service that decides.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Service {
        /// The external moderator.
        External = "external",
        /// The word list.
        Local = "local",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub service: Service,
    /// The word list decides when the external moderator fails.
    pub falls_back: bool,
}

impl Service {
    /// Returns the service that does not decide.
    pub const fn other(self) -> Self {
        match self {
            Self::Local => Self::External,
            Self::External => Self::Local,
        }
    }
}

/// Returns the current policy. By default the word list decides.
pub fn current(core: &Core) -> Result<Policy> {
    core.store.read(current_in)
}

pub fn current_in(tx: &Read<'_>) -> Result<Policy> {
    let [service, fallback] = settings::find_two_in(tx, [SERVICE, FALLBACK])?;
    Ok(Policy {
        service: service.as_deref().and_then(Service::from_name).unwrap_or(Service::Local),
        falls_back: fallback.as_deref() != Some("off"),
    })
}

/// Selects the service that decides, and returns the policy before the change.
///
/// # Errors
/// `not_configured` if no external moderator is configured.
pub fn switch(core: &Core, external: &ExternalModerator, service: Service) -> Pending<Policy> {
    if service == Service::External && !external.is_configured() {
        let detail = (
            "No external moderator is configured. Set `moderation.provider` and its keys first.",
            "尚未配置外部审核。请先设置 `moderation.provider` 及其密钥。",
        );
        return Pending::ready(Err(Error::new(Code::NotConfigured).detail(detail)));
    }
    core.store.write(move |tx| {
        let before = current_in(tx)?;
        settings::put_in(tx, SERVICE, service.name())?;
        Ok(before)
    })
}

/// Turns the fallback on or off, and returns the policy before the change.
pub fn set_fallback(core: &Core, falls_back: bool) -> Pending<Policy> {
    core.store.write(move |tx| {
        let before = current_in(tx)?;
        settings::put_in(tx, FALLBACK, if falls_back { "on" } else { "off" })?;
        Ok(before)
    })
}
