//! Which service decides, and what happens when it cannot: two switches in the database.
//!
//! They are read anew for every text, in one statement, so that a flip by any process holds from the next text on and
//! a text that is being judged is judged by one policy from beginning to end.

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
    /// Who decides.
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
    /// Whether the local list decides when the outside service fails.
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

/// Lets this service decide from now on, and answers what held before.
///
/// # Errors
/// `not_configured` for an outside service that nobody has set up.
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

/// Says whether the local list decides when the outside service fails, and answers what held before.
pub fn set_fallback(core: &Core, falls_back: bool) -> Pending<Policy> {
    core.store.write(move |tx| {
        let before = current_in(tx)?;
        settings::put_in(tx, FALLBACK, if falls_back { "on" } else { "off" })?;
        Ok(before)
    })
}
