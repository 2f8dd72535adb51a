//! Audit events of administrators' sign-ins, successful and failed.
//!
//! A failed sign-in is recorded under the name of an existing administrator. Unknown names are not stored, because
//! people type passwords into the wrong field. Their events are limited, because anybody can cause them.

use super::SignInAttempt;
use crate::{
    domain::operations::audit::{self, AuditEvent},
    error::{Code, Result},
    store::{Write, sliding_window::HOUR},
};

const ACTION: &str = "POST /admin/login";
/// The actor of sign-ins with an unknown name.
const UNKNOWN: &str = "unknown";
/// Maximum events of sign-ins with unknown names per hour.
const MAX_UNKNOWN: u32 = 100;

pub(super) fn record_success_in(tx: &Write<'_>, attempt: &SignInAttempt) -> Result<()> {
    record_in(tx, attempt, format!("admin:{}", attempt.name), 200, None)
}

/// Records a refused sign-in with its code as the reason.
pub(super) fn record_failure_in(tx: &Write<'_>, attempt: &SignInAttempt, is_known: bool, code: Code) -> Result<()> {
    let actor = if is_known { format!("admin:{}", attempt.name) } else { UNKNOWN.to_owned() };
    if !is_known && audit::has_rows_since_in(tx, UNKNOWN, MAX_UNKNOWN, tx.now.minus(HOUR))? {
        return Ok(());
    }
    record_in(tx, attempt, actor, 401, Some(code.name().to_owned()))
}

fn record_in(
    tx: &Write<'_>,
    attempt: &SignInAttempt,
    actor: String,
    outcome: u16,
    reason: Option<String>,
) -> Result<()> {
    let event = AuditEvent {
        actor,
        action: ACTION.to_owned(),
        user: None,
        reason,
        outcome,
        client_ip: Some(attempt.client.to_string()),
        request_id: attempt.request_id.clone(),
        system_user: None,
    };
    audit::record_in(tx, &event)
}
