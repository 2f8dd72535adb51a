//! `yarrow feedback`: what people wrote.

use clap::{Args, Subcommand};

use super::{Common, PageArgs, authority, blank, find_user_id, record, row, table};
use yarrow::{
    app::App,
    domain::messaging::feedback::{self, Filter},
    error::Result,
    http::answers::AdminFeedback,
    types::UserId,
};

/// Read what people wrote. WHO is a user's id, phone number or email address.
#[derive(Debug, Args)]
pub struct FeedbackArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print feedback, newest first.
    List {
        /// Only what this user wrote, or somebody in this user's name.
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
}

pub fn run(common: &Common, args: FeedbackArgs) -> Result<()> {
    let app = common.open()?;
    let Action::List { user, page } = args.action;
    let user = user.map(|who| find_user_id(&app, &who)).transpose()?;
    list(common, &app, user, &page)
}

fn list(common: &Common, app: &App, user: Option<UserId>, page: &PageArgs) -> Result<()> {
    let found = feedback::list(app, &user.map_or(Filter::All, Filter::Of), page.page())?;
    record(app, "feedback list", user, authority(None))?;
    common.answer_page::<_, AdminFeedback>(page.page(), found, |found| {
        let rows = found.items.iter().map(|item| {
            let who = item.user.map(|user| user.to_string()).or_else(|| item.phone_number.clone());
            let is_claimed = who.is_some() && !item.is_verified;
            row![item.id, item.created_at, blank(who) + if is_claimed { " (claimed)" } else { "" }, item.content]
        });
        table(["id", "at", "who", "feedback"], rows)
    })
}
