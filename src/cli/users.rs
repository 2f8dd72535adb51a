//! `yarrow users`: support for a single user.

mod acts;
mod erase;
mod export;
mod notes;
mod support_page;
mod suspension;
mod user_list;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Common, check, choice::choice, cli_authority, find_address, find_user, record_audit, row, table};
use crate::{
    app::App,
    domain::{
        divination::{chat, history},
        identity::{
            accounts,
            user_data::{self, Issue, UserSelector},
            users,
        },
        operations::{
            admins::roles::Role,
            support::{self, SupportPage, SupportViewer},
        },
    },
    error::Result,
    http::responses::{CodeMessageList, HistoryRestored, ModelAttachment, UserDataFix, UserDataValidation},
    types::{Locale, UserId, pluralize},
};

/// Find, show, check, repair, suspend, export and delete users
///
/// WHO is a user's id, phone number or email address.
#[derive(Debug, Args)]
pub struct UsersArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List users, newest first, with masked addresses
    List(user_list::ListArgs),
    /// Find users by id, phone number, email address or the beginning of the nickname
    Search {
        /// Text to search for
        text: String,
        #[command(flatten)]
        list: user_list::ListArgs,
    },
    /// Print everything about a user on one page
    ///
    /// The page has profile, balances, devices, ledger, orders, interpretations, violations, notifications, requests
    /// and audit events. It lists verification codes, masked, with their outcomes, and asks the SMS provider for
    /// delivery receipts.
    Show {
        /// User: id, phone number or email address
        who: String,
    },
    /// Print the requests for verification codes of an address, with their outcomes
    ///
    /// Works for an address without an account, too. The SMS provider is asked for delivery receipts. Requests are kept
    /// for `retention.code_messages`.
    CodeMessages {
        /// Phone number or email address, or the id of a user
        who: String,
    },
    /// Check a user's data for inconsistencies; exit 5 if there are any
    Validate {
        /// User: id, phone number or email address
        who: String,
    },
    /// Repair a user's data where no decision is needed; exit 5 if issues remain
    #[command(alias = "fix")]
    Repair {
        /// User: id, phone number or email address
        who: String,
        /// Reason, for the audit
        #[arg(long, value_parser = super::parse_reason)]
        reason: Option<String>,
    },
    /// Show a user's hidden history records again, after a cancellation that was not completed
    ///
    /// Records are hidden by `deactivate-all` and deleted after `retention.deactivated_history`.
    RestoreHistory {
        /// User: id, phone number or email address
        who: String,
        /// Reason, for the audit
        #[arg(long, value_parser = super::parse_reason)]
        reason: Option<String>,
    },
    /// Print all data of a user as one JSON document, like the user's own export
    Export {
        /// User: id, phone number or email address
        who: String,
        /// Write to this new file, readable by its owner only, instead of standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Suspend a user and notify them of the reason; `--scope` limits what is suspended
    Suspend(suspension::SuspendArgs),
    /// Lift the suspension of a user
    Unsuspend(suspension::UnsuspendArgs),
    /// Print the suspensions of a user, newest first
    Suspensions {
        /// User: id, phone number or email address
        who: String,
    },
    /// Read and write the notes of the staff about a user
    #[command(subcommand)]
    Notes(notes::NotesAction),
    /// Clear the nickname of a user and notify them of the reason
    ResetNickname {
        /// User: id, phone number or email address
        who: String,
        /// Reason, for the user and the audit
        #[arg(long, value_parser = super::parse_reason)]
        reason: String,
    },
    /// List the devices on which a user is signed in
    Devices {
        /// User: id, phone number or email address
        who: String,
    },
    /// Sign out all devices of a user, or one
    SignOut {
        /// User: id, phone number or email address
        who: String,
        /// Only this device, by its id
        #[arg(long, value_name = "ID")]
        device: Option<String>,
        /// Reason, for the audit
        #[arg(long, value_parser = super::parse_reason)]
        reason: Option<String>,
    },
    /// Move an account to a new phone number, after the person was checked
    ///
    /// No account may have the number. All devices are signed out, and the user is told.
    MovePhone(acts::MovePhoneArgs),
    /// Delete an account and its personal data, like the user's own deletion
    Erase {
        /// User: id, phone number or email address
        who: String,
        /// Reason, for the audit
        #[arg(long, value_parser = super::parse_reason)]
        reason: Option<String>,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Print the data about a user that is sent to a language model
    Attachment {
        /// User: id, phone number or email address
        who: String,
        /// Language of the message
        #[arg(long, value_parser = choice!(Locale), default_value = Locale::Chinese.name())]
        language: Locale,
    },
}

pub fn run(common: &Common, args: UsersArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::List(list) => user_list::list(common, &app, "users list", None, &list),
        Action::Search { text, list } => user_list::list(common, &app, "users search", Some(text), &list),
        Action::Suspend(args) => suspension::suspend(common, &app, args),
        Action::Unsuspend(args) => suspension::lift(common, &app, args),
        Action::Suspensions { who } => suspension::list(common, &app, find_user(&app, &who)?.id),
        Action::Notes(action) => notes::run(common, &app, action),
        Action::ResetNickname { who, reason } => acts::reset_nickname(common, &app, find_user(&app, &who)?.id, reason),
        Action::Devices { who } => acts::list_devices(common, &app, find_user(&app, &who)?.id),
        Action::SignOut { who, device, reason } => {
            acts::sign_out(common, &app, find_user(&app, &who)?.id, device, reason)
        }
        Action::MovePhone(args) => acts::move_phone(common, &app, args),
        Action::Show { who } => show(common, &app, find_user(&app, &who)?.id),
        Action::CodeMessages { who } => list_code_messages(common, &app, &who),
        Action::Validate { who } => validate(common, &app, find_user(&app, &who)?.id),
        Action::Repair { who, reason } => repair(common, &app, find_user(&app, &who)?.id, reason),
        Action::RestoreHistory { who, reason } => restore_history(common, &app, find_user(&app, &who)?.id, reason),
        Action::Export { who, output } => export::export(common, &app, find_user(&app, &who)?.id, output.as_deref()),
        Action::Erase { who, reason, yes } => erase::erase(common, &app, &find_user(&app, &who)?, reason, yes),
        Action::Attachment { who, language } => attachment(common, &app, find_user(&app, &who)?.id, language),
    }
}

fn show(common: &Common, app: &App, user: UserId) -> Result<()> {
    let viewer = SupportViewer { actor: cli_authority(None).actor, role: Role::Owner };
    let addresses: Vec<_> = app.core.store.read(|tx| users::find_in(tx, user))?.addresses().collect();
    let code_messages = accounts::delivered_code_messages(&app.code_sender, &addresses)?;
    let sheet = SupportPage { code_messages, ..support::collect(&app.core, &app.network_log, user, &viewer)? };
    record_audit(app, "users show", Some(user), cli_authority(None))?;
    common.output(&support_page::json_of(&sheet), || support_page::text_of(&sheet))
}

fn list_code_messages(common: &Common, app: &App, who: &str) -> Result<()> {
    let user = find_user(app, who);
    let addresses = match (find_address(app, who), &user) {
        (Some(address), _) => vec![address],
        (None, Ok(user)) => user.addresses().collect(),
        (None, Err(error)) => return Err(error.without_source()),
    };
    let found = accounts::delivered_code_messages(&app.code_sender, &addresses)?;
    record_audit(app, "users code-messages", user.ok().map(|user| user.id), cli_authority(None))?;
    common.output(&CodeMessageList::from(found.clone()), || support_page::code_message_table(&found))
}

fn attachment(common: &Common, app: &App, user: UserId, language: Locale) -> Result<()> {
    let attached = chat::context(&app.model_calls, user, language)?;
    record_audit(app, "users attachment", Some(user), cli_authority(None))?;
    let text = format!("user: {}\n\n{}", attached.reference, attached.message);
    common.output(&ModelAttachment::of(user, attached), || text)
}

fn validate(common: &Common, app: &App, user: UserId) -> Result<()> {
    let report = user_data::validate(&app.core, &UserSelector::Id(user))?;
    record_audit(app, "users validate", Some(user), cli_authority(None))?;
    common.output(&UserDataValidation::from(report.clone()), || match report.issues.as_slice() {
        [] => "No issues.".to_owned(),
        issues => issue_table(issues),
    })?;
    check_remaining(&report.issues)
}

fn repair(common: &Common, app: &App, user: UserId, reason: Option<String>) -> Result<()> {
    let by = cli_authority(reason);
    let report = user_data::repair(&app.core, UserSelector::Id(user), by.clone()).wait()?;
    record_audit(app, "users repair", Some(user), by)?;
    common.output(&UserDataFix::from(report.clone()), || {
        match (report.fixed.as_slice(), report.remaining.as_slice()) {
            ([], []) => "No issues.".to_owned(),
            (fixed, remaining) => {
                format!("Repaired:\n{}\nNeed a decision:\n{}", issue_table(fixed), issue_table(remaining))
            }
        }
    })?;
    check_remaining(&report.remaining)
}

fn restore_history(common: &Common, app: &App, user: UserId, reason: Option<String>) -> Result<()> {
    let done = history::restore_all(&app.core, user, &[]).wait()?;
    record_audit(app, "users restore-history", Some(user), cli_authority(reason))?;
    let restored = pluralize(done.restored, "record", "records");
    let hidden = if done.hidden > 0 { format!(", {} still hidden", done.hidden) } else { String::new() };
    common.output(&HistoryRestored::from(done), || format!("{restored} restored{hidden}."))
}

/// Fails with exit code 5 if issues remain.
fn check_remaining(issues: &[Issue]) -> Result<()> {
    check(issues.is_empty(), format!("{} found.", pluralize(issues.len(), "issue", "issues")))
}

fn issue_table(issues: &[Issue]) -> String {
    let rows = issues.iter().map(|issue| row![issue.code, if issue.fixable { "yes" } else { "no" }, issue.detail]);
    table(["issue", "fixable", ""], rows)
}
