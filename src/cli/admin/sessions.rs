//! `yarrow admin sessions`: which administrators are signed in, and an end to it.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{Common, authority, confirm, explained, record, row, table};
use yarrow::{
    app::App,
    domain::operations::admins::sessions,
    error::{Code, Result},
};

/// Sessions of administrators.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the sessions that are good now.
    List,
    /// End one session by its id, or all of an administrator by name.
    End {
        /// Id of a session, or name of an administrator.
        which: String,
        /// Do not ask.
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
    let sessions = sessions::list(app)?;
    let json: Vec<_> = sessions
        .iter()
        .map(|session| {
            json!({
                "id": session.id, "name": session.admin, "createdAt": session.created_at,
                "lastUsedAt": session.last_used_at, "expiresAt": session.expires_at,
            })
        })
        .collect();
    common.answer(&json!(json), || {
        let rows = sessions.iter().map(|session| {
            row![session.id, session.admin, session.created_at, session.last_used_at, session.expires_at]
        });
        table(["id", "administrator", "signed in", "last used", "ends"], rows)
    })
}

fn end(common: &Common, app: &App, which: &str, yes: bool) -> Result<()> {
    confirm(yes, &format!("End `{which}`?"))?;
    let unknown = format!("There is no session `{which}`, and none of an administrator so named.");
    let ended = sessions::end(app, which).wait().map_err(explained(Code::NotFound, unknown))?;
    record(app, "admin sessions end", None, authority(Some(which.to_owned())))?;
    common.answer(&json!({ "which": which, "ended": ended }), || format!("ended {ended}"))
}
