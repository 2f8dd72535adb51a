//! Servers as processes: starting them on their core, and what the system says that they use.

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use super::Failure;

/// `/proc` counts processor time in these, on every Linux that runs this.
const TICKS_PER_SECOND: f64 = 100.0;
const STARTED_WITHIN: Duration = Duration::from_secs(20);
const SERVER_CORE: &str = "0";
const LOAD_CORE: &str = "1";

/// The cores of this machine, and who gets which.
pub struct Machine {
    is_pinned: bool,
    cores: usize,
}

impl Machine {
    /// Moves this process to the load's core.
    pub fn prepare() -> Result<Self, Failure> {
        let cores = std::thread::available_parallelism()?.get();
        let pin = || {
            let own = std::process::id().to_string();
            let mut taskset = Command::new("taskset");
            taskset.args(["-a", "-p", "-c", LOAD_CORE, &own]).stdout(Stdio::null()).stderr(Stdio::null());
            taskset.status().is_ok_and(|status| status.success())
        };
        Ok(Self { is_pinned: cores > 1 && pin(), cores })
    }

    /// For what is not measured.
    pub fn unpinned() -> Self {
        Self { is_pinned: false, cores: 1 }
    }

    pub fn description(&self) -> String {
        let cores = self.cores;
        if self.is_pinned {
            format!("{cores} cores; server on core {SERVER_CORE}, load on core {LOAD_CORE}")
        } else {
            format!("{cores} cores; NOT pinned (no second core, or no `taskset`): server and load may share a core")
        }
    }

    /// The program, on the server's core.
    pub fn command(&self, program: &Path) -> Command {
        if !self.is_pinned {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        command.args(["-c", SERVER_CORE]).arg(program);
        command
    }

    /// The program on whatever core has room, although this process has one of its own.
    pub fn command_anywhere(&self, program: &Path) -> Command {
        if !self.is_pinned {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        command.args(["-c", &format!("0-{}", self.cores - 1)]).arg(program);
        command
    }
}

/// A running server. It is killed when this is dropped.
pub struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    /// The service with one worker on the server's core, and these variables of the environment.
    pub fn start(data: &Path, machine: &Machine, settings: &[(&str, &str)]) -> Result<Self, Failure> {
        Self::start_program(&yarrow_program(), data, machine, settings)
    }

    /// The same of another build.
    pub fn start_program(
        program: &Path,
        data: &Path,
        machine: &Machine,
        settings: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let mut command = yarrow(machine.command(program), data);
        command.env("YARROW_SERVER_WORKERS", "1");
        // All clients have one address here.
        command.env("YARROW_LIMITS_CONNECTIONS_PER_CLIENT", "4096");
        // One in the middle of a measurement would be measured with it, and so would the check that stands in for it.
        command.env("YARROW_BACKUP_EVERY", "0 s").env("YARROW_DATABASE_CHECK_EVERY", "0 s");
        command.envs(settings.iter().copied());
        Self::spawn(command)
    }

    /// The service as it is without any setting but where its data are.
    pub fn start_with_defaults(data: &Path) -> Result<Self, Failure> {
        Self::spawn(yarrow(Command::new(yarrow_program()), data))
    }

    /// A server that says on its error stream where it is `listening on http://`.
    pub fn spawn(mut command: Command) -> Result<Self, Failure> {
        // What a build that counts what it does is to write it into; packaging/profile/train wants nobody else's
        // counts.
        if let Some(counts) = std::env::var_os("PROFILE_OF_SERVERS") {
            command.env("LLVM_PROFILE_FILE", counts);
        }
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let lines = BufReader::new(process.stderr.take().ok_or("a server without an error stream")?).lines();
        let mut server = Self { process, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let (sender, receiver) = mpsc::channel();
        // The thread goes on reading to the end, so that the server never waits for its log to be read.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let address = line.rsplit_once("listening on http://").and_then(|(_, address)| address.parse().ok());
                if let Some(address) = address {
                    // Nobody waits for it any more if the start was given up.
                    let _ = sender.send(address);
                } else if !line.contains("stopping") {
                    eprintln!("{line}");
                }
            }
        });
        server.address = receiver.recv_timeout(STARTED_WITHIN).map_err(|_| "a server did not start")?;
        Ok(server)
    }

    /// A server that does not say where it listens, but was told.
    pub fn spawn_at(mut command: Command, address: SocketAddr) -> Result<Self, Failure> {
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Self { process, address };
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

    /// Anonymous memory that is resident, in bytes.
    pub fn memory(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let kibibytes = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kibibytes: u64 = kibibytes.ok_or("no RssAnon")?.trim().trim_end_matches(" kB").parse()?;
        Ok(kibibytes * 1024)
    }

    /// Stops the server as the system would, and waits until it has ended.
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
        // It may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

pub fn yarrow_program() -> PathBuf {
    env!("CARGO_BIN_EXE_yarrow").into()
}

/// The service on these data, with none of the settings that this process was started with.
pub fn yarrow(mut command: Command, data: &Path) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("YARROW_") {
            command.env_remove(name);
        }
    }
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    command
}

/// Processor time used until now, in seconds.
pub struct Usage {
    at: Instant,
    server: f64,
    own: f64,
    everybody: f64,
}

/// What was used between two moments.
pub struct Used {
    pub seconds: f64,
    /// Processor seconds of the server.
    pub server: f64,
    /// Cores used by neither the server nor the load.
    pub others: f64,
}

impl Usage {
    pub fn now(server: &Server) -> Result<Self, Failure> {
        Ok(Self {
            at: Instant::now(),
            server: of_process(&server.process.id().to_string())?,
            own: of_process("self")?,
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

fn of_process(id: &str) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name may hold spaces and parentheses; what counts stands after the last one.
    let (_, fields) = stat.rsplit_once(')').ok_or("an unreadable /proc/PID/stat")?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / TICKS_PER_SECOND)
}

/// All processor time that was not idle, with that of other virtual machines on the same cores.
fn of_everybody() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen, ..] = ticks[..] else {
        return Err("an unreadable /proc/stat".into());
    };
    Ok((user + nice + system + interrupts + soft_interrupts + stolen) / TICKS_PER_SECOND)
}
