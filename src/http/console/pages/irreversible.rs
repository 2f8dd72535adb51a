//! Irreversible acts: a page counts what goes and what stays, and its form carries a token that is valid once.

use axum::http::StatusCode;

use crate::{
    app::App,
    domain::operations::confirmations::{self, ConfirmationRequest, DeletionPreview},
    error::{Code, Confirmation, Error, Fault, FieldCode, Result, Sentence},
    http::{
        console::{
            request::ConsoleRequest,
            views::{context::href, forms::ConfirmationView, texts::Text},
        },
        reply,
    },
};

/// The page of an irreversible act. Paths are relative to the console.
pub struct IrreversiblePage {
    pub title: String,
    /// The consequence in one sentence.
    pub consequence: String,
    /// The path that the form posts to.
    pub action: String,
    pub back: String,
    /// The words that the administrator must type.
    pub target: String,
    pub makes_backup: bool,
}

/// Checks the typed target and the reason.
pub fn require_form(console: &ConsoleRequest, target: &str, other_target: Text) -> Result<()> {
    if console.form.get("target") != target {
        let fault = Fault::new(FieldCode::UnknownValue, Sentence::for_reader(console.text(other_target)));
        return Err(Error::field("target", fault));
    }
    console.require_reason().map(drop)
}

/// Redeems the token for an act, or fails with a new one.
pub async fn require_confirmation(
    console: &ConsoleRequest,
    action: String,
    token: Option<String>,
    preview: impl FnOnce(&App) -> Result<DeletionPreview> + Send + 'static,
) -> Result<()> {
    let actor = console.context.admin()?.actor();
    let preview = console.context.report(preview).await?;
    let request = ConfirmationRequest { actor, action, token, preview };
    console.context.committed(confirmations::require(&console.context.app.core, request)).await
}

/// Returns the error of asking for a token, which carries it.
pub fn confirmation_required(asked: Result<()>) -> Error {
    asked.err().unwrap_or_else(|| Code::ConfirmationRequired.into())
}

/// Returns the token that was asked for.
///
/// # Errors
/// The error of asking, if it carries none.
pub fn new_confirmation(asked: Result<()>) -> Result<Confirmation> {
    let error = confirmation_required(asked);
    error.confirmation.clone().ok_or(error)
}

impl IrreversiblePage {
    /// Returns the status and the view of the page, with what was typed and the faults of the last attempt.
    ///
    /// # Errors
    /// Storage errors.
    pub fn view(
        self,
        console: &ConsoleRequest,
        error: &Error,
        confirmation: Confirmation,
    ) -> Result<(StatusCode, ConfirmationView)> {
        let typed = |name: &str| console.form.get(name).to_owned();
        let Confirmation { token, expires_at, would_delete, would_keep } = confirmation;
        let view = ConfirmationView {
            title: self.title,
            consequence: self.consequence,
            would_delete,
            would_keep,
            expires_at,
            token: token.reveal().to_owned(),
            action: href(&self.action),
            back: href(&self.back),
            repeated: Vec::new(),
            target: Some(self.target),
            typed_target: typed("target"),
            target_error: console.fault_of(error, "target"),
            reason: typed("reason"),
            reason_error: console.fault_of(error, "reason"),
            step_up: console.step_up()?,
            makes_backup: self.makes_backup,
        };
        let is_asked = error.confirmation.is_some();
        let status = if is_asked { StatusCode::PRECONDITION_REQUIRED } else { reply::status(error.code) };
        Ok((status, view))
    }
}
