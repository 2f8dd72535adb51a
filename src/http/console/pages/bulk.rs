//! Acts on several rows: the picked rows of a form, one reason, and a result for each row.
//!
//! The act of each row is an audit event of its own, so that the page of a user shows it.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::operations::audit::{self, AuditEvent},
    error::{Code, Error, Fault, FieldCode, Result, Sentence},
    http::{
        console::{
            acts,
            request::{ConsoleRequest, message_of, ok},
            views::{
                context::href,
                layout::Place,
                pages::bulk::{self as view, BulkResult, BulkResults},
                texts::Text,
            },
        },
        reply,
    },
    types::UserId,
};

/// The most rows of one form.
const MOST_ROWS: usize = 100;

/// A form with picked rows.
pub struct BulkForm<'request> {
    console: &'request ConsoleRequest,
    place: Place,
    pub ids: Vec<String>,
    /// The name of the act.
    pub act: &'request str,
    pub reason: String,
    results: Vec<BulkResult>,
}

impl<'request> BulkForm<'request> {
    /// Reads the form.
    ///
    /// # Errors
    /// `invalid_parameters` without a reason, and for no rows or too many.
    pub fn read(console: &'request ConsoleRequest, place: Place) -> Result<Self> {
        let reason = console.require_reason()?;
        let mut ids: Vec<String> = Vec::new();
        for id in console.form.all("id").filter(|id| !id.is_empty()) {
            if !ids.iter().any(|other| other == id) {
                ids.push(id.to_owned());
            }
        }
        if ids.is_empty() || ids.len() > MOST_ROWS {
            return Err(Error::new(Code::InvalidParameters).detail(Sentence::for_reader(console.text(Text::PickSome))));
        }
        Ok(Self { console, place, ids, act: console.form.get("act"), reason, results: Vec::new() })
    }

    /// Returns the error of an act that the list does not have.
    pub fn unknown_act(&self) -> Error {
        Error::field(
            "act",
            Fault::new(FieldCode::UnknownValue, Sentence::for_reader(self.console.text(Text::UnknownAct))),
        )
    }

    /// Adds the outcome of one row with an optional detail, and records it in the audit.
    ///
    /// # Errors
    /// Storage errors of the audit.
    pub async fn add(
        &mut self,
        id: &str,
        page: Option<String>,
        user: Option<UserId>,
        outcome: Result<Option<String>>,
    ) -> Result<()> {
        let status = outcome.as_ref().map_or_else(|error| reply::status(error.code).as_u16(), |_| 200);
        let meta = &self.console.context.meta;
        let event = AuditEvent {
            actor: self.console.context.admin()?.actor(),
            action: format!("POST /admin/console/{}/bulk {}", self.place.path(), self.act).trim_end().to_owned(),
            user,
            reason: Some(self.reason.clone()),
            outcome: status,
            client_ip: Some(meta.client.to_string()),
            request_id: meta.request_id.clone(),
            system_user: None,
        };
        self.console.context.committed(audit::record(&self.console.context.app.core, event)).await?;
        let (outcome, detail) = match outcome {
            Ok(detail) => ("done", detail),
            Err(error) => ("failed", Some(message_of(&error, self.console.language()))),
        };
        self.results.push(BulkResult { id: id.to_owned(), href: page, outcome: outcome.to_owned(), detail });
        Ok(())
    }

    /// Renders the results.
    ///
    /// # Errors
    /// Storage errors.
    pub fn finish(self) -> Result<Response<Body>> {
        let back = href(self.place.path());
        ok(view::page(&self.console.view()?, &BulkResults { place: self.place, back, results: self.results }))
    }
}

/// Shows the list again if the form was rejected.
///
/// # Errors
/// Errors that have a page of their own.
pub async fn or_rejected(console: &Arc<ConsoleRequest>, outcome: Result<Response<Body>>) -> Result<Response<Body>> {
    match outcome {
        Err(error) if error.code == Code::InvalidParameters => acts::reject(console, error).await,
        outcome => outcome,
    }
}
