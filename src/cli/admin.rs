//! `yarrow admin`: administrators and API keys.

mod networks;
mod sessions;
mod totp;

use std::io::Write as _;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, cli_authority, parse_time, record_audit, with_detail};
use crate::{
    app::{App, OpenMode},
    domain::operations::admins::{
        self, AdminChange,
        keys::{self},
        roles::Role,
    },
    error::{Code, Error, Result},
    types::Timestamp,
};

/// The names of the roles, for clap.
const ROLES: [&str; 4] = ["read-only", "support", "moderator", "owner"];

/// Manage administrators, API keys, second factors, sessions and allowed networks
#[derive(Debug, Args)]
pub struct AdminArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create an administrator
    ///
    /// Without an option, asks for the password on a terminal.
    ///
    /// Example: yarrow admin create alice --role support --password-stdin < password.txt
    Create {
        /// Administrator name: at most 64 letters, digits and `-_.@`
        name: String,
        /// Role of the administrator
        #[arg(long, default_value = "owner", value_parser = ROLES)]
        role: String,
        /// Read the password from the first line of standard input
        #[arg(long)]
        password_stdin: bool,
        /// Generate a password and print it to standard error, or in the result with --json
        #[arg(long, conflicts_with = "password_stdin")]
        generate: bool,
    },
    /// Change an administrator's password and end their sessions
    ///
    /// Without an option, asks for the password on a terminal.
    Password {
        /// Administrator name
        name: String,
        /// Read the password from the first line of standard input
        #[arg(long)]
        password_stdin: bool,
        /// Generate a password and print it to standard error, or in the result with --json
        #[arg(long, conflicts_with = "password_stdin")]
        generate: bool,
    },
    /// Manage API keys, which authenticate programs
    Key {
        #[command(subcommand)]
        action: KeyAction,
    },
    Totp(totp::TotpArgs),
    Sessions(sessions::SessionsArgs),
    Networks(networks::NetworksArgs),
}

#[derive(Debug, Subcommand)]
enum KeyAction {
    /// Create a key and print it; it cannot be shown again
    Create {
        /// Unique label of the key
        label: String,
        /// Role of the key
        #[arg(long, default_value = "owner", value_parser = ROLES)]
        role: String,
        /// Time at which the key expires; by default never
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
}

pub fn run(common: &Common, args: AdminArgs) -> Result<()> {
    // The first administrator and key can be created before the service first starts.
    let mode = match &args.action {
        Action::Create { .. } | Action::Key { action: KeyAction::Create { .. } } => OpenMode::Initialize,
        _ => OpenMode::Attach,
    };
    let app = common.open_as(mode)?;
    match args.action {
        Action::Create { name, role, password_stdin, generate } => {
            let password = common.new_password(password_stdin, generate)?;
            create(common, &app, &name, (&password, generate), role_named(&role)?)
        }
        Action::Password { name, password_stdin, generate } => {
            change_password(common, &app, &name, (&common.new_password(password_stdin, generate)?, generate))
        }
        Action::Key { action: KeyAction::Create { label, role, expires } } => {
            let expires_at = expires.map(|text| parse_time(&app, "--expires", &text)).transpose()?;
            create_key(common, &app, &label, role_named(&role)?, expires_at)
        }
        Action::Totp(args) => totp::run(common, &app, args),
        Action::Sessions(args) => sessions::run(common, &app, args),
        Action::Networks(args) => networks::run(common, &app, &args),
    }
}

/// Shows a generated password: in the result with `--json`, else on standard error, so that the text is free of it.
fn show_generated(common: &Common, result: &mut Value, (password, is_generated): (&str, bool)) {
    if !is_generated {
        return;
    }
    if common.json {
        result["password"] = password.into();
    } else {
        drop(writeln!(common.streams.errors(), "Password: {password}"));
    }
}

fn create(common: &Common, app: &App, name: &str, (password, is_generated): (&str, bool), role: Role) -> Result<()> {
    let admin = admins::create(&app.admins, name, password, role).map_err(name_taken(name))?;
    record_audit(app, "admin create", None, cli_authority(Some(admin.name.clone())))?;
    let mut result = json!({ "name": admin.name, "role": role.name(), "createdAt": admin.created_at });
    show_generated(common, &mut result, (password, is_generated));
    common.output(&result, || format!("created `{}` with the role {}", admin.name, role.name()))
}

fn role_named(name: &str) -> Result<Role> {
    Role::from_name(name).ok_or_else(|| Error::internal("clap accepts known roles only"))
}

fn change_password(common: &Common, app: &App, name: &str, (password, is_generated): (&str, bool)) -> Result<()> {
    admins::change(&app.admins, name, AdminChange { role: None, password: Some(password) })?;
    record_audit(app, "admin password", None, cli_authority(Some(name.to_owned())))?;
    let mut result = json!({ "name": name, "changed": true });
    show_generated(common, &mut result, (password, is_generated));
    common.output(&result, || format!("changed the password of `{name}`"))
}

fn create_key(common: &Common, app: &App, label: &str, role: Role, expires_at: Option<Timestamp>) -> Result<()> {
    let key = keys::create(&app.core, label, role, expires_at)?.wait().map_err(name_taken(label))?;
    record_audit(app, "admin key create", None, cli_authority(Some(label.to_owned())))?;
    common.output(&json!({ "label": label, "key": key.reveal() }), || key.reveal().to_owned())
}

fn name_taken(name: &str) -> impl FnOnce(Error) -> Error {
    with_detail(Code::AlreadyExists, format!("`{name}` already exists."))
}
