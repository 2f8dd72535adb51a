//! `yarrow feedback`: what people wrote.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, PageArgs, authority, find_user_id, paged, record, table};
use yarrow::{
    app::App,
    error::Result,
    ops::feedback::{self, Filter},
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
    let items: Vec<_> = found
        .items
        .iter()
        .map(|item| {
            json!({
                "id": item.id.to_string(), "userId": item.user, "phoneNumber": item.phone_number,
                "isVerified": item.is_verified, "content": item.content, "createdAt": item.created_at,
            })
        })
        .collect();
    common.answer(&paged(page.page(), &items, found.total), || {
        let rows = found.items.iter().map(|item| {
            let who = item.user.map(|user| user.to_string()).or_else(|| item.phone_number.clone());
            let is_claimed = who.is_some() && !item.is_verified;
            [
                item.id.to_string(),
                item.created_at.to_string(),
                who.map_or_else(String::new, |who| if is_claimed { format!("{who} (claimed)") } else { who }),
                item.content.clone(),
            ]
        });
        table(["id", "at", "who", "feedback"], rows)
    })
}
