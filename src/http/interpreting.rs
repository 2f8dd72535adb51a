//! Having something interpreted, for every endpoint that does: whole, or told as it is written.

use std::{future::Future, sync::Arc};

use tokio::sync::oneshot;

use super::{
    call::Call,
    narration::{Interpretation, tell},
    stream::{Events, JsonOrStream},
};
use crate::{
    app::App,
    error::{Error, Result},
    ops::{
        interpretation::{self, Prepared},
        model_calls::{self, Place},
    },
    providers::llm::Flow,
    types::UserId,
};

/// A place for one model call of this user, as soon as there is one.
///
/// # Errors
/// `too_many_calls`; `overloaded` when the queue is full, or when waiting in it took too long.
pub async fn place(call: &Call, user: UserId) -> Result<Place> {
    let entering = call.app.calls.enter(user)?;
    within(call.app.config.llm.queue_timeout, entering).await
}

async fn within(time: std::time::Duration, entering: impl Future<Output = Result<Place>>) -> Result<Place> {
    match tokio::time::timeout(time, entering).await {
        Ok(place) => place,
        Err(_) => Err(model_calls::overloaded()),
    }
}

/// Prepares an interpretation, runs it, and answers with it, as JSON or, if the client wants that, as a stream of
/// `meta`, `delta`, `done` and `error` events. `prepare` runs where it may block.
///
/// # Errors
/// Those of [`place`], `prepare` and [`interpretation::run`]; for a stream the last become its `error` event.
pub async fn interpret<P>(call: &Call, user: UserId, prepare: P) -> Result<JsonOrStream<Interpretation>>
where
    P: FnOnce(&App) -> Result<Prepared> + Send + 'static,
{
    let place = place(call, user).await?;
    if !call.wants_stream {
        let record = call.blocking(move |app| {
            let _place = place;
            interpretation::run(app, &prepare(app)?, &mut |_| Flow::Continue)
        });
        return Ok(JsonOrStream::Json(record.await?.into()));
    }
    let (events, listening) = Events::channel(call.app.config.llm.heartbeat);
    let (begun, beginning) = oneshot::channel();
    let (app, context) = (Arc::clone(&call.app), Arc::clone(&call.context));
    // One thread prepares and runs: a request that is given up in between must not leave a record that nobody ends.
    tokio::task::spawn_blocking(move || {
        let _place = place;
        match prepare(&app) {
            Ok(prepared) => {
                // Whether anybody still waits is asked before the model is.
                drop(begun.send(Ok(())));
                tell(&app, &context, &events, &prepared.trace_id, |sink| interpretation::run(&app, &prepared, sink));
            }
            Err(error) => drop(begun.send(Err(error))),
        }
    });
    // What is wrong with the request is answered as a problem; only what comes after that is part of the stream.
    beginning.await.map_err(Error::internal)??;
    Ok(JsonOrStream::Stream(listening))
}
