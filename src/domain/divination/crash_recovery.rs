//! Model calls that a stop or crash of the service interrupted.

use super::{budget, chat, interpretation, sessions};
use crate::{core::Core, error::Result, store::Write};

/// Marks running calls as interrupted, charges their whole reservations and refunds the users' points. Runs when the
/// server starts and stops, when no call can be running. One transaction, so that no call that finishes meanwhile is
/// charged twice.
///
/// # Errors
/// Storage errors.
pub fn close_interrupted(core: &Core) -> Result<()> {
    let zone = core.config.limits.time_zone.clone();
    let update = move |tx: &Write<'_>| {
        budget::spend_reservations_in(tx)?;
        sessions::interpretation::refund_interrupted_in(tx)?;
        Ok((interpretation::close_interrupted_in(tx, &zone)?, chat::close_interrupted_in(tx, &zone)?))
    };
    let (interpretations, chats) = core.store.write(update).wait()?;
    if interpretations + chats > 0 {
        tracing::warn!(interpretations, chats, "marked model calls as interrupted because the service stopped");
    }
    Ok(())
}
