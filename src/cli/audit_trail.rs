//! Audit events of commands. Their actor is always `cli`; they also name the system user who ran the command.

use super::system_user::system_user;
use crate::{
    app::App,
    domain::{
        money::ledger::Authority,
        operations::audit::{self, AuditEvent, STARTED},
    },
    error::Result,
    types::UserId,
};

/// Returns the author of a change by this command.
pub fn cli_authority(reason: Option<String>) -> Authority {
    let request_id = format!("cli-{}", std::process::id());
    Authority { actor: "cli".into(), reason: reason.unwrap_or_default(), request_id }
}

/// Records that a command has succeeded.
pub fn record_audit(app: &App, command: &str, user: Option<UserId>, by: Authority) -> Result<()> {
    record_outcome(app, command, user, by, 200)
}

/// Records that a command starts. Required if its change may happen even if the command is killed.
pub fn record_audit_start(app: &App, command: &str, user: Option<UserId>, by: Authority) -> Result<()> {
    record_outcome(app, command, user, by, STARTED)
}

fn record_outcome(app: &App, command: &str, user: Option<UserId>, by: Authority, outcome: u16) -> Result<()> {
    audit::record(&app.core, event(command, user, by, outcome)).wait()
}

/// Returns the event of a command.
pub fn event(command: &str, user: Option<UserId>, by: Authority, outcome: u16) -> AuditEvent {
    AuditEvent {
        actor: by.actor,
        action: format!("yarrow {command}"),
        user,
        reason: Some(by.reason).filter(|reason| !reason.is_empty()),
        outcome,
        client_ip: None,
        request_id: by.request_id,
        system_user: Some(system_user()),
    }
}
