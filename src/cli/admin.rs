//! `yarrow admin`: administrators and API keys.

mod networks;
mod sessions;
mod totp;

use std::io::Write as _;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, cli_authority, name_missing, or_empty, parse_time, record_audit, row, table, with_detail};
use crate::{
    app::{App, OpenMode},
    domain::operations::admins::{
        self, Admin, AdminChange,
        keys::{self, ApiKeyChange},
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
    /// Change an administrator's role
    ///
    /// It applies to their sessions at once.
    Role {
        /// Administrator name
        name: String,
        /// New role
        #[arg(value_parser = ROLES)]
        role: String,
    },
    /// List administrators
    List,
    /// Remove an administrator and end their sessions
    Remove {
        /// Administrator name
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
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
    /// Change the role or expiry of a key, suspend or resume it
    Change {
        /// Unique label of the key
        label: String,
        /// New role
        #[arg(long, value_parser = ROLES)]
        role: Option<String>,
        /// New time of expiry, or `never`
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// Reject the key until it is resumed
        #[arg(long, conflicts_with = "resume")]
        suspend: bool,
        /// Accept a suspended key again
        #[arg(long)]
        resume: bool,
    },
    /// List keys, without their secrets
    List,
    /// Revoke a key
    Revoke {
        /// Unique label of the key
        label: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
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
        Action::Role { name, role } => change_role(common, &app, &name, role_named(&role)?),
        Action::List => list(common, &app),
        Action::Remove { name, yes } => remove(common, &app, &name, yes),
        Action::Key { action: KeyAction::Create { label, role, expires } } => {
            let expires_at = expires.map(|text| parse_time(&app, "--expires", &text)).transpose()?;
            create_key(common, &app, &label, role_named(&role)?, expires_at)
        }
        Action::Key { action: KeyAction::Change { label, role, expires, suspend, resume } } => {
            let change = ApiKeyChange {
                role: role.map(|name| role_named(&name)).transpose()?,
                expires_at: expires.map(|text| new_expiry(&app, &text)).transpose()?,
                is_suspended: (suspend || resume).then_some(suspend),
            };
            change_key(common, &app, &label, change)
        }
        Action::Key { action: KeyAction::List } => list_keys(common, &app),
        Action::Key { action: KeyAction::Revoke { label, yes } } => revoke_key(common, &app, &label, yes),
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

fn change_role(common: &Common, app: &App, name: &str, role: Role) -> Result<()> {
    let change = AdminChange { role: Some(role), password: None };
    admins::change(&app.admins, name, change).map_err(name_missing("Administrator", name))?;
    record_audit(app, "admin role", None, cli_authority(Some(format!("{name}: {}", role.name()))))?;
    common.output(&json!({ "name": name, "role": role.name() }), || format!("`{name}` has the role {}", role.name()))
}

fn role_named(name: &str) -> Result<Role> {
    Role::from_name(name).ok_or_else(|| Error::internal("clap accepts known roles only"))
}

/// Parses a time of expiry, or `never`.
fn new_expiry(app: &App, text: &str) -> Result<Option<Timestamp>> {
    if text == "never" { Ok(None) } else { parse_time(app, "--expires", text).map(Some) }
}

fn change_password(common: &Common, app: &App, name: &str, (password, is_generated): (&str, bool)) -> Result<()> {
    admins::change(&app.admins, name, AdminChange { role: None, password: Some(password) })?;
    record_audit(app, "admin password", None, cli_authority(Some(name.to_owned())))?;
    let mut result = json!({ "name": name, "changed": true });
    show_generated(common, &mut result, (password, is_generated));
    common.output(&result, || format!("changed the password of `{name}`"))
}

fn list(common: &Common, app: &App) -> Result<()> {
    let admins = admins::list(&app.core)?;
    let to_json = |admin: &Admin| json!({ "name": admin.name, "role": admin.role.name(), "createdAt": admin.created_at, "hasSecondFactor": admin.has_second_factor });
    let json: Vec<_> = admins.iter().map(to_json).collect();
    common.output(&json!(json), || {
        let has_second_factor = |admin: &Admin| if admin.has_second_factor { "yes" } else { "no" };
        let rows =
            admins.iter().map(|admin| row![admin.name, admin.role.name(), admin.created_at, has_second_factor(admin)]);
        table(["name", "role", "created", "second factor"], rows)
    })
}

fn remove(common: &Common, app: &App, name: &str, yes: bool) -> Result<()> {
    common.confirm(yes, &format!("Remove the administrator `{name}`?"))?;
    admins::remove(&app.core, name).wait().map_err(name_missing("Administrator", name))?;
    record_audit(app, "admin remove", None, cli_authority(Some(name.to_owned())))?;
    common.output(&json!({ "name": name, "removed": true }), || format!("removed `{name}`"))
}

fn create_key(common: &Common, app: &App, label: &str, role: Role, expires_at: Option<Timestamp>) -> Result<()> {
    let key = keys::create(&app.core, label, role, expires_at)?.wait().map_err(name_taken(label))?;
    record_audit(app, "admin key create", None, cli_authority(Some(label.to_owned())))?;
    common.output(&json!({ "label": label, "key": key.reveal() }), || key.reveal().to_owned())
}

fn change_key(common: &Common, app: &App, label: &str, change: ApiKeyChange) -> Result<()> {
    keys::change(&app.core, label, change).wait().map_err(name_missing("Active key", label))?;
    record_audit(app, "admin key change", None, cli_authority(Some(label.to_owned())))?;
    common.output(&json!({ "label": label, "changed": true }), || format!("changed `{label}`"))
}

fn list_keys(common: &Common, app: &App) -> Result<()> {
    let found = keys::list(&app.core)?;
    let json: Vec<_> = found
        .iter()
        .map(|key| {
            json!({
                "label": key.label, "role": key.role.name(), "createdAt": key.created_at, "expiresAt": key.expires_at,
                "lastUsedAt": key.last_used_at, "suspendedAt": key.suspended_at, "revokedAt": key.revoked_at,
            })
        })
        .collect();
    common.output(&json!(json), || {
        let rows = found.iter().map(|key| {
            let [expires, used, suspended, revoked] =
                [key.expires_at, key.last_used_at, key.suspended_at, key.revoked_at].map(or_empty);
            row![key.label, key.role.name(), key.created_at, expires, used, suspended, revoked]
        });
        table(["label", "role", "created", "expires", "last used", "suspended", "revoked"], rows)
    })
}

fn revoke_key(common: &Common, app: &App, label: &str, yes: bool) -> Result<()> {
    common.confirm(yes, &format!("Revoke the key `{label}`?"))?;
    keys::revoke(&app.core, label).wait().map_err(name_missing("Active key", label))?;
    record_audit(app, "admin key revoke", None, cli_authority(Some(label.to_owned())))?;
    common.output(&json!({ "label": label, "revoked": true }), || format!("revoked `{label}`"))
}

fn name_taken(name: &str) -> impl FnOnce(Error) -> Error {
    with_detail(Code::AlreadyExists, format!("`{name}` already exists."))
}
