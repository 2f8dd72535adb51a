//! The load generator: a closed loop on one thread, with requests prepared beforehand.
//!
//! It must be much cheaper than the servers, or it would measure itself. So it uses no HTTP library and parses only a
//! response's status and length. In a closed loop a slow response delays the next request of its connection: latencies
//! are those of a busy client. With [`Plan::interval`] requests are due at fixed times, whatever the server does, and a
//! latency counts from the time at which its request was due.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
    task::JoinSet,
};

use super::{
    Failure,
    measurement::Measurement,
    process::{Server, Usage},
    requests::{Kind, Random, Requests},
};

/// A shorter measurement is meaningless.
const SHORTEST: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Plan {
    pub connections: usize,
    pub warm_up: Duration,
    pub measured: Duration,
    /// Lets the load generator sleep, so that others can use its core.
    pub sleeps: bool,
    /// The time between two requests of all connections together. Without it each connection sends the next one at once.
    pub interval: Option<Duration>,
}

/// Counts of all responses of a run, including warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered {
    pub requests: u64,
    pub saves: u64,
    pub consumes: u64,
    pub orders: u64,
}

/// Loads the server and measures it, until the time is over or the requests are used up.
///
/// # Errors
/// A connection breaks, a response is not 2xx, or the requests last for less than [`SHORTEST`].
pub fn load(server: &Server, requests: Requests, plan: &Plan) -> Result<(Measurement, Answered), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(drive(server, Arc::new(requests), plan))
}

async fn drive(server: &Server, requests: Arc<Requests>, plan: &Plan) -> Result<(Measurement, Answered), Failure> {
    let started = Instant::now();
    let begin = started + plan.warm_up;
    let connections = u32::try_from(plan.connections)?;
    let pace = plan.interval.map(|interval| Pace { due: started, offset: interval, interval: interval * connections });
    let span = Span { begin, end: begin + plan.measured, pace };
    let awake = (!plan.sleeps).then(|| tokio::spawn(stay_awake()));
    let used_up = Arc::new(Notify::new());
    let address = server.address();
    let mut talks = JoinSet::new();
    for number in 0..plan.connections {
        let (requests, used_up) = (Arc::clone(&requests), Arc::clone(&used_up));
        talks.spawn(async move {
            let seen = talk(address, &requests, Random::new(number), span.of(number)).await;
            used_up.notify_one();
            seen
        });
    }
    tokio::time::sleep_until(span.begin.into()).await;
    let before = Usage::now(server)?;
    // A connection that runs out of requests ends the run for all.
    tokio::select! {
        () = tokio::time::sleep_until(span.end.into()) => {}
        () = used_up.notified() => {}
    }
    let (after, took) = (Usage::now(server)?, begin.elapsed());
    let mut latencies = Vec::new();
    let mut answered = Answered::default();
    for outcome in talks.join_all().await {
        let talk = outcome?;
        latencies.extend(talk.latencies);
        answered.requests += talk.answered.requests;
        answered.saves += talk.answered.saves;
        answered.consumes += talk.answered.consumes;
        answered.orders += talk.answered.orders;
    }
    if let Some(awake) = awake {
        awake.abort();
    }
    if took < plan.measured.min(SHORTEST) {
        return Err("the requests were used up before anything could be measured".into());
    }
    Ok((Measurement::new(latencies, &before, &after, server.memory()?), answered))
}

/// Keeps the load generator's thread from sleeping. Waking a sleeping client on the same machine costs the server
/// several microseconds in a virtual machine, so slow servers would be charged for it.
async fn stay_awake() {
    loop {
        tokio::task::yield_now().await;
    }
}

#[derive(Clone, Copy)]
struct Span {
    begin: Instant,
    end: Instant,
    pace: Option<Pace>,
}

/// The times at which the requests of a connection are due.
#[derive(Clone, Copy)]
struct Pace {
    due: Instant,
    offset: Duration,
    interval: Duration,
}

impl Span {
    /// Returns the span of one of the connections, whose requests lie between those of the others.
    fn of(self, number: usize) -> Self {
        let offset = |pace: Pace| pace.offset * u32::try_from(number).unwrap_or(0);
        Self { pace: self.pace.map(|pace| Pace { due: pace.due + offset(pace), ..pace }), ..self }
    }
}

impl Pace {
    /// Waits until the next request is due, and returns that time. Never sleeps, because timers are too coarse.
    async fn next(&mut self) -> Instant {
        let due = self.due;
        while Instant::now() < due {
            tokio::task::yield_now().await;
        }
        self.due += self.interval;
        due
    }
}

/// The figures of one connection.
#[derive(Default)]
struct Talk {
    /// Latencies in microseconds of requests completed within the measured span.
    latencies: Vec<u32>,
    answered: Answered,
}

async fn talk(address: SocketAddr, requests: &Requests, mut random: Random, mut span: Span) -> Result<Talk, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut request = Vec::new();
    let mut seen = Talk::default();
    loop {
        request.clear();
        let Some(kind) = requests.next(&mut random, &mut request) else { return Ok(seen) };
        let sent = match &mut span.pace {
            Some(pace) => pace.next().await,
            None => Instant::now(),
        };
        connection.send(&request).await?;
        connection.receive().await?;
        let now = Instant::now();
        seen.answered.requests += 1;
        seen.answered.saves += u64::from(kind == Kind::Save);
        seen.answered.consumes += u64::from(kind == Kind::Consume);
        seen.answered.orders += u64::from(kind == Kind::Order);
        if now >= span.end {
            return Ok(seen);
        }
        if now >= span.begin {
            seen.latencies.push(u32::try_from((now - sent).as_micros()).unwrap_or(u32::MAX));
        }
    }
}

/// A kept-alive connection with at most one request in flight.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

impl Connection {
    async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; 256 << 10], filled: 0 })
    }

    async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = std::future::poll_fn(|context| Pin::new(&mut self.stream).poll_write(context, bytes)).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Reads one whole response.
    async fn receive(&mut self) -> Result<(), Failure> {
        self.filled = 0;
        loop {
            if self.fill().await? == 0 {
                return Err("the server closed a connection".into());
            }
            if let Some(status) = complete_answer(&self.buffer[..self.filled])? {
                if (200..300).contains(&status) {
                    return Ok(());
                }
                return Err(format!("not a 2xx: {}", String::from_utf8_lossy(&self.buffer[..self.filled])).into());
            }
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let mut space = ReadBuf::new(&mut self.buffer[self.filled..]);
        std::future::poll_fn(|context| Pin::new(&mut self.stream).poll_read(context, &mut space)).await?;
        let read = space.filled().len();
        self.filled += read;
        Ok(read)
    }
}

/// Returns the status once the whole response has arrived.
pub fn complete_answer(bytes: &[u8]) -> Result<Option<u16>, Failure> {
    let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head_text = std::str::from_utf8(&bytes[..head])?;
    let mut lines = head_text.split("\r\n");
    let status = lines.next().and_then(|line| line.get(9..12)).ok_or("an answer without a status")?.parse()?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then_some(value)
    });
    let is_complete = match length {
        Some(length) => bytes.len() >= head + 4 + length.parse::<usize>()?,
        // Chunked.
        None => bytes.ends_with(b"\r\n0\r\n\r\n"),
    };
    Ok(is_complete.then_some(status))
}
