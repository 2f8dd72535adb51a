//! One SMTP connection: commands out, replies in, and the switch to TLS.
//!
//! Owns the limits that a mail server cannot exceed: one deadline for everything, and the size of a reply. Only the
//! three digits of a reply count, because servers write its text in any encoding or omit it.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};

use crate::providers::ProviderWords;

/// Bytes of a whole reply with all its lines. Servers send a few hundred.
const MAX_REPLY_BYTES: usize = 16 * 1024;
const BUFFER_BYTES: usize = 1024;

/// A complete reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SmtpReply {
    pub code: u16,
    /// The text of every line, without code. Not necessarily UTF-8.
    pub lines: Vec<Vec<u8>>,
}

impl SmtpReply {
    /// Returns the text of all lines. Text that is not UTF-8 is read as GBK, in which Chinese servers write.
    pub(super) fn words(&self) -> Option<ProviderWords> {
        let text = |line: &Vec<u8>| match str::from_utf8(line) {
            Ok(text) => text.to_owned(),
            Err(_) => encoding_rs::GBK.decode_without_bom_handling(line).0.into_owned(),
        };
        ProviderWords::new(&self.lines.iter().map(text).collect::<Vec<_>>().join(" "))
    }
}

/// The reason why no reply arrived.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConnectionError {
    /// The deadline passed.
    TimedOut,
    /// The connection could not be opened, or was lost.
    Lost,
    /// The certificate was rejected, or the handshake failed.
    Tls,
    /// The reply exceeds the limit.
    ReplyTooLong,
    /// The reply does not begin with three digits.
    NotSmtp,
    /// More than one reply arrived before the switch to TLS. Data from before must not count as protected.
    DataBeforeTls,
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Some systems report a read timeout as `WouldBlock`.
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::TimedOut,
            _ => Self::Lost,
        }
    }
}

/// A connection to a mail server.
pub(super) struct Connection {
    stream: Stream,
    /// Bytes that arrived after the last reply.
    received: Vec<u8>,
}

enum Stream {
    Plain(DeadlineStream),
    Tls(Box<StreamOwned<ClientConnection, DeadlineStream>>),
    /// A switch to TLS failed.
    Closed,
}

/// A TCP stream whose reads and writes end at a deadline.
struct DeadlineStream {
    stream: TcpStream,
    deadline: Instant,
}

impl Connection {
    /// Opens a plain connection.
    pub(super) fn open(host: &str, port: u16, deadline: Instant) -> Result<Self, ConnectionError> {
        let addresses = resolve(host, port, deadline)?;
        let mut outcome = Err(ConnectionError::Lost);
        for (index, address) in addresses.iter().enumerate() {
            // An address that does not respond leaves time for the others.
            let share = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
            match TcpStream::connect_timeout(address, left(deadline)? / share) {
                Ok(stream) => {
                    let stream = Stream::Plain(DeadlineStream { stream, deadline });
                    return Ok(Self { stream, received: Vec::new() });
                }
                Err(error) => outcome = Err(error.into()),
            }
        }
        outcome
    }

    /// Encrypts the connection. The server must prove that it is `host`.
    pub(super) fn encrypt(&mut self, config: &Arc<ClientConfig>, host: &str) -> Result<(), ConnectionError> {
        if !self.received.is_empty() {
            return Err(ConnectionError::DataBeforeTls);
        }
        let Stream::Plain(stream) = std::mem::replace(&mut self.stream, Stream::Closed) else {
            return Err(ConnectionError::Lost);
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|_| ConnectionError::Tls)?;
        let session = ClientConnection::new(Arc::clone(config), name).map_err(|_| ConnectionError::Tls)?;
        let mut stream = StreamOwned::new(session, stream);
        stream.conn.complete_io(&mut stream.sock).map_err(|error| match ConnectionError::from(error) {
            ConnectionError::TimedOut => ConnectionError::TimedOut,
            _ => ConnectionError::Tls,
        })?;
        self.stream = Stream::Tls(Box::new(stream));
        Ok(())
    }

    /// Shortens the deadline.
    pub(super) fn shorten_deadline(&mut self, deadline: Instant) {
        let stream = match &mut self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => &mut stream.sock,
            Stream::Closed => return,
        };
        stream.deadline = stream.deadline.min(deadline);
    }

    /// Sends a command and waits for its reply.
    pub(super) fn command(&mut self, command: &str) -> Result<SmtpReply, ConnectionError> {
        self.send(format!("{command}\r\n").as_bytes())?;
        self.reply()
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.stream.write_all(bytes)?;
        Ok(self.stream.flush()?)
    }

    /// Waits for a reply.
    pub(super) fn reply(&mut self) -> Result<SmtpReply, ConnectionError> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        loop {
            let line = self.line(MAX_REPLY_BYTES - bytes)?;
            bytes += line.len();
            let (code, text, is_last) = parse_line(&line).ok_or(ConnectionError::NotSmtp)?;
            lines.push(text.to_vec());
            if is_last {
                return Ok(SmtpReply { code, lines });
            }
        }
    }

    /// Reads a line of at most `limit` bytes, without its end.
    fn line(&mut self, limit: usize) -> Result<Vec<u8>, ConnectionError> {
        let mut searched = 0;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.received[searched..]) {
                let end = searched + found;
                if end >= limit {
                    return Err(ConnectionError::ReplyTooLong);
                }
                let mut line: Vec<u8> = self.received.drain(..=end).collect();
                line.pop();
                // An empty line counts too, or a reply of empty lines would have no end.
                return if line.is_empty() { Err(ConnectionError::NotSmtp) } else { Ok(line) };
            }
            searched = self.received.len();
            if searched >= limit {
                return Err(ConnectionError::ReplyTooLong);
            }
            let mut piece = [0; BUFFER_BYTES];
            match self.stream.read(&mut piece)? {
                0 => return Err(ConnectionError::Lost),
                count => self.received.extend_from_slice(&piece[..count]),
            }
        }
    }
}

/// Splits a line of a reply into code and text, and tells whether it is the last one.
fn parse_line(line: &[u8]) -> Option<(u16, &[u8], bool)> {
    let line = line.trim_ascii_end();
    let (digits, rest) = line.split_at_checked(3)?;
    let code =
        digits.iter().try_fold(0, |code, digit| digit.is_ascii_digit().then(|| code * 10 + u16::from(digit - b'0')))?;
    let is_last = rest.first() != Some(&b'-');
    Some((code, rest.get(1..).unwrap_or_default(), is_last))
}

/// Resolves a name. The system's lookup has no time limit, so it gets a thread of its own.
fn resolve(host: &str, port: u16, deadline: Instant) -> Result<Vec<SocketAddr>, ConnectionError> {
    let host = host.to_owned();
    let (sender, receiver) = mpsc::channel();
    let lookup = move || {
        let addresses = (host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        // The caller may have given up at its deadline.
        drop(sender.send(addresses));
    };
    std::thread::Builder::new().name("lookup".into()).spawn(lookup)?;
    let addresses = receiver.recv_timeout(left(deadline)?).map_err(|_| ConnectionError::TimedOut)?;
    addresses.map_err(|_| ConnectionError::Lost)
}

/// Returns the time left, or an error if none is.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.deadline)?))?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
            Self::Closed => Ok(0),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(buffer),
            Self::Tls(stream) => stream.write(buffer),
            Self::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
            Self::Closed => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_replies_by_three_digits() {
        type Line<'line> = Option<(u16, &'line [u8], bool)>;
        let cases: [(&[u8], Line<'_>); 9] = [
            (b"250 fine\r", Some((250, b"fine", true))),
            (b"250-more", Some((250, b"more", false))),
            (b"250", Some((250, b"", true))),
            (b"250\r", Some((250, b"", true))),
            (b"250 ", Some((250, b"", true))),
            (b"550\t\xc4\xfa\xba\xc3", Some((550, b"\xc4\xfa\xba\xc3", true))),
            (b"25", None),
            (b"2x0 fine", None),
            (b"\xb2\xbb\xca\xc7", None),
        ];
        for (line, expected) in cases {
            assert_eq!(parse_line(line), expected, "{line:?}");
        }
    }
}
