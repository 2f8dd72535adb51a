//! A fake provider: an HTTP server on a free local port that records requests and responds by script.
//!
//! A script is a list of replies, one for each request, or a function of the request. After the last reply the provider
//! responds 599. Connections are reused unless a reply closes or breaks them. Dropping the provider stops it.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub use super::received::ReceivedRequest;
use super::{polling::soon, received::read_request};

/// A running fake provider.
pub struct FakeProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A scripted response and its faults.
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
    /// Resets the connection after the request arrived.
    Reset,
    /// Closes the connection after this many body bytes.
    CutAfter(usize),
    /// Stops sending after this many body bytes and keeps the connection open.
    StallAfter(usize),
    /// Repeats the body until the client disconnects.
    Endless,
}

/// A latch that blocks a script until the test opens it.
#[derive(Clone, Default)]
pub struct Latch(Arc<AtomicBool>);

impl Latch {
    pub fn wait(&self) {
        while !self.0.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

type Script = Box<dyn FnMut(&ReceivedRequest) -> Reply + Send>;

struct Shared {
    script: Mutex<Script>,
    requests: Mutex<Vec<ReceivedRequest>>,
    connections: AtomicUsize,
    broken_writes: AtomicUsize,
    stopped: AtomicBool,
}

impl FakeProvider {
    /// Responds with these replies in order.
    pub fn with_replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        Self::with_handler(move |_| replies.pop_front().unwrap_or_else(|| Reply::status(599)))
    }

    /// Responds with the result of the function.
    pub fn with_handler(script: impl FnMut(&ReceivedRequest) -> Reply + Send + 'static) -> Self {
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

    /// Returns a URL at which nothing listens.
    pub fn unreachable_url() -> String {
        format!("http://{}", free_address())
    }

    /// Returns the base URL, `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests received so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.requests.lock().expect("no panic in the provider").clone()
    }

    /// Returns the only request received so far.
    pub fn only_request(&self) -> ReceivedRequest {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "requests: {requests:#?}");
        requests.remove(0)
    }

    /// Waits until the client disconnects during a reply, for less time than a stalled stream may take.
    pub fn expect_client_disconnect(&self) {
        let has_broken = || self.shared.broken_writes.load(Ordering::SeqCst) > 0;
        soon("the client disconnects", Duration::from_secs(10), has_broken);
    }
}

/// Returns an address at which nothing listens. It is not 127.0.0.1, so no other test binds it.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.77.0.1:0").expect("a free port").local_addr().expect("an address")
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // The listener checks the flag only after it accepts a connection.
        drop(TcpStream::connect(self.address));
    }
}

impl Reply {
    /// A response with this status and no body.
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

    /// A 200 response with a JSON body.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).header("content-type", "application/json").body(body)
    }

    /// A 200 response with an event stream.
    pub fn event_stream(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).header("content-type", "text/event-stream").body(body).in_chunks([256])
    }

    /// No response: resets the connection after the request arrived.
    pub fn reset() -> Self {
        Self { fault: Fault::Reset, ..Self::status(200) }
    }

    /// Sets the status.
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Sends the body in chunks of these sizes, repeated.
    pub fn in_chunks(self, sizes: impl Into<Vec<usize>>) -> Self {
        Self { framing: Framing::Chunks(sizes.into()), ..self }
    }

    /// Sends the body without a length and closes the connection.
    pub fn until_close(self) -> Self {
        Self { framing: Framing::UntilClose, ..self }
    }

    /// Delays the response head.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Pauses before each chunk of the body.
    pub fn with_pauses(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Closes the connection after this many body bytes.
    pub fn cut_after(self, bytes: usize) -> Self {
        Self { fault: Fault::CutAfter(bytes), ..self }
    }

    /// Stops sending after this many body bytes and keeps the connection open.
    pub fn stalled_after(self, bytes: usize) -> Self {
        Self { fault: Fault::StallAfter(bytes), ..self }
    }

    /// Repeats the body in chunks until the client disconnects.
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

    /// Serves one connection. Connection errors end it.
    fn serve(&self, stream: TcpStream, number: usize) {
        let mut reader = BufReader::with_capacity(1, stream);
        while let Ok(Some(request)) = read_request(&mut reader, number) {
            let reply = {
                let mut script = self.script.lock().expect("no panic in the script");
                self.requests.lock().expect("no panic in the provider").push(request.clone());
                script(&request)
            };
            let stream = reader.get_mut();
            if reply.fault == Fault::Reset {
                return;
            }
            // Read the byte that `read_request` left: closing with unread bytes would reset the connection.
            let mut last = [0];
            if stream.read_exact(&mut last).is_err() || !self.response(stream, &reply) {
                return;
            }
        }
    }

    /// Sends a reply. Returns true if the connection can serve another request.
    fn response(&self, stream: &mut TcpStream, reply: &Reply) -> bool {
        thread::sleep(reply.delay);
        let stored = reply.write(stream, &self.stopped);
        if stored.is_err() {
            self.broken_writes.fetch_add(1, Ordering::SeqCst);
        }
        stored.unwrap_or(false)
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
            (Fault::StallAfter(_), _) => wait_for_disconnect(stream),
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

/// Sends nothing until the client disconnects.
fn wait_for_disconnect(stream: &mut TcpStream) -> io::Result<bool> {
    let mut nothing = [0];
    match stream.read(&mut nothing) {
        Ok(0) => Err(io::ErrorKind::BrokenPipe.into()),
        other => other.map(|_| false),
    }
}
