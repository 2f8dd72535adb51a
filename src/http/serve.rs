//! Listening, and stopping without losing anybody: the runtime, the accept loop, the drain.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::body::Body;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{rt::TokioIo, server::graceful::GracefulShutdown};
use tokio::{
    net::{TcpListener, TcpStream},
    signal::unix::{SignalKind, signal},
};

use super::{
    connection::{Phase, StreamLimits, TimedStream},
    metrics::{self, RequestTally},
    routes,
    trace::Envelope,
};
use crate::{
    app::{Announce, App},
    error::{Error, Result},
    jobs,
    ops::{chat, interpretation},
    store,
};

/// Threads for operations that block, beside those that running model calls take: so that none waits for another.
const BLOCKING_THREADS: usize = 96;
const HEAD_BUFFER: usize = 32 << 10;

/// Serves until the process is told to stop, then lets running requests end.
///
/// # Errors
/// When the address cannot be listened on, or the runtime cannot be started.
pub fn run(app: &Arc<App>, announce: &Announce) -> Result<()> {
    close_interrupted(app)?;
    let workers = usize::try_from(app.config.server.worker_threads()).map_err(Error::internal)?;
    // Said in any case: left alone, the runtime would count for itself and read the environment, and each worker keeps
    // one of the store's connections, which are counted by the setting.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS + app.config.llm.calls as usize)
        .on_thread_park(store::thread_parks)
        .build()
        .map_err(Error::internal)?;
    let jobs = jobs::start(Arc::clone(app))?;
    let outcome = runtime.block_on(listen(app, announce));
    runtime.shutdown_timeout(Duration::from_secs(1));
    drop(jobs);
    // What still runs now ends with the process.
    let closed = close_interrupted(app);
    app.store.close();
    outcome.and(closed)
}

/// Says of model calls that no process runs any more that they were interrupted.
fn close_interrupted(app: &App) -> Result<()> {
    interpretation::close_interrupted(app)?;
    chat::close_interrupted(app)
}

async fn listen(app: &Arc<App>, announce: &Announce) -> Result<()> {
    let endpoints = routes::endpoints().into_iter().map(|endpoint| (endpoint.method, endpoint.path)).collect();
    let requests = Arc::new(RequestTally::new(endpoints, app.config.server.worker_threads() as usize));
    let envelope = Envelope::new(Arc::clone(app), routes::router(app)?, Arc::clone(&requests))?;
    metrics::serve(app, &requests, announce).await?;
    let address = app.config.server.listen;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Error::new(crate::error::Code::Configuration).detail(format!("Cannot listen on {address}: {error}"))
    })?;
    let mut stop = stop_signal()?;
    announce(&format!("yarrow is listening on http://{}", listener.local_addr().map_err(Error::internal)?));
    let connections = GracefulShutdown::new();
    let door = Doorkeeper::new(app);
    tokio::select! {
        () = accept(&listener, &envelope, &connections, &door) => {}
        _ = stop.recv() => {}
    }
    drop(listener);
    tracing::info!("stopping: running requests may end");
    tokio::select! {
        () = connections.shutdown() => {}
        () = tokio::time::sleep(app.config.limits.drain_timeout) => {
            tracing::warn!("some requests did not end in time");
        }
        _ = stop.recv() => tracing::warn!("told to stop twice: not waiting any longer"),
    }
    Ok(())
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

async fn accept(listener: &TcpListener, envelope: &Envelope, connections: &GracefulShutdown, door: &Doorkeeper) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Some(visit) = door.admit(peer.ip().to_canonical()) {
                    serve_connection(stream, visit, envelope.clone(), connections, door.limits);
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
    visit: Visit,
    envelope: Envelope,
    connections: &GracefulShutdown,
    limits: StreamLimits,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection could not be set to send at once");
    }
    let peer = visit.peer;
    let phase = Phase::default();
    let stream = TokioIo::new(TimedStream::new(stream, phase.clone(), limits));
    let service = service_fn(move |request: Request<Incoming>| {
        let (envelope, phase) = (envelope.clone(), phase.clone());
        phase.answering();
        async move {
            let response = envelope.serve(peer, request.map(Body::new)).await;
            Ok::<_, Infallible>(response.map(|body| phase.answering_until_end_of(body)))
        }
    });
    let connection =
        http1::Builder::new().header_read_timeout(None).max_buf_size(HEAD_BUFFER).serve_connection(stream, service);
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended early");
        }
        drop(visit);
    });
}

/// Counts connections, over all and for each peer.
struct Doorkeeper {
    limits: StreamLimits,
    most: u32,
    most_per_peer: u32,
    is_exempt: Box<dyn Fn(IpAddr) -> bool + Send + Sync>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    over_all: u32,
    of_peer: HashMap<IpAddr, u32>,
}

/// One open connection, counted until it is dropped.
struct Visit {
    peer: IpAddr,
    open: Arc<Mutex<Open>>,
}

impl Doorkeeper {
    fn new(app: &App) -> Self {
        let proxies = app.config.server.trusted_proxies.clone();
        let limits = &app.config.limits;
        Self {
            limits: StreamLimits { head: limits.header_timeout, idle: limits.idle_timeout },
            most: limits.connections,
            most_per_peer: limits.connections_per_client,
            is_exempt: Box::new(move |peer| proxies.iter().any(|network| network.contains(&peer))),
            open: Arc::default(),
        }
    }

    /// Counts a connection from this peer. Nothing, and the connection is closed, if there are too many.
    fn admit(&self, peer: IpAddr) -> Option<Visit> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = open.of_peer.get(&peer).copied().unwrap_or(0);
        if open.over_all >= self.most || (of_peer >= self.most_per_peer && !(self.is_exempt)(peer)) {
            return None;
        }
        open.over_all += 1;
        open.of_peer.insert(peer, of_peer + 1);
        Some(Visit { peer, open: Arc::clone(&self.open) })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.over_all = open.over_all.saturating_sub(1);
        if let Some(count) = open.of_peer.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.of_peer.remove(&self.peer);
            }
        }
    }
}
