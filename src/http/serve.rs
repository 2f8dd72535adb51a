//! Runs the server: the runtime, the accept loops and the graceful shutdown.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use futures_util::future::join_all;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::TokioIo,
    server::graceful::{GracefulShutdown, Watcher},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
};

use super::{
    connection::{Phase, StreamLimits, TimedStream},
    connection_limiter::ConnectionPermit,
    event_connection::{self, Handover},
    held_bytes::HeldPools,
    http2::{self, Http2Connection},
    inbox_hub,
    listener::{self, Listener, ListenerService, Listeners},
    live_interpretations::LiveInterpretations,
    service_manager,
    sse::end_on_shutdown,
};
use crate::{
    app::App,
    domain::divination::crash_recovery,
    error::{Error, Result},
    jobs::{self, Schedule},
    providers::factory::Announce,
    store,
};

/// Blocking threads besides those of model calls, so that neither waits for the other.
const BLOCKING_THREADS: usize = 384;
/// Open files besides connections: store, log, provider calls.
const OTHER_FILES: u64 = 256;
/// Interval at which a shutdown checks for running operations.
const OPERATIONS_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time that streams have to send their final event at a shutdown.
const FINAL_EVENTS: Duration = Duration::from_secs(1);
/// Read and write buffer of a connection, in bytes. A longer request head gets 431. hyper's own limit of 400 KiB would
/// let many connections use too much memory.
const HEAD_BUFFER: usize = 32 << 10;

/// The origin of the request to stop. A second one ends the wait for running requests.
pub enum Stop {
    /// SIGTERM and SIGINT.
    Signals,
    /// Another part of the same process.
    Handle(mpsc::Receiver<()>),
}

/// Serves until it is told to stop, then waits for running requests.
///
/// # Errors
/// Errors of the listeners, the runtime and the final records.
pub fn run(app: &Arc<App>, schedule: Schedule, stop: Stop, announce: &Announce) -> Result<()> {
    app.core.store.join_copies()?;
    crash_recovery::close_interrupted(&app.core)?;
    allow_files(app.core.config.limits.connections);
    let workers = usize::try_from(app.core.config.server.worker_threads()).map_err(Error::internal)?;
    // Always set: the default would follow the environment, but the store has one reader connection for each worker.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS + app.core.config.llm.max_concurrent_calls as usize)
        .on_thread_park(store::on_thread_park)
        .build()
        .map_err(Error::internal)?;
    let workers = runtime.handle().clone();
    app.core.store.dispatch_replies_with(Box::new(move |replies| drop(workers.spawn(async move { drop(replies) }))));
    let shipping = jobs::start_shipping(app, schedule)?;
    let jobs = jobs::start(app, schedule)?;
    let outcome = runtime.block_on(listen(app, stop, announce));
    app.core.store.cancel_preparation();
    runtime.shutdown_timeout(Duration::from_secs(1));
    drop(jobs);
    let (recorded, closed) = (app.audits.record_interrupted(), crash_recovery::close_interrupted(&app.core));
    app.network_log.close();
    app.core.store.close();
    if let Some(shipping) = shipping {
        shipping.finish();
    }
    // A superseded machine has nothing to record.
    if app.core.store.is_superseded() { outcome } else { outcome.and(recorded).and(closed) }
}

/// Raises the limit of open files to the maximum that the system allows. Each connection is one.
fn allow_files(connections: u32) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
    let (allowed, needed) = (getrlimit(Resource::Nofile).current, u64::from(connections) + OTHER_FILES);
    if let Some(allowed) = allowed.filter(|allowed| *allowed < needed) {
        tracing::warn!(allowed, needed, "the system allows fewer open files than limits.connections needs");
    }
}

async fn listen(app: &Arc<App>, stop: Stop, announce: &Announce) -> Result<()> {
    let mut hangups = signal(SignalKind::hangup()).map_err(Error::internal)?;
    let mut stop = match stop {
        Stop::Signals => stop_signal()?,
        Stop::Handle(receiver) => receiver,
    };
    let Listeners { open: listeners, renewal, live, inbox } = listener::open(app, announce).await?;
    // SIGHUP reloads certificates. Without TLS it must not end the process.
    tokio::spawn(async move { while hangups.recv().await.is_some() {} });
    let renewal = renewal.map(tokio::spawn);
    let watcher = tokio::spawn(inbox_hub::watch(Arc::clone(app), Arc::clone(&inbox)));
    let connections = GracefulShutdown::new();
    let (end, ends) = watch::channel(false);
    let accepting = listeners.iter().map(|listener| accept(listener, &connections, &ends));
    service_manager::ready();
    tokio::select! {
        _ = join_all(accepting) => {}
        _ = stop.recv() => {}
    }
    service_manager::stopping();
    drop(listeners);
    // They would go on for ever, and other requests are waited for.
    inbox.close();
    watcher.abort();
    if let Some(renewal) = renewal {
        renewal.abort();
    }
    tracing::info!("stopping: waiting for running requests");
    // Audited operations and interpretations continue after their connection has closed, so they are awaited separately.
    let mut drained = pin!(async {
        connections.shutdown().await;
        operations_end(app, &live).await;
    });
    tokio::select! {
        () = &mut drained => {}
        () = tokio::time::sleep(app.core.config.limits.drain_timeout) => {
            tracing::warn!("some requests did not end in time");
            end.send_replace(true);
            let _ = tokio::time::timeout(FINAL_EVENTS, drained).await;
        }
        _ = stop.recv() => tracing::warn!("second stop signal: not waiting for running requests"),
    }
    Ok(())
}

async fn operations_end(app: &App, live: &LiveInterpretations) {
    while !app.audits.is_empty() || !live.is_empty() {
        tokio::time::sleep(OPERATIONS_POLL_INTERVAL).await;
    }
}

/// Returns a receiver of SIGTERM and SIGINT.
fn stop_signal() -> Result<mpsc::Receiver<()>> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::internal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::internal)?;
    let (sender, receiver) = mpsc::channel(2);
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

async fn accept(listener: &Listener, connections: &GracefulShutdown, ends: &watch::Receiver<bool>) {
    loop {
        match listener.socket.accept().await {
            Ok((stream, peer)) => {
                if let Some(permit) = listener.limiter.admit(peer.ip().to_canonical()) {
                    let service = listener.service.clone();
                    let limits = listener.limiter.limits;
                    let (phase, held) = (Phase::default(), Arc::clone(&listener.held));
                    let connection = Connection { permit, service, phase, limits, held, ends: ends.clone() };
                    spawn_connection(stream, listener, connection, connections);
                }
            }
            Err(error) => {
                // Probably out of file descriptors: accepting again at once would spin.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// The state of one connection besides its stream.
struct Connection {
    permit: ConnectionPermit,
    service: ListenerService,
    phase: Phase,
    limits: StreamLimits,
    held: Arc<HeldPools>,
    /// True once streams must end because of a shutdown.
    ends: watch::Receiver<bool>,
}

fn spawn_connection(stream: TcpStream, listener: &Listener, connection: Connection, connections: &GracefulShutdown) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let stream = TimedStream::new(stream, connection.phase.clone(), connection.limits);
    let (watcher, rest) = (connections.watcher(), connections.watcher());
    match listener.acceptor.clone() {
        None => drop(tokio::spawn(connection.serve(stream, watcher, rest))),
        Some(acceptor) => drop(tokio::spawn(async move {
            // The timeout of the first request head also covers the handshake.
            match acceptor.accept(stream).await {
                Ok(stream) if stream.get_ref().1.alpn_protocol() == Some(http2::ALPN) => {
                    connection.serve_http2(stream, watcher).await;
                }
                Ok(stream) => connection.serve(stream, watcher, rest).await,
                Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
            }
        })),
    }
}

impl Connection {
    /// Serves the connection until it ends. A shutdown waits for both watchers: hyper's connection takes the first, and
    /// the second is for a stream of rare events after it.
    async fn serve<S>(self, stream: S, watcher: Watcher, rest: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let Self { permit, service, phase, ends, .. } = self;
        let (stream, handover) = Handover::lend(stream);
        let (service, phase, ends, handover) = (&service, &phase, &ends, &handover);
        let respond = |request: Request<Incoming>| {
            phase.responding();
            let handover = handover.allows(&request).then_some(handover);
            async move {
                // In a box of its own, because the connection keeps the memory of this future while a body is sent.
                let response = Box::pin(service.respond(permit.peer, request)).await;
                let response = end_on_shutdown(response, ends);
                let response = match handover {
                    Some(handover) => handover.pass(response).await,
                    None => response,
                };
                Ok::<_, Infallible>(phase.clone().responding_until_end_of(response))
            }
        };
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(HEAD_BUFFER)
            // Copies head and body into one buffer, which is cheaper than a vectored write for short responses.
            .writev(false)
            .serve_connection(TokioIo::new(stream), service_fn(respond));
        // Boxed to be gone before the stream of events, for which its memory is not needed.
        match handover.serve(Box::pin(watcher.watch(connection))).await {
            Some(Err(error)) => tracing::debug!(%error, "a connection ended early"),
            Some(Ok(())) => {}
            None => {
                if let Some((stream, response)) = handover.take()
                    && let Err(error) = event_connection::send(stream, response).await
                {
                    tracing::debug!(%error, "a stream of events ended early");
                }
            }
        }
        drop(rest);
    }

    /// Serves a connection with HTTP/2 until it ends.
    async fn serve_http2<S>(self, stream: S, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let Self { permit, service, phase, limits, held, ends } = self;
        let connection = Http2Connection { peer: permit.peer, phase, idle: limits.idle, head: HEAD_BUFFER, held };
        let respond = move |peer, request| {
            let (service, ends) = (service.clone(), ends.clone());
            async move { end_on_shutdown(service.respond(peer, request).await, &ends) }
        };
        connection.serve(stream, watcher, respond).await;
        drop(permit);
    }
}
