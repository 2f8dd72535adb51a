//! Opens connections: the address, TLS, and the options of a session.

use std::{path::Path, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::{
    Config, NoTls,
    config::{Host, SslMode, TargetSessionAttrs},
};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::form_urlencoded;

use super::{driver::Driver, errors::read_only_server, session::Session};
use crate::{
    error::{Error, Result},
    store::Tuning,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit of one statement, as of a long read of a file.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;
/// The time limit of a transaction that waits for this program, after which a copy that hangs frees the write lock.
const IDLE_IN_TRANSACTION_TIMEOUT_MS: u32 = 60_000;

/// The directories in which the server on this machine has its socket.
const SOCKET_DIRECTORIES: [&str; 3] = ["/run/postgresql", "/var/run/postgresql", "/tmp"];

/// The address of a database, and how it is reached.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    /// None for a connection without TLS.
    tls: Option<Arc<ClientConfig>>,
}

/// Opens connections.
pub(super) struct Connector(Address);

impl Address {
    /// Reads a URL such as `postgres://user:password@host/name?sslmode=verify-full&sslrootcert=/etc/ca.pem`, as libpq does:
    /// it may name several hosts, or none for the server on this machine.
    ///
    /// # Errors
    /// `configuration` naming the faulty part, but never the password.
    pub(super) fn parse(url: &SecretString) -> Result<Self> {
        let unusable = |fault: &str| Error::misconfigured(format!("database.url: {fault}"));
        let (base, query) = url.expose_secret().split_once('?').unwrap_or((url.expose_secret(), ""));
        if !["postgres://", "postgresql://"].iter().any(|scheme| base.starts_with(scheme)) {
            return Err(unusable("it must begin with postgres://"));
        }
        let (mut mode, mut roots, mut others) = (None, None, form_urlencoded::Serializer::new(String::new()));
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => roots = Some(value.into_owned()),
                _ => drop(others.append_pair(&name, &value)),
            }
        }
        // The library reads a plus sign as itself and not as a space. One that is meant is written `%2B` here.
        let address = format!("{base}?{}", others.finish().replace('+', "%20"));
        let mut config: Config = address.parse().map_err(|error| unusable(&format!("{error}")))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host_path(default_socket(config.get_ports().first().copied().unwrap_or(5432)));
        }
        // Of several servers, a standby is passed over.
        if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let is_local = config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        });
        let uses_tls = match mode.as_deref() {
            Some("disable") => false,
            Some("verify-full") => true,
            None => !is_local,
            Some(_) => return Err(unusable("sslmode must be verify-full or disable")),
        };
        config.application_name("yarrow").connect_timeout(CONNECT_TIMEOUT).keepalives_idle(Duration::from_secs(30));
        config.ssl_mode(if uses_tls { SslMode::Require } else { SslMode::Disable });
        let tls = uses_tls.then(|| tls_config(roots.as_deref().map(Path::new))).transpose()?;
        Ok(Self { config, tls: tls.map(Arc::new) })
    }
}

/// Returns the directory of the socket of the server on this machine: that of Debian and Fedora, or that of PostgreSQL.
fn default_socket(port: u16) -> &'static str {
    let has_socket = |directory: &&str| Path::new(directory).join(format!(".s.PGSQL.{port}")).exists();
    let [usual, ..] = SOCKET_DIRECTORIES;
    SOCKET_DIRECTORIES.into_iter().find(has_socket).unwrap_or(usual)
}

/// Returns the address of a database without its password, to show it. A text that is no URL is not shown at all.
pub fn without_password(url: &SecretString) -> String {
    let (base, query) = url.expose_secret().split_once('?').unwrap_or((url.expose_secret(), ""));
    let Some((scheme, rest)) = base.split_once("://") else { return "postgres://".to_owned() };
    let shown = match rest.rsplit_once('@') {
        Some((user, host)) => format!("{scheme}://{}@{host}", user.split(':').next().unwrap_or_default()),
        None => base.to_owned(),
    };
    let others = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "password");
    let others = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
    if others.is_empty() { shown } else { format!("{shown}?{others}") }
}

fn tls_config(roots: Option<&Path>) -> Result<ClientConfig> {
    let mut store = RootCertStore::empty();
    match roots {
        Some(path) => {
            let unusable = |error: &dyn std::fmt::Display| {
                Error::misconfigured(format!("database.url: sslrootcert={}: {error}", path.display()))
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))? {
                let certificate = certificate.map_err(|error| unusable(&error))?;
                store.add(certificate).map_err(|error| unusable(&error))?;
            }
        }
        None => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(config.map_err(Error::internal)?.with_root_certificates(store).with_no_client_auth())
}

impl Connector {
    pub(super) fn new(address: Address) -> Self {
        Self(address)
    }

    pub(super) fn open(&self) -> Result<Session> {
        let Address { config, tls } = &self.0;
        let (client, driver) = Driver::connect(async {
            Ok(if let Some(tls) = tls {
                let (client, connection) = config.connect(MakeRustlsConnect::new((**tls).clone())).await?;
                (client, Box::pin(connection) as _)
            } else {
                let (client, connection) = config.connect(NoTls).await?;
                (client, Box::pin(connection) as _)
            })
        })?;
        let session = Session::new(client, driver);
        // Every answered change must be on disk, whatever the server's default is. A plan for each execution often takes
        // longer than the statement; one plan for all parameters is what SQLite makes, too.
        let state = session.run_for_row(&format!(
            "set statement_timeout = {STATEMENT_TIMEOUT_MS}; \
             set idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_TIMEOUT_MS}; \
             set client_min_messages = warning; \
             set plan_cache_mode = force_generic_plan; \
             select set_config('synchronous_commit', 'on', false) \
             where current_setting('synchronous_commit') in ('off', 'local', 'remote_write'); \
             select pg_is_in_recovery(), current_setting('transaction_read_only'), current_setting('server_encoding')"
        ))?;
        // After a failover an address may lead to the old server for a while. Its reads would be old, and the pool would
        // keep the connection for half an hour.
        match [0, 1, 2].map(|column| state.get(column).and_then(Option::as_deref)) {
            [Some("t"), ..] => Err(read_only_server("the server is a standby: pg_is_in_recovery() is true")),
            [_, Some("on"), _] => Err(read_only_server("transaction_read_only is on")),
            [_, _, Some(encoding)] if encoding != "UTF8" => Err(Error::misconfigured(format!(
                "database.url: the database has the encoding {encoding}; create it with encoding 'UTF8' template template0"
            ))),
            _ => Ok(session),
        }
    }
}

/// The connections of reads.
pub(super) struct Pooled(pub(super) Arc<Connector>);

impl r2d2::ManageConnection for Pooled {
    type Connection = Session;
    type Error = ConnectionFailure;

    fn connect(&self) -> Result<Session, ConnectionFailure> {
        self.0.open().map_err(ConnectionFailure)
    }

    fn is_valid(&self, _: &mut Session) -> Result<(), ConnectionFailure> {
        Ok(())
    }

    fn has_broken(&self, session: &mut Session) -> bool {
        session.is_lost()
    }
}

/// The error of a connection that could not be opened.
#[derive(Debug)]
pub(super) struct ConnectionFailure(Error);

impl std::fmt::Display for ConnectionFailure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.describe())
    }
}

impl std::error::Error for ConnectionFailure {}

pub(super) fn pool(connector: &Arc<Connector>, tuning: &Tuning) -> r2d2::Pool<Pooled> {
    r2d2::Pool::builder()
        .max_size(tuning.readers)
        .min_idle(Some(0))
        .test_on_check_out(false)
        .connection_timeout(CONNECT_TIMEOUT)
        .build_unchecked(Pooled(Arc::clone(connector)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address> {
        Address::parse(&SecretString::from(url.to_owned()))
    }

    #[test]
    fn remote_hosts_use_tls_unless_it_is_disabled() {
        assert!(parse("postgres:///yarrow?host=/run/postgresql").unwrap().tls.is_none());
        assert!(parse("postgres://yarrow@127.0.0.1/yarrow").unwrap().tls.is_none());
        assert!(parse("postgres://yarrow@db.example.org/yarrow").unwrap().tls.is_some());
        assert!(parse("postgres://yarrow@db.example.org/yarrow?sslmode=disable").unwrap().tls.is_none());
        assert!(parse("postgres://yarrow@127.0.0.1/yarrow?sslmode=verify-full").unwrap().tls.is_some());
    }

    #[test]
    fn an_address_names_several_hosts_or_none() {
        let several = parse("postgres://yarrow@a.example.org:5433,b.example.org/yarrow").unwrap();
        assert_eq!((several.config.get_hosts().len(), several.config.get_ports()), (2, &[5433, 5432][..]));
        assert_eq!(several.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert!(several.tls.is_some());
        let local = parse("postgres:///yarrow").unwrap();
        assert!(matches!(local.config.get_hosts(), [Host::Unix(path)] if path.is_absolute()));
        assert!(local.tls.is_none());
    }

    #[test]
    fn options_of_the_session_may_have_spaces() {
        let address =
            parse("postgres:///yarrow?host=/run/postgresql&options=-c%20jit%3Doff%20-c%20a.b%3D1%2B1").unwrap();
        assert_eq!(address.config.get_options(), Some("-c jit=off -c a.b=1+1"));
    }

    #[test]
    fn shows_an_address_without_its_password() {
        let shown = |url: &str| without_password(&SecretString::from(url.to_owned()));
        assert_eq!(
            shown("postgres://ada:secret@db/yarrow?sslmode=disable"),
            "postgres://ada@db/yarrow?sslmode=disable"
        );
        assert_eq!(shown("postgres:///yarrow?password=secret"), "postgres:///yarrow");
        assert!(!shown("secret").contains("secret"));
        assert_eq!(shown("postgres://ada:se@cret@a:1,b:2/yarrow"), "postgres://ada@a:1,b:2/yarrow");
    }

    #[test]
    fn rejects_an_address_without_its_password() {
        for url in
            ["mysql://a:secret@b/c", "postgres://a:secret@b/c?sslmode=prefer", "secret", "postgres://a:secret@b:x/c"]
        {
            let error = parse(url).err().unwrap();
            assert!(!error.describe().contains("secret") || url == "secret", "{url}: {}", error.describe());
        }
    }
}
