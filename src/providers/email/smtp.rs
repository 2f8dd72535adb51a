//! The driver for mail servers: SMTP, with a connection per message.
//!
//! The dialogue is explicit, because the meaning of a failure depends on the step: until the end of the message was
//! written, nothing is accepted, however the connection ended. Connections are not reused: the first message after a
//! pause would find its connection closed, with an unknown outcome.

use std::{
    error::Error as _,
    io,
    time::{Duration, Instant, SystemTime},
};

use lettre::{
    Address,
    message::{
        Mailbox, MultiPart,
        header::{ContentType, HeaderName, HeaderValue},
    },
    transport::smtp::{
        self,
        authentication::{Credentials, Mechanism},
        client::{Certificate, SmtpConnection, TlsParameters},
        commands::{Data, Mail, Rcpt},
        extension::ClientId,
    },
};
use secrecy::{ExposeSecret, SecretString};

use super::{EmailMessage, EmailSender};
use crate::{
    providers::{Failure, FailureKind, WallClock, client::CONNECT_TIMEOUT},
    types::{EmailAddress, Secret},
};

const NAME: &str = "smtp";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
const NO_CERTIFICATES: &str = "email.ca: must be certificates in PEM format, not the name of a file";
/// Tried in this order, by what the server offers.
const MECHANISMS: [Mechanism; 2] = [Mechanism::Plain, Mechanism::Login];

/// The encryption of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// No encryption, for a mail server on the same machine.
    None,
    /// After a plain greeting; a server that does not offer it is refused.
    StartTls,
    /// From the first byte.
    Tls,
}

/// The mail server, and the credentials for it.
pub struct SmtpSettings {
    pub host: String,
    pub port: u16,
    pub encryption: Encryption,
    /// Certificates to trust in addition to the public ones, PEM.
    pub ca: Option<String>,
    pub username: Option<String>,
    pub password: Option<SecretString>,
    /// The sender: an address, or a name with an address in angle brackets.
    pub from: String,
    /// Time for the whole dialogue.
    pub timeout: Duration,
}

/// Sends through a mail server.
pub struct Smtp {
    host: String,
    port: u16,
    encryption: Encryption,
    tls: TlsParameters,
    credentials: Option<Credentials>,
    from: Mailbox,
    hello: ClientId,
    timeout: Duration,
    clock: WallClock,
}

impl Smtp {
    /// A sender by these settings.
    ///
    /// # Errors
    /// A sentence about the setting that is wrong.
    pub fn new(settings: SmtpSettings, clock: WallClock) -> Result<Self, String> {
        let from = settings.from.parse::<Mailbox>().map_err(|_| "email.from: must be an email address")?;
        let domain = EmailAddress::parse(from.email.as_ref()).map_err(|_| "email.from: must be an email address")?;
        let mut tls = TlsParameters::builder(settings.host.clone());
        if let Some(pem) = &settings.ca {
            // The library takes a text without any certificate, such as the name of a file, for none to be added.
            let certificate = pem.contains(CERTIFICATE).then(|| Certificate::from_pem(pem.as_bytes()));
            let certificate = certificate.and_then(Result::ok).ok_or(NO_CERTIFICATES)?;
            tls = tls.add_root_certificate(certificate);
        }
        let tls = tls.build().map_err(|_| NO_CERTIFICATES)?;
        let credentials = settings.username.zip(settings.password);
        let credentials =
            credentials.map(|(name, password)| Credentials::new(name, password.expose_secret().to_owned()));
        Ok(Self {
            host: settings.host,
            port: settings.port,
            encryption: settings.encryption,
            tls,
            credentials,
            hello: ClientId::Domain(domain.domain().to_owned()),
            from,
            timeout: settings.timeout,
            clock,
        })
    }

    /// The message as it travels. Nothing but ASCII: the library encodes the rest.
    fn written(&self, message: &EmailMessage, to: &Address) -> Result<Vec<u8>, Failure> {
        let unwritable = |_| Failure::new(FailureKind::Refused, NAME, "unwritable_message");
        let now = u64::try_from((self.clock)()).unwrap_or_default();
        let id = Secret::random().map_err(|_| Failure::new(FailureKind::Refused, NAME, "no_random_source"))?;
        let written = lettre::Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to.clone()))
            .subject(message.subject.clone())
            .date(SystemTime::UNIX_EPOCH + Duration::from_millis(now))
            .message_id(Some(format!("<{}@{}>", id.reveal(), self.from.email.domain())))
            // Asks out-of-office programs not to answer, RFC 3834.
            .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
            .multipart(alternatives(message))
            .map_err(unwritable)?;
        Ok(written.formatted())
    }

    fn connect(&self, deadline: Instant) -> Result<SmtpConnection, Failure> {
        let tls = (self.encryption == Encryption::Tls).then_some(&self.tls);
        let server = (self.host.as_str(), self.port);
        let connected = SmtpConnection::connect(server, Some(left(deadline)), &self.hello, tls, None);
        let mut connection = connected.map_err(|error| before_message(&error))?;
        if self.encryption == Encryption::StartTls {
            if !connection.can_starttls() {
                return Err(Failure::new(FailureKind::Misconfigured, NAME, "no_starttls"));
            }
            set_timeout(&mut connection, deadline)?;
            connection.starttls(&self.tls, &self.hello).map_err(|error| before_message(&error))?;
        }
        Ok(connection)
    }

    fn authenticate(&self, connection: &mut SmtpConnection, deadline: Instant) -> Result<(), Failure> {
        let Some(credentials) = &self.credentials else { return Ok(()) };
        set_timeout(connection, deadline)?;
        match connection.auth(&MECHANISMS, credentials) {
            Ok(_) => Ok(()),
            Err(error) if error.is_client() => Err(Failure::new(FailureKind::Misconfigured, NAME, "no_auth_mechanism")),
            Err(error) => Err(before_message(&error)),
        }
    }
}

impl EmailSender for Smtp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn send(&self, message: &EmailMessage) -> Result<(), Failure> {
        let unwritable = |_| Failure::new(FailureKind::Refused, NAME, "unwritable_address");
        let to: Address = message.to.as_str().parse().map_err(unwritable)?;
        let written = self.written(message, &to)?;
        let deadline = Instant::now() + self.timeout;
        let mut connection = self.connect(deadline)?;
        self.authenticate(&mut connection, deadline)?;
        set_timeout(&mut connection, deadline)?;
        let mail = Mail::new(Some(self.from.email.clone()), Vec::new());
        connection.command(mail).map_err(|error| before_message(&error))?;
        set_timeout(&mut connection, deadline)?;
        connection.command(Rcpt::new(to, Vec::new())).map_err(|error| of_recipient(&error))?;
        set_timeout(&mut connection, deadline)?;
        connection.command(Data).map_err(|error| before_message(&error))?;
        set_timeout(&mut connection, deadline)?;
        connection.message(&written).map_err(|error| of_message(&error))?;
        // The message is accepted, whatever becomes of the farewell.
        drop(connection.quit());
        Ok(())
    }

    fn probe(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + self.timeout;
        let mut connection = self.connect(deadline)?;
        self.authenticate(&mut connection, deadline)?;
        drop(connection.quit());
        Ok(())
    }
}

fn alternatives(message: &EmailMessage) -> MultiPart {
    let part =
        |content_type, text: &str| lettre::message::SinglePart::builder().header(content_type).body(text.to_owned());
    MultiPart::alternative()
        .singlepart(part(ContentType::TEXT_PLAIN, &message.text))
        .singlepart(part(ContentType::TEXT_HTML, &message.html))
}

/// Returns the remaining time; never zero, because that would disable the timeout.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

fn set_timeout(connection: &mut SmtpConnection, deadline: Instant) -> Result<(), Failure> {
    let set = connection.set_timeout(Some(left(deadline)));
    set.map_err(|_| Failure::new(FailureKind::Unreachable, NAME, "connection_lost"))
}

/// Maps a failure before any of the message was sent.
fn before_message(error: &smtp::Error) -> Failure {
    match error.status() {
        Some(status) if error.is_transient() => Failure::new(FailureKind::Busy, NAME, format!("smtp_{status}")),
        Some(status) => Failure::new(FailureKind::Misconfigured, NAME, format!("smtp_{status}")),
        None if is_timeout(error) => Failure::new(FailureKind::TimedOut, NAME, CONNECT_TIMEOUT),
        None if is_tls(error) => Failure::new(FailureKind::Unreachable, NAME, "tls_failed"),
        None => Failure::new(FailureKind::Unreachable, NAME, "connection_failed"),
    }
}

/// Maps a failure after the recipient was named: one bad address affects no other recipient.
fn of_recipient(error: &smtp::Error) -> Failure {
    match error.status() {
        Some(status) if error.is_transient() => {
            Failure::new(FailureKind::RecipientLimited, NAME, format!("smtp_{status}"))
        }
        Some(status) => Failure::new(FailureKind::Refused, NAME, format!("smtp_{status}")),
        None => before_message(error),
    }
}

/// Maps a failure while the message was being sent: without the server's reply the outcome is unknown.
fn of_message(error: &smtp::Error) -> Failure {
    match error.status() {
        Some(status) if error.is_transient() => Failure::new(FailureKind::Busy, NAME, format!("smtp_{status}")),
        Some(status) => Failure::new(FailureKind::Refused, NAME, format!("smtp_{status}")),
        None if is_timeout(error) => Failure::new(FailureKind::TimedOut, NAME, "answer_timeout"),
        None => Failure::new(FailureKind::OutcomeUnknown, NAME, "connection_lost"),
    }
}

/// The I/O error behind it, if there is one.
fn io_error(error: &smtp::Error) -> Option<&io::Error> {
    let mut source = error.source();
    while let Some(found) = source {
        if let Some(io_error) = found.downcast_ref::<io::Error>() {
            return Some(io_error);
        }
        source = found.source();
    }
    None
}

/// A read that takes too long ends as `WouldBlock` on some systems.
fn is_timeout(error: &smtp::Error) -> bool {
    io_error(error).is_some_and(|error| matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock))
}

fn is_tls(error: &smtp::Error) -> bool {
    error.is_tls() || io_error(error).is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
}
