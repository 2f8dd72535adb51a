//! `yarrow admin`: the people and programs that may operate the service.

mod networks;
mod sessions;
mod totp;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, authority, blank, confirm, explained, first_line, record, row, table, unknown};
use yarrow::{
    app::{App, OpenMode},
    domain::operations::admins::{self, Admin, keys},
    error::{Code, Error, Result},
};

/// Make and list administrators and API keys, and say how they may sign in.
#[derive(Debug, Args)]
pub struct AdminArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make an administrator.
    Create {
        /// The administrator's name: at most 64 letters, digits and `-_.@`.
        name: String,
        /// Read the password from the first line of standard input.
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// Give an administrator another password and end their sessions.
    Password {
        /// The administrator's name.
        name: String,
        /// Read the password from the first line of standard input.
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// List the administrators.
    List,
    /// Remove an administrator and end their sessions at once.
    Remove {
        /// The administrator's name.
        name: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// API keys, for programs.
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
    /// Make a key and print it, once.
    Create {
        /// What the key is for; no two keys have the same label.
        label: String,
    },
    /// List the keys, without what is secret.
    List,
    /// End a key at once.
    Revoke {
        /// What the key is for; no two keys have the same label.
        label: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(common: &Common, args: AdminArgs) -> Result<()> {
    // Whoever installs the service may make its first administrator before it is started.
    let role = match &args.action {
        Action::Create { .. } | Action::Key { action: KeyAction::Create { .. } } => OpenMode::Initialize,
        _ => OpenMode::Attach,
    };
    let app = common.open_as(role)?;
    match args.action {
        Action::Create { name, .. } => create(common, &app, &name),
        Action::Password { name, .. } => change_password(common, &app, &name),
        Action::List => list(common, &app),
        Action::Remove { name, yes } => remove(common, &app, &name, yes),
        Action::Key { action: KeyAction::Create { label } } => create_key(common, &app, &label),
        Action::Key { action: KeyAction::List } => list_keys(common, &app),
        Action::Key { action: KeyAction::Revoke { label, yes } } => revoke_key(common, &app, &label, yes),
        Action::Totp(args) => totp::run(common, &app, args),
        Action::Sessions(args) => sessions::run(common, &app, args),
        Action::Networks(args) => networks::run(common, &app, &args),
    }
}

fn create(common: &Common, app: &App, name: &str) -> Result<()> {
    let admin = admins::create(app, name, &first_line()?).map_err(taken(name))?;
    record(app, "admin create", None, authority(Some(admin.name.clone())))?;
    common.answer(&json!({ "name": admin.name, "createdAt": admin.created_at }), || format!("made `{}`", admin.name))
}

fn change_password(common: &Common, app: &App, name: &str) -> Result<()> {
    admins::change_password(app, name, &first_line()?)?;
    record(app, "admin password", None, authority(Some(name.to_owned())))?;
    common.answer(&json!({ "name": name, "changed": true }), || format!("changed the password of `{name}`"))
}

fn list(common: &Common, app: &App) -> Result<()> {
    let admins = admins::list(app)?;
    let shown = |admin: &Admin| json!({ "name": admin.name, "createdAt": admin.created_at, "hasSecondFactor": admin.has_second_factor });
    let json: Vec<_> = admins.iter().map(shown).collect();
    common.answer(&json!(json), || {
        let second = |admin: &Admin| if admin.has_second_factor { "yes" } else { "no" };
        let rows = admins.iter().map(|admin| row![admin.name, admin.created_at, second(admin)]);
        table(["name", "made", "second factor"], rows)
    })
}

fn remove(common: &Common, app: &App, name: &str, yes: bool) -> Result<()> {
    confirm(yes, &format!("Remove the administrator `{name}`?"))?;
    admins::remove(app, name).wait().map_err(unknown("administrator", name))?;
    record(app, "admin remove", None, authority(Some(name.to_owned())))?;
    common.answer(&json!({ "name": name, "removed": true }), || format!("removed `{name}`"))
}

fn create_key(common: &Common, app: &App, label: &str) -> Result<()> {
    let key = keys::create(app, label).map_err(taken(label))?;
    record(app, "admin key create", None, authority(Some(label.to_owned())))?;
    common.answer(&json!({ "label": label, "key": key.reveal() }), || key.reveal().to_owned())
}

fn list_keys(common: &Common, app: &App) -> Result<()> {
    let found = keys::list(app)?;
    let json: Vec<_> = found
        .iter()
        .map(|key| {
            json!({
                "label": key.label, "createdAt": key.created_at,
                "lastUsedAt": key.last_used_at, "revokedAt": key.revoked_at,
            })
        })
        .collect();
    common.answer(&json!(json), || {
        let rows =
            found.iter().map(|key| row![key.label, key.created_at, blank(key.last_used_at), blank(key.revoked_at)]);
        table(["label", "made", "last used", "revoked"], rows)
    })
}

fn revoke_key(common: &Common, app: &App, label: &str, yes: bool) -> Result<()> {
    confirm(yes, &format!("End the key `{label}`?"))?;
    keys::revoke(app, label).wait().map_err(unknown("live key", label))?;
    record(app, "admin key revoke", None, authority(Some(label.to_owned())))?;
    common.answer(&json!({ "label": label, "revoked": true }), || format!("revoked `{label}`"))
}

fn taken(name: &str) -> impl FnOnce(Error) -> Error {
    explained(Code::AlreadyExists, format!("`{name}` exists already."))
}
