//! The real binary, serving a data directory on a free port.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    panic::resume_unwind,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use yarrow::{
    app::{App, OpenMode},
    concurrency::lock::lock_unpoisoned,
    config::{LoadedConfig, Sources, load_with_checks},
    domain::operations::preflight,
    error::Error,
    http::serve::{self, Stop},
    jobs::Schedule,
    providers::factory::Announce,
    store::{OwnedSqlValue, SqlColumn},
};

use super::{
    client::{Caller, Request, Response},
    database::Database,
    operator::install,
    polling::{eventually, eventually_some},
    raw,
};

const HOUR: Duration = Duration::from_hours(1);
/// The maximum age of a snapshot in the server.
const SNAPSHOT_AGE: Duration = Duration::from_millis(50);

/// The options of a server.
#[derive(Clone, Default)]
pub struct Setup {
    settings: Vec<(String, String)>,
    directory: Option<PathBuf>,
    prelude: Option<String>,
    has_fast_jobs: bool,
    is_process: bool,
}

impl Setup {
    /// Sets a setting by its environment variable without the prefix: `AUTH_CODE_TRIES`.
    pub fn with(mut self, variable: &str, value: impl ToString) -> Self {
        self.settings.push((format!("YARROW_{variable}"), value.to_string()));
        self
    }

    /// Uses this data directory instead of a new one.
    pub fn on(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Runs a shell command first, in the process that becomes the server: `ulimit -n 64`.
    pub fn after(mut self, prelude: &str) -> Self {
        self.prelude = Some(prelude.into());
        self
    }

    /// Runs the background jobs at short intervals, for tests that wait for one.
    pub fn with_fast_jobs(mut self) -> Self {
        self.has_fast_jobs = true;
        self
    }

    /// Serves in a process of its own, for tests of its log, its memory, signals, kills or the environment. Others are
    /// faster in the process of the tests.
    pub fn in_own_process(mut self) -> Self {
        self.is_process = true;
        self
    }

    /// Enables the metrics listener.
    pub fn with_metrics(self) -> Self {
        self.with("METRICS_LISTEN", "127.0.0.1:0")
    }

    pub fn start(self) -> Server {
        Server::start(self)
    }

    /// Starts the program on a data directory and waits until it listens. Its lines are added to `all`.
    fn spawn(&self, directory: &Path, database: Option<String>, all: &Lines) -> (Child, SocketAddr) {
        let mut command = self.prelude.as_deref().map_or_else(Binary::command, Binary::command_after);
        command.args(["serve", "--lazy-words", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory);
        if self.has_fast_jobs {
            command.arg("--fast-jobs");
        }
        // Raise the per-client limits: all requests come from one address. Tests of these limits lower them again.
        command.env("YARROW_AUTH_SENDS_PER_CLIENT_HOUR", "100000").env("YARROW_AUTH_SENDS_PER_CLIENT_DAY", "100000");
        command.envs(self.variables());
        command.envs(database.map(|url| ("YARROW_DATABASE_URL", url)));
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let own = Lines::default();
        collect(process.stderr.take().unwrap(), [Arc::clone(&own), Arc::clone(all)]);
        let ready = wait_for_line(&mut process, &own, READY);
        (process, ready.rsplit("://").next().unwrap().trim().parse().unwrap())
    }

    /// Returns true if the server must be a process.
    fn needs_process(&self) -> bool {
        let has_log = || self.settings.iter().any(|(name, _)| name.starts_with("YARROW_LOG_"));
        self.is_process || self.prelude.is_some() || has_log() || postgresql().is_some()
    }

    /// Serves in this process.
    fn serve_here(&self, directory: &Path, lines: &Lines) -> Result<(HereServer, SocketAddr), Error> {
        let flags = [("data_dir", directory.to_str().unwrap()), ("server.listen", "127.0.0.1:0")];
        let flags = flags.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let raised = ["YARROW_AUTH_SENDS_PER_CLIENT_HOUR", "YARROW_AUTH_SENDS_PER_CLIENT_DAY"];
        let raised = raised.map(|name| (name.to_owned(), "100000".to_owned()));
        let environment = raised.into_iter().chain(self.settings.iter().cloned()).collect();
        let file = self.settings.iter().find(|(name, _)| name == "YARROW_CONFIG").map(|(_, path)| path.into());
        let sources = Sources { flags, environment, file, ..Sources::default() };
        let LoadedConfig { config, shown, .. } = load_with_checks(sources, preflight::faults)?;
        let printed = Arc::clone(lines);
        let announce: Announce = Arc::new(move |line: &str| printed.lock().unwrap().push(line.to_owned()));
        let app = Arc::new(App::open(config, OpenMode::Server, &announce)?.with_settings(shown));
        let schedule = if self.has_fast_jobs { Schedule::fast() } else { Schedule::default() }.without_words();
        let (stop, stopped) = tokio::sync::mpsc::channel(2);
        let served = Arc::clone(&app);
        let thread = std::thread::spawn(move || serve::run(&served, schedule, Stop::Handle(stopped), &announce));
        let mut here = HereServer { app: Some(app), stop, thread: Some(thread), connection: Mutex::default() };
        let ready = eventually_some("the server listens", || {
            assert!(!here.thread.as_ref().unwrap().is_finished(), "the server ended: {:?}", here.end());
            lines.lock().unwrap().iter().find(|line| line.contains(READY)).cloned()
        });
        Ok((here, ready.rsplit("://").next().unwrap().trim().parse().unwrap()))
    }

    /// Returns false if the first start would depend on the settings.
    fn can_use_template(&self) -> bool {
        !self.settings.iter().any(|(name, _)| name.starts_with("YARROW_AUTH_SECRET_KEY"))
    }

    /// Returns the settings as environment variables.
    pub fn variables(&self) -> Vec<(&str, &str)> {
        self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

/// Returns the PostgreSQL server on which the tests run, if they do.
pub fn postgresql() -> Option<String> {
    std::env::var("YARROW_TEST_DATABASE").ok()
}

/// Returns how many copies serve the requests of a test: `YARROW_TEST_COPIES` on PostgreSQL, or one.
pub fn copies() -> usize {
    let copies = || std::env::var("YARROW_TEST_COPIES").ok();
    postgresql().and_then(|_| copies()).map_or(1, |copies| copies.parse().unwrap())
}

/// Creates a database for a data directory as the program under test would, and returns its address. Returns none on
/// SQLite, whose database is a file in it.
pub fn create_database(directory: &Path) -> Option<String> {
    let server = postgresql()?;
    let mut command = Binary::command();
    command.env("TEST_PROGRAM", "true").args(["serve", "--data-dir"]).arg(directory);
    assert!(command.status().unwrap().success());
    let name = std::fs::read_to_string(directory.join("test-database")).unwrap();
    let part = |name: &str| server.split(' ').find_map(|part| part.strip_prefix(name)).unwrap();
    Some(format!("postgres:///{name}?host={}&user={}", part("host="), part("user=")))
}

/// The program under test.
pub struct Binary;

impl Binary {
    /// Returns a command without inherited settings.
    pub fn command() -> Command {
        Self::without_settings(Self::program())
    }

    /// Returns the program, which uses PostgreSQL if `YARROW_TEST_DATABASE` names a server.
    fn program() -> Command {
        let program = env!("CARGO_BIN_EXE_yarrow");
        let Some(server) = postgresql() else { return Command::new(program) };
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgresql/program"));
        command.env("TEST_PROGRAM", program).env("TEST_SERVER", server);
        command
    }

    /// Returns a command that runs after a shell command.
    pub fn command_after(prelude: &str) -> Command {
        let program = Self::program();
        let mut command = Self::without_settings(Command::new("sh"));
        command.arg("-c").arg(format!("{prelude} && exec \"$0\" \"$@\"")).arg(program.get_program());
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    fn without_settings(mut command: Command) -> Command {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("YARROW_") {
                command.env_remove(name);
            }
        }
        command
    }
}

type Lines = Arc<Mutex<Vec<String>>>;

/// The beginning of the line that a server prints with its address.
const READY: &str = "yarrow is listening on http";

/// A server in the process of the tests.
struct HereServer {
    /// Until it is asked to end: it locks the data directory.
    app: Option<Arc<App>>,
    stop: tokio::sync::mpsc::Sender<()>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    /// A connection for single statements of the test: to read the schema takes longer than most of them. It is closed
    /// before the server ends, which truncates the log with the last connection.
    connection: Mutex<Option<rusqlite::Connection>>,
}

impl HereServer {
    /// Asks it to stop.
    fn stop(&self) {
        *lock_unpoisoned(&self.connection) = None;
        let _ = self.stop.try_send(());
    }

    /// Waits for its end.
    fn end(&mut self) -> Result<(), Error> {
        (self.app, *lock_unpoisoned(&self.connection)) = (None, None);
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

enum Running {
    Process(Child),
    Here(Box<HereServer>),
}

impl Running {
    #[track_caller]
    fn process(&mut self) -> &mut Child {
        match self {
            Self::Process(process) => process,
            Self::Here(_) => panic!("this test needs a server `in_own_process`"),
        }
    }
}

/// A running server. It is killed on drop.
pub struct Server {
    running: Running,
    address: SocketAddr,
    directory: PathBuf,
    temp_dir: Option<TempDir>,
    lines: Lines,
    /// Further copies on the same database, which take turns with the first.
    further: Vec<FurtherCopy>,
    next: AtomicUsize,
}

struct FurtherCopy {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start(setup: Setup) -> Self {
        let temp_dir = setup.directory.is_none().then(directory_in_memory);
        let directory = setup.directory.clone().unwrap_or_else(|| temp_dir.as_ref().unwrap().path().join("data"));
        if temp_dir.is_some() && setup.can_use_template() {
            copy_template(&directory);
        }
        let lines = Lines::default();
        let (running, address) = if setup.needs_process() {
            let (process, address) = setup.spawn(&directory, None, &lines);
            (Running::Process(process), address)
        } else {
            let (here, address) = setup.serve_here(&directory, &lines).unwrap();
            (Running::Here(Box::new(here)), address)
        };
        let mut server =
            Self { running, address, directory, temp_dir, lines, further: Vec::new(), next: AtomicUsize::new(0) };
        let shares_database = setup.settings.iter().any(|(name, _)| name == "YARROW_DATABASE_URL");
        for number in 2..=if shares_database { 1 } else { copies() } {
            server.start_further_copy(&setup, number);
        }
        server
    }

    /// Starts another copy with the keys and the database of the first, in a data directory within that of the first.
    fn start_further_copy(&mut self, setup: &Setup, number: usize) {
        let directory = self.directory.join("copies").join(number.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::set_permissions(&directory, std::fs::metadata(&self.directory).unwrap().permissions()).unwrap();
        for entry in std::fs::read_dir(&self.directory).unwrap().map(Result::unwrap) {
            if entry.path().extension().is_some_and(|extension| extension == "key") {
                std::fs::copy(entry.path(), directory.join(entry.file_name())).unwrap();
            }
        }
        let database = create_database(&self.directory);
        let (process, address) = setup.spawn(&directory, database, &self.lines);
        self.further.push(FurtherCopy { process, address });
    }

    /// Returns the address of each copy in turn.
    pub fn address(&self) -> SocketAddr {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % (self.further.len() + 1);
        turn.checked_sub(1).map_or(self.address, |further| self.further[further].address)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    #[track_caller]
    pub fn process_id(&self) -> u32 {
        match &self.running {
            Running::Process(process) => process.id(),
            Running::Here(_) => panic!("this test needs a server `in_own_process`"),
        }
    }

    /// Returns the application, if the server is in this process.
    pub fn app(&self) -> Option<&App> {
        match &self.running {
            Running::Process(_) => None,
            Running::Here(here) => here.app.as_deref(),
        }
    }

    /// Returns the lines printed so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for a line that contains this text. Panics if the server ends first.
    pub fn wait_for_line(&mut self, text: &str) -> String {
        match &mut self.running {
            Running::Process(process) => wait_for_line(process, &self.lines, text),
            Running::Here(_) => eventually_some(text, || {
                self.lines.lock().unwrap().iter().rev().find(|line| line.contains(text)).cloned()
            }),
        }
    }

    /// Returns the URL of the metrics, of the first copy if there are several.
    pub fn metrics(&mut self) -> String {
        self.wait_for_line("metrics are at http://");
        let line = self.lines().into_iter().find(|line| line.contains("metrics are at http://")).unwrap();
        line.split("metrics are at ").nth(1).unwrap().trim().to_owned()
    }

    /// Returns the length of the writer queue from the metrics.
    pub fn waiting_changes(metrics: &str) -> u64 {
        let page = Request::new("GET", metrics).send().expect(200).text();
        let found = page.lines().find_map(|line| line.strip_prefix("yarrow_writer_queue "));
        found.unwrap().parse().unwrap()
    }

    /// Returns the private memory of the process in bytes.
    pub fn memory(&self) -> u64 {
        self.memory_line("RssAnon:")
    }

    /// Returns a size from the process status in bytes.
    fn memory_line(&self, name: &str) -> u64 {
        self.status_number(name) << 10
    }

    /// Returns the number of threads of the process.
    pub fn threads(&self) -> u64 {
        self.status_number("Threads:")
    }

    fn status_number(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process_id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Returns by how many bytes the peak memory grows during `done`.
    pub fn memory_taken(&self, done: impl FnOnce(&Self)) -> u64 {
        // Resets the peak: proc(5).
        std::fs::write(format!("/proc/{}/clear_refs", self.process_id()), "5").unwrap();
        let before = self.memory_line("VmHWM:");
        done(self);
        self.memory_line("VmHWM:").saturating_sub(before)
    }

    /// Returns the codes sent to this number, from the console driver's output.
    pub fn sent_codes(&self, phone_number: &str) -> Vec<String> {
        let code = if phone_number.starts_with('+') { "" } else { "+86" };
        let to = format!("SMS to {code}{phone_number}: ");
        let lines = self.lines();
        let texts = lines.iter().filter(|line| line.contains(&to)).map(|line| line.split("code is ").nth(1).unwrap());
        texts.map(|text| text.chars().take_while(char::is_ascii_digit).collect()).collect()
    }

    /// Waits for `count` codes and panics if there are more.
    pub fn expect_sent_codes(&self, phone_number: &str, count: usize) {
        eventually("the codes are printed", || self.sent_codes(phone_number).len() >= count);
        assert_eq!(self.sent_codes(phone_number).len(), count);
    }

    /// Requests a code and waits for it.
    pub fn request_code(&self, phone_number: &str) -> String {
        let before = self.sent_codes(phone_number).len();
        self.post("/auth/send-code").form(&[("phoneNumber", phone_number)]).send().expect(200);
        self.printed_code(phone_number, before)
    }

    /// Waits for the code after the first `before` ones.
    pub fn printed_code(&self, phone_number: &str, before: usize) -> String {
        let printed = || self.sent_codes(phone_number).get(before).cloned();
        eventually_some(&format!("no code for {phone_number}"), printed)
    }

    /// Signs in with a real code.
    pub fn sign_in(&self, phone_number: &str) -> Caller {
        let code = self.request_code(phone_number);
        let response = self.post("/auth/login").form(&[("phoneNumber", phone_number), ("code", &code)]).send();
        let signed_in = response.expect(200).json();
        Caller {
            user_id: signed_in["userId"].as_str().unwrap().to_owned(),
            phone_number: phone_number.to_owned(),
            token: signed_in["token"].as_str().unwrap().to_owned(),
        }
    }

    /// Returns the codes sent to this email address, from the console driver's output.
    pub fn sent_email_codes(&self, email: &str) -> Vec<String> {
        let to = format!("Email to {email}: ");
        let lines = self.lines();
        let texts = lines.iter().filter_map(|line| line.split_once(&to)).map(|(_, text)| text);
        let is_code = |word: &&str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit());
        texts.filter_map(|text| text.split_whitespace().find(is_code)).map(ToOwned::to_owned).collect()
    }

    /// Requests a code by email and waits for it.
    pub fn request_email_code(&self, email: &str, purpose: &str) -> String {
        let before = self.sent_email_codes(email).len();
        let body = serde_json::json!({ "email": email, "purpose": purpose });
        self.post("/api/v1/auth/send-code").json(&body).send().expect(200);
        eventually_some("a code by email", || self.sent_email_codes(email).get(before).cloned())
    }

    /// Signs in by email, ignoring send limits, and returns the response.
    pub fn log_in_by_email(&self, email: &str) -> serde_json::Value {
        self.edit("delete from code_sends; delete from code_counts");
        let code = self.request_email_code(email, "sign_in");
        let body = serde_json::json!({ "email": email, "code": code });
        self.post("/api/v1/auth/login").json(&body).send().expect(200).json()
    }

    /// Signs in by email. The caller has no phone number.
    pub fn sign_in_by_email(&self, email: &str) -> Caller {
        let response = self.log_in_by_email(email);
        Caller {
            user_id: response["user"]["id"].as_str().unwrap().to_owned(),
            phone_number: String::new(),
            token: response["token"].as_str().unwrap().to_owned(),
        }
    }

    pub fn get(&self, path: &str) -> Request {
        self.request("GET", path)
    }

    pub fn post(&self, path: &str) -> Request {
        self.request("POST", path)
    }

    pub fn patch(&self, path: &str) -> Request {
        self.request("PATCH", path)
    }

    pub fn delete(&self, path: &str) -> Request {
        self.request("DELETE", path)
    }

    pub fn put(&self, path: &str) -> Request {
        self.request("PUT", path)
    }

    pub fn request(&self, method: &str, path: &str) -> Request {
        Request::new(method, &format!("http://{}{path}", self.address()))
    }

    /// Opens a separate connection to the database.
    pub fn database(&self) -> Database {
        Database::open(&self.directory)
    }

    /// Opens a separate connection to the database file.
    pub fn database_file(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.directory.join("yarrow.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    /// Opens a separate connection to the network log.
    pub fn network_log(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.directory.join("network-log.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection.execute_batch(COUNT_INSERTED).unwrap();
        connection
    }

    /// Opens the database and the network log.
    pub fn all_databases(&self) -> [Database; 2] {
        [self.database(), Database::open_network_log(&self.directory)]
    }

    /// Returns true if the text is in what was written to the database lately: the write-ahead log of SQLite, or any row
    /// on PostgreSQL.
    pub fn has_stored(&self, text: &str) -> bool {
        if postgresql().is_none() {
            let log = std::fs::read(self.directory.join("yarrow.db-wal")).unwrap();
            return holds(&log, text.as_bytes());
        }
        let database = self.database();
        let mut values = database.tables().into_iter().flat_map(|table| database.contents(&table)).flatten();
        values.any(|value| match value {
            OwnedSqlValue::Text(stored) => stored.contains(text),
            OwnedSqlValue::Blob(bytes) => holds(&bytes, text.as_bytes()),
            _ => false,
        })
    }

    /// Panics if the database file is damaged. PostgreSQL has none.
    pub fn assert_file_is_sound(&self) {
        if postgresql().is_none() {
            assert_eq!(self.value::<String>("pragma integrity_check"), "ok");
        }
    }

    /// Opens a connection to both. A transaction of it would lock both.
    pub fn databases(&self) -> rusqlite::Connection {
        let connection = self.database_file();
        let log = self.directory.join("network-log.db");
        connection.execute("attach database ?1 as network_log", [log.to_str().unwrap()]).unwrap();
        connection.execute_batch(COUNT_INSERTED).unwrap();
        connection
    }

    /// Runs a statement on both, with a function.
    fn on_both<T>(&self, sql: &str, run: impl FnOnce(&rusqlite::Connection) -> T) -> T {
        match &self.running {
            // Pragmas change a connection or look at the file.
            Running::Here(here) if here.app.is_some() && !sql.contains("pragma") => {
                let mut connection = lock_unpoisoned(&here.connection);
                run(connection.get_or_insert_with(|| self.databases()))
            }
            _ => run(&self.databases()),
        }
    }

    /// Changes rows directly and waits until no snapshot of the server is older. Tests move time this way.
    pub fn edit(&self, sql: &str) {
        if postgresql().is_none() {
            self.on_both(sql, |databases| databases.execute_batch(sql)).unwrap();
        } else if sql.contains("access_log") {
            self.network_log().execute_batch(&sql.replace("network_log.", "")).unwrap();
        } else {
            self.database().execute_batch(sql).unwrap();
        }
        std::thread::sleep(SNAPSHOT_AGE + Duration::from_millis(10));
    }

    /// Returns the contents of the files in the data directory, without subdirectories.
    pub fn data_files(&self) -> Vec<Vec<u8>> {
        contents_of(&self.directory)
    }

    /// Returns the steps of a query plan.
    pub fn query_plan(&self, sql: &str) -> Vec<String> {
        let database = self.database_file();
        let mut statement = database.prepare(&format!("explain query plan {sql}")).unwrap();
        let mut rows = statement.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            steps.push(row.get(3).unwrap());
        }
        steps
    }

    /// Returns the single value of a query of the database and the network log.
    pub fn value<T: rusqlite::types::FromSql + SqlColumn>(&self, sql: &str) -> T {
        if postgresql().is_none() {
            self.on_both(sql, |databases| databases.query_row(sql, (), |row| row.get(0))).unwrap()
        } else if sql.contains("access_log") {
            self.network_log().query_row(sql, (), |row| row.get(0)).unwrap()
        } else {
            self.database().query_row(sql, (), |row| row.get(0)).unwrap()
        }
    }

    /// Returns the processor time that the process has used, in ticks.
    pub fn processor_time(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process_id())).unwrap();
        // After the name: state is the first field, user time the twelfth.
        let fields = stat.rsplit(')').next().unwrap().split_whitespace();
        fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    /// Signs in again, ignoring send limits.
    pub fn sign_in_again(&self, phone_number: &str) -> Caller {
        self.edit("delete from code_sends; delete from code_counts");
        self.sign_in(phone_number)
    }

    /// Sends bytes over a new connection and reads one response.
    pub fn send_raw(&self, bytes: &[u8]) -> Response {
        raw::exchange(self.address(), bytes)
    }

    #[track_caller]
    fn kill_all(&mut self) {
        let further = self.further.iter_mut().map(|copy| &mut copy.process);
        for process in further.chain([self.running.process()]) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Kills the process.
    #[track_caller]
    pub fn kill(mut self) -> PathBuf {
        self.kill_all();
        // Keep the directory for the next server.
        if let Some(temp_dir) = self.temp_dir.take() {
            let _ = temp_dir.keep();
        }
        self.directory.clone()
    }

    /// Ends this server and starts another on the same directory, for tests of other settings or of what outlives a start.
    pub fn restart(mut self, setup: Setup) -> Self {
        self.end();
        let temp_dir = self.temp_dir.take();
        let mut restarted = setup.on(&self.directory).start();
        restarted.temp_dir = temp_dir;
        restarted
    }

    fn end(&mut self) {
        match &mut self.running {
            Running::Process(_) => self.kill_all(),
            // The second request ends the wait for requests.
            Running::Here(here) => {
                here.stop();
                here.stop();
                let _ = here.end();
            }
        }
    }

    /// Kills the process and starts another on the same directory.
    #[track_caller]
    pub fn crash_and_restart(mut self, setup: Setup) -> Self {
        self.kill_all();
        let temp_dir = self.temp_dir.take();
        let mut restarted = setup.in_own_process().on(&self.directory).start();
        restarted.temp_dir = temp_dir;
        restarted
    }

    /// Sends SIGTERM without waiting.
    pub fn ask_to_stop(&self) {
        let process = match &self.running {
            Running::Here(here) => return here.stop(),
            Running::Process(process) => process,
        };
        let processes = [process].into_iter().chain(self.further.iter().map(|copy| &copy.process));
        let mut kill = Command::new("kill");
        kill.arg("-TERM").args(processes.map(|process| process.id().to_string()));
        assert!(kill.status().unwrap().success());
    }

    /// Sends SIGTERM and returns the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.ask_to_stop();
        self.wait_for_end()
    }

    /// Kills a server that runs under a tracer. Killing only the tracer would leave the server running.
    pub fn kill_traced(&mut self) {
        let children = format!("/proc/{0}/task/{0}/children", self.process_id());
        let children = std::fs::read_to_string(children).unwrap();
        kill(children.split_whitespace().next().expect("this test needs `strace`").parse().unwrap());
        let _ = self.wait_for_end();
    }

    /// Waits for the process to end and returns its exit code.
    pub fn wait_for_end(&mut self) -> Option<i32> {
        let process = match &mut self.running {
            Running::Here(here) => return Some(here.end().map_or(1, |()| 0)),
            Running::Process(process) => process,
        };
        let deadline = Instant::now() + Duration::from_secs(40);
        while Instant::now() < deadline {
            let further = self.further.iter_mut().map(|copy| &mut copy.process);
            let ended: Vec<_> =
                [&mut *process].into_iter().chain(further).map(|process| process.try_wait().unwrap()).collect();
            if let Some(codes) = ended.into_iter().map(|status| Some(status?.code())).collect::<Option<Vec<_>>>() {
                return codes.iter().copied().find(|code| *code != Some(0)).unwrap_or(Some(0));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server did not end: {:#?}", self.lines());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        if self.temp_dir.is_some() {
            drop_database(&self.directory);
        }
    }
}

/// Drops the database of a data directory that goes too, because those of all tests fill a disk.
fn drop_database(directory: &Path) {
    let Some(server) = postgresql() else { return };
    let Ok(name) = std::fs::read_to_string(directory.join("test-database")) else { return };
    let client = postgres::Client::connect(&format!("{server} dbname=postgres"), postgres::NoTls);
    // What remains is lost with the server.
    let _ = client.and_then(|mut client| client.batch_execute(&format!("drop database if exists {name} with (force)")));
}

/// Returns true if the text is among the bytes.
pub fn holds(bytes: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(bytes, text).is_some()
}

/// Returns the contents of the files in a directory, without subdirectories.
pub fn contents_of(directory: &Path) -> Vec<Vec<u8>> {
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()).collect()
}

/// Kills a process.
pub fn kill(process: u32) {
    let killed = Command::new("kill").arg("-KILL").arg(process.to_string()).status().unwrap();
    assert!(killed.success());
}

/// Returns a directory in memory, if the machine has one with room: syncs to a disk are not what most tests are about.
/// Those that are make a directory of their own.
pub fn directory_in_memory() -> TempDir {
    const MEMORY: &str = "/dev/shm";
    const ENOUGH: u64 = 4 << 30;
    static HAS_ROOM: LazyLock<bool> = LazyLock::new(|| {
        rustix::fs::statvfs(MEMORY).is_ok_and(|memory| memory.f_bavail.saturating_mul(memory.f_frsize) >= ENOUGH)
    });
    if *HAS_ROOM { tempfile::tempdir_in(MEMORY).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Copies a data directory that a first start initialized, which takes most of the time of a start.
fn copy_template(to: &Path) {
    static TEMPLATE: LazyLock<PathBuf> = LazyLock::new(template);
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::fs::metadata(&*TEMPLATE).unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(&*TEMPLATE).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Returns a data directory that this build of the program initialized, and deletes those of former builds.
fn template() -> PathBuf {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let built = std::fs::metadata(env!("CARGO_BIN_EXE_yarrow")).unwrap().modified().unwrap();
    let built = built.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    // Databases belong to a server, which lives as long as a run of the tests.
    let engine = postgresql()
        .map(|server| server.replace(|character: char| !character.is_ascii_alphanumeric(), "-") + "-")
        .unwrap_or_default();
    let template = parent.join(format!("template-{engine}{built}"));
    if !template.exists() {
        for former in std::fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path()) {
            // Another run of the tests may use a young one.
            let is_old = |path: &Path| {
                path.metadata().is_ok_and(|data| data.modified().unwrap().elapsed().is_ok_and(|age| age > HOUR))
            };
            if former.file_name().unwrap().to_string_lossy().starts_with("template-") && is_old(&former) {
                let _ = std::fs::remove_dir_all(former);
            }
        }
        let fresh = tempfile::tempdir_in(parent).unwrap();
        install(&fresh.path().join("data"));
        // Another process may have been faster.
        let _ = std::fs::rename(fresh.path().join("data"), &template);
    }
    template
}

fn collect(stderr: impl std::io::Read + Send + 'static, to: [Lines; 2]) {
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            for lines in &to {
                lines.lock().unwrap().push(line.clone());
            }
        }
    });
}

/// Waits for a line that contains this text. Panics if the process ends first.
fn wait_for_line(process: &mut Child, lines: &Lines, text: &str) -> String {
    let deadline = Instant::now() + Duration::from_mins(2);
    loop {
        let printed = lines.lock().unwrap().clone();
        if let Some(line) = printed.iter().rev().find(|line| line.contains(text)) {
            return line.clone();
        }
        let ended = process.try_wait().unwrap();
        assert!(ended.is_none() && Instant::now() < deadline, "no line with {text:?} in {printed:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stores and counts entries that a test inserts one by one, each in a block of its own, and deletes the blocks of entries
/// that it deletes.
const COUNT_INSERTED: &str = "
create temp trigger access_log_inserted instead of insert on access_log begin
    insert into access_log_blocks (id, last_at, entries, failed, next_position, rows)
    select coalesce(max(id) + 1, new.at / 600000 * 1048576), new.at, 1, new.status >= 400, 1,
        json_array(json_array(0, new.at, new.user_id, new.client_ip, new.method, new.route, new.status,
            new.duration_us, new.request_id))
    from access_log_blocks where id >= new.at / 600000 * 1048576 and id < (new.at / 600000 + 1) * 1048576;
    insert into access_log_keys (key, block, entries)
    with keys (key) as (select 'u' || new.user_id union all select 'c' || new.client_ip union all select 'r' || new.route
        union all select 's' || new.status where new.status >= 400
        union all select 'q' || case when length(new.request_id) = 24 and new.request_id not glob '*[^0-9a-f]*'
            then substr(new.request_id, 1, 21) else new.request_id end)
    select key, (select max(id) from access_log_blocks where id < (new.at / 600000 + 1) * 1048576), 1 from keys
    where key is not null;
    insert into access_log_addresses (client_ip) values (new.client_ip) on conflict (client_ip) do nothing;
    insert into access_log_clients (period, client_id, requests, failed, failed_sign_ins, users, busiest_minute,
        last_minute, last_minute_requests)
    select new.at / 600000, id, 1, new.status >= 400,
        coalesce(new.route like '%/login' or new.route like '%/send-code', 0) and new.status in (401, 403, 429), 0, 1,
        new.at / 60000, 1
    from access_log_addresses where client_ip = new.client_ip
    on conflict (period, client_id) do update set
        requests = requests + 1,
        failed = failed + excluded.failed,
        failed_sign_ins = failed_sign_ins + excluded.failed_sign_ins,
        busiest_minute = case when last_minute = excluded.last_minute and last_minute_requests >= busiest_minute
            then last_minute_requests + 1 else busiest_minute end,
        last_minute_requests = case when last_minute = excluded.last_minute then last_minute_requests + 1 else 1 end,
        last_minute = excluded.last_minute;
    insert into access_log_users (client_id, period, user_id)
    select id, new.at / 600000, new.user_id from access_log_addresses
    where client_ip = new.client_ip and new.user_id is not null
    on conflict (client_id, period, user_id) do nothing;
    delete from access_log_counted_days where day = new.at / 86400000;
end;
create temp trigger access_log_deleted instead of delete on access_log begin
    delete from access_log_blocks where id = old.id / 16384;
    delete from access_log_keys where block = old.id / 16384;
    delete from access_log_clients where period = old.at / 600000;
    delete from access_log_days where day = old.at / 86400000;
    delete from access_log_addresses where id not in (select client_id from access_log_clients);
end;
";

/// Returns a statement that inserts requests into the network log. The query returns the columns of `access_log` from
/// `at` to `request_id`.
pub fn log_statement(requests: &str) -> String {
    let columns = "at, user_id, client_ip, method, route, status, duration_us, request_id";
    format!("insert into access_log ({columns}) with requests ({columns}) as ({requests}) select * from requests")
}

/// Returns a statement that adds this many rows of 3 KB to the database, in a table that no page of a test lists.
pub fn filler_statement(rows: u32) -> String {
    format!(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < {rows}) \
         insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at) \
         select 'user:0', 'POST /filler', hex(randomblob(16)), randomblob(32), 200, randomblob(3000), \
         unixepoch() * 1000 from counter"
    )
}
