//! The recent proof of identity before a sensitive act. The page that asks for it carries the form of the act as hidden
//! fields, without secrets.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::lost_session::is_secret;
use crate::{
    error::{Code, Error, Result},
    http::{
        console::{
            request::{ConsoleRequest, message_of, page},
            views::pages::sign_in,
        },
        endpoint_service::ResponseFuture,
        reply,
    },
};

/// Runs the act if the session or the form has a recent proof of identity. Asks for one otherwise.
pub async fn require(console: Arc<ConsoleRequest>, action: String, act: ResponseFuture) -> Result<Response<Body>> {
    match console.require_step_up().await {
        Ok(()) => act.await,
        Err(error) if matches!(error.code, Code::StepUpRequired | Code::InvalidCredentials | Code::TooManyRequests) => {
            ask(&console, &action, &error)
        }
        Err(error) => Err(error),
    }
}

fn ask(console: &ConsoleRequest, action: &str, error: &Error) -> Result<Response<Body>> {
    let mut proof = console.step_up()?;
    proof.is_needed = true;
    proof.error = (error.code != Code::StepUpRequired).then(|| message_of(error, console.language()));
    let pairs = console.form.pairs().iter();
    let kept: Vec<_> =
        pairs.filter(|(name, _)| !["csrf", "once"].contains(&name.as_str()) && !is_secret(name)).collect();
    let action = format!("{action}{}", console.query.as_query());
    Ok(page(reply::status(error.code), sign_in::proof(&console.view()?, &action, &kept, &console.address, &proof)))
}
