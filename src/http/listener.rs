//! The addresses that are listened on, and what is served at each.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use axum::body::Body;
use futures_util::{
    FutureExt,
    future::{Either, ready},
};
use hyper::{Request, Response, body::Incoming};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{
    connection_limiter::ConnectionLimiter,
    metrics::{Metrics, RequestMetrics},
    redirect::Redirect,
    request_layer::RequestLayer,
    routes::{self, Part},
    tls::{Renewal, Tls},
};
use crate::{
    app::App,
    error::{Code, Error, Result},
    providers::factory::Announce,
};

/// What is open, and what keeps its certificate good.
pub struct Opened {
    pub entrances: Vec<Listener>,
    pub renewal: Option<Renewal>,
}

/// An address that is listened on, and what is served there.
pub struct Listener {
    pub listener: TcpListener,
    pub acceptor: Option<TlsAcceptor>,
    pub service: Service,
    /// Counts who comes in.
    pub door: ConnectionLimiter,
}

/// Who answers at an entrance.
#[derive(Clone)]
pub enum Service {
    Everything(RequestLayer),
    Redirect(Redirect),
    Metrics(Metrics),
}

impl Service {
    /// The answer to a request of this peer, which is complete if no body follows its head.
    pub fn answer(
        &self,
        peer: IpAddr,
        request: Request<Incoming>,
        is_complete: bool,
    ) -> impl Future<Output = Response<Body>> + Send + use<> {
        match self {
            Self::Everything(envelope) => {
                // What is empty takes no memory.
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

/// Listens on every address, and then says so. The line about the main one comes last: whoever waits for it finds
/// everything open.
pub async fn open(app: &Arc<App>, announce: &Announce) -> Result<Opened> {
    let server = &app.config.server;
    let part = if server.admin_listen.is_some() { Part::EverythingButAdmin } else { Part::Everything };
    let endpoints = routes::endpoints().into_iter().map(|endpoint| (endpoint.method, endpoint.path)).collect();
    let requests = Arc::new(RequestMetrics::new(endpoints, server.worker_threads() as usize));
    let envelope = RequestLayer::new(Arc::clone(app), routes::router(app, part)?, Arc::clone(&requests))?;
    let mut entrances = Vec::new();
    if let Some(address) = app.config.metrics.listen {
        let listener = bind(address).await?;
        announce(&format!("metrics are at http://{}/metrics", address_of(&listener)?));
        let service = Service::Metrics(Metrics::new(app, &requests));
        // Counted apart: a crowd at the other doors keeps nobody from looking.
        entrances.push(Listener { listener, acceptor: None, service, door: ConnectionLimiter::new(app) });
    }
    let door = ConnectionLimiter::new(app);
    let tls = Tls::open(app)?;
    let acceptor = tls.as_ref().map(|tls| tls.acceptor.clone());
    let listener = bind(server.address()).await?;
    let target = address_of(&listener)?;
    let mut enter =
        |listener: TcpListener, acceptor: Option<TlsAcceptor>, service, door: ConnectionLimiter, what: &str| {
            let scheme = if acceptor.is_some() { "https" } else { "http" };
            announce(&format!("yarrow {what} {scheme}://{}", address_of(&listener)?));
            entrances.push(Listener { listener, acceptor, service, door });
            Ok::<_, Error>(())
        };
    if let Some(address) = server.admin_listen {
        let service = Service::Everything(envelope.with_router(routes::router(app, Part::Everything)?));
        // The certificate names the service and no loopback address, and nobody listens in on that.
        let acceptor = acceptor.clone().filter(|_| !address.ip().is_loopback());
        // Counted apart, too: it is when there is a crowd that an administrator is needed.
        enter(bind(address).await?, acceptor, service, ConnectionLimiter::new(app), "serves /admin on")?;
    }
    if let (Some(address), Some(tls)) = (server.redirect_address(), &tls) {
        let service = Service::Redirect(Redirect::new(server, target, tls.challenges.clone()));
        enter(bind(address).await?, None, service, door.clone(), "redirects to HTTPS on")?;
    }
    enter(listener, acceptor, Service::Everything(envelope), door, "is listening on")?;
    Ok(Opened { entrances, renewal: tls.map(|tls| tls.renewal) })
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

/// An address that another program has, or that this machine has not got yet, may be there at the next try. One that
/// may not be listened on at all is a matter of the configuration.
fn not_bound(address: SocketAddr, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => Code::AddressUnavailable,
        _ => Code::Configuration,
    };
    Error::new(code).detail(format!("Cannot listen on {address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_may_be_had_later_is_no_fault_of_the_configuration() {
        let address = SocketAddr::from(([127, 0, 0, 1], 443));
        let code = |kind: ErrorKind| not_bound(address, &kind.into()).code;
        assert_eq!(code(ErrorKind::AddrInUse), Code::AddressUnavailable);
        assert_eq!(code(ErrorKind::AddrNotAvailable), Code::AddressUnavailable);
        assert_eq!(code(ErrorKind::PermissionDenied), Code::Configuration);
    }
}
