//! The application: configuration, store, providers and clock, opened alike by the server and by every command.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ring::hmac;
use secrecy::ExposeSecret;

use crate::{
    config::{Config, LlmProvider, SmsProvider},
    error::{Code, Error, Result},
    ops::{access_log::Recorder, admins, interpretation::Permits, moderation::Screen, slots::Slots},
    providers::{
        breaker::Breaker,
        llm::{LanguageModel, offline::Offline, openai},
        sms::{SmsSender, aliyun, console::Console},
    },
    store::{Store, Tuning},
    types::{PhoneRules, Timestamp, fill_random},
};

/// The only place that reads the system clock. Clones are one clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Milliseconds that this clock is behind the system's.
    behind: Arc<AtomicI64>,
}

impl Clock {
    pub fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let milliseconds = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Timestamp(milliseconds - self.behind.load(Ordering::Relaxed))
    }

    /// Sets the clock back, so that a demonstration can have a past that was lived through the real operations.
    pub fn set_back(&self, by: Duration) {
        self.behind.store(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

/// A vendor that takes its time must leave threads for everybody else.
const MESSAGES_AT_ONCE: u32 = 32;

/// Prints a line for whoever runs the program; the development drivers speak through it.
pub type Announce = Arc<dyn Fn(&str) + Send + Sync>;

/// Who opens the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one server of a data directory: it holds the lock for as long as it runs.
    Server,
    /// A command, which may run beside the server.
    Tool,
}

pub struct App {
    pub config: Config,
    pub clock: Clock,
    pub store: Store,
    pub phone_rules: PhoneRules,
    pub keys: ServerKey,
    pub sms: Box<dyn SmsSender>,
    pub sms_breaker: Breaker,
    /// Messages being handed to the provider at once.
    pub sms_sending: Slots,
    pub llm: Box<dyn LanguageModel>,
    pub llm_breaker: Breaker,
    /// Running model calls.
    pub calls: Permits,
    /// The local word list, ready to match.
    pub screen: Screen,
    /// Running password hashes.
    /// Password hashes at once, each of which takes its megabytes.
    pub hashing: Slots,
    /// Network log entries on their way to the store.
    pub access_log: Recorder,
    /// Held for its lock. Dropped last, when nothing writes any more.
    _lock: Option<File>,
}

impl App {
    /// Opens the data directory, making it if there is none.
    ///
    /// # Errors
    /// `data_directory_unusable` when another server runs on it or its schema is newer; storage errors.
    pub fn open(config: Config, role: Role, announce: &Announce) -> Result<Self> {
        let directory = config.installation.data_dir.0.clone();
        let clock = Clock::default();
        make_directory(&directory)?;
        let lock = match (role, try_lock(&directory)?) {
            (Role::Server, None) => return Err(in_use(&directory)),
            (_, lock) => lock,
        };
        let store = Store::open(&directory.join("yarrow.db"), &tuning(&config), clock.clone(), lock.is_some())?;
        let keys = ServerKey::of(&config, &directory)?;
        let screen = Screen::load(&store)?;
        Ok(Self {
            phone_rules: config.phone_rules(),
            sms: sms_sender(&config, clock.clone(), announce),
            sms_breaker: Breaker::with_defaults("sms"),
            sms_sending: Slots::new(MESSAGES_AT_ONCE),
            llm: language_model(&config),
            llm_breaker: Breaker::with_defaults("llm"),
            calls: Permits::new(config.llm.calls, config.llm.calls_per_user),
            hashing: Slots::new(admins::HASHES_AT_ONCE),
            access_log: Recorder::default(),
            // A command holds the lock only while it opens, so that a server can start beside it.
            _lock: lock.filter(|_| role == Role::Server),
            config,
            clock,
            store,
            keys,
            screen,
        })
    }
}

fn tuning(config: &Config) -> Tuning {
    Tuning {
        mmap_size: config.database.mmap_size.0,
        cache_kib: u32::try_from(config.database.cache.0 / 1024).unwrap_or(u32::MAX),
        // One for each worker, one for what a worker reads inside a read, and those for long reads.
        readers: config.server.worker_threads() + 1 + config.database.long_reads,
        queue: config.database.write_queue as usize,
    }
}

fn sms_sender(config: &Config, clock: Clock, announce: &Announce) -> Box<dyn SmsSender> {
    match config.sms.provider {
        SmsProvider::Console => {
            let announce = Arc::clone(announce);
            Box::new(Console::new(Box::new(move |line| announce(line))))
        }
        SmsProvider::Aliyun => {
            let settings = aliyun::Settings {
                endpoint: config.sms.endpoint.clone(),
                access_key_id: config.sms.access_key_id.clone(),
                access_key_secret: config.sms.access_key_secret.clone().unwrap_or_default(),
                sign_name: config.sms.sign_name.clone(),
                template_code: config.sms.template_code.clone(),
            };
            Box::new(aliyun::Aliyun::new(settings, Box::new(move || clock.now().0)))
        }
    }
}

fn language_model(config: &Config) -> Box<dyn LanguageModel> {
    match config.llm.provider {
        LlmProvider::Builtin => Box::new(Offline),
        LlmProvider::Openai => Box::new(openai::OpenAi::new(openai::Settings {
            base_url: config.llm.base_url.clone(),
            api_key: config.llm.api_key.clone(),
            model: config.llm.model.clone(),
            connect_timeout: config.llm.connect_timeout,
            first_byte_timeout: config.llm.first_byte_timeout,
            idle_timeout: config.llm.idle_timeout,
            total_timeout: config.llm.total_timeout,
            ..openai::Settings::default()
        })),
    }
}

fn make_directory(directory: &Path) -> Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory).map_err(|error| unusable(directory, &error.to_string()).caused_by(error))
}

/// The data directory's lock, or nothing when a server holds it.
fn try_lock(directory: &Path) -> Result<Option<File>> {
    let path = directory.join("yarrow.lock");
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(|error| unusable(directory, &error.to_string()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(unusable(directory, &error.to_string())),
    }
}

fn unusable(directory: &Path, why: &str) -> Error {
    Error::new(Code::DataDirectoryUnusable).detail(format!("The data directory {}: {why}", directory.display()))
}

fn in_use(directory: &Path) -> Error {
    unusable(directory, "another server is running on it.")
}

/// The key under which codes and addresses are kept as HMACs. A stolen database alone does not give them away.
#[derive(Clone)]
pub struct ServerKey(hmac::Key);

impl ServerKey {
    fn of(config: &Config, directory: &Path) -> Result<Self> {
        let bytes = match &config.auth.secret_key {
            Some(key) => key.expose_secret().as_bytes().to_vec(),
            None => kept_key(&directory.join("secret.key"))?,
        };
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// HMAC-SHA-256 over the parts, each preceded by its length, so that no two lists of parts look alike.
    pub fn authenticate(&self, parts: &[&str]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.sign().as_ref());
        bytes
    }
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ServerKey")
    }
}

/// The key of this data directory, made at its first start. It belongs into every backup: without it, what is kept
/// under HMACs cannot be recognised.
fn kept_key(path: &Path) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| {
        let detail = format!("The server key {}: {error}", path.display());
        Error::new(Code::DataDirectoryUnusable).detail(detail).caused_by(error)
    };
    if !path.exists() {
        make_key(path, failed)?;
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    if bytes.len() < 32 {
        let detail = format!("The server key {} is damaged: it has {} bytes.", path.display(), bytes.len());
        return Err(Error::new(Code::DataDirectoryUnusable).detail(detail));
    }
    Ok(bytes)
}

/// Writes a new key beside its place and links it there, so that of two programs starting at once one wins and
/// neither reads half a key.
fn make_key(path: &Path, failed: impl Fn(std::io::Error) -> Error) -> Result<()> {
    let mut key = [0; 32];
    fill_random(&mut key)?;
    let unfinished: PathBuf = path.with_extension(format!("{}.unfinished", std::process::id()));
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished).map_err(&failed)?;
    file.write_all(&key).and_then(|()| file.sync_all()).map_err(&failed)?;
    let linked = std::fs::hard_link(&unfinished, path);
    std::fs::remove_file(&unfinished).map_err(&failed)?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}
