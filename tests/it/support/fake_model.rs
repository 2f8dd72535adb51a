//! A fake language model server.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use super::{polling::eventually_ok, server::Setup};

/// The behaviour of the model.
#[derive(Clone, Debug)]
pub enum ModelBehaviour {
    /// Streams these chunks and ends normally.
    Pieces(Vec<&'static str>),
    /// Streams the first chunk, waits for `open_gate`, then streams the rest.
    Gated(Vec<&'static str>),
    /// Sends nothing until `open_gate`.
    Silent,
    /// Fails with this status.
    Status(u16),
    /// Responds 200 with a body that is not a completion.
    Nonsense,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl ModelCall {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A running fake model. Its threads end with the test process.
#[derive(Clone)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    behaviour: ModelBehaviour,
    calls: Mutex<Vec<ModelCall>>,
    gate: Mutex<bool>,
    opened: Condvar,
}

impl FakeModel {
    pub fn start(behaviour: ModelBehaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Shared { behaviour, calls: Mutex::default(), gate: Mutex::new(false), opened: Condvar::new() };
        let shared = Arc::new(shared);
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&accepting);
                // A client that disconnects causes a write error, which is ignored.
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { address, shared }
    }

    /// Returns a setup that uses this model.
    pub fn setup(&self) -> Setup {
        Setup::default()
            .with("LLM_PROVIDER", "openai")
            .with("LLM_BASE_URL", format!("http://{}/v1", self.address))
            .with("LLM_API_KEY", "the-key-of-the-model")
            .with("LLM_MODEL", "stub-1")
    }

    pub fn calls(&self) -> Vec<ModelCall> {
        self.shared.calls.lock().unwrap().clone()
    }

    /// Waits for `count` requests.
    pub fn wait_for_calls(&self, count: usize) {
        eventually_ok("the calls arrive", || {
            let calls = self.calls();
            if calls.len() >= count { Ok(()) } else { Err((count, calls)) }
        });
    }

    /// Releases waiting and later requests.
    pub fn open_gate(&self) {
        *self.shared.gate.lock().unwrap() = true;
        self.shared.opened.notify_all();
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let Some(call) = read_call(&stream) else { return Ok(()) };
        self.calls.lock().unwrap().push(call);
        match &self.behaviour {
            ModelBehaviour::Pieces(pieces) => stream_chunks(&mut stream, pieces, || {}),
            ModelBehaviour::Gated(pieces) => stream_chunks(&mut stream, pieces, || self.wait()),
            ModelBehaviour::Silent => {
                self.wait();
                stream_chunks(&mut stream, &["late"], || {})
            }
            ModelBehaviour::Status(status) => {
                let body = json!({ "error": { "message": "secret words of the provider" } }).to_string();
                let head = format!("HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\n");
                write!(stream, "{head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
            }
            ModelBehaviour::Nonsense => {
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<p>Hello</p>")
            }
        }
    }

    fn wait(&self) {
        let gate = self.gate.lock().unwrap();
        drop(self.opened.wait_timeout_while(gate, Duration::from_mins(2), |open| !*open).unwrap());
    }
}

/// Streams the chunks and pauses after the first.
fn stream_chunks(stream: &mut TcpStream, pieces: &[&str], pause: impl FnOnce()) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let mut pause = Some(pause);
    for piece in pieces {
        let chunk = json!({ "model": "stub-1", "choices": [{ "index": 0, "delta": { "content": piece } }] });
        write!(stream, "data: {chunk}\n\n")?;
        stream.flush()?;
        if let Some(pause) = pause.take() {
            pause();
        }
    }
    let end = json!({ "model": "stub-1", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 } });
    write!(stream, "data: {end}\n\ndata: [DONE]\n\n")
}

fn read_call(stream: &TcpStream) -> Option<ModelCall> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ModelCall { headers, body: serde_json::from_slice(&body).ok()? })
}
