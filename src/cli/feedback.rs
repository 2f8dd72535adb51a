//! `yarrow feedback`: feedback of users.

use clap::{Args, Subcommand};

use super::{Common, PageArgs, choice::choice, cli_authority, find_user_id, list_of, name_missing, record_audit};
use crate::{
    app::App,
    domain::{
        messaging::feedback::{self, FeedbackChange, FeedbackFilter, FeedbackState, FeedbackThread},
        operations::idempotency::IdempotentRequest,
    },
    error::{Error, Result},
    http::{console::views::pages::feedback::COLUMNS, responses::AdminFeedback},
    types::{UserId, clean},
};

/// List, assign, answer and close feedback of users
#[derive(Debug, Args)]
pub struct FeedbackArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print feedback, newest first
    List {
        /// Only of this user, including unverified claims: id, phone number or email address
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Only in this state
        #[arg(long, value_parser = choice!(FeedbackState))]
        state: Option<FeedbackState>,
        /// Only of this administrator
        #[arg(long, value_name = "NAME")]
        assignee: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Change state or assignee of feedback
    Change {
        /// Id of the feedback
        id: i64,
        /// New state
        #[arg(long, value_parser = choice!(FeedbackState), required_unless_present = "assignee")]
        state: Option<FeedbackState>,
        /// Administrator who works on it, or `none`
        #[arg(long, value_name = "NAME")]
        assignee: Option<String>,
    },
    /// Reply to feedback of a signed-in user, who gets a notification
    Reply {
        /// Id of the feedback
        id: i64,
        /// The reply
        text: String,
    },
}

pub fn run(common: &Common, args: FeedbackArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::List { user, state, assignee, page } => {
            let user = user.map(|who| find_user_id(&app, &who)).transpose()?;
            list(common, &app, &FeedbackFilter { user, state, assignee }, &page)
        }
        Action::Change { id, state, assignee } => {
            let assignee = assignee.map(|name| Some(name).filter(|name| name != "none"));
            let pending = feedback::change(&app.core, id, FeedbackChange { state, assignee });
            let changed = pending.wait().map_err(name_missing("Feedback", id))?;
            done(common, &app, "feedback change", &changed)
        }
        Action::Reply { id, text } => reply(common, &app, id, &text),
    }
}

fn list(common: &Common, app: &App, filter: &FeedbackFilter, page: &PageArgs) -> Result<()> {
    let listing = feedback::list(&app.core, filter, page.page())?;
    record_audit(app, "feedback list", filter.user, cli_authority(None))?;
    common.output_list::<_, AdminFeedback>(page.page(), listing, COLUMNS)
}

fn reply(common: &Common, app: &App, id: i64, text: &str) -> Result<()> {
    let most = app.core.config.limits.feedback as usize;
    let content = clean(text, most).map_err(|fault| Error::field("text", fault))?;
    let (author, once) = (cli_authority(None).actor, IdempotentRequest::without_key(None));
    let replied = feedback::reply(&app.core, id, author, content, once).wait().map_err(name_missing("Feedback", id))?;
    done(common, app, "feedback reply", &replied.fresh()?)
}

fn done(common: &Common, app: &App, command: &str, thread: &FeedbackThread) -> Result<()> {
    let user: Option<UserId> = thread.feedback.user;
    record_audit(app, command, user, cli_authority(None))?;
    common.output(&AdminFeedback::from(thread), || list_of(COLUMNS, [thread]))
}
