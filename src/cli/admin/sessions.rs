//! `yarrow admin sessions`: sessions of administrators.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{Common, cli_authority, record_audit, row, table, with_detail};
use crate::{
    app::App,
    domain::operations::admins::sessions,
    error::{Code, Result},
    types::pluralize,
};

/// List and end sessions of administrators
#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List active sessions
    List,
    /// End one session by id, or all sessions of an administrator by name
    End {
        /// Session id or administrator name
        which: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(common: &Common, app: &App, args: SessionsArgs) -> Result<()> {
    match args.action {
        Action::List => list(common, app),
        Action::End { which, yes } => end(common, app, &which, yes),
    }
}

fn list(common: &Common, app: &App) -> Result<()> {
    let sessions = sessions::list(&app.core)?;
    let json: Vec<_> = sessions
        .iter()
        .map(|session| {
            json!({
                "id": session.id, "name": session.admin, "createdAt": session.created_at,
                "lastUsedAt": session.last_used_at, "expiresAt": session.expires_at,
            })
        })
        .collect();
    common.output(&json!(json), || {
        let rows = sessions.iter().map(|session| {
            row![session.id, session.admin, session.created_at, session.last_used_at, session.expires_at]
        });
        table(["id", "administrator", "signed in", "last used", "expires"], rows)
    })
}

fn end(common: &Common, app: &App, which: &str, yes: bool) -> Result<()> {
    common.confirm(yes, &format!("End session `{which}`?"))?;
    let detail = format!("No active session has this id or administrator name: `{which}`.");
    let ended = sessions::end(&app.core, which).wait().map_err(with_detail(Code::NotFound, detail))?;
    record_audit(app, "admin sessions end", None, cli_authority(Some(which.to_owned())))?;
    common.output(&json!({ "which": which, "ended": ended }), || {
        format!("{} ended", pluralize(ended, "session", "sessions"))
    })
}
