//! Data cleanup by an owner.
//!
//! A purge is confirmed on a page that counts what goes and what stays, with a token that is valid once.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};

use super::administrators::is_proof_error;
use crate::{
    domain::operations::{
        confirmations::{self, ConfirmationRequest},
        purge::{self, PurgeResult, PurgeTarget},
    },
    error::{Code, Confirmation, Error, Fault, FieldCode, Result},
    http::{
        console::{
            request::{ConsoleRequest, fault_of, message_of, ok, page},
            views::{
                context::href,
                forms::ConfirmationView,
                layout::Place,
                pages::cleanup::{self as view, Category},
                texts::{self, Text},
            },
        },
        reply,
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
            console.done(PAGE, &texts::purged(console.language(), deleted, &cleared.backup))
        }
        Err(error) if error.code == Code::Internal => Err(error),
        Err(error) => ask(&console, target, &error).await,
    }
}

async fn try_clear(console: &ConsoleRequest, target: PurgeTarget) -> Result<PurgeResult> {
    let Some(token) = console.form.find("confirm") else {
        return Err(confirmation_required(console, target).await);
    };
    if console.form.get("target") != target.name() {
        let fault = Fault::new(FieldCode::UnknownValue, console.text(Text::WordsDiffer));
        return Err(Error::field("target", fault));
    }
    console.require_reason()?;
    console.require_step_up().await?;
    require_confirmation(console, target, Some(token.to_owned())).await?;
    console.context.record_start().await?;
    console.context.blocking(move |app| purge::run(&app.backups, &app.network_log, target, &mut |_, _, _| ())).await
}

/// Redeems the token, or fails with a new one.
async fn require_confirmation(console: &ConsoleRequest, target: PurgeTarget, token: Option<String>) -> Result<()> {
    let actor = console.context.admin()?.actor();
    let preview = console.context.report(move |app| purge::dry_run(&app.core, &app.network_log, target)).await?;
    let request = ConfirmationRequest { actor, action: target.name().to_owned(), token, preview };
    console.context.committed(confirmations::require(&console.context.app.core, request)).await
}

/// Returns the error that carries a new token.
async fn confirmation_required(console: &ConsoleRequest, target: PurgeTarget) -> Error {
    let asked = require_confirmation(console, target, None).await;
    asked.err().unwrap_or_else(|| Code::ConfirmationRequired.into())
}

/// Shows the page that asks for the confirmation, with the faults of the last attempt.
async fn ask(console: &ConsoleRequest, target: PurgeTarget, error: &Error) -> Result<Response<Body>> {
    let confirmation = if let Some(confirmation) = &error.confirmation {
        confirmation.clone()
    } else {
        let asked = confirmation_required(console, target).await;
        asked.confirmation.clone().ok_or(asked)?
    };
    let typed = |name: &str| console.form.get(name).to_owned();
    let mut step_up = console.step_up()?;
    if is_proof_error(error) {
        step_up.is_needed = true;
        step_up.error = Some(message_of(error, console.language()));
    }
    let is_first = console.form.find("confirm").is_none();
    let consequence = if !is_first && error.confirmation.is_some() {
        // Also the second request of a double click.
        console.text(Text::ConfirmationSpent).to_owned()
    } else if is_first || is_proof_error(error) || !error.fields.is_empty() {
        console.text(Text::CannotBeUndone).to_owned()
    } else {
        message_of(error, console.language())
    };
    let Confirmation { token, expires_at, would_delete, would_keep } = confirmation;
    let (title, detail) = texts_of(target);
    let shown = ConfirmationView {
        title: texts::purge_title(console.language(), console.text(title)),
        consequence: format!("{} {consequence}", console.text(detail)),
        would_delete,
        would_keep,
        expires_at,
        token: token.reveal().to_owned(),
        action: href(&format!("{PAGE}/{}", slug(target))),
        back: href(PAGE),
        repeated: Vec::new(),
        target: Some(target.name().to_owned()),
        typed_target: typed("target"),
        target_error: fault_of(error, "target"),
        reason: typed("reason"),
        reason_error: fault_of(error, "reason"),
        step_up,
        makes_backup: true,
    };
    let status =
        if error.confirmation.is_some() { StatusCode::PRECONDITION_REQUIRED } else { reply::status(error.code) };
    Ok(page(status, view::confirm(&console.view()?, &shown, Place::Cleanup)))
}
