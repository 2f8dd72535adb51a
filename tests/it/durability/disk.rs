//! A simulated disk that loses unsynced data, driven by recorded system calls.
//!
//! Killing a process does not reveal missing syncs, because the kernel keeps its writes. From the recorded calls the
//! tests compute what the disk could hold after a power failure: all synced data, and any sectors of the rest.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

/// The unit that a disk writes atomically.
const SECTOR: usize = 512;

/// A recorded event.
#[derive(Debug)]
pub enum Event {
    Create(String),
    Write {
        path: String,
        offset: Option<usize>,
        bytes: Vec<u8>,
    },
    Truncate {
        path: String,
        length: usize,
    },
    Rename {
        from: String,
        to: String,
    },
    Link {
        from: String,
        to: String,
    },
    Remove(String),
    /// A sync covers the writes before its start.
    SyncBegins {
        path: String,
        thread: u32,
    },
    SyncEnds {
        path: String,
        thread: u32,
    },
    /// Bytes sent over a connection.
    Sent(Vec<u8>),
}

/// Parses the output of `strace -f -y -xx`. Only calls below `directory` and sends count.
pub fn events(trace: &str, directory: &Path) -> Vec<Event> {
    let directory = directory.to_str().unwrap().to_owned();
    let mut started_at: HashMap<u32, String> = HashMap::new();
    let mut events = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let (Ok(thread), call) = (thread.parse(), call.trim_start()) else { continue };
        if let Some(call) = call.strip_suffix("<unfinished ...>") {
            events.extend(began(call, thread, &directory));
            started_at.insert(thread, call.to_owned());
        } else if call.starts_with("<...") {
            let Some(first) = started_at.remove(&thread) else { continue };
            events.extend(ended(&first, call, thread, &directory));
        } else {
            events.extend(began(call, thread, &directory));
            events.extend(ended(call, call, thread, &directory));
        }
    }
    events
}

/// Returns the effect that may be on disk from the start of the call.
fn began(call: &str, thread: u32, directory: &str) -> Option<Event> {
    let (name, arguments) = call.split_once('(')?;
    let within = |path: String| path.starts_with(directory).then_some(path);
    let texts = || quoted(arguments).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let number = |from_end: usize| {
        let list = arguments.rsplit_once(')').map_or(arguments, |(list, _)| list);
        list.trim().rsplit(", ").nth(from_end)?.trim().parse().ok()
    };
    match name {
        "openat" if arguments.contains("O_CREAT") => Some(Event::Create(within(texts().next()?)?)),
        "pwrite64" => {
            let path = within(descriptor(arguments)?)?;
            Some(Event::Write { path, offset: Some(number(0)?), bytes: quoted(arguments).next()? })
        }
        "write" | "writev" | "sendto" | "sendmsg" => {
            let bytes: Vec<u8> = quoted(arguments).flatten().collect();
            match within(descriptor(arguments)?) {
                Some(path) => Some(Event::Write { path, offset: None, bytes }),
                None => bytes.starts_with(b"HTTP/1.1 ").then_some(Event::Sent(bytes)),
            }
        }
        "ftruncate" => Some(Event::Truncate { path: within(descriptor(arguments)?)?, length: number(0)? }),
        "fsync" | "fdatasync" => Some(Event::SyncBegins { path: within(descriptor(arguments)?)?, thread }),
        "rename" | "renameat" | "renameat2" => {
            let mut texts = texts();
            Some(Event::Rename { from: within(texts.next()?)?, to: within(texts.next()?)? })
        }
        "link" | "linkat" => {
            let mut texts = texts();
            Some(Event::Link { from: within(texts.next()?)?, to: within(texts.next()?)? })
        }
        "unlink" | "unlinkat" => Some(Event::Remove(within(texts().next()?)?)),
        _ => None,
    }
}

fn ended(first: &str, last: &str, thread: u32, directory: &str) -> Option<Event> {
    let is_sync = first.starts_with("fsync(") || first.starts_with("fdatasync(");
    let path = descriptor(first.split_once('(')?.1)?;
    (is_sync && last.trim_end().ends_with("= 0") && path.starts_with(directory))
        .then_some(Event::SyncEnds { path, thread })
}

/// Returns the path of the first descriptor, `7<\x2f…>`.
fn descriptor(arguments: &str) -> Option<String> {
    let (number, rest) = arguments.split_once('<')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    Some(String::from_utf8_lossy(&hexadecimal(rest.split_once('>')?.0)).into_owned())
}

/// Returns the quoted texts.
fn quoted(arguments: &str) -> impl Iterator<Item = Vec<u8>> {
    arguments.split('"').skip(1).step_by(2).map(hexadecimal)
}

/// Decodes `\x2f\x74`.
fn hexadecimal(text: &str) -> Vec<u8> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16).unwrap_or(0)).unwrap();
    text.as_bytes().chunks_exact(4).map(|code| digit(code[2]) << 4 | digit(code[3])).collect()
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>, does_sector_arrive: &mut impl FnMut() -> bool) {
        match self {
            Self::Truncate(length) => content.resize(*length, 0),
            Self::Write { offset, bytes } => {
                for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                    let begin = offset + number * SECTOR;
                    let end = begin + sector.len();
                    if does_sector_arrive() {
                        content.resize(content.len().max(end), 0);
                        content[begin..end].copy_from_slice(sector);
                    }
                }
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
struct File {
    synced: Vec<u8>,
    pending: Vec<Change>,
    /// The position of the next write without an offset.
    end: usize,
}

#[derive(Clone, Debug)]
enum Naming {
    Name(String, usize),
    Unname(String),
}

/// The unsynced data that survives.
#[derive(Clone, Copy, Debug)]
pub enum Survival {
    /// Nothing.
    None,
    /// Everything, as after a mere process kill.
    All,
    /// Random sectors from this seed.
    Some(u64),
}

/// The disk at a moment.
#[derive(Default)]
pub struct Disk {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    pending_names: Vec<Naming>,
    /// The data that each running sync covers.
    syncs: HashMap<u32, usize>,
}

impl Disk {
    /// Creates a disk with these synced files.
    pub fn with(files: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut disk = Self::default();
        for (path, content) in files {
            disk.synced_names.insert(path.clone(), disk.files.len());
            disk.files.push(File { synced: content.clone(), end: content.len(), ..File::default() });
        }
        disk.names.clone_from(&disk.synced_names);
        disk
    }

    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Create(path) if !self.names.contains_key(path) => {
                self.files.push(File::default());
                self.name(path, self.files.len() - 1);
            }
            Event::Write { path, offset, bytes } => {
                if let Some(file) = self.file(path) {
                    let offset = offset.unwrap_or(file.end);
                    file.end = offset + bytes.len();
                    file.pending.push(Change::Write { offset, bytes: bytes.clone() });
                }
            }
            Event::Truncate { path, length } => {
                if let Some(file) = self.file(path) {
                    file.pending.push(Change::Truncate(*length));
                }
            }
            Event::Rename { from, to } => {
                if let Some(file) = self.names.remove(from) {
                    self.name(to, file);
                    self.pending_names.push(Naming::Unname(from.clone()));
                }
            }
            Event::Link { from, to } => {
                if let Some(file) = self.names.get(from).copied() {
                    self.name(to, file);
                }
            }
            Event::Remove(path) => {
                self.names.remove(path);
                self.pending_names.push(Naming::Unname(path.clone()));
            }
            Event::SyncBegins { path, thread } => {
                let covered = match self.file(path) {
                    Some(file) => file.pending.len(),
                    None => self.pending_names.len(),
                };
                self.syncs.insert(*thread, covered);
            }
            Event::SyncEnds { path, thread } => {
                let covered = self.syncs.remove(thread).unwrap_or(0);
                self.sync(path, covered);
            }
            Event::Create(_) | Event::Sent(_) => {}
        }
    }

    fn sync(&mut self, path: &str, covered: usize) {
        if let Some(file) = self.names.get(path) {
            let file = &mut self.files[*file];
            // Another sync of the file may have ended in between.
            let covered = covered.min(file.pending.len());
            for change in file.pending.drain(..covered) {
                change.apply(&mut file.synced, &mut || true);
            }
        } else {
            // Everything else is a sync of the directory.
            let covered = covered.min(self.pending_names.len());
            let namings: Vec<_> = self.pending_names.drain(..covered).collect();
            for naming in &namings {
                apply_naming(&mut self.synced_names, naming);
            }
        }
    }

    fn name(&mut self, path: &str, file: usize) {
        self.names.insert(path.to_owned(), file);
        self.pending_names.push(Naming::Name(path.to_owned(), file));
    }

    fn file(&mut self, path: &str) -> Option<&mut File> {
        self.names.get(path).map(|file| &mut self.files[*file])
    }

    /// Returns true if a power failure now would lose nothing.
    pub fn is_all_synced(&self) -> bool {
        self.pending_names.is_empty() && self.names.values().all(|file| self.files[*file].pending.is_empty())
    }

    /// Returns the files after a power failure. File systems journal names: a prefix of their changes survives.
    pub fn after_power_failure(&self, luck: Survival) -> BTreeMap<String, Vec<u8>> {
        let mut random = Random(match luck {
            Survival::Some(seed) => seed,
            Survival::None | Survival::All => 1,
        });
        let arrived = match luck {
            Survival::None => 0,
            Survival::All => self.pending_names.len(),
            Survival::Some(_) => random.below(self.pending_names.len() + 1),
        };
        let mut names = self.synced_names.clone();
        for naming in &self.pending_names[..arrived] {
            apply_naming(&mut names, naming);
        }
        // On some disks nearly everything survives.
        let odds = random.below(5);
        let mut survives = || match luck {
            Survival::None => false,
            Survival::All => true,
            Survival::Some(_) => random.below(4) < odds,
        };
        let mut contents = BTreeMap::new();
        for (path, file) in names {
            let file = &self.files[file];
            let mut content = file.synced.clone();
            for change in &file.pending {
                match change {
                    Change::Truncate(_) if !survives() => {}
                    change => change.apply(&mut content, &mut survives),
                }
            }
            contents.insert(path, content);
        }
        contents
    }
}

fn apply_naming(names: &mut BTreeMap<String, usize>, naming: &Naming) {
    match naming {
        Naming::Name(path, file) => names.insert(path.clone(), *file),
        Naming::Unname(path) => names.remove(path),
    };
}

/// Xorshift, so that a failure can be repeated from its seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.max(1);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % limit.max(1) as u64).unwrap_or(0)
    }
}
