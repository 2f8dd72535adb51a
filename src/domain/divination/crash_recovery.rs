//! Model calls that a stop or crash of the service interrupted.

use super::{
    chat, interpretation,
    model_calls::{
        hourly_limit::UserCall,
        running_calls::{self, AbandonedCall},
    },
    sessions,
};
use crate::{config, core::Core, error::Result, store::Write};

/// Closes the calls of this copy of the service, and those of copies that do not run. For the start and stop of the
/// server, when this copy runs no call.
///
/// # Errors
/// Storage errors.
pub fn close_interrupted(core: &Core) -> Result<()> {
    close(core, Some(core.store.copy_name().to_owned()))
}

/// Closes the calls of copies of the service that do not run.
///
/// # Errors
/// Storage errors.
pub fn close_abandoned(core: &Core) -> Result<()> {
    if running_calls::has_abandoned(core)? { close(core, None) } else { Ok(()) }
}

/// Closes the calls of copies that do not run, and those of `also`. Marks the records as interrupted, charges the
/// reservations and refunds the points in one transaction, so that no call that finishes meanwhile is charged twice.
fn close(core: &Core, also: Option<String>) -> Result<()> {
    let config = core.config.clone();
    let update = move |tx: &Write<'_>| {
        let calls = running_calls::take_abandoned_in(tx, also.as_deref())?;
        let count = calls.len();
        for call in calls {
            close_in(tx, &config.llm, call)?;
        }
        Ok(count)
    };
    let calls = core.store.write(update).wait()?;
    if calls > 0 {
        tracing::warn!(calls, "marked model calls as interrupted because the service stopped");
    }
    Ok(())
}

fn close_in(tx: &Write<'_>, settings: &config::LlmConfig, call: AbandonedCall) -> Result<()> {
    match call.kind {
        UserCall::Interpretation => {
            if let Some(user) = call.user() {
                sessions::interpretation::refund_in(tx, user, &call.trace_id)?;
            }
            interpretation::interrupt_in(tx, &call.trace_id)?;
        }
        UserCall::Chat => chat::interrupt_in(tx, &call.trace_id)?,
    }
    call.settle_in(tx, settings)
}
