//! Data cleanup by an owner.
//!
//! A purge is confirmed on a page that counts what goes and what stays, with a token that is valid once.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::irreversible::{
    IrreversiblePage, confirmation_required, new_confirmation, require_confirmation, require_form,
};
use crate::{
    app::App,
    domain::operations::purge::{self, PurgeResult, PurgeTarget},
    error::{Code, Error, Result},
    http::console::{
        request::{ConsoleRequest, message_of, ok, page},
        views::{
            layout::Place,
            pages::cleanup::{self as view, Category},
            texts::{self, Text},
        },
    },
};

const PAGE: &str = "cleanup";

/// The targets in the order of the page.
const TARGETS: [PurgeTarget; 4] =
    [PurgeTarget::VerificationCodes, PurgeTarget::PaymentRecords, PurgeTarget::Feedback, PurgeTarget::All];

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let categories = TARGETS.map(|target| {
        let (title, detail) = texts_of(target);
        Category { target: slug(target).to_owned(), title, detail, is_dangerous: target == PurgeTarget::All }
    });
    ok(view::page(&console.view()?, &categories))
}

const fn texts_of(target: PurgeTarget) -> (Text, Text) {
    match target {
        PurgeTarget::VerificationCodes => (Text::CleanCodes, Text::CleanCodesDetail),
        PurgeTarget::PaymentRecords => (Text::CleanPayments, Text::CleanPaymentsDetail),
        PurgeTarget::Feedback => (Text::CleanFeedback, Text::CleanFeedbackDetail),
        PurgeTarget::All => (Text::CleanAll, Text::CleanAllDetail),
    }
}

/// Returns the part of the address that names the target.
fn slug(target: PurgeTarget) -> &'static str {
    target.name().trim_start_matches("cleanup ")
}

/// Shows what would go, and purges once that is confirmed.
pub async fn clear(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let named = console.parameter("target");
    let target = TARGETS.into_iter().find(|target| slug(*target) == named).ok_or(Code::NotFound)?;
    match try_clear(&console, target).await {
        Ok(cleared) => {
            let deleted = cleared.deleted.iter().map(|(_, rows)| rows).sum();
            console.done(&texts::purged(console.language(), deleted, &cleared.backup))
        }
        Err(error) if error.code == Code::Internal => Err(error),
        Err(error) => ask(&console, target, &error).await,
    }
}

async fn try_clear(console: &ConsoleRequest, target: PurgeTarget) -> Result<PurgeResult> {
    let Some(token) = console.form.find("confirm") else {
        return Err(confirmation_required(confirm(console, target, None).await));
    };
    require_form(console, target.name(), Text::WordsDiffer)?;
    confirm(console, target, Some(token.to_owned())).await?;
    console.context.record_start().await?;
    console.context.blocking(move |app| purge::run(&app.backups, &app.network_log, target, &mut |_, _, _| ())).await
}

/// Redeems the token, or fails with a new one.
async fn confirm(console: &ConsoleRequest, target: PurgeTarget, token: Option<String>) -> Result<()> {
    let preview = move |app: &App| purge::dry_run(&app.core, &app.network_log, target);
    require_confirmation(console, target.name().to_owned(), token, preview).await
}

/// Shows the page that asks for the confirmation, with the faults of the last attempt.
async fn ask(console: &ConsoleRequest, target: PurgeTarget, error: &Error) -> Result<Response<Body>> {
    let confirmation = match &error.confirmation {
        Some(confirmation) => confirmation.clone(),
        None => new_confirmation(confirm(console, target, None).await)?,
    };
    let is_first = console.form.find("confirm").is_none();
    let consequence = if !is_first && error.confirmation.is_some() {
        // Also the second request of a double click.
        console.text(Text::ConfirmationSpent).to_owned()
    } else if is_first || !error.fields.is_empty() {
        console.text(Text::CannotBeUndone).to_owned()
    } else {
        message_of(error, console.language())
    };
    let (title, detail) = texts_of(target);
    let shown = IrreversiblePage {
        title: texts::purge_title(console.language(), console.text(title)),
        consequence: format!("{} {consequence}", console.text(detail)),
        action: format!("{PAGE}/{}", slug(target)),
        back: PAGE.to_owned(),
        target: target.name().to_owned(),
        makes_backup: true,
    };
    let (status, shown) = shown.view(console, error, confirmation)?;
    Ok(page(status, view::confirm(&console.view()?, &shown, Place::Cleanup)))
}
