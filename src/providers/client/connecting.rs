//! Marks errors of name resolution, connecting and the TLS handshake at their source, because the error alone does not
//! differ from one after the request was written.

use std::{fmt, io};

use ureq::{
    Error,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::{ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport},
    },
};

use super::cancellation::CancellableTransport;

/// The reason why no connection was established; wrapped in the transport's own error type.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotConnected {
    TimedOut,
    NameNotFound,
    Refused,
    Untrusted,
}

impl NotConnected {
    fn of(error: &Error) -> Self {
        match error {
            Error::Timeout(_) => Self::TimedOut,
            Error::HostNotFound => Self::NameNotFound,
            Error::Tls(_) | Error::Rustls(_) | Error::Pem(_) => Self::Untrusted,
            // The TLS library reports an untrusted certificate as invalid data.
            Error::Io(io) if io.kind() == io::ErrorKind::InvalidData => Self::Untrusted,
            _ => Self::Refused,
        }
    }

    pub(super) fn mark(error: &Error) -> Error {
        Error::Other(Box::new(Self::of(error)))
    }
}

impl fmt::Display for NotConnected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no connection")
    }
}

impl std::error::Error for NotConnected {}

#[derive(Debug, Default)]
pub(super) struct MarkingConnector(DefaultConnector);

impl Connector for MarkingConnector {
    type Out = Box<dyn Transport>;

    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<()>) -> Result<Option<Self::Out>, Error> {
        let connected = self.0.connect(details, chained).map_err(|error| NotConnected::mark(&error))?;
        Ok(connected.map(|transport| Box::new(CancellableTransport(transport)) as Self::Out))
    }
}

#[derive(Debug, Default)]
pub(super) struct MarkingResolver(DefaultResolver);

impl Resolver for MarkingResolver {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        self.0.resolve(uri, config, timeout).map_err(|error| match error {
            Error::Io(_) => Error::Other(Box::new(NotConnected::NameNotFound)),
            other => NotConnected::mark(&other),
        })
    }
}
