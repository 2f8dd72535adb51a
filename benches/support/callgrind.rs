//! Instructions and allocations that a running server spends on requests, counted by callgrind.
//!
//! Counts of one thread repeat within a few per cent, whatever the machine and its load. The server runs under valgrind
//! (Debian's package `valgrind`).

use std::{
    collections::HashMap,
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::{
    Failure,
    client::complete_answer,
    process::{Server, yarrow},
    requests::request,
};

/// Functions of the allocator; each call is an allocation.
const ALLOCATORS: [&str; 4] = ["malloc", "calloc", "realloc", "posix_memalign"];

/// The instructions of the threads of the service.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// The threads that answer requests.
    pub workers: u64,
    /// The thread that writes the database.
    pub writer: u64,
    /// The threads that write the network log.
    pub log: u64,
    /// Calls of the allocator, by all of them.
    pub allocations: u64,
}

impl Spent {
    pub const fn instructions(self) -> u64 {
        self.workers + self.writer + self.log
    }
}

/// A server of which callgrind counts the instructions, with one connection to it.
pub struct Counter {
    pub server: Server,
    directory: PathBuf,
    /// Opened by the first request.
    connection: Option<TcpStream>,
    /// Requests answered so far.
    pub answered: u64,
    is_counting: bool,
}

impl Counter {
    /// Starts the service with one worker and these environment variables.
    ///
    /// # Errors
    /// Valgrind is not installed, or the server does not start.
    pub fn start(program: &Path, data: &Path, directory: &Path, settings: &[(&str, &str)]) -> Result<Self, Failure> {
        fs::create_dir_all(directory)?;
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["-q", "--tool=callgrind", "--separate-threads=yes", "--instr-atstart=no"]);
        valgrind.arg(format!("--callgrind-out-file={}", directory.join("out").display())).arg(program);
        let mut command = yarrow(valgrind, data);
        command.env("YARROW_SERVER_WORKERS", "1");
        command.env("YARROW_BACKUP_EVERY", "0 s").env("YARROW_DATABASE_CHECK_EVERY", "0 s");
        // Everything is slow under valgrind.
        command.env("YARROW_LIMITS_SLOW_REQUEST", "1 m").env("YARROW_LIMITS_SLOW_QUERY", "1 m");
        command.envs(settings.iter().copied());
        let server = Server::spawn(command).map_err(|error| format!("{error} under valgrind"))?;
        Ok(Self { server, directory: directory.to_owned(), connection: None, answered: 0, is_counting: false })
    }

    /// Forgets what was spent so far. Until the first call nothing is counted, which is faster.
    ///
    /// # Errors
    /// The server has ended.
    pub fn begin(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.is_counting, true) {
            self.control(&["-i", "on"])?;
        }
        self.dump().map(drop)
    }

    /// Returns what was spent since the beginning.
    ///
    /// # Errors
    /// The server has ended.
    pub fn end(&self) -> Result<Spent, Failure> {
        let names = self.thread_names()?;
        let mut spent = Spent::default();
        for (thread, dump) in self.dump()? {
            let into = match names.get(&thread).map(String::as_str) {
                Some("tokio-rt-worker") => &mut spent.workers,
                Some("writer") => &mut spent.writer,
                Some("network-log") => &mut spent.log,
                _ => continue,
            };
            let (instructions, allocations) = totals(&dump)?;
            *into += instructions;
            spent.allocations += allocations;
        }
        Ok(spent)
    }

    /// Sends a request and returns the body of its answer.
    ///
    /// # Errors
    /// The status is not 2xx, or the connection ends.
    pub fn send(&mut self, request: &[u8]) -> Result<Vec<u8>, Failure> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(TcpStream::connect(self.server.address())?),
        };
        connection.set_nodelay(true)?;
        connection.write_all(request)?;
        let (mut bytes, mut piece) = (Vec::new(), vec![0; 1 << 16]);
        let status = loop {
            if let Some(status) = complete_answer(&bytes)? {
                break status;
            }
            match connection.read(&mut piece)? {
                0 => return Err("the server closed the connection".into()),
                length => bytes.extend_from_slice(&piece[..length]),
            }
        };
        if !(200..300).contains(&status) {
            return Err(format!("not a 2xx: {}", String::from_utf8_lossy(&bytes)).into());
        }
        self.answered += 1;
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(0);
        Ok(bytes.split_off(head + 4))
    }

    /// Asks for a code and signs in with it. `headers` are whole lines.
    ///
    /// # Errors
    /// As [`Self::send`]; no code was printed.
    pub fn sign_in(&mut self, phone_number: &str, headers: &str) -> Result<(), Failure> {
        let body = format!(r#"{{"phoneNumber":"{phone_number}"}}"#);
        self.send(&request("POST", "/auth/send-code", headers, &body))?;
        let line = self.server.line_with(&[phone_number, "code is "])?;
        let (_, code) = line.split_once("code is ").ok_or("a message without a code")?;
        let code: String = code.chars().take_while(char::is_ascii_digit).collect();
        let body = format!(r#"{{"phoneNumber":"{phone_number}","code":"{code}"}}"#);
        self.send(&request("POST", "/auth/login", headers, &body)).map(drop)
    }

    /// Returns what each thread spent since the last dump.
    fn dump(&self) -> Result<Vec<(u32, String)>, Failure> {
        self.control(&["-d"])?;
        let mut dumps = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some((_, thread)) = name.split_once('-') {
                dumps.push((thread.parse()?, fs::read_to_string(&path)?));
                fs::remove_file(&path)?;
            }
        }
        Ok(dumps)
    }

    fn control(&self, arguments: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new("callgrind_control");
        command.args(arguments).arg(self.server.id().to_string());
        run(&mut command).map(drop)
    }

    /// Returns the names of threads by their numbers in valgrind. The second writer is that of the network log.
    fn thread_names(&self) -> Result<HashMap<u32, String>, Failure> {
        let id = self.server.id();
        let output = run(Command::new("vgdb").arg(format!("--pid={id}")).args(["v.info", "scheduler"]))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut names = HashMap::new();
        let mut has_writer = false;
        for line in text.lines() {
            let Some((thread, rest)) = line.strip_prefix("Thread ").and_then(|line| line.split_once(':')) else {
                continue;
            };
            let task = rest.rsplit_once("(lwpid ").ok_or("a thread without a number")?.1.trim_end_matches(')');
            // A thread may have ended meanwhile.
            let Ok(name) = fs::read_to_string(format!("/proc/{id}/task/{task}/comm")) else { continue };
            let mut name = name.trim().to_owned();
            if name == "writer" && std::mem::replace(&mut has_writer, true) {
                "network-log".clone_into(&mut name);
            }
            names.insert(thread.parse()?, name);
        }
        Ok(names)
    }
}

fn run(command: &mut Command) -> Result<Output, Failure> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(output)
}

/// Returns the instructions and the calls of the allocator in a dump of one thread.
fn totals(dump: &str) -> Result<(u64, u64), Failure> {
    let (mut instructions, mut allocations) = (0, 0);
    let mut functions = HashMap::new();
    let mut is_allocator = false;
    for line in dump.lines() {
        if let Some(total) = line.strip_prefix("summary: ") {
            instructions = total.trim().parse()?;
        } else if let Some(function) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            // A name stands with its number at the first mention alone.
            let (number, name) = function.split_once(')').ok_or("a function without a number")?;
            if !name.is_empty() {
                functions.insert(number.to_owned(), ALLOCATORS.contains(&name.trim()));
            }
            is_allocator = functions.get(number).copied().unwrap_or(false);
        } else if let Some(calls) = line.strip_prefix("calls=")
            && is_allocator
        {
            allocations += calls.split(' ').next().unwrap_or_default().parse::<u64>()?;
        }
    }
    Ok((instructions, allocations))
}
