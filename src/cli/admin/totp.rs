//! `yarrow admin totp`: the second factor of administrators, and the way back in for who has lost it.

use std::io::{IsTerminal, Write};

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{Common, authority, confirm, first_line, record};
use yarrow::{
    app::App,
    domain::operations::admins::second_factor,
    error::{Code, Error, Result},
};

/// The second factor: codes of an authenticator app.
#[derive(Debug, Args)]
pub struct TotpArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a secret and print it, once, for the authenticator app. It counts when `confirm` has seen a code.
    Enrol {
        /// The administrator's name.
        name: String,
    },
    /// Read a code of the app from the first line of standard input; from then on every sign-in needs one.
    Confirm {
        /// The administrator's name.
        name: String,
    },
    /// Take the second factor away, for an administrator who has lost it.
    Remove {
        /// The administrator's name.
        name: String,
        /// Do not ask.
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
    let enrolment = second_factor::enrol(app, name).map_err(|error| told(error, name))?;
    record(app, "admin totp enrol", None, authority(Some(name.to_owned())))?;
    let (secret, uri) = (enrolment.secret.reveal(), enrolment.uri.reveal());
    common.answer(&json!({ "name": name, "secret": secret, "uri": uri }), || {
        format!("secret: {secret}\naddress for a QR code: {uri}\nthen: yarrow admin totp confirm {name}")
    })
}

fn confirm_code(common: &Common, app: &App, name: &str) -> Result<()> {
    if std::io::stdin().is_terminal() {
        drop(write!(std::io::stderr(), "code: "));
    }
    second_factor::confirm(app, name, &first_line()?).wait().map_err(|error| told(error, name))?;
    record(app, "admin totp confirm", None, authority(Some(name.to_owned())))?;
    common.answer(&json!({ "name": name, "confirmed": true }), || {
        format!("`{name}` signs in with password and code from now on")
    })
}

fn remove(common: &Common, app: &App, name: &str, yes: bool) -> Result<()> {
    confirm(yes, &format!("Take the second factor of `{name}` away?"))?;
    second_factor::remove(app, name).wait().map_err(|error| told(error, name))?;
    record(app, "admin totp remove", None, authority(Some(name.to_owned())))?;
    common.answer(&json!({ "name": name, "removed": true }), || format!("`{name}` signs in with the password alone"))
}

/// An error that names who it is about. Those that say more already stay as they are.
fn told(error: Error, name: &str) -> Error {
    let is_said = error.detail != error.code.meaning();
    match error.code {
        _ if is_said => error,
        Code::NotFound => error.detail(format!("`{name}` has no second factor.")),
        Code::AlreadyExists => error.detail(format!("`{name}` has a second factor; remove it first.")),
        Code::InvalidCode => error.detail("The code is wrong or too old. Is the clock of this machine right?"),
        _ => error,
    }
}
