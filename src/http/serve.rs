//! Listening, and stopping without losing anybody: the runtime, the accept loop, the drain.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{Either, Ready, join_all, ready},
};
use hyper::{
    Request,
    body::{Body as _, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    rt::TokioIo,
    server::graceful::{GracefulShutdown, Watcher},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use super::{
    connection::{Phase, TimedStream},
    connection_limiter::ConnectionPermit,
    listener::{self, Listener, Opened, Service},
    service_manager,
    sse::until_service_ends,
};
use crate::{
    app::App,
    domain::divination::crash_recovery,
    error::{Error, Result},
    jobs::{self, Schedule},
    providers::factory::Announce,
    store,
};

/// Threads for blocking operations, in addition to those of running model calls.
const BLOCKING_THREADS: usize = 96;
/// Maximum number of open files besides connections: the store's, the log, calls to providers.
const OTHER_FILES: u64 = 256;
/// Interval of checks for unfinished administrator calls at shutdown.
const LOOK_UP_EVERY: Duration = Duration::from_millis(20);
/// Time for streams to send their last event.
const LAST_EVENTS: Duration = Duration::from_secs(1);
/// Bytes that a connection buffers at most, each way. A request's head must fit: one that is longer is answered 431. It
/// is a few times what apps and proxies send; hyper's own limit would let each of many connections take some 400 KiB.
const HEAD_BUFFER: usize = 32 << 10;

/// Serves until the process receives a stop signal, then waits for running requests.
///
/// # Errors
/// An address cannot be bound, or the runtime cannot be started.
pub fn run(app: &Arc<App>, schedule: Schedule, announce: &Announce) -> Result<()> {
    crash_recovery::close_interrupted(app)?;
    allow_files(app.config.limits.connections);
    let workers = usize::try_from(app.config.server.worker_threads()).map_err(Error::internal)?;
    // Set explicitly: by default the runtime would count the cores and read the environment, and each worker uses one
    // of the store's connections, which the setting counts.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS + app.config.llm.calls as usize)
        .on_thread_park(store::on_thread_park)
        .build()
        .map_err(Error::internal)?;
    let workers = runtime.handle().clone();
    app.store.dispatch_replies_with(Box::new(move |answers| drop(workers.spawn(async move { drop(answers) }))));
    let jobs = jobs::start(app, schedule)?;
    let outcome = runtime.block_on(listen(app, announce));
    app.store.cancel_preparation();
    runtime.shutdown_timeout(Duration::from_secs(1));
    drop(jobs);
    // What still runs now ends with the process.
    let (recorded, closed) = (app.audits.record_interrupted(), crash_recovery::close_interrupted(app));
    app.store.close();
    outcome.and(recorded).and(closed)
}

/// Raises the number of files that may be open as far as the system lets us: each connection is one.
fn allow_files(connections: u32) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::warn!(%error, "the number of open files could not be raised");
    }
    let (allowed, needed) = (getrlimit(Resource::Nofile).current, u64::from(connections) + OTHER_FILES);
    if let Some(allowed) = allowed.filter(|allowed| *allowed < needed) {
        tracing::warn!(allowed, needed, "the system allows fewer open files than limits.connections needs");
    }
}

/// Who answers on a connection, and what says that the service waits for nobody any longer.
struct Conversation {
    service: Service,
    ends: watch::Receiver<bool>,
}

async fn listen(app: &Arc<App>, announce: &Announce) -> Result<()> {
    let mut hangups = signal(SignalKind::hangup()).map_err(Error::internal)?;
    let mut stop = stop_signal()?;
    let Opened { entrances, renewal } = listener::open(app, announce).await?;
    // Whoever renews certificates says so by this signal; without any it must not end the service.
    tokio::spawn(async move { while hangups.recv().await.is_some() {} });
    let renewal = renewal.map(tokio::spawn);
    let connections = GracefulShutdown::new();
    let (end, ends) = watch::channel(false);
    let accepting = entrances.iter().map(|entrance| accept(entrance, &connections, &ends));
    service_manager::ready();
    tokio::select! {
        _ = join_all(accepting) => {}
        _ = stop.recv() => {}
    }
    service_manager::stopping();
    drop(entrances);
    if let Some(renewal) = renewal {
        renewal.abort();
    }
    tracing::info!("stopping: running requests may end");
    // What an administrator has begun goes on when its connection is gone, and is to end, too.
    let mut drained = pin!(connections.shutdown().then(|()| acts_are_over(app)));
    tokio::select! {
        () = &mut drained => {}
        () = tokio::time::sleep(app.config.limits.drain_timeout) => {
            tracing::warn!("some requests did not end in time");
            end.send_replace(true);
            // Whoever is left then has no stream of events, or reads none.
            let _ = tokio::time::timeout(LAST_EVENTS, drained).await;
        }
        _ = stop.recv() => tracing::warn!("told to stop twice: not waiting any longer"),
    }
    Ok(())
}

async fn acts_are_over(app: &App) {
    while !app.audits.is_empty() {
        tokio::time::sleep(LOOK_UP_EVERY).await;
    }
}

/// SIGTERM and SIGINT, each time one comes.
fn stop_signal() -> Result<tokio::sync::mpsc::Receiver<()>> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::internal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::internal)?;
    let (sender, receiver) = tokio::sync::mpsc::channel(2);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if sender.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

async fn accept(entrance: &Listener, connections: &GracefulShutdown, ends: &watch::Receiver<bool>) {
    let door = &entrance.door;
    loop {
        match entrance.listener.accept().await {
            Ok((stream, peer)) => {
                if let Some(visit) = door.admit(peer.ip().to_canonical()) {
                    let conversation = Conversation { service: entrance.service.clone(), ends: ends.clone() };
                    serve_connection(stream, visit, entrance, conversation, connections.watcher());
                }
            }
            Err(error) => {
                // Out of file descriptors, most likely: accepting at once again would only spin.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn serve_connection(
    stream: TcpStream,
    visit: ConnectionPermit,
    entrance: &Listener,
    conversation: Conversation,
    watcher: Watcher,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection could not be set to send at once");
    }
    let phase = Phase::default();
    let stream = TimedStream::new(stream, phase.clone(), entrance.door.limits);
    match entrance.acceptor.clone() {
        None => drop(tokio::spawn(speak(stream, visit, conversation, phase, watcher))),
        Some(acceptor) => drop(tokio::spawn(async move {
            // The handshake has the time of the first head, which the stream under it keeps.
            match acceptor.accept(stream).await {
                Ok(stream) => speak(stream, visit, conversation, phase, watcher).await,
                Err(error) => tracing::debug!(%error, "a handshake failed"),
            }
        })),
    }
}

/// Serves one connection until it ends.
async fn speak<S>(stream: S, visit: ConnectionPermit, conversation: Conversation, phase: Phase, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let peer = visit.peer;
    let Conversation { service, ends } = conversation;
    let service = service_fn(move |request: Request<Incoming>| {
        let (phase, ends) = (phase.clone(), ends.clone());
        phase.answering();
        let is_complete = request.is_end_stream();
        let answering = service.answer(peer, request, is_complete);
        let answering = answering.map(move |response| {
            let response = until_service_ends(response, &ends);
            Ok::<_, Infallible>(response.map(|body| phase.answering_until_end_of(body)))
        });
        if is_complete { at_once(answering) } else { Either::Right(Box::pin(answering)) }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(HEAD_BUFFER)
        // One short buffer is sent for less than two that it takes to spare the copy.
        .writev(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Looks whether the answer to a request without a body is there at once, as most are, before the connection looks. The
/// request is gone then, and the connection reads on into what that was read into; while it is there, the connection
/// takes another buffer.
fn at_once<F: Future>(answering: F) -> Either<Ready<F::Output>, Pin<Box<F>>> {
    let mut answering = Box::pin(answering);
    match answering.as_mut().now_or_never() {
        Some(answer) => Either::Left(ready(answer)),
        // Whoever asks for it next says whom to wake.
        None => Either::Right(answering),
    }
}
