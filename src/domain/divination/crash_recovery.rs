//! Model calls that a stop or crash of the service interrupted.

use std::time::Duration;

use super::{budget, chat, interpretation, sessions};
use crate::{core::Core, error::Result, store::Write, types::Timestamp};

/// Time that a call may take beyond its limits.
const MARGIN: Duration = Duration::from_mins(2);

/// Marks running calls as interrupted, charges their whole reservations and refunds the users' points. Runs when the
/// server starts and stops, when no call can be running. One transaction, so that no call that finishes meanwhile is
/// charged twice.
///
/// While other copies of the service run, their calls are not touched. The calls that this copy leaves are closed by
/// [`close_abandoned`] then.
///
/// # Errors
/// Storage errors.
pub fn close_interrupted(core: &Core) -> Result<()> {
    if core.store.other_copies() > 0 {
        return close_abandoned(core);
    }
    close(core, None)
}

/// Closes calls that have been running for longer than any call can. Their reservations stay, which count like spending.
///
/// # Errors
/// Storage errors.
pub fn close_abandoned(core: &Core) -> Result<()> {
    // A call may be repeated with a second model.
    let longest = 2 * core.config.llm.total_timeout + core.config.llm.queue_timeout + MARGIN;
    let begun_before = core.clock.now().minus(longest);
    let is_any = core.store.read(|tx| {
        Ok(interpretation::has_running_before_in(tx, begun_before)? || chat::has_running_before_in(tx, begun_before)?)
    })?;
    if is_any { close(core, Some(begun_before)) } else { Ok(()) }
}

/// Closes all running calls, or those that began before a time.
fn close(core: &Core, begun_before: Option<Timestamp>) -> Result<()> {
    let zone = core.config.limits.time_zone.clone();
    let update = move |tx: &Write<'_>| {
        let before = begun_before.unwrap_or(Timestamp(i64::MAX));
        if begun_before.is_none() {
            budget::spend_reservations_in(tx)?;
        }
        sessions::interpretation::refund_interrupted_in(tx, before)?;
        Ok((interpretation::close_interrupted_in(tx, &zone, before)?, chat::close_interrupted_in(tx, &zone, before)?))
    };
    let (interpretations, chats) = core.store.write(update).wait()?;
    if interpretations + chats > 0 {
        tracing::warn!(interpretations, chats, "marked model calls as interrupted because the service stopped");
    }
    Ok(())
}
