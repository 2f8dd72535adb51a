//! Listening, and stopping without losing anybody: the runtime, the accept loop, the drain.

use std::{
    collections::HashMap,
    convert::Infallible,
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::body::Body;
use futures_util::{
    FutureExt,
    future::{Either, Ready, join_all, ready},
};
use hyper::{
    Request, Response,
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
    net::{TcpListener, TcpStream},
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;

use super::{
    connection::{Phase, StreamLimits, TimedStream},
    metrics::{Metrics, RequestTally},
    redirect::Redirect,
    routes::{self, Part},
    service_manager,
    stream::until_service_ends,
    tls::{Tls, Upkeep},
    trace::Envelope,
};
use crate::{
    app::App,
    error::{Code, Error, Result},
    jobs,
    ops::{budget, chat, codes::client_network, interpretation},
    store,
    vendors::Announce,
};

/// Threads for operations that block, beside those that running model calls take: so that none waits for another.
const BLOCKING_THREADS: usize = 96;
/// Files that are open beside connections at most: the store's, the log, calls to providers.
const OTHER_FILES: u64 = 256;
/// How long streams have to send their last event.
const LAST_EVENTS: Duration = Duration::from_secs(1);
const HEAD_BUFFER: usize = 32 << 10;

/// Serves until the process is told to stop, then lets running requests end.
///
/// # Errors
/// When the address cannot be listened on, or the runtime cannot be started.
pub fn run(app: &Arc<App>, announce: &Announce) -> Result<()> {
    close_interrupted(app)?;
    allow_files(app.config.limits.connections);
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
    let workers = runtime.handle().clone();
    app.store.answer_through(Box::new(move |answers| drop(workers.spawn(async move { drop(answers) }))));
    let jobs = jobs::start(app)?;
    let outcome = runtime.block_on(listen(app, announce));
    runtime.shutdown_timeout(Duration::from_secs(1));
    drop(jobs);
    // What still runs now ends with the process.
    let closed = close_interrupted(app);
    app.store.close();
    outcome.and(closed)
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

/// Says of model calls that no process runs any more that they were interrupted, and charges what they had set aside.
fn close_interrupted(app: &App) -> Result<()> {
    budget::take_reserved_as_spent(app)?;
    interpretation::close_interrupted(app)?;
    chat::close_interrupted(app)
}

/// An address that is listened on, and what is served there.
struct Entrance {
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    service: Service,
    /// Counts who comes in.
    door: Doorkeeper,
}

/// Who answers on a connection, and what says that the service waits for nobody any longer.
struct Conversation {
    service: Service,
    ends: watch::Receiver<bool>,
}

#[derive(Clone)]
enum Service {
    Everything(Envelope),
    Redirect(Redirect),
    Metrics(Metrics),
}

impl Service {
    fn answer(&self, peer: IpAddr, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send + use<> {
        match self {
            Self::Everything(envelope) => {
                // What is empty takes no memory.
                let is_complete = request.is_end_stream();
                let request = request.map(|body| if is_complete { Body::empty() } else { Body::new(body) });
                Either::Left(envelope.serve(peer, request))
            }
            Self::Redirect(redirect) => Either::Right(ready(redirect.answer(&request)).boxed()),
            Self::Metrics(metrics) => {
                let metrics = metrics.clone();
                Either::Right(async move { metrics.answer(&request).await }.boxed())
            }
        }
    }
}

async fn listen(app: &Arc<App>, announce: &Announce) -> Result<()> {
    let mut hangups = signal(SignalKind::hangup()).map_err(Error::internal)?;
    let mut stop = stop_signal()?;
    let Opened { entrances, upkeep } = open(app, announce).await?;
    // Whoever renews certificates says so by this signal; without any it must not end the service.
    tokio::spawn(async move { while hangups.recv().await.is_some() {} });
    let upkeep = upkeep.map(tokio::spawn);
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
    if let Some(upkeep) = upkeep {
        upkeep.abort();
    }
    tracing::info!("stopping: running requests may end");
    let mut drained = pin!(connections.shutdown());
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

struct Opened {
    entrances: Vec<Entrance>,
    upkeep: Option<Upkeep>,
}

/// Listens on every address, and then says so. The line about the main one comes last: whoever waits for it finds
/// everything open.
async fn open(app: &Arc<App>, announce: &Announce) -> Result<Opened> {
    let server = &app.config.server;
    let part = if server.admin_listen.is_some() { Part::EverythingButAdmin } else { Part::Everything };
    let endpoints = routes::endpoints().into_iter().map(|endpoint| (endpoint.method, endpoint.path)).collect();
    let requests = Arc::new(RequestTally::new(endpoints, server.worker_threads() as usize));
    let envelope = Envelope::new(Arc::clone(app), routes::router(app, part)?, Arc::clone(&requests))?;
    let mut entrances = Vec::new();
    if let Some(address) = app.config.metrics.listen {
        let listener = bind(address).await?;
        announce(&format!("metrics are at http://{}/metrics", address_of(&listener)?));
        let service = Service::Metrics(Metrics::new(app, &requests));
        // Counted apart: a crowd at the other doors keeps nobody from looking.
        entrances.push(Entrance { listener, acceptor: None, service, door: Doorkeeper::new(app) });
    }
    let door = Doorkeeper::new(app);
    let tls = Tls::open(app)?;
    let acceptor = tls.as_ref().map(|tls| tls.acceptor.clone());
    let listener = bind(server.address()).await?;
    let target = address_of(&listener)?;
    let mut enter = |listener: TcpListener, acceptor: Option<TlsAcceptor>, service, what: &str| {
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        announce(&format!("yarrow {what} {scheme}://{}", address_of(&listener)?));
        entrances.push(Entrance { listener, acceptor, service, door: door.clone() });
        Ok::<_, Error>(())
    };
    if let Some(address) = server.admin_listen {
        let service = Service::Everything(envelope.with_router(routes::router(app, Part::Everything)?));
        // The certificate names the service and no loopback address, and nobody listens in on that.
        let acceptor = acceptor.clone().filter(|_| !address.ip().is_loopback());
        enter(bind(address).await?, acceptor, service, "serves /admin on")?;
    }
    if let (Some(address), Some(tls)) = (server.redirect_address(), &tls) {
        let service = Service::Redirect(Redirect::new(server, target, tls.challenges.clone()));
        enter(bind(address).await?, None, service, "redirects to HTTPS on")?;
    }
    enter(listener, acceptor, Service::Everything(envelope), "is listening on")?;
    Ok(Opened { entrances, upkeep: tls.map(|tls| tls.upkeep) })
}

fn address_of(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(Error::internal)
}

/// Listens. "Everywhere" is meant to work on machines without IPv6 too.
async fn bind(address: SocketAddr) -> Result<TcpListener> {
    let mut bound = TcpListener::bind(address).await;
    if bound.is_err() && address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED) {
        bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await;
    }
    bound.map_err(|error| not_bound(address, &error))
}

/// An address that another program has, or that this machine has not got yet, may be there at the next try. One that may
/// not be listened on at all is a matter of the configuration.
fn not_bound(address: SocketAddr, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => Code::AddressUnavailable,
        _ => Code::Configuration,
    };
    Error::new(code).detail(format!("Cannot listen on {address}: {error}"))
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

async fn accept(entrance: &Entrance, connections: &GracefulShutdown, ends: &watch::Receiver<bool>) {
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
    visit: Visit,
    entrance: &Entrance,
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
async fn speak<S>(stream: S, visit: Visit, conversation: Conversation, phase: Phase, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let peer = visit.peer;
    let Conversation { service, ends } = conversation;
    let service = service_fn(move |request: Request<Incoming>| {
        let (phase, ends) = (phase.clone(), ends.clone());
        phase.answering();
        let is_complete = request.is_end_stream();
        let answering = service.answer(peer, request);
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
/// request is gone then, and the connection reads on into what that was read into; while it is there, the connection takes
/// another buffer.
fn at_once<F: Future>(answering: F) -> Either<Ready<F::Output>, Pin<Box<F>>> {
    let mut answering = Box::pin(answering);
    match answering.as_mut().now_or_never() {
        Some(answer) => Either::Left(ready(answer)),
        // Whoever asks for it next says whom to wake.
        None => Either::Right(answering),
    }
}

/// Counts connections, over all and for each peer's network. Clones count together.
#[derive(Clone)]
struct Doorkeeper {
    limits: StreamLimits,
    most: u32,
    most_per_network: u32,
    is_exempt: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    over_all: u32,
    /// By the network that one subscriber has.
    of_network: HashMap<String, u32>,
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
            most_per_network: limits.connections_per_client,
            is_exempt: Arc::new(move |peer| proxies.iter().any(|network| network.contains(&peer))),
            open: Arc::default(),
        }
    }

    /// Counts a connection from this peer. Nothing, and the connection is closed, if there are too many.
    fn admit(&self, peer: IpAddr) -> Option<Visit> {
        let network = client_network(peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_network = open.of_network.get(&network).copied().unwrap_or(0);
        if open.over_all >= self.most || (of_network >= self.most_per_network && !(self.is_exempt)(peer)) {
            return None;
        }
        open.over_all += 1;
        open.of_network.insert(network, of_network + 1);
        Some(Visit { peer, open: Arc::clone(&self.open) })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let network = client_network(self.peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.over_all = open.over_all.saturating_sub(1);
        if let Some(count) = open.of_network.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                open.of_network.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_is_one_peer_whatever_its_addresses() {
        let limits = StreamLimits { head: Duration::from_secs(1), idle: Duration::from_secs(1) };
        let (is_exempt, open) = (Arc::new(|_| false), Arc::default());
        let door = Doorkeeper { limits, most: 10, most_per_network: 2, is_exempt, open };
        let admit = |peer: &str| door.admit(peer.parse().unwrap());
        let visits: Vec<_> = ["2001:db8::1", "2001:db8::2:1"].into_iter().map(|peer| admit(peer).unwrap()).collect();
        assert!(admit("2001:db8:0:0:ffff::1").is_none());
        let others = ["2001:db8:0:1::1", "192.0.2.1", "192.0.2.2"].map(|peer| admit(peer).is_some());
        assert_eq!(others, [true; 3]);
        drop(visits);
        assert!(admit("2001:db8:0:0:ffff::1").is_some());
    }

    #[test]
    fn an_address_that_may_be_had_later_is_no_fault_of_the_configuration() {
        let address = SocketAddr::from(([127, 0, 0, 1], 443));
        let code = |kind: ErrorKind| not_bound(address, &kind.into()).code;
        assert_eq!(code(ErrorKind::AddrInUse), Code::AddressUnavailable);
        assert_eq!(code(ErrorKind::AddrNotAvailable), Code::AddressUnavailable);
        assert_eq!(code(ErrorKind::PermissionDenied), Code::Configuration);
    }
}
