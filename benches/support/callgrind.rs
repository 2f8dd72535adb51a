//! Instructions and allocations that a running server spends on requests, counted by callgrind.
//!
//! Counts of one thread repeat within a few per cent, whatever the machine and its load. The server runs under valgrind
//! (Debian's package `valgrind`).

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::{
    Failure,
    process::{Server, yarrow},
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

/// A server of which callgrind counts the instructions.
pub struct Counter {
    pub server: Server,
    directory: PathBuf,
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
        command.env("YARROW_SERVER_WORKERS", "1").envs(settings.iter().copied());
        let server = Server::spawn(command).map_err(|error| format!("{error} under valgrind"))?;
        let counter = Self { server, directory: directory.to_owned() };
        counter.control(&["-i", "on"])?;
        Ok(counter)
    }

    /// Forgets what was spent so far.
    ///
    /// # Errors
    /// The server has ended.
    pub fn begin(&self) -> Result<(), Failure> {
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
