//! Model calls that no process runs any more: those that a stop or a crash cut off.

use super::{budget, chat, interpretation};
use crate::{core::Core, error::Result, store::Write};

/// Says of them that they were interrupted, and takes what they had set aside as spent. For a server's start and end,
/// when none can be running. All at once: a call that ended by itself in between would be charged twice.
///
/// # Errors
/// Storage errors.
pub fn close(core: &Core) -> Result<()> {
    let zone = core.config.limits.time_zone.clone();
    let close = move |tx: &Write<'_>| {
        budget::take_reserved_as_spent_in(tx)?;
        Ok((interpretation::close_interrupted_in(tx, &zone)?, chat::close_interrupted_in(tx, &zone)?))
    };
    let (interpretations, conversations) = core.store.write(close).wait()?;
    if interpretations + conversations > 0 {
        tracing::warn!(interpretations, conversations, "model calls were interrupted by a stop of the service");
    }
    Ok(())
}
