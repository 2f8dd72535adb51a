//! A fake SMTP server with STARTTLS, TLS and AUTH. It stores accepted messages and can fail at any step.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// An accepted message.
#[derive(Clone, Debug)]
pub struct Mail {
    pub from: String,
    pub to: Vec<String>,
    /// Headers and body as received, without dot-stuffing.
    pub data: String,
    /// The user name and password that the client sent.
    pub credentials: Option<(String, String)>,
    pub was_encrypted: bool,
    /// The name in the client's greeting.
    pub hello: String,
}

impl Mail {
    /// Returns the first header with this name, unfolded.
    pub fn header(&self, name: &str) -> Option<String> {
        let head = self.data.split("\r\n\r\n").next()?.replace("\r\n ", " ").replace("\r\n\t", " ");
        let prefix = format!("{}:", name.to_lowercase());
        head.split("\r\n")
            .find(|line| line.to_lowercase().starts_with(&prefix))
            .map(|line| line[prefix.len()..].trim().to_owned())
    }

    /// Returns the decoded text of the part with this content type.
    pub fn part(&self, content_type: &str) -> String {
        let start = self.data.find(&format!("Content-Type: {content_type}")).expect("a part of this type");
        let part = self.data[start..].split("\r\n--").next().expect("a part");
        let (head, body) = part.split_once("\r\n\r\n").expect("a body");
        if head.contains("base64") {
            let text: String = body.split_whitespace().collect();
            return String::from_utf8(STANDARD.decode(text).expect("base64")).expect("UTF-8");
        }
        if head.contains("quoted-printable") {
            return unquoted(body);
        }
        body.to_owned()
    }
}

fn unquoted(body: &str) -> String {
    let joined = body.replace("=\r\n", "");
    let mut pieces = joined.split('=');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(&piece[..2], 16).expect("two digits"));
        bytes.extend(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).expect("UTF-8")
}

/// A step of the dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Greeting,
    Hello,
    StartTls,
    Auth,
    Sender,
    Recipient,
    Data,
    /// After the end of the message.
    Message,
}

/// A fault at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpFault {
    /// Rejects with this status.
    Refuse(u16),
    /// Replies with this text.
    Say(&'static str),
    /// Closes the connection without a reply.
    HangUp,
    /// Stops responding.
    Silence,
    /// Sends one line until the client disconnects.
    EndlessLine,
    /// Sends lines of one reply until the client disconnects.
    EndlessReply,
    /// Sends one line, a byte every 100 ms.
    Drip,
}

/// The way in which the server words its replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    #[default]
    Usual,
    /// Texts in GBK.
    Gbk,
    /// Codes without text.
    Bare,
    /// Keywords of extensions in lower case.
    LowerCase,
    /// Prompts of AUTH LOGIN that are no base64.
    OddPrompts,
    /// AUTH PLAIN ignores credentials in the command and asks for them.
    AsksAgain,
    /// A line follows the reply to STARTTLS at once, as if it had been sent under TLS.
    InjectsBeforeTls,
    /// Knows HELO only.
    NoExtensions,
    /// Offers AUTH PLAIN, but rejects it with 504.
    NoPlain,
}

/// The capabilities of the server.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    pub starttls: bool,
    /// Implicit TLS.
    pub tls: bool,
    /// `PLAIN`, `LOGIN` or both, with the valid user name and password.
    pub auth: Option<(&'static str, &'static str, &'static str)>,
    pub trouble: Option<(Step, SmtpFault)>,
    pub dialect: Dialect,
}

/// A running SMTP server.
pub struct FakeSmtpServer {
    address: SocketAddr,
    sessions: Arc<AtomicUsize>,
    mails: Arc<Mutex<Vec<Mail>>>,
    /// The certificate to trust, as PEM.
    pub certificate: String,
}

impl FakeSmtpServer {
    pub fn offering(offer: Offer) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a usable certificate");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let mails: Arc<Mutex<Vec<Mail>>> = Arc::default();
        let stored = Arc::clone(&mails);
        let sessions: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&sessions);
        let tls = Arc::new(tls);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let (offer, stored, tls) = (offer.clone(), Arc::clone(&stored), Arc::clone(&tls));
                // A client that disconnects ends the conversation.
                thread::spawn(move || {
                    Conversation { offer, stored, tls, stream: None, message: Reply::default() }.hold(stream)
                });
            }
        });
        Self { address, sessions, mails, certificate: cert.pem() }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the number of connections so far.
    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::SeqCst)
    }

    pub fn mails(&self) -> Vec<Mail> {
        self.mails.lock().expect("no panic in the server").clone()
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(buffer),
            Self::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

#[derive(Default)]
struct Reply {
    hello: String,
    from: String,
    to: Vec<String>,
    credentials: Option<(String, String)>,
}

struct Conversation {
    offer: Offer,
    stored: Arc<Mutex<Vec<Mail>>>,
    tls: Arc<ServerConfig>,
    stream: Option<BufReader<Stream>>,
    message: Reply,
}

impl Conversation {
    fn hold(mut self, stream: TcpStream) -> Option<()> {
        let stream = if self.offer.tls { self.encrypted(stream)? } else { Stream::Plain(stream) };
        self.stream = Some(BufReader::new(stream));
        self.reply(Step::Greeting, "220 localhost ESMTP")?;
        loop {
            let line = self.line()?;
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match verb.to_uppercase().as_str() {
                "EHLO" if self.offer.dialect == Dialect::NoExtensions => self.say("502 what?")?,
                "HELO" => {
                    rest.clone_into(&mut self.message.hello);
                    self.say("250 localhost")?;
                }
                "EHLO" => {
                    rest.clone_into(&mut self.message.hello);
                    let extensions = self.extensions();
                    self.reply(Step::Hello, &extensions)?;
                }
                "STARTTLS" => {
                    let injected = self.offer.dialect == Dialect::InjectsBeforeTls;
                    self.reply(Step::StartTls, if injected { "220 go\r\n250 AUTH PLAIN" } else { "220 go ahead" })?;
                    let Stream::Plain(plain) = self.stream.take()?.into_inner() else { return None };
                    self.stream = Some(BufReader::new(self.encrypted(plain)?));
                    self.message = Reply::default();
                }
                "AUTH" => self.authenticate(rest)?,
                "MAIL" => {
                    self.message.from = between(rest);
                    self.reply(Step::Sender, "250 fine")?;
                }
                "RCPT" => {
                    self.message.to.push(between(rest));
                    self.reply(Step::Recipient, "250 fine")?;
                }
                "DATA" => self.take_message()?,
                "QUIT" => return self.say("221 bye"),
                _ => self.say("502 what?")?,
            }
        }
    }

    fn encrypted(&self, stream: TcpStream) -> Option<Stream> {
        let connection = ServerConnection::new(Arc::clone(&self.tls)).ok()?;
        Some(Stream::Tls(Box::new(StreamOwned::new(connection, stream))))
    }

    fn is_encrypted(&self) -> bool {
        matches!(self.stream.as_ref().map(BufReader::get_ref), Some(Stream::Tls(_)))
    }

    fn extensions(&self) -> String {
        let mut lines = vec!["localhost".to_owned()];
        if self.offer.starttls && !self.is_encrypted() {
            lines.push("STARTTLS".into());
        }
        if let Some((mechanisms, ..)) = self.offer.auth {
            lines.push(format!("AUTH {mechanisms}"));
        }
        lines.push("8BITMIME".into());
        if self.offer.dialect == Dialect::LowerCase {
            lines = lines.iter().map(|line| line.to_lowercase()).collect();
        }
        let last = lines.len() - 1;
        let line = |(index, text): (usize, &String)| format!("250{}{text}", if index == last { ' ' } else { '-' });
        lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\r\n")
    }

    fn authenticate(&mut self, rest: &str) -> Option<()> {
        let text = |encoded: &str| String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok();
        let [for_name, for_password] = match self.offer.dialect {
            Dialect::OddPrompts => ["334 Benutzername?", "334"],
            _ => ["334 VXNlcm5hbWU6", "334 UGFzc3dvcmQ6"],
        };
        if self.offer.dialect == Dialect::NoPlain && rest.starts_with("PLAIN") {
            return self.say("504 5.5.4 unknown mechanism");
        }
        let shown = if let Some(initial) = rest.strip_prefix("PLAIN ") {
            let again = if self.offer.dialect == Dialect::AsksAgain {
                self.say("334 ")?;
                self.line()?
            } else {
                initial.to_owned()
            };
            let decoded = text(&again)?;
            let mut parts = decoded.split('\0').skip(1).map(ToOwned::to_owned);
            (parts.next()?, parts.next()?)
        } else {
            self.say(for_name)?;
            let user = text(&self.line()?)?;
            self.say(for_password)?;
            (user, text(&self.line()?)?)
        };
        let (_, user, password) = self.offer.auth?;
        if shown == (user.to_owned(), password.to_owned()) {
            self.message.credentials = Some(shown);
            self.reply(Step::Auth, "235 welcome")
        } else {
            self.say("535 5.7.8 authentication failed")
        }
    }

    fn take_message(&mut self) -> Option<()> {
        if self.offer.auth.is_some() && self.message.credentials.is_none() {
            return self.say("530 5.7.0 authentication required");
        }
        self.reply(Step::Data, "354 go on")?;
        let mut data = String::new();
        loop {
            let line = self.line()?;
            if line == "." {
                break;
            }
            data.push_str(line.strip_prefix('.').unwrap_or(&line));
            data.push_str("\r\n");
        }
        let message = std::mem::take(&mut self.message);
        let was_encrypted = self.is_encrypted();
        let mail = Mail {
            from: message.from,
            to: message.to,
            data,
            credentials: message.credentials,
            was_encrypted,
            hello: message.hello,
        };
        self.reply(Step::Message, "250 taken")?;
        self.stored.lock().ok()?.push(mail);
        Some(())
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.as_mut()?.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Sends a reply, or the fault of this step.
    fn reply(&mut self, step: Step, text: &str) -> Option<()> {
        match self.offer.trouble {
            Some((at, SmtpFault::Refuse(status))) if at == step => {
                self.say(&format!("{status} no"))?;
                // A rejected message keeps the conversation open. A rejected greeting ends it.
                (step != Step::Greeting && step != Step::Data && step != Step::Message).then_some(())
            }
            Some((at, SmtpFault::Say(text))) if at == step => self.say(text),
            Some((at, SmtpFault::HangUp)) if at == step => None,
            Some((at, SmtpFault::Silence)) if at == step => {
                thread::sleep(Duration::from_secs(20));
                None
            }
            Some((at, SmtpFault::EndlessLine)) if at == step => {
                self.write(b"250 ")?;
                loop {
                    self.write(&[b'a'; 8 << 10])?;
                }
            }
            Some((at, SmtpFault::EndlessReply)) if at == step => loop {
                self.write(&b"250-again\r\n".repeat(4096))?;
            },
            Some((at, SmtpFault::Drip)) if at == step => loop {
                self.write(b"2")?;
                thread::sleep(Duration::from_millis(100));
            },
            _ => self.say(text),
        }
    }

    fn say(&mut self, text: &str) -> Option<()> {
        let is_whole = text.contains("\r\n") || text.starts_with("334");
        let code = text.get(..3)?;
        match self.offer.dialect {
            // "You are welcome" in Chinese.
            Dialect::Gbk if !is_whole => {
                self.write(&[code.as_bytes(), b" \xc4\xfa\xba\xc3\xa3\xac\xbb\xb6\xd3\xad\r\n"].concat())
            }
            Dialect::Bare if !is_whole => self.write(format!("{code}\r\n").as_bytes()),
            _ => self.write(format!("{text}\r\n").as_bytes()),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Option<()> {
        let stream = self.stream.as_mut()?.get_mut();
        stream.write_all(bytes).ok()?;
        stream.flush().ok()
    }
}

fn between(text: &str) -> String {
    let start = text.find('<').map_or(0, |at| at + 1);
    text[start..].split('>').next().unwrap_or_default().to_owned()
}
