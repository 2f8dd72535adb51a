//! Counts what one request of each kind costs, and compares it with its stored budget: `-- --count`.
//!
//! Every budget is thousands of instructions of workers, database writer and the writer of the network log, and calls of the
//! allocator, for one request. The build decides the column of budgets: a development build needs several times more.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    disk,
    options::Options,
    seed::{Account, Seed, Size},
    support::{
        Failure,
        callgrind::{Counter, Spent},
        requests::{Random, request},
    },
    workload::{Workload, authorization},
};

/// Requests before the first that is counted: caches, prepared statements and what a user's first request writes are then as
/// they stay.
const WARM_UP: usize = 80;
const COUNTED: usize = 60;
/// A count above its budget is made again: a checkpoint or the sweep of a table may have fallen into it.
const REPEATS: usize = 2;
/// A count above its budget by this factor fails.
const FAILS_ABOVE: f64 = 1.1;
const BUDGETS: &str = "benches/load/budgets.tsv";
const LOGGED_WITHIN: Duration = Duration::from_secs(20);

/// Sends the next request of a kind.
type Sender = Box<dyn FnMut(&mut Bench) -> Result<(), Failure>>;

/// A kind of request.
#[derive(Clone, Copy)]
enum Row {
    Load(Workload),
    /// A code and the sign-in with it, after so many codes of the day.
    CodeAndSignIn,
    Session,
    Interpretation,
    Chat,
}

const ROWS: [Row; 16] = [
    Row::Load(Workload::Profile),
    Row::Load(Workload::Balance),
    Row::Load(Workload::UnreadCount),
    Row::Load(Workload::Save),
    Row::Load(Workload::Consume),
    Row::Load(Workload::KeyedConsume),
    Row::Load(Workload::KeyedAtRandom),
    Row::Load(Workload::List),
    Row::Load(Workload::CompressedList),
    Row::Load(Workload::SignIn),
    Row::Load(Workload::FirstSignIn),
    Row::Load(Workload::Order),
    Row::CodeAndSignIn,
    Row::Session,
    Row::Interpretation,
    Row::Chat,
];

impl Row {
    const fn name(self) -> &'static str {
        match self {
            Self::Load(workload) => workload.name(),
            Self::CodeAndSignIn => "code and sign-in",
            Self::Session => "session, three coins",
            Self::Interpretation => "interpretation, offline",
            Self::Chat => "chat, offline",
        }
    }
}

/// Counts every row, prints the table, and compares it with the budgets.
///
/// # Errors
/// A row needs more than its budget; valgrind is missing; a request fails.
pub fn measure(options: &Options) -> Result<(), Failure> {
    let program = options.program();
    let temporary = tempfile::tempdir_in(options.directory())?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(BUDGETS);
    let build = build(&program);
    let mut budgets = Budgets::read(&path)?;
    let mut counts = Vec::new();
    let early = Size { with_code: 0, ..Size::SMALL };
    for (size, rows, suffix) in [(Size::SMALL, &ROWS[..], ""), (early, &[Row::CodeAndSignIn][..], ", first of the day")]
    {
        let names: Vec<_> = rows.iter().map(|row| (*row, format!("{}{suffix}", row.name()))).collect();
        if !names.iter().any(|(_, name)| options.is_wanted(name)) {
            continue;
        }
        let mut bench = Bench::start(&program, &temporary.path().join(format!("codes-{}", size.with_code)), size)?;
        for (row, name) in names.into_iter().filter(|(_, name)| options.is_wanted(name)) {
            let mut send = bench.sender(row);
            let mut count = bench.count(&mut send)?;
            for _ in 0..REPEATS {
                if options.accept || !budgets.is_exceeded(&build, &name, &count) {
                    break;
                }
                count = count.least(bench.count(&mut send)?);
            }
            counts.push((name, count));
        }
    }
    let over = budgets.print(&build, &counts);
    if options.accept {
        budgets.accept(&build, counts);
        return Ok(fs::write(path, budgets.text())?);
    }
    if over.is_empty() { Ok(()) } else { Err(format!("more than 1.1 times the budget: {}", over.join(", ")).into()) }
}

/// Returns the name of the profile that the program was built with.
fn build(program: &Path) -> String {
    let directory = program.parent().and_then(Path::file_name).unwrap_or_default();
    directory.to_string_lossy().into_owned()
}

/// A server with its data and one connection.
struct Bench {
    seed: Seed,
    data: PathBuf,
    counter: Counter,
    random: Random,
    /// Codes asked for so far.
    codes: u32,
}

impl Bench {
    fn start(program: &Path, directory: &Path, size: Size) -> Result<Self, Failure> {
        let seed = Seed::make(&directory.join("seed"), size)?;
        let data = directory.join("data");
        seed.copy_to(&data)?;
        let counter = Counter::start(program, &data, &directory.join("counts"), Workload::Order.settings())?;
        Ok(Self { seed, data, counter, random: Random::new(0), codes: 0 })
    }

    /// Returns the cost of one of these requests.
    fn count(&mut self, send: &mut Sender) -> Result<Count, Failure> {
        for _ in 0..WARM_UP {
            send(self)?;
        }
        self.wait_for_log()?;
        self.counter.begin()?;
        for _ in 0..COUNTED {
            send(self)?;
        }
        self.wait_for_log()?;
        Ok(Count::of_one(self.counter.end()?))
    }

    /// Returns a function that sends the next request of this kind.
    fn sender(&self, row: Row) -> Sender {
        let accounts = self.seed.accounts.clone();
        let account = move |number: usize| accounts[number % accounts.len()].clone();
        let mut number = 0;
        let mut next = move || {
            number += 1;
            account(number)
        };
        match row {
            Row::Load(workload) => self.prepared(workload),
            Row::CodeAndSignIn => Box::new(Self::sign_in),
            Row::Session => Box::new(move |bench| bench.cast(&next()).map(drop)),
            Row::Interpretation => {
                let mut sessions = Vec::new();
                Box::new(move |bench| {
                    // All before the first that is counted.
                    if sessions.is_empty() {
                        for _ in 0..WARM_UP + COUNTED {
                            let account = next();
                            sessions.push((bench.cast(&account)?, account));
                        }
                    }
                    let (session, account) = sessions.pop().ok_or("no session is left")?;
                    let path = format!("/api/v1/sessions/{session}/interpretation");
                    bench.counter.send(&request("POST", &path, &authorization(&account), "")).map(drop)
                })
            }
            Row::Chat => Box::new(move |bench| {
                let body = r#"{"messages":[{"role":"user","content":"今天适合出门吗？"}]}"#;
                bench.counter.send(&request("POST", "/llm/chat", &authorization(&next()), body)).map(drop)
            }),
        }
    }

    fn prepared(&self, workload: Workload) -> Sender {
        let requests = workload.requests(&self.seed);
        Box::new(move |bench| {
            let mut bytes = Vec::new();
            requests.next(&mut bench.random, &mut bytes).ok_or("no request is left")?;
            bench.counter.send(&bytes).map(drop)
        })
    }

    /// Signs in with a code, from a network of its own.
    fn sign_in(&mut self) -> Result<(), Failure> {
        self.codes += 1;
        let [_, _, high, low] = self.codes.to_be_bytes();
        let from = format!("x-forwarded-for: 203.{high}.{low}.1\r\n");
        self.counter.sign_in(&format!("136{:08}", self.codes), &from)
    }

    /// Casts three coins and returns the id of the session.
    fn cast(&mut self, account: &Account) -> Result<String, Failure> {
        let body = r#"{"question":"今年换工作合适吗？","method":"three_coins"}"#;
        let answer: Value = serde_json::from_slice(&self.counter.send(&request(
            "POST",
            "/api/v1/sessions",
            &authorization(account),
            body,
        ))?)?;
        Ok(answer["id"].as_str().ok_or("a session without an id")?.to_owned())
    }

    /// Waits until the network log has every request, so that its cost is counted with theirs.
    fn wait_for_log(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + LOGGED_WITHIN;
        while disk::count(&self.data.join("network-log.db"), "access_log")? < self.counter.answered {
            if Instant::now() > deadline {
                return Err("the network log does not have every request".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// The cost of one request.
struct Count {
    /// Thousands of instructions.
    workers: f64,
    writer: f64,
    log: f64,
    allocations: f64,
}

impl Count {
    #[expect(clippy::cast_precision_loss, reason = "far below a float's exact range")]
    fn of_one(spent: Spent) -> Self {
        let each = |count: u64| count as f64 / COUNTED as f64;
        Self {
            workers: each(spent.workers) / 1e3,
            writer: each(spent.writer) / 1e3,
            log: each(spent.log) / 1e3,
            allocations: each(spent.allocations),
        }
    }

    fn instructions(&self) -> f64 {
        self.workers + self.writer + self.log
    }

    fn least(self, other: Self) -> Self {
        if other.instructions() < self.instructions() { other } else { self }
    }
}

/// The stored budgets: by build and row, thousands of instructions and allocations.
struct Budgets(BTreeMap<(String, String), (f64, f64)>);

impl Budgets {
    fn read(path: &Path) -> Result<Self, Failure> {
        let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
        let mut budgets = BTreeMap::new();
        for line in text.lines().skip(1) {
            let [build, row, instructions, allocations] = line.split('\t').collect::<Vec<_>>()[..] else {
                return Err(format!("not a budget: {line}").into());
            };
            budgets.insert((build.to_owned(), row.to_owned()), (instructions.parse()?, allocations.parse()?));
        }
        Ok(Self(budgets))
    }

    /// Returns the budget of a row: thousands of instructions, and allocations.
    fn of(&self, build: &str, row: &str) -> (f64, f64) {
        self.0.get(&(build.to_owned(), row.to_owned())).copied().unwrap_or_default()
    }

    fn is_exceeded(&self, build: &str, row: &str, count: &Count) -> bool {
        let (instructions, allocations) = self.of(build, row);
        count.instructions() > instructions * FAILS_ABOVE || count.allocations > allocations * FAILS_ABOVE
    }

    /// Prints the table and returns the rows that are above their budget, or have none.
    fn print(&self, build: &str, counts: &[(String, Count)]) -> Vec<String> {
        println!("thousands of instructions for a request, {build} build\n");
        println!(
            "{:<36} {:>8} {:>8} {:>6} {:>8} {:>8} {:>12} {:>8}",
            "request", "workers", "writer", "log", "all", "budget", "allocations", "budget"
        );
        let mut over = Vec::new();
        for (name, count) in counts {
            let (instructions, allocations) = self.of(build, name);
            println!(
                "{name:<36} {:>8.1} {:>8.1} {:>6.1} {:>8.1} {instructions:>8.1} {:>12.1} {allocations:>8.1}",
                count.workers,
                count.writer,
                count.log,
                count.instructions(),
                count.allocations
            );
            if self.is_exceeded(build, name, count) {
                over.push(name.clone());
            }
        }
        over
    }

    fn accept(&mut self, build: &str, counts: Vec<(String, Count)>) {
        for (name, count) in counts {
            self.0.insert((build.to_owned(), name), (count.instructions(), count.allocations));
        }
    }

    fn text(&self) -> String {
        let mut text = "build\trequest\tthousands of instructions\tallocations\n".to_owned();
        for ((build, row), (instructions, allocations)) in &self.0 {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{build}\t{row}\t{instructions:.1}\t{allocations:.1}");
        }
        text
    }
}
