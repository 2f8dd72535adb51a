//! Server processes: starting them on their core, and reading the resources they use.

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use super::Failure;

/// The unit of CPU time in `/proc` on every Linux that runs this.
const TICKS_PER_SECOND: f64 = 100.0;
const STARTED_WITHIN: Duration = Duration::from_secs(20);
const SERVER_CORE: &str = "0";
const LOAD_CORE: &str = "1";

/// The cores of this machine and their assignment.
pub struct Machine {
    is_pinned: bool,
    cores: usize,
    /// The cores of the server, as `taskset` names them.
    server_cores: String,
}

impl Machine {
    /// Moves this process to the load generator's core.
    pub fn prepare() -> Result<Self, Failure> {
        let cores = std::thread::available_parallelism()?.get();
        let pin = || {
            let own = std::process::id().to_string();
            let mut taskset = Command::new("taskset");
            taskset.args(["-a", "-p", "-c", LOAD_CORE, &own]).stdout(Stdio::null()).stderr(Stdio::null());
            taskset.status().is_ok_and(|status| status.success())
        };
        Ok(Self { is_pinned: cores > 1 && pin(), cores, server_cores: SERVER_CORE.into() })
    }

    /// For processes that are not measured.
    pub fn unpinned() -> Self {
        Self { is_pinned: false, cores: 1, server_cores: SERVER_CORE.into() }
    }

    /// Returns the same machine with a server on all cores, for one that shares them with a database server.
    #[must_use]
    pub fn with_server_anywhere(&self) -> Self {
        let (is_pinned, cores) = (self.is_pinned, self.cores);
        Self { is_pinned, cores, server_cores: format!("0-{}", cores - 1) }
    }

    pub fn description(&self) -> String {
        let cores = self.cores;
        if self.is_pinned {
            format!("{cores} cores; server on core {SERVER_CORE}, load on core {LOAD_CORE}")
        } else {
            format!("{cores} cores; NOT pinned (no second core, or no `taskset`): server and load may share a core")
        }
    }

    /// Returns a command that runs the program on the server's core.
    pub fn command(&self, program: &Path) -> Command {
        if !self.is_pinned {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        command.args(["-c", &self.server_cores]).arg(program);
        command
    }

    /// Returns a command that runs the program on any core.
    pub fn command_anywhere(&self, program: &Path) -> Command {
        if !self.is_pinned {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        command.args(["-c", &format!("0-{}", self.cores - 1)]).arg(program);
        command
    }
}

/// A running server, killed on drop.
pub struct Server {
    process: Child,
    address: SocketAddr,
    /// The lines of its log so far, if it writes one.
    lines: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts the service with one worker on the server's core and with these environment variables.
    pub fn start(data: &Path, machine: &Machine, settings: &[(&str, &str)]) -> Result<Self, Failure> {
        Self::start_program(&yarrow_program(), data, machine, settings)
    }

    /// Starts another build of the service in the same way.
    pub fn start_program(
        program: &Path,
        data: &Path,
        machine: &Machine,
        settings: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let mut command = yarrow(machine.command(program), data);
        command.env("YARROW_SERVER_WORKERS", "1");
        // All clients share one address here.
        command.env("YARROW_LIMITS_CONNECTIONS_PER_CLIENT", "4096");
        // A backup or check during a measurement would be measured too.
        command.env("YARROW_BACKUP_EVERY", "0 s").env("YARROW_DATABASE_CHECK_EVERY", "0 s");
        command.envs(settings.iter().copied());
        Self::spawn(command)
    }

    /// Starts the service with default settings.
    pub fn start_with_defaults(data: &Path) -> Result<Self, Failure> {
        Self::spawn(yarrow(Command::new(yarrow_program()), data))
    }

    /// Spawns a server that prints `listening on http://…` to its error stream.
    pub fn spawn(mut command: Command) -> Result<Self, Failure> {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let lines = BufReader::new(process.stderr.take().ok_or("a server without an error stream")?).lines();
        let mut server = Self { process, address: SocketAddr::from(([127, 0, 0, 1], 0)), lines: Arc::default() };
        let log = Arc::clone(&server.lines);
        let (sender, receiver) = mpsc::channel();
        // The thread reads to the end, so that the server never waits for its log to be read.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let address = line.rsplit_once("listening on http://").and_then(|(_, address)| address.parse().ok());
                if let Some(address) = address {
                    // The receiver is gone if the start timed out.
                    let _ = sender.send(address);
                } else if !line.contains("stopping") && !line.contains("code is") {
                    eprintln!("{line}");
                }
                if let Ok(mut log) = log.lock() {
                    log.push(line);
                }
            }
        });
        server.address = receiver.recv_timeout(STARTED_WITHIN).map_err(|_| "a server did not start")?;
        Ok(server)
    }

    /// Spawns a server that listens on a given address and does not report it.
    pub fn spawn_at(mut command: Command, address: SocketAddr) -> Result<Self, Failure> {
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Self { process, address, lines: Arc::default() };
        let deadline = Instant::now() + STARTED_WITHIN;
        while Instant::now() < deadline {
            if TcpStream::connect(address).is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err("a server did not start".into())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the newest line of the log that contains all of these texts.
    pub fn line_with(&self, texts: &[&str]) -> Result<String, Failure> {
        let deadline = Instant::now() + STARTED_WITHIN;
        while Instant::now() < deadline {
            let lines = self.lines.lock().map_err(|_| "the reader of the log panicked")?;
            if let Some(line) = lines.iter().rev().find(|line| texts.iter().all(|text| line.contains(text))) {
                return Ok(line.clone());
            }
            drop(lines);
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(format!("the log has no line with {texts:?}").into())
    }

    /// Returns resident anonymous memory in bytes.
    pub fn memory(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let kibibytes = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kibibytes: u64 = kibibytes.ok_or("no RssAnon")?.trim().trim_end_matches(" kB").parse()?;
        Ok(kibibytes * 1024)
    }

    /// Sends SIGTERM and waits for the server to exit.
    pub fn stop(mut self) -> Result<(), Failure> {
        Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status()?;
        let deadline = Instant::now() + Duration::from_mins(1);
        while Instant::now() < deadline {
            if self.process.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err("a server did not stop".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

pub fn yarrow_program() -> PathBuf {
    env!("CARGO_BIN_EXE_yarrow").into()
}

/// Returns a command that serves these data without the settings of this process's environment.
pub fn yarrow(mut command: Command, data: &Path) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("YARROW_") {
            command.env_remove(name);
        }
    }
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    command
}

/// CPU time used so far, in seconds.
pub struct Usage {
    at: Instant,
    server: f64,
    own: f64,
    everybody: f64,
}

/// CPU time used between two samples.
pub struct Used {
    pub seconds: f64,
    /// The server's CPU seconds.
    pub server: f64,
    /// Cores used by neither the server nor the load generator.
    pub others: f64,
}

impl Usage {
    pub fn now(server: &Server) -> Result<Self, Failure> {
        Ok(Self {
            at: Instant::now(),
            server: processor_seconds(&server.process.id().to_string())?,
            own: processor_seconds("self")?,
            everybody: of_everybody()?,
        })
    }

    pub fn until(&self, later: &Self) -> Used {
        let seconds = (later.at - self.at).as_secs_f64();
        let server = later.server - self.server;
        let others = later.everybody - self.everybody - server - (later.own - self.own);
        Used { seconds, server, others: (others / seconds).max(0.0) }
    }
}

/// Returns the processor time that a process has used.
pub fn processor_seconds(id: &str) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The process name may hold spaces and parentheses; the counters follow the last one.
    let (_, fields) = stat.rsplit_once(')').ok_or("an unreadable /proc/PID/stat")?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / TICKS_PER_SECOND)
}

/// Returns all CPU time that was not idle, including that of other virtual machines on the same cores.
fn of_everybody() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen, ..] = ticks[..] else {
        return Err("an unreadable /proc/stat".into());
    };
    Ok((user + nice + system + interrupts + soft_interrupts + stolen) / TICKS_PER_SECOND)
}
