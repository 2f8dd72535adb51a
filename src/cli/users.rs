//! `yarrow users`: support for a single user.

mod erase;
mod export;
mod support_page;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Common, check, choice::choice, cli_authority, find_address, find_user, record_audit, row, table};
use crate::{
    app::App,
    domain::{
        divination::chat,
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
    http::responses::{CodeMessageList, ModelAttachment, UserDataFix},
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
    /// Repair a user's data where no decision is needed; exit 5 if issues remain
    #[command(alias = "fix")]
    Repair {
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
        Action::Show { who } => show(common, &app, find_user(&app, &who)?.id),
        Action::CodeMessages { who } => list_code_messages(common, &app, &who),
        Action::Repair { who, reason } => repair(common, &app, find_user(&app, &who)?.id, reason),
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

/// Fails with exit code 5 if issues remain.
fn check_remaining(issues: &[Issue]) -> Result<()> {
    check(issues.is_empty(), format!("{} found.", pluralize(issues.len(), "issue", "issues")))
}

fn issue_table(issues: &[Issue]) -> String {
    let rows = issues.iter().map(|issue| row![issue.code, if issue.fixable { "yes" } else { "no" }, issue.detail]);
    table(["issue", "fixable", ""], rows)
}
