//! Export and deletion of an account by an owner.
//!
//! A deletion is confirmed on a page that says what goes and what stays, with a token that is valid once.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use tempfile::spooled_tempfile_in;

use super::{
    irreversible::{IrreversiblePage, new_confirmation, require_confirmation, require_form},
    users::subject,
};
use crate::{
    app::App,
    domain::identity::accounts::{self, DeletionActor},
    error::{Code, Error, Result},
    http::{
        console::{
            acts,
            request::{ConsoleRequest, message_of, page},
            views::{
                context::{Flash, href},
                pages::user as view,
                texts::{Text, Tone},
            },
        },
        download::{Download, HELD_IN_MEMORY},
        reply::Reply as _,
    },
    types::UserId,
};

/// Sends all data of the user as one JSON document.
pub async fn export(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    match try_export(&console, user).await {
        Ok(download) => download.into_response(),
        Err(error) => acts::reject(&console, error).await,
    }
}

async fn try_export(console: &ConsoleRequest, user: UserId) -> Result<Download> {
    console.require_reason()?;
    let own = console.context.app.exports.by_user.try_acquire(user)?;
    console
        .context
        .blocking(move |app| {
            let mut file = spooled_tempfile_in(HELD_IN_MEMORY, app.core.config.data_dir());
            accounts::export(&app.exports, user, &mut file)?;
            Download::of(file, own)
        })
        .await
}

/// Shows what would go, and deletes the account once that is confirmed.
pub async fn erase(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    let Err(error) = try_erase(&console, user).await else {
        return to_list(&console, Tone::Good, Text::ActionDone);
    };
    match error.code {
        // The second request of a double click.
        Code::NotFound => to_list(&console, Tone::Neutral, Text::NoLongerExists),
        Code::Internal => Err(error),
        _ => ask(&console, user, &error).await,
    }
}

/// Goes to the list of users, because the page of the user is gone.
fn to_list(console: &ConsoleRequest, tone: Tone, text: Text) -> Result<Response<Body>> {
    console.redirect_to(&href("users"), &Flash { tone, text: console.text(text).to_owned() })
}

async fn try_erase(console: &ConsoleRequest, user: UserId) -> Result<()> {
    let Some(token) = console.form.find("confirm") else { return confirm(console, user, None).await };
    require_form(console, &user.to_string(), Text::NotTheTarget)?;
    confirm(console, user, Some(token.to_owned())).await?;
    console.context.record_start().await?;
    console.context.blocking(move |app| accounts::erase(&app.core, user, DeletionActor::Operator)).await
}

/// Redeems the token, or fails with a new one.
async fn confirm(console: &ConsoleRequest, user: UserId, token: Option<String>) -> Result<()> {
    let preview = move |app: &App| accounts::preview_deletion(&app.core, user);
    require_confirmation(console, format!("erase user {user}"), token, preview).await
}

/// Shows the page that asks for the confirmation, with the faults of the last attempt.
async fn ask(console: &ConsoleRequest, user: UserId, error: &Error) -> Result<Response<Body>> {
    let confirmation = match &error.confirmation {
        Some(confirmation) => confirmation.clone(),
        None => new_confirmation(confirm(console, user, None).await)?,
    };
    let has_other_fault = error.fields.is_empty() && error.confirmation.is_none();
    let consequence = if has_other_fault {
        message_of(error, console.language())
    } else {
        console.text(Text::EraseConsequence).to_owned()
    };
    let shown = IrreversiblePage {
        title: console.text(Text::EraseUser).to_owned(),
        consequence,
        action: format!("users/{user}/erase"),
        back: format!("users/{user}"),
        target: user.to_string(),
        makes_backup: false,
    };
    let (status, shown) = shown.view(console, error, confirmation)?;
    Ok(page(status, view::confirm_erasure(&console.view()?, &shown)))
}
