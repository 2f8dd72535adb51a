//! Having something interpreted, for every endpoint that does: whole, or told as it is written.

use std::{future::Future, sync::Arc};

use serde::Serialize;
use serde_json::json;
use tokio::sync::oneshot;

use super::{
    call::{Call, Context},
    reply::Problem,
    stream::{Events, JsonOrStream},
};
use crate::{
    app::App,
    error::{Error, Result},
    ops::{
        interpretation::{self, Prepared, Record},
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

/// Prepares an interpretation, runs it, and answers with what `shown` makes of its record, as JSON or, if the client
/// wants that, as a stream of `meta`, `delta`, `done` and `error` events.
///
/// `prepare` and `shown` run where they may block. `shown` is called once, for a call that succeeded.
///
/// # Errors
/// Those of [`place`], `prepare` and [`interpretation::run`]; for a stream the last become its `error` event.
pub async fn interpret<T, P, S>(call: &Call, user: UserId, prepare: P, shown: S) -> Result<JsonOrStream<T>>
where
    T: Serialize + Send + 'static,
    P: FnOnce(&App) -> Result<Prepared> + Send + 'static,
    S: FnOnce(&App, Record) -> Result<T> + Send + 'static,
{
    let place = place(call, user).await?;
    if !call.wants_stream {
        let answer = call.blocking(move |app| {
            let _place = place;
            let prepared = prepare(app)?;
            let record = interpretation::run(app, &prepared, &mut |_| Flow::Continue)?;
            shown(app, record)
        });
        return Ok(JsonOrStream::Json(answer.await?));
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
                narrate(&app, &context, &prepared, &events, shown);
            }
            Err(error) => drop(begun.send(Err(error))),
        }
    });
    // What is wrong with the request is answered as a problem; only what comes after that is part of the stream.
    beginning.await.map_err(Error::internal)??;
    Ok(JsonOrStream::Stream(listening))
}

/// Runs the interpretation and tells of it as it goes. A listener who has left cancels it.
fn narrate<T: Serialize>(
    app: &App,
    context: &Context,
    prepared: &Prepared,
    events: &Events,
    shown: impl FnOnce(&App, Record) -> Result<T>,
) {
    let meta = json!({ "traceId": prepared.trace_id, "provider": app.llm.name(), "model": app.llm.model() });
    events.send("meta", &meta);
    let outcome = interpretation::run(app, prepared, &mut |text| {
        // An empty piece only asks whether anybody is still there.
        let is_heard = if text.is_empty() { events.is_heard() } else { events.send("delta", &json!({ "text": text })) };
        if is_heard { Flow::Continue } else { Flow::Stop }
    });
    match outcome.and_then(|record| shown(app, record)) {
        Ok(answer) => events.send("done", &answer),
        Err(error) => events.send("error", &Problem::of(&error, &context.request_id)),
    };
}
