//! The moderation policy: two switches in the database that select the service and the fallback.
//!
//! Both are read for every text in one statement. So a change by any process applies from the next text on, and one
//! text is judged by one policy.

use super::Moderation;
use crate::{
    core::Core,
    domain::operations::settings,
    error::{Code, Error, Result},
    store::{Pending, Read},
    types::named,
};

const SERVICE: &str = "moderation.service";
const FALLBACK: &str = "moderation.fallback";

named! {
    /// The deciding service.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Service {
        /// The outside service that is configured.
        External = "external",
        /// The word list.
        Local = "local",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub service: Service,
    /// True if the local list decides when the external service fails.
    pub falls_back: bool,
}

impl Service {
    /// The one that does not decide.
    pub const fn other(self) -> Self {
        match self {
            Self::Local => Self::External,
            Self::External => Self::Local,
        }
    }
}

/// The policy that holds now. Without any flip: the local list decides.
pub fn current(core: &Core) -> Result<Policy> {
    core.store.read(current_in)
}

pub fn current_in(tx: &Read<'_>) -> Result<Policy> {
    let [service, fallback] = settings::find_two_in(tx, [SERVICE, FALLBACK])?;
    Ok(Policy {
        service: service.as_deref().and_then(Service::named).unwrap_or(Service::Local),
        falls_back: fallback.as_deref() != Some("off"),
    })
}

/// Selects the deciding service and returns the previous policy.
///
/// # Errors
/// `not_configured` if no external service is set up.
pub fn switch(moderation: &Moderation, service: Service) -> Pending<Policy> {
    if service == Service::External && !moderation.external.is_configured() {
        let detail = "No outside service is configured: set `moderation.provider` and its keys first.";
        return Pending::ready(Err(Error::new(Code::NotConfigured).detail(detail)));
    }
    moderation.core.store.write(move |tx| {
        let before = current_in(tx)?;
        settings::put_in(tx, SERVICE, service.name())?;
        Ok(before)
    })
}

/// Enables or disables the fallback and returns the previous policy.
pub fn set_fallback(core: &Core, falls_back: bool) -> Pending<Policy> {
    core.store.write(move |tx| {
        let before = current_in(tx)?;
        settings::put_in(tx, FALLBACK, if falls_back { "on" } else { "off" })?;
        Ok(before)
    })
}
