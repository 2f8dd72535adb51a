//! Acts: each is an endpoint's handler, called with the fields of a form. A rejected form is shown again by its page.

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    http::Response,
};
use serde_json::Value;

use super::{
    request::{ConsoleRequest, PageHandler},
    views::texts::Text,
};
use crate::{
    error::{Code, Error, Result},
    http::{
        endpoint::Handler,
        params::{Parameters, Reader},
        reply::{self, Reply},
    },
};

/// The largest stored problem.
const PROBLEM_BYTES: usize = 64 << 10;

/// Makes an act of the handler of an endpoint, with the message that it is done.
pub fn act<P: Parameters, R: Reply>(handler: impl Handler<P, R>, done: Text) -> impl PageHandler {
    let handler = Arc::new(handler);
    move |console: Arc<ConsoleRequest>| {
        let handler = Arc::clone(&handler);
        async move {
            let performed = perform(&console, &*handler).await;
            let outcome = match performed {
                Ok(reply) => refusal_of(reply.into_response()?).await,
                Err(error) => Err(error),
            };
            finish(&console, outcome.map(|()| console.text(done).to_owned())).await
        }
    }
}

/// Calls the handler of an endpoint with the fields of the form.
///
/// # Errors
/// Faults of the form; errors of the endpoint.
pub async fn perform<P: Parameters, R>(console: &ConsoleRequest, handler: &impl Handler<P, R>) -> Result<R> {
    // A reason that the form asks for is required, also where the API does without.
    if console.form.all("reason").next().is_some() {
        console.require_reason()?;
    }
    let params = Reader::of_form(&console.context, &console.path, console.form.pairs()).parse()?;
    handler.handle(console.context.clone(), params).await
}

/// Returns the refusal that a reply repeats: that of the first request of a double click.
async fn refusal_of(response: Response<Body>) -> Result<()> {
    if response.status().is_success() {
        return Ok(());
    }
    let body = to_bytes(response.into_body(), PROBLEM_BYTES).await.map_err(Error::internal)?;
    let problem: Value = serde_json::from_slice(&body).map_err(Error::internal)?;
    let text = |name: &str| problem[name].as_str().unwrap_or_default();
    let code = Code::ALL.iter().copied().find(|code| code.name() == text("code"));
    let code = code.ok_or_else(|| Error::internal("a stored problem without a code"))?;
    // The problem is in the language of the request.
    Err(Error::new(code).detail((text("detail").to_owned(), text("detail").to_owned())))
}

/// Goes back to the page of an act: with the message that it is done, or with the rejected form.
///
/// # Errors
/// As [`reject`].
pub async fn finish(console: &Arc<ConsoleRequest>, outcome: Result<String>) -> Result<Response<Body>> {
    match outcome {
        Ok(message) => console.done(&message),
        Err(error) => reject(console, error).await,
    }
}

/// Goes back to the page of an act that says only that it is done, or shows the rejected form.
///
/// # Errors
/// As [`reject`].
pub async fn done<T>(console: &Arc<ConsoleRequest>, outcome: Result<T>) -> Result<Response<Body>> {
    finish(console, outcome.map(|_| console.text(Text::ActionDone).to_owned())).await
}

/// Shows the page of a rejected form again.
///
/// # Errors
/// Faults of the service, which have a page of their own and are logged; errors of the page.
pub async fn reject(console: &Arc<ConsoleRequest>, error: Error) -> Result<Response<Body>> {
    if error.code == Code::Internal {
        return Err(error);
    }
    let mut response = show_again(console, Some(&error)).await?;
    *response.status_mut() = reply::status(error.code);
    Ok(response)
}

/// Shows the page with the form as it was typed, and the error for which it was rejected.
///
/// # Errors
/// Errors of the page.
pub async fn show_again(console: &Arc<ConsoleRequest>, rejection: Option<&Error>) -> Result<Response<Body>> {
    console.keep_form(rejection);
    let page = console.page.clone().ok_or_else(|| Error::internal("an act without a page"))?;
    page.handle(Arc::clone(console)).await
}
