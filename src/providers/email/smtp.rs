//! The driver for mail servers: SMTP, with a connection per message. `lettre` writes the message; its own client is not
//! used, because it neither limits a reply's size and time nor takes replies that are not UTF-8.
//!
//! The dialogue is explicit, because the meaning of a failure depends on the step: until the end of the message was
//! written, nothing is accepted, however the connection ended. Connections are not reused: the first message after a
//! pause would find its connection closed, with an unknown outcome.

mod connection;

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lettre::{
    Address,
    message::{
        Mailbox, MultiPart,
        header::{ContentType, HeaderName, HeaderValue},
    },
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use secrecy::{ExposeSecret, SecretString};

use self::connection::{Connection, ConnectionError, SmtpReply};
use super::{EmailMessage, EmailSender};
use crate::{
    providers::{Failure, FailureKind, MessageReceipt, WallClock, clean_code, client::CONNECT_TIMEOUT},
    types::{EmailAddress, Secret, parse_pem},
};

const NAME: &str = "smtp";
const NO_CERTIFICATES: &str = "email.ca: must be certificates in PEM format, not the name of a file";
const NO_SENDER: &str = "email.from: must be an email address";
/// Minimum length of an identifier of a queued message.
const SHORTEST_IDENTIFIER: usize = 8;
/// Maximum time for QUIT after the message was accepted.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The encryption of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// No encryption, for a mail server on the same machine.
    None,
    /// After a plain greeting. A server that does not offer it is rejected.
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
    /// Timeout of the whole dialogue.
    pub timeout: Duration,
}

/// Sends messages through a mail server.
pub struct Smtp {
    host: String,
    port: u16,
    encryption: Encryption,
    tls: Arc<ClientConfig>,
    credentials: Option<(String, SecretString)>,
    /// With an ASCII domain.
    from: Mailbox,
    timeout: Duration,
    clock: WallClock,
}

impl Smtp {
    /// Creates a sender.
    ///
    /// # Errors
    /// The fault of a setting, as a message.
    pub fn new(settings: SmtpSettings, clock: WallClock) -> Result<Self, String> {
        let from = settings.from.parse::<Mailbox>().map_err(|_| NO_SENDER)?;
        // Few servers accept a domain in another script; all accept its form in DNS.
        let domain = EmailAddress::parse(from.email.as_ref()).map_err(|_| NO_SENDER)?.domain().to_owned();
        let email = Address::new(from.email.user(), domain).map_err(|_| NO_SENDER)?;
        Ok(Self {
            host: settings.host,
            port: settings.port,
            encryption: settings.encryption,
            tls: Arc::new(tls_config(settings.ca.as_deref())?),
            credentials: settings.username.zip(settings.password),
            from: Mailbox::new(from.name, email),
            timeout: settings.timeout,
            clock,
        })
    }

    /// Returns the message as sent, in ASCII: the library encodes everything else.
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
            // Asks out-of-office programs not to reply, RFC 3834.
            .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
            .multipart(alternatives(message))
            .map_err(unwritable)?;
        Ok(written.formatted())
    }

    /// Opens a session: connects, encrypts and authenticates.
    fn open(&self) -> Result<Connection, Failure> {
        let address = format!("smtp://{}:{}", self.host, self.port);
        self.open_session().map_err(|failure| failure.at("email.host", &address))
    }

    fn open_session(&self) -> Result<Connection, Failure> {
        let deadline = Instant::now() + self.timeout;
        let mut connection = Connection::open(&self.host, self.port, deadline).map_err(of_connection)?;
        if self.encryption == Encryption::Tls {
            connection.encrypt(&self.tls, &self.host).map_err(of_connection)?;
        }
        before_recipient(connection.reply(), 2)?;
        let mut extensions = self.greet(&mut connection)?;
        if self.encryption == Encryption::StartTls {
            if !extensions.starttls {
                return Err(Failure::new(FailureKind::Misconfigured, NAME, "no_starttls"));
            }
            before_recipient(connection.command("STARTTLS"), 2)?;
            connection.encrypt(&self.tls, &self.host).map_err(of_connection)?;
            // Extensions announced before TLS may come from an attacker, so they are read again.
            extensions = self.greet(&mut connection)?;
        }
        self.authenticate(&mut connection, extensions)?;
        Ok(connection)
    }

    fn greet(&self, connection: &mut Connection) -> Result<Extensions, Failure> {
        let domain = self.from.email.domain();
        let outcome = connection.command(&format!("EHLO {domain}"));
        // Servers from before extensions, RFC 5321 section 3.2.
        if matches!(outcome, Ok(SmtpReply { code: 500 | 502, .. })) {
            before_recipient(connection.command(&format!("HELO {domain}")), 2)?;
            return Ok(Extensions::default());
        }
        Ok(Extensions::read(&before_recipient(outcome, 2)?))
    }

    fn authenticate(&self, connection: &mut Connection, extensions: Extensions) -> Result<(), Failure> {
        let Some((name, password)) = &self.credentials else { return Ok(()) };
        let password = password.expose_secret();
        let plain = || {
            let credentials = STANDARD.encode(format!("\0{name}\0{password}"));
            // A server that ignores the credentials in the command asks for them.
            exchange(connection, &format!("AUTH PLAIN {credentials}"), &[&credentials])
        };
        let mut outcome = extensions.auth_plain.then(plain);
        // Some servers offer a mechanism that they do not have.
        if extensions.auth_login && matches!(outcome, None | Some(Ok(SmtpReply { code: 504, .. }))) {
            // The prompts have no standard form, but everybody asks for the name first.
            let answers = [STANDARD.encode(name), STANDARD.encode(password)];
            outcome = Some(exchange(connection, "AUTH LOGIN", &[&answers[0], &answers[1]]));
        }
        let outcome = outcome.ok_or_else(|| Failure::new(FailureKind::Misconfigured, NAME, "no_auth_mechanism"))?;
        // Some servers repeat what they were sent.
        before_recipient(outcome, 2).map(drop).map_err(|failure| Failure { words: None, ..failure })
    }

    /// Ends a session. Ignores the reply.
    fn quit(mut connection: Connection) {
        connection.shorten_deadline(Instant::now() + QUIT_TIMEOUT);
        drop(connection.command("QUIT"));
    }
}

/// Sends a command, and the next answer as long as the server asks for one.
fn exchange(connection: &mut Connection, command: &str, answers: &[&str]) -> Result<SmtpReply, ConnectionError> {
    let mut answers = answers.iter();
    let mut outcome = connection.command(command);
    while let Ok(SmtpReply { code: 334, .. }) = &outcome {
        let Some(answer) = answers.next() else { break };
        outcome = connection.command(answer);
    }
    outcome
}

/// The relevant SMTP extensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extensions {
    starttls: bool,
    auth_plain: bool,
    auth_login: bool,
}

impl Extensions {
    /// Reads the reply to EHLO. Keywords have no case, and some servers write `AUTH=LOGIN`.
    fn read(reply: &SmtpReply) -> Self {
        let mut found = Self::default();
        for line in &reply.lines {
            let line = String::from_utf8_lossy(line).to_ascii_uppercase();
            let mut words = line.split([' ', '\t', '=']).filter(|word| !word.is_empty());
            match words.next() {
                Some("STARTTLS") => found.starttls = true,
                Some("AUTH") => {
                    for mechanism in words {
                        found.auth_plain |= mechanism == "PLAIN";
                        found.auth_login |= mechanism == "LOGIN";
                    }
                }
                _ => {}
            }
        }
        found
    }
}

impl EmailSender for Smtp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn send(&self, message: &EmailMessage) -> Result<MessageReceipt, Failure> {
        let unwritable = |_| Failure::new(FailureKind::Refused, NAME, "unwritable_address");
        let to: Address = message.to.as_str().parse().map_err(unwritable)?;
        let written = self.written(message, &to)?;
        let mut connection = self.open()?;
        before_recipient(connection.command(&format!("MAIL FROM:<{}>", self.from.email)), 2)?;
        after_recipient(connection.command(&format!("RCPT TO:<{to}>")), 2).map_err(of_recipient)?;
        after_recipient(connection.command("DATA"), 3)?;
        let outcome = connection.send(&dot_stuffed(&written)).and_then(|()| connection.reply());
        let accepted = after_message(outcome)?;
        Self::quit(connection);
        let words = accepted.words();
        let provider_id = words.as_ref().and_then(|words| identifier_in(words.reveal()));
        Ok(MessageReceipt { provider_id, words, ..MessageReceipt::default() })
    }

    fn probe(&self) -> Result<(), Failure> {
        self.open().map(Self::quit)
    }
}

/// Returns the TLS configuration that trusts the public authorities and those of `email.ca`.
fn tls_config(ca: Option<&str>) -> Result<ClientConfig, String> {
    let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    if let Some(pem) = ca {
        for block in parse_pem(pem.as_bytes()).map_err(|_| NO_CERTIFICATES)? {
            let der = if block.is_certificate() { block.der } else { return Err(NO_CERTIFICATES.into()) };
            roots.add(CertificateDer::from(der)).map_err(|_| NO_CERTIFICATES)?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn alternatives(message: &EmailMessage) -> MultiPart {
    let part =
        |content_type, text: &str| lettre::message::SinglePart::builder().header(content_type).body(text.to_owned());
    MultiPart::alternative()
        .singlepart(part(ContentType::TEXT_PLAIN, &message.text))
        .singlepart(part(ContentType::TEXT_HTML, &message.html))
}

/// Returns the message with its end mark. A line that begins with a dot gets a second one.
fn dot_stuffed(message: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::with_capacity(message.len() + 64);
    let mut is_line_start = true;
    for &byte in message {
        if is_line_start && byte == b'.' {
            stuffed.push(b'.');
        }
        stuffed.push(byte);
        is_line_start = byte == b'\n';
    }
    if !is_line_start {
        stuffed.extend(b"\r\n");
    }
    stuffed.extend(b".\r\n");
    stuffed
}

/// Maps a failure before any of the message was sent: nothing is accepted, however the connection ended.
fn of_connection(error: ConnectionError) -> Failure {
    let (kind, code) = match error {
        ConnectionError::TimedOut => (FailureKind::TimedOut, CONNECT_TIMEOUT),
        ConnectionError::Lost => (FailureKind::Unreachable, "connection_failed"),
        ConnectionError::Tls => (FailureKind::Unreachable, "tls_failed"),
        ConnectionError::ReplyTooLong => (FailureKind::Unreachable, "reply_too_long"),
        ConnectionError::NotSmtp => (FailureKind::Unreachable, "not_smtp"),
        ConnectionError::DataBeforeTls => (FailureKind::Unreachable, "data_before_tls"),
    };
    Failure::new(kind, NAME, code)
}

/// Returns the reply if its first digit is the expected one. A refusal before the recipient is named concerns every
/// message.
fn before_recipient(outcome: Result<SmtpReply, ConnectionError>, expected: u16) -> Result<SmtpReply, Failure> {
    let reply = outcome.map_err(of_connection)?;
    let kind = match reply.code / 100 {
        digit if digit == expected => return Ok(reply),
        4 => FailureKind::Busy,
        5 => FailureKind::Misconfigured,
        _ => FailureKind::Unreachable,
    };
    Err(of_reply(kind, &reply))
}

/// Returns the reply if its first digit is the expected one. A refusal after the recipient was named concerns this
/// message only, unless its code says otherwise: one bad address affects nobody else.
fn after_recipient(outcome: Result<SmtpReply, ConnectionError>, expected: u16) -> Result<SmtpReply, Failure> {
    let reply = outcome.map_err(of_connection)?;
    let kind = match (reply.code, reply.code / 100) {
        (_, digit) if digit == expected => return Ok(reply),
        // The server is closing, or out of storage.
        (421 | 452, _) => FailureKind::Busy,
        // Authentication is required or too weak.
        (530 | 534 | 535 | 538, _) => FailureKind::Misconfigured,
        // Greylisting, for example.
        (_, 4) => FailureKind::RecipientLimited,
        (_, 5) => FailureKind::Refused,
        _ => FailureKind::Unreachable,
    };
    Err(of_reply(kind, &reply))
}

/// A mailbox that is full, or has had too many messages, looks like a server without storage.
fn of_recipient(failure: Failure) -> Failure {
    if failure.code == "smtp_452" { Failure { kind: FailureKind::RecipientLimited, ..failure } } else { failure }
}

/// Maps what followed the message: without the server's reply the outcome is unknown.
fn after_message(outcome: Result<SmtpReply, ConnectionError>) -> Result<SmtpReply, Failure> {
    match outcome {
        Ok(reply) => after_recipient(Ok(reply), 2),
        Err(ConnectionError::TimedOut) => Err(Failure::new(FailureKind::TimedOut, NAME, "answer_timeout")),
        Err(ConnectionError::Lost) => Err(Failure::new(FailureKind::OutcomeUnknown, NAME, "connection_lost")),
        Err(error) => {
            let Failure { code, .. } = of_connection(error);
            Err(Failure::new(FailureKind::OutcomeUnknown, NAME, code))
        }
    }
}

fn of_reply(kind: FailureKind, reply: &SmtpReply) -> Failure {
    Failure::new(kind, NAME, format!("smtp_{:03}", reply.code)).with_words(reply.words())
}

/// Returns the longest word that looks like the identifier of a queued message. The text has no standard form.
fn identifier_in(text: &str) -> Option<String> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "-_.^".contains(character);
    let words = text.split(|character| !is_part(character)).map(|word| word.trim_matches(['-', '.']));
    let looks_like_one =
        |word: &&str| word.len() >= SHORTEST_IDENTIFIER && word.contains(|character: char| character.is_ascii_digit());
    words.filter(looks_like_one).max_by_key(|word| word.len()).and_then(clean_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_of_extensions_have_no_case() {
        let read = |lines: &[&str]| {
            let lines = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
            Extensions::read(&SmtpReply { code: 250, lines })
        };
        let all = Extensions { starttls: true, auth_plain: true, auth_login: true };
        assert_eq!(read(&["mail.example", "starttls", "auth login plain"]), all);
        assert_eq!(read(&["mail.example", "StartTLS", "AUTH=LOGIN", "AUTH PLAIN"]), all);
        assert_eq!(read(&["mail.example", "X-STARTTLS", "AUTH CRAM-MD5"]), Extensions::default());
    }

    #[test]
    fn the_longest_word_with_digits_identifies_a_message() {
        for (text, id) in [
            ("2.0.0 Ok: queued as 4XyZ0b5cQzz9", Some("4XyZ0b5cQzz9")),
            ("2.0.0 OK  1700000000 d2e1a72fcca58-7a1b.33 - gsmtp", Some("d2e1a72fcca58-7a1b.33")),
            ("2.6.0 <3f2c@mx.example> Queued mail for delivery", None),
            ("OK: queued as.", None),
            ("", None),
        ] {
            assert_eq!(identifier_in(text).as_deref(), id, "{text}");
        }
    }

    #[test]
    fn dots_at_line_starts_are_doubled() {
        assert_eq!(dot_stuffed(b".a\r\n..\r\nb.\r\n"), b"..a\r\n...\r\nb.\r\n.\r\n");
        assert_eq!(dot_stuffed(b"a"), b"a\r\n.\r\n");
    }
}
