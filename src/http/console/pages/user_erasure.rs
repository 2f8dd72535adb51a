//! Export and deletion of an account by an owner.
//!
//! A deletion is confirmed on a page that says what goes and what stays, with a token that is valid once.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use tempfile::spooled_tempfile_in;

use super::{administrators::is_proof_error, user_acts::finish, users::subject};
use crate::{
    domain::{
        identity::accounts::{self, DeletionActor},
        operations::confirmations::{self, ConfirmationRequest},
    },
    error::{Code, Confirmation, Error, Fault, FieldCode, Result},
    http::{
        console::{
            request::{ConsoleRequest, fault_of, message_of, page},
            views::{
                context::{Flash, href},
                forms::ConfirmationView,
                pages::user as view,
                texts::{Text, Tone},
            },
        },
        download::{Download, HELD_IN_MEMORY},
        reply::{self, Reply as _},
    },
    types::UserId,
};

/// Sends all data of the user as one JSON document.
pub async fn export(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    match try_export(&console, user).await {
        Ok(download) => download.into_response(),
        Err(error) => finish(&console, user, "export", Err(error)).await,
    }
}

async fn try_export(console: &ConsoleRequest, user: UserId) -> Result<Download> {
    console.require_reason()?;
    console.require_step_up().await?;
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
        return console.done("users", console.text(Text::ActionDone));
    };
    match error.code {
        // The second request of a double click.
        Code::NotFound => {
            let text = console.text(Text::NoLongerExists).to_owned();
            console.redirect("users", &Flash { tone: Tone::Neutral, text })
        }
        Code::Internal => Err(error),
        _ => ask(&console, user, &error).await,
    }
}

async fn try_erase(console: &ConsoleRequest, user: UserId) -> Result<()> {
    if console.form.find("confirm").is_none() {
        return require_confirmation(console, user, None).await;
    }
    if console.form.get("target") != user.to_string() {
        let fault = Fault::new(FieldCode::UnknownValue, console.text(Text::NotTheTarget));
        return Err(Error::field("target", fault));
    }
    console.require_reason()?;
    console.require_step_up().await?;
    require_confirmation(console, user, console.form.find("confirm").map(ToOwned::to_owned)).await?;
    console.context.record_start().await?;
    let erased = console.context.blocking(move |app| accounts::erase(&app.core, user, DeletionActor::Operator)).await?;
    console.context.committed(erased).await
}

/// Redeems the token, or fails with a new one.
async fn require_confirmation(console: &ConsoleRequest, user: UserId, token: Option<String>) -> Result<()> {
    let actor = console.context.admin()?.actor();
    let preview = console.context.report(move |app| accounts::preview_deletion(&app.core, user)).await?;
    let request = ConfirmationRequest { actor, action: format!("erase user {user}"), token, preview };
    console.context.committed(confirmations::require(&console.context.app.core, request)).await
}

/// Shows the page that asks for the confirmation, with the faults of the last attempt.
async fn ask(console: &ConsoleRequest, user: UserId, error: &Error) -> Result<Response<Body>> {
    let confirmation = match &error.confirmation {
        Some(confirmation) => confirmation.clone(),
        None => new_confirmation(console, user).await?,
    };
    let typed = |name: &str| console.form.get(name).to_owned();
    let mut step_up = console.step_up()?;
    if is_proof_error(error) {
        step_up.is_needed = true;
        step_up.error = Some(message_of(error, console.language()));
    }
    let other_fault = error.fields.is_empty() && error.confirmation.is_none() && !is_proof_error(error);
    let Confirmation { token, expires_at, would_delete, would_keep } = confirmation;
    let shown = ConfirmationView {
        title: console.text(Text::EraseUser).to_owned(),
        consequence: if other_fault {
            message_of(error, console.language())
        } else {
            console.text(Text::EraseConsequence).to_owned()
        },
        would_delete,
        would_keep,
        expires_at,
        token: token.reveal().to_owned(),
        action: href(&format!("users/{user}/erase")),
        back: href(&format!("users/{user}")),
        repeated: Vec::new(),
        target: Some(user.to_string()),
        typed_target: typed("target"),
        target_error: fault_of(error, "target"),
        reason: typed("reason"),
        reason_error: fault_of(error, "reason"),
        step_up,
        makes_backup: false,
    };
    let status =
        if error.confirmation.is_some() { StatusCode::PRECONDITION_REQUIRED } else { reply::status(error.code) };
    Ok(page(status, view::confirm_erasure(&console.view()?, &shown)))
}

async fn new_confirmation(console: &ConsoleRequest, user: UserId) -> Result<Confirmation> {
    match require_confirmation(console, user, None).await {
        Err(error) => error.confirmation.clone().ok_or(error),
        Ok(()) => Err(Code::ConfirmationRequired.into()),
    }
}
