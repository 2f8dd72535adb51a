//! `yarrow feedback`: feedback of users.

use clap::{Args, Subcommand};

use super::{Common, PageArgs, cli_authority, find_user_id, or_empty, record_audit, row, table};
use yarrow::{
    app::App,
    domain::messaging::feedback::{self, FeedbackFilter},
    error::Result,
    http::responses::AdminFeedback,
    types::UserId,
};

/// List feedback of users
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
    let listing = feedback::list(&app.core, &user.map_or(FeedbackFilter::All, FeedbackFilter::Of), page.page())?;
    record_audit(app, "feedback list", user, cli_authority(None))?;
    common.output_page::<_, AdminFeedback>(page.page(), listing, |listing| {
        let rows = listing.items.iter().map(|item| {
            let author = item.user.map(|user| user.to_string()).or_else(|| item.phone_number.clone());
            let is_claimed = author.is_some() && !item.is_verified;
            row![item.id, item.created_at, or_empty(author) + if is_claimed { " (claimed)" } else { "" }, item.content]
        });
        table(["id", "at", "author", "feedback"], rows)
    })
}
