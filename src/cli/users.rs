//! `yarrow users`: one person, for whoever has them on the telephone.

mod leaving;
mod sheet;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Common, authority, check, choice::choice, find_user, record, row, table};
use yarrow::{
    app::App,
    domain::{
        divination::chat,
        identity::user_data::{self, Issue, Who},
        operations::support,
    },
    error::Result,
    http::answers::{ModelAttachment, UserDataFix, UserDataValidation},
    types::{Locale, UserId, counted},
};

/// Look at a user, check and repair what is kept of them, hand it out, delete it. WHO is a user's id, phone number or
/// email address.
#[derive(Debug, Args)]
pub struct UsersArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print one page: profile, balances, sign-ins, codes, ledger, orders, records, refused texts, notices, requests.
    Show {
        /// The user: id, phone number or email address.
        who: String,
    },
    /// Check what is kept of a user against itself; exit 5 if something is wrong.
    Validate {
        /// The user: id, phone number or email address.
        who: String,
    },
    /// Repair what can be repaired without a decision; exit 5 if something is left.
    Fix {
        /// The user: id, phone number or email address.
        who: String,
        /// Why, for the audit.
        #[arg(long, value_parser = super::reason)]
        reason: Option<String>,
    },
    /// Print everything that is held of a user as one JSON document, as the user's own export would.
    Export {
        /// The user: id, phone number or email address.
        who: String,
        /// Write it to this file, which must not exist, for its owner's eyes only.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Delete an account and everything that says whose it was, as its owner could.
    Erase {
        /// The user: id, phone number or email address.
        who: String,
        /// Why, for the audit.
        #[arg(long, value_parser = super::reason)]
        reason: Option<String>,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Print what a language model would be told of a user.
    Attachment {
        /// The user: id, phone number or email address.
        who: String,
        /// The language of the message.
        #[arg(long, value_parser = choice!(Locale), default_value = Locale::Chinese.name())]
        language: Locale,
    },
}

pub fn run(common: &Common, args: UsersArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Show { who } => show(common, &app, find_user(&app, &who)?.id),
        Action::Validate { who } => validate(common, &app, find_user(&app, &who)?.id),
        Action::Fix { who, reason } => fix(common, &app, find_user(&app, &who)?.id, reason),
        Action::Export { who, output } => leaving::export(common, &app, find_user(&app, &who)?.id, output.as_deref()),
        Action::Erase { who, reason, yes } => leaving::erase(common, &app, &find_user(&app, &who)?, reason, yes),
        Action::Attachment { who, language } => attachment(common, &app, find_user(&app, &who)?.id, language),
    }
}

fn show(common: &Common, app: &App, user: UserId) -> Result<()> {
    let sheet = support::show(app, user)?;
    record(app, "users show", Some(user), authority(None))?;
    common.answer(&sheet::json_of(&sheet), || sheet::text_of(&sheet))
}

fn attachment(common: &Common, app: &App, user: UserId, language: Locale) -> Result<()> {
    let attached = chat::attachment(app, user, language)?;
    record(app, "users attachment", Some(user), authority(None))?;
    let text = format!("user: {}\n\n{}", attached.reference, attached.message);
    common.answer(&ModelAttachment::of(user, attached), || text)
}

fn validate(common: &Common, app: &App, user: UserId) -> Result<()> {
    let found = user_data::validate(app, &Who::Id(user))?;
    record(app, "users validate", Some(user), authority(None))?;
    common.answer(&UserDataValidation::from(found.clone()), || match found.issues.as_slice() {
        [] => "Nothing is wrong.".to_owned(),
        issues => issue_table(issues),
    })?;
    left(&found.issues)
}

fn fix(common: &Common, app: &App, user: UserId, reason: Option<String>) -> Result<()> {
    let by = authority(reason);
    let done = user_data::fix(app, Who::Id(user), by.clone()).wait()?;
    record(app, "users fix", Some(user), by)?;
    common.answer(&UserDataFix::from(done.clone()), || match (done.fixed.as_slice(), done.remaining.as_slice()) {
        ([], []) => "Nothing was wrong.".to_owned(),
        (fixed, remaining) => {
            format!("Repaired:\n{}\nLeft for a person:\n{}", issue_table(fixed), issue_table(remaining))
        }
    })?;
    left(&done.remaining)
}

/// Fails with the exit code of a check if something is left.
fn left(issues: &[Issue]) -> Result<()> {
    check(issues.is_empty(), format!("{}.", counted(issues.len(), "issue", "issues")))
}

fn issue_table(found: &[Issue]) -> String {
    let rows = found.iter().map(|issue| row![issue.code, if issue.fixable { "yes" } else { "no" }, issue.detail]);
    table(["issue", "fixable", ""], rows)
}
