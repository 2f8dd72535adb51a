//! Vendors that never were: an HTTP server on a free port of this host that records what it is sent and answers
//! by script, well or badly.
//!
//! ```ignore
//! let vendor = Vendor::playing([Reply::status(503), Reply::json(r#"{"Code":"OK"}"#)]);
//! // ... point a driver at vendor.url() and call it ...
//! assert_eq!(vendor.requests().len(), 2);
//! ```
//!
//! A script is a list of replies, one a request in the order of arrival, or a function of the request. When a list
//! is used up the vendor answers 599, which no driver takes for a success. Connections are kept open between
//! requests unless a reply closes or breaks them. Dropping the vendor stops it.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub use super::received::Received;
use super::{received::read_request, waiting::eventually};

/// A vendor at work.
pub struct Vendor {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// An answer, and what goes wrong with it.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    framing: Framing,
    delay: Duration,
    pause: Duration,
    fault: Fault,
}

#[derive(Clone, Debug)]
enum Framing {
    Length,
    Chunks(Vec<usize>),
    UntilClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The connection is reset though the request arrived.
    Reset,
    /// The connection ends after so many bytes of the body.
    CutAfter(usize),
    /// Nothing more is sent after so many bytes of the body, while the connection stays open.
    StallAfter(usize),
    /// The body is repeated until the client goes away.
    Endless,
}

/// A gate at which a script waits until a test opens it.
#[derive(Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    pub fn wait(&self) {
        while !self.0.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

type Script = Box<dyn FnMut(&Received) -> Reply + Send>;

struct Shared {
    script: Mutex<Script>,
    requests: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    broken_writes: AtomicUsize,
    stopped: AtomicBool,
}

impl Vendor {
    /// A vendor that gives these replies, one a request.
    pub fn playing(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        Self::answering(move |_| replies.pop_front().unwrap_or_else(|| Reply::status(599)))
    }

    /// A vendor that answers as the function says.
    pub fn answering(script: impl FnMut(&Received) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            requests: Mutex::new(Vec::new()),
            connections: AtomicUsize::new(0),
            broken_writes: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let at_work = Arc::clone(&shared);
        thread::spawn(move || at_work.accept(&listener));
        Self { address, shared }
    }

    /// An address at which nobody listens.
    pub fn nowhere() -> String {
        format!("http://{}", free_address())
    }

    /// The base address, `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What has arrived so far.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.requests.lock().expect("no panic in the vendor").clone()
    }

    /// The one request that has arrived.
    pub fn only_request(&self) -> Received {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "requests: {requests:#?}");
        requests.remove(0)
    }

    /// Waits until the client has closed its side while a reply was being written.
    pub fn expect_client_to_leave(&self) {
        eventually("the client leaves", || self.shared.broken_writes.load(Ordering::SeqCst) > 0);
    }
}

/// An address at which nobody listens, and at which no other test will: they ask for ports of 127.0.0.1.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.77.0.1:0").expect("a free port").local_addr().expect("an address")
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // The listener waits for a connection and looks at the flag only when one comes.
        drop(TcpStream::connect(self.address));
    }
}

impl Reply {
    /// An answer with this status and no body.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            framing: Framing::Length,
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            fault: Fault::None,
        }
    }

    /// 200 with a JSON body.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).header("content-type", "application/json").body(body)
    }

    /// 200 with a stream of events.
    pub fn event_stream(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).header("content-type", "text/event-stream").body(body).in_chunks([256])
    }

    /// No answer: the connection is reset after the request arrived.
    pub fn reset() -> Self {
        Self { fault: Fault::Reset, ..Self::status(200) }
    }

    /// The same with another status.
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The same with one more header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with this body.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// The body in chunks of these sizes, taken round and round.
    pub fn in_chunks(self, sizes: impl Into<Vec<usize>>) -> Self {
        Self { framing: Framing::Chunks(sizes.into()), ..self }
    }

    /// The body without a length; the end of the connection ends it.
    pub fn until_close(self) -> Self {
        Self { framing: Framing::UntilClose, ..self }
    }

    /// A wait before the head.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// A wait before each chunk of the body.
    pub fn with_pauses(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// The connection ends after so many bytes of the body, whatever the head promised.
    pub fn cut_after(self, bytes: usize) -> Self {
        Self { fault: Fault::CutAfter(bytes), ..self }
    }

    /// After so many bytes of the body nothing comes any more, and the connection stays open.
    pub fn stalled_after(self, bytes: usize) -> Self {
        Self { fault: Fault::StallAfter(bytes), ..self }
    }

    /// The body comes again and again, in chunks, until the client goes away.
    pub fn endless(self) -> Self {
        Self { fault: Fault::Endless, framing: Framing::Chunks(vec![4096]), ..self }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            let (Ok(stream), shared) = (stream, Arc::clone(self)) else {
                continue;
            };
            let number = self.connections.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || shared.serve(stream, number));
        }
    }

    /// Serves one connection until either side has had enough. Errors of the connection end it like its close.
    fn serve(&self, stream: TcpStream, number: usize) {
        let mut reader = BufReader::with_capacity(1, stream);
        while let Ok(Some(request)) = read_request(&mut reader, number) {
            let reply = {
                let mut script = self.script.lock().expect("no panic in the script");
                self.requests.lock().expect("no panic in the vendor").push(request.clone());
                script(&request)
            };
            let stream = reader.get_mut();
            if reply.fault == Fault::Reset {
                return;
            }
            // The byte that `read_request` leaves unread is taken only now: a connection that closes with unread
            // bytes is reset by the system.
            let mut last = [0];
            if stream.read_exact(&mut last).is_err() || !self.answer(stream, &reply) {
                return;
            }
        }
    }

    /// Whether the connection may serve another request.
    fn answer(&self, stream: &mut TcpStream, reply: &Reply) -> bool {
        thread::sleep(reply.delay);
        let kept = reply.write(stream, &self.stopped);
        if kept.is_err() {
            self.broken_writes.fetch_add(1, Ordering::SeqCst);
        }
        kept.unwrap_or(false)
    }
}

impl Reply {
    fn write(&self, stream: &mut TcpStream, stopped: &AtomicBool) -> io::Result<bool> {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").expect("writing to a String");
        }
        let framing = match &self.framing {
            Framing::Length => format!("content-length: {}\r\n\r\n", self.body.len()),
            Framing::Chunks(_) => "transfer-encoding: chunked\r\n\r\n".to_owned(),
            Framing::UntilClose => "connection: close\r\n\r\n".to_owned(),
        };
        head.push_str(&framing);
        stream.write_all(head.as_bytes())?;
        let end = match self.fault {
            Fault::CutAfter(bytes) | Fault::StallAfter(bytes) => bytes.min(self.body.len()),
            _ => self.body.len(),
        };
        loop {
            self.write_body(stream, &self.body[..end])?;
            match self.fault {
                Fault::Endless if !stopped.load(Ordering::SeqCst) => {}
                _ => break,
            }
        }
        match (self.fault, &self.framing) {
            (Fault::StallAfter(_), _) => wait_for_client_to_leave(stream),
            (Fault::CutAfter(_), _) | (_, Framing::UntilClose) => {
                stream.shutdown(Shutdown::Both)?;
                Ok(false)
            }
            (_, Framing::Chunks(_)) => stream.write_all(b"0\r\n\r\n").map(|()| true),
            (_, Framing::Length) => Ok(true),
        }
    }

    fn write_body(&self, stream: &mut TcpStream, mut rest: &[u8]) -> io::Result<()> {
        let Framing::Chunks(sizes) = &self.framing else {
            thread::sleep(self.pause);
            return stream.write_all(rest);
        };
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            thread::sleep(self.pause);
            let (chunk, after) = rest.split_at((*size).clamp(1, rest.len()));
            stream.write_all(&[format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())?;
            rest = after;
        }
        Ok(())
    }
}

/// Sends nothing until the client closes its side, which counts as its leaving.
fn wait_for_client_to_leave(stream: &mut TcpStream) -> io::Result<bool> {
    let mut nothing = [0];
    match stream.read(&mut nothing) {
        Ok(0) => Err(io::ErrorKind::BrokenPipe.into()),
        other => other.map(|_| false),
    }
}
