//! `yarrow admin totp`: second factors of administrators, and the recovery for a lost one.

use std::io::Write as _;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{Common, cli_authority, record_audit};
use crate::{
    app::App,
    domain::operations::admins::second_factor,
    error::{Code, Error, Result},
};

/// Manage second factors (codes of an authenticator app)
#[derive(Debug, Args)]
pub struct TotpArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a secret for the authenticator app and print it; active once confirmed
    Enrol {
        /// Administrator name
        name: String,
    },
    /// Activate the second factor with a code from standard input
    Confirm {
        /// Administrator name
        name: String,
    },
    /// Remove the second factor of an administrator who has lost it
    Remove {
        /// Administrator name
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(common: &Common, app: &App, args: TotpArgs) -> Result<()> {
    match args.action {
        Action::Enrol { name } => enrol(common, app, &name),
        Action::Confirm { name } => confirm_code(common, app, &name),
        Action::Remove { name, yes } => remove(common, app, &name, yes),
    }
}

fn enrol(common: &Common, app: &App, name: &str) -> Result<()> {
    let enrolment = second_factor::enrol(&app.core, name).map_err(|error| name_admin(error, name))?;
    record_audit(app, "admin totp enrol", None, cli_authority(Some(name.to_owned())))?;
    let (secret, uri) = (enrolment.secret.reveal(), enrolment.uri.reveal());
    common.output(&json!({ "name": name, "secret": secret, "uri": uri }), || {
        format!("secret: {secret}\nQR code content: {uri}\nnext step: yarrow admin totp confirm {name}")
    })
}

fn confirm_code(common: &Common, app: &App, name: &str) -> Result<()> {
    if common.streams.is_terminal() {
        drop(write!(common.streams.errors(), "code: "));
    }
    second_factor::confirm(&app.core, name, &common.first_line()?).wait().map_err(|error| name_admin(error, name))?;
    record_audit(app, "admin totp confirm", None, cli_authority(Some(name.to_owned())))?;
    common.output(&json!({ "name": name, "confirmed": true }), || {
        format!("`{name}` now needs password and code to sign in")
    })
}

fn remove(common: &Common, app: &App, name: &str, yes: bool) -> Result<()> {
    common.confirm(yes, &format!("Remove the second factor of `{name}`?"))?;
    second_factor::remove(&app.core, name).wait().map_err(|error| name_admin(error, name))?;
    record_audit(app, "admin totp remove", None, cli_authority(Some(name.to_owned())))?;
    common.output(&json!({ "name": name, "removed": true }), || {
        format!("`{name}` now needs only the password to sign in")
    })
}

/// Names the administrator in errors that have no specific detail yet.
fn name_admin(error: Error, name: &str) -> Error {
    let is_specific = error.detail != error.code.meaning();
    match error.code {
        _ if is_specific => error,
        Code::NotFound => error.english_detail(format!("`{name}` has no second factor.")),
        Code::AlreadyExists => error.english_detail(format!("`{name}` already has a second factor. Remove it first.")),
        Code::InvalidCode => error.english_detail("The code is wrong or expired. Check the clock of this machine."),
        _ => error,
    }
}
