//! Opens the addresses that the service listens on, each with the service behind it.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use axum::body::Body;
use hyper::{Request, Response, body::Incoming};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{
    allowed_hosts::AllowedHosts,
    connection_limiter::ConnectionLimiter,
    held_bytes::HeldPools,
    inbox_hub::InboxHub,
    live_interpretations::LiveInterpretations,
    metrics::{Metrics, requests::RequestMetrics},
    redirect::Redirect,
    request_layer::RequestLayer,
    routes::{self, Part},
    state::HttpState,
    tls::{Renewal, Tls},
};
use crate::{
    app::App,
    domain::operations::admins::first_run,
    error::{Code, Error, Result},
    providers::factory::Announce,
};

/// All open listeners and the task that renews their certificate.
pub struct Listeners {
    pub open: Vec<Listener>,
    pub renewal: Option<Renewal>,
    /// The running interpretations of sessions, which a shutdown waits for.
    pub live: Arc<LiveInterpretations>,
    /// The notification streams, which a shutdown ends.
    pub inbox: Arc<InboxHub>,
}

/// A listening socket and the service behind it.
pub struct Listener {
    pub socket: TcpListener,
    pub acceptor: Option<TlsAcceptor>,
    pub service: ListenerService,
    pub limiter: ConnectionLimiter,
    pub held: Arc<HeldPools>,
}

/// The service behind a listener.
#[derive(Clone)]
pub enum ListenerService {
    Api(RequestLayer),
    Redirect(Redirect),
    Metrics(Metrics),
}

impl ListenerService {
    pub async fn respond(&self, peer: IpAddr, request: Request<Incoming>) -> Response<Body> {
        match self {
            Self::Api(layer) => layer.serve(peer, request.map(Body::new)).await,
            Self::Redirect(redirect) => redirect.respond(&request),
            Self::Metrics(metrics) => metrics.clone().respond(&request).await,
        }
    }
}

/// Opens all listeners and prints their addresses. The main one is printed last, when everything is open; only the link
/// for the first administrator follows.
///
/// # Errors
/// `address_unavailable` or `configuration` for an address that cannot be bound; errors of TLS and routes.
pub async fn open(app: &Arc<App>, announce: &Announce) -> Result<Listeners> {
    let server = &app.core.config.server;
    let state = Arc::new(HttpState::new(Arc::clone(app)));
    let part = if server.admin_listen.is_some() { Part::EverythingButAdmin } else { Part::Everything };
    let endpoints = routes::endpoints().into_iter().map(|endpoint| (endpoint.method, endpoint.path));
    let requests = Arc::new(RequestMetrics::new(endpoints));
    let private_hosts = AllowedHosts::names_of(server);
    // Public listeners are reached under any name that points at them, and with TLS browsers check the name themselves.
    let is_private = server.address().ip().is_loopback() && !server.has_tls();
    let hosts = if is_private { private_hosts.clone() } else { AllowedHosts::any() };
    let layer = RequestLayer::new(&state, routes::router(&state, part)?, hosts, Arc::clone(&requests))?;
    let layer = layer.with_console(part == Part::Everything);
    let mut listeners = Vec::new();
    if let Some(address) = app.core.config.metrics.listen {
        let socket = bind(address).await?;
        announce(&format!("metrics are at http://{}/metrics", address_of(&socket)?));
        let service = ListenerService::Metrics(Metrics::new(app, &requests, private_hosts.clone()));
        // A limiter of its own, so that many clients on other listeners do not make metrics unavailable.
        let (limiter, held) = (ConnectionLimiter::new(app), Arc::clone(&state.held));
        listeners.push(Listener { socket, acceptor: None, service, limiter, held });
    }
    let limiter = ConnectionLimiter::new(app);
    let tls = Tls::open(app)?;
    let acceptor = tls.as_ref().map(|tls| tls.acceptor.clone());
    let main = bind(server.address()).await?;
    let target = address_of(&main)?;
    let mut add = |socket: TcpListener, acceptor: Option<TlsAcceptor>, service, limiter, purpose: &str| {
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        announce(&format!("yarrow {purpose} {scheme}://{}", address_of(&socket)?));
        listeners.push(Listener { socket, acceptor, service, limiter, held: Arc::clone(&state.held) });
        Ok::<_, Error>(())
    };
    let mut console = console_address(&main, acceptor.is_some())?;
    if let Some(address) = server.admin_listen {
        // The certificate does not name loopback addresses, which nobody can eavesdrop on.
        let acceptor = acceptor.clone().filter(|_| !address.ip().is_loopback());
        let hosts = if acceptor.is_some() { AllowedHosts::any() } else { private_hosts };
        let for_admins = layer.for_listener(routes::router(&state, Part::AdminListener)?, hosts).with_console(true);
        let service = ListenerService::Api(for_admins.with_tls(acceptor.is_some()));
        // A limiter of its own, too: administrators need access above all when there are too many clients.
        let socket = bind(address).await?;
        console = console_address(&socket, acceptor.is_some())?;
        add(socket, acceptor, service, ConnectionLimiter::new(app), "serves /admin on")?;
    }
    if let (Some(address), Some(tls)) = (server.redirect_address(), &tls) {
        let service = ListenerService::Redirect(Redirect::new(server, target, tls.challenges.clone()));
        add(bind(address).await?, None, service, limiter.clone(), "redirects to HTTPS on")?;
    }
    let scheme = if acceptor.is_some() { "https" } else { "http" };
    app.publish_address(&format!("{scheme}://{target}"));
    let layer = layer.with_tls(acceptor.is_some());
    add(main, acceptor, ListenerService::Api(layer), limiter, "is listening on")?;
    offer_first_run(app, announce, &console);
    Ok(Listeners {
        open: listeners,
        renewal: tls.map(|tls| tls.renewal),
        live: Arc::clone(&state.live),
        inbox: Arc::clone(&state.inbox),
    })
}

fn console_address(socket: &TcpListener, has_tls: bool) -> Result<String> {
    let scheme = if has_tls { "https" } else { "http" };
    Ok(format!("{scheme}://{}/admin/console", address_of(socket)?))
}

/// Prints a link that creates the first owner in a browser, if there are no administrators. It comes after the line that
/// says that the server is ready.
fn offer_first_run(app: &App, announce: &Announce, console: &str) {
    match first_run::offer(&app.core) {
        Ok(Some(token)) => {
            announce(&format!("no administrator yet: open {console}/first-run/{} within an hour", token.reveal()));
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "no link for the first administrator could be made"),
    }
}

fn address_of(socket: &TcpListener) -> Result<SocketAddr> {
    socket.local_addr().map_err(Error::internal)
}

/// Binds an address. `[::]` falls back to `0.0.0.0` on machines without IPv6.
async fn bind(address: SocketAddr) -> Result<TcpListener> {
    let mut bound = TcpListener::bind(address).await;
    if bound.is_err() && address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED) {
        bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await;
    }
    bound.map_err(|error| bind_error(address, &error))
}

/// Converts an error of [`bind`]. An address in use or not yet assigned may become available; any other error needs a
/// change of the configuration.
fn bind_error(address: SocketAddr, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => Code::AddressUnavailable,
        _ => Code::Configuration,
    };
    Error::new(code).english_detail(format!("Cannot listen on {address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_temporary_bind_errors() {
        let address = SocketAddr::from(([127, 0, 0, 1], 443));
        let code = |kind: ErrorKind| bind_error(address, &kind.into()).code;
        assert_eq!(code(ErrorKind::AddrInUse), Code::AddressUnavailable);
        assert_eq!(code(ErrorKind::AddrNotAvailable), Code::AddressUnavailable);
        assert_eq!(code(ErrorKind::PermissionDenied), Code::Configuration);
    }
}
