//! The command line: one file a subcommand, each with its arguments and `run`. The only room that talks to a terminal.

mod admin;
mod alerts;
mod ai;
mod audit;
mod backup;
mod choice;
mod cleanup;
mod coins;
mod completions;
mod config;
mod demo;
mod doctor;
mod feedback;
mod healthcheck;
mod ledger;
mod log_lines;
mod logs;
mod moderation;
mod notify;
mod man;
mod openapi;
mod payments;
mod release;
mod points;
mod records;
mod restore;
mod serve;
mod violations;
mod words;
mod version;
mod sync;
mod taming;
mod users;

use std::{
    collections::BTreeMap,
    fmt::Display,
    io::{ErrorKind, IsTerminal, Write},
    path::PathBuf,
    sync::Arc,
};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand};
use comfy_table::{ContentArrangement, Table, presets::UTF8_HORIZONTAL_ONLY};
use serde_json::{Value, json};
use terminal_size::Width;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use self::{
    log_lines::LogLines,
    taming::{tamed, tamed_line},
};
use yarrow::{
    app::{App, Role},
    config::{Config, DECLARATIONS, Loaded, LogFormat, Sources, is_argument_given, load, load_and_examine},
    error::{Code, Error, FieldError, Result},
    ops::{
        audit::{self as ops_audit, Act, BEGUN, LONGEST_REASON},
        ledger::Authority,
        users::{self as ops_users, Address, User},
    },
    types::{EmailAddress, Page, PhoneNumber, Timestamp, UserId, in_order},
    vendors::Announce,
};

/// What stands over the options that every command takes.
const EVERYWHERE: &str = "Options of every command";
const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 configuration, 4 not found, 5 a check found problems, 6 the data directory is \
locked, newer or older than the program, or may not be used.";

/// The whole backend of an I Ching app in one binary over one SQLite file.
#[derive(Debug, Parser)]
#[command(name = "yarrow", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Subcommands,
}

/// Options of every command, before or after its own.
#[derive(Debug, Args)]
pub struct Common {
    /// TOML file with settings, also named by `YARROW_CONFIG`; `yarrow config sample` prints one.
    #[arg(long, global = true, value_name = "FILE", help_heading = EVERYWHERE)]
    config: Option<PathBuf>,
    /// Answer in JSON, and say in JSON why something failed.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
    #[command(flatten)]
    flags: SettingFlags,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Serve(serve::ServeArgs),
    Demo(demo::DemoArgs),
    Config(config::ConfigArgs),
    Admin(admin::AdminArgs),
    Ai(ai::AiArgs),
    Coins(coins::CoinsArgs),
    Points(points::PointsArgs),
    Ledger(ledger::LedgerArgs),
    Payments(payments::PaymentsArgs),
    Logs(logs::LogsArgs),
    Words(words::WordsArgs),
    Violations(violations::ViolationsArgs),
    Moderation(moderation::ModerationArgs),
    Notify(notify::NotifyArgs),
    Records(records::RecordsArgs),
    Release(release::ReleaseArgs),
    Feedback(feedback::FeedbackArgs),
    Users(users::UsersArgs),
    Sync(sync::SyncArgs),
    Cleanup(cleanup::CleanupArgs),
    Audit(audit::AuditArgs),
    Doctor(doctor::DoctorArgs),
    Backup(backup::BackupArgs),
    Alerts(alerts::AlertsArgs),
    Restore(restore::RestoreArgs),
    Healthcheck(healthcheck::HealthcheckArgs),
    Openapi(openapi::OpenapiArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Version(version::VersionArgs),
}

/// Why a command failed, for whoever gave it.
pub struct Failure {
    pub error: Error,
    is_told_in_json: bool,
}

/// Runs the command that this process was started with.
///
/// # Errors
/// Whatever the command fails with. Wrong usage ends the process with code 2 before that, unless it is to be told in
/// JSON.
pub fn run() -> Result<(), Failure> {
    let Cli { common, command } = Cli::try_parse().or_else(|fault| misused(&fault))?;
    command.run(&common).map_err(|error| Failure { error, is_told_in_json: common.json })
}

/// What the parser found wrong. It says so itself, with help, unless the line asks for JSON.
fn misused(fault: &clap::Error) -> Result<Cli, Failure> {
    if !(fault.use_stderr() && is_argument_given("--json")) {
        fault.exit();
    }
    let said = fault.to_string();
    let sentence = said.trim_start_matches("error: ").lines().take_while(|line| !line.is_empty()).map(str::trim);
    let sentence = sentence.collect::<Vec<_>>().join(" ");
    Err(Failure { error: Error::new(Code::InvalidRequest).detail(sentence), is_told_in_json: true })
}

impl Subcommands {
    fn run(self, common: &Common) -> Result<()> {
        match self {
            Self::Serve(args) => serve::run(common, &args),
            Self::Demo(args) => demo::run(common, &args),
            Self::Admin(args) => admin::run(common, args),
            Self::Ai(args) => ai::run(common, &args),
            Self::Coins(args) => coins::run(common, args),
            Self::Points(args) => points::run(common, args),
            Self::Ledger(args) => ledger::run(common, args),
            Self::Payments(args) => payments::run(common, args),
            Self::Logs(args) => logs::run(common, args),
            Self::Words(args) => words::run(common, args),
            Self::Violations(args) => violations::run(common, args),
            Self::Moderation(args) => moderation::run(common, args),
            Self::Notify(args) => notify::run(common, args),
            Self::Records(args) => records::run(common, args),
            Self::Release(args) => release::run(common, args),
            Self::Feedback(args) => feedback::run(common, args),
            Self::Users(args) => users::run(common, args),
            Self::Sync(args) => sync::run(common, &args),
            Self::Cleanup(args) => cleanup::run(common, &args),
            Self::Audit(args) => audit::run(common, args),
            Self::Doctor(args) => doctor::run(common, &args),
            Self::Backup(args) => backup::run(common, args),
            Self::Alerts(args) => alerts::run(common, &args),
            Self::Restore(args) => restore::run(common, &args),
            Self::Config(args) => config::run(common, &args),
            Self::Healthcheck(args) => healthcheck::run(common, &args),
            Self::Openapi(args) => openapi::run(common, &args),
            Self::Completions(args) => completions::run(common, &args),
            Self::Man(args) => man::run(common, &args),
            Self::Version(args) => version::run(common, &args),
        }
    }
}

impl Common {
    fn load(&self) -> Result<Loaded> {
        load(Sources::of_process(self.flags.0.clone(), self.config.clone()))
    }

    /// The configuration of a service that is about to run: what it names is examined, too.
    fn load_for_service(&self, examine: impl Fn(&Config) -> Vec<String>) -> Result<Loaded> {
        load_and_examine(Sources::of_process(self.flags.0.clone(), self.config.clone()), examine)
    }

    /// Opens the installation for a command, whether a server runs on it or not.
    fn open(&self) -> Result<App> {
        self.open_as(Role::Tool)
    }

    fn open_as(&self, role: Role) -> Result<App> {
        let config = self.load()?.config;
        start_logging(&config.log)?;
        App::open(config, role, &announce())
    }

    /// Prints the answer as JSON if that is wanted, else what `text` makes of it.
    fn answer(&self, json: &Value, text: impl FnOnce() -> String) -> Result<()> {
        if self.json { print(&json.to_string()) } else { print(&text()) }
    }
}

/// The flags that settings declared, by the setting's name.
#[derive(Debug, Default)]
struct SettingFlags(BTreeMap<String, String>);

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        DECLARATIONS.iter().fold(command, |command, declaration| match declaration.flag {
            Some(flag) => {
                let help = format!("{} [env: {}]", declaration.help, declaration.variable());
                let argument = Arg::new(flag).long(flag).global(true).value_name(declaration.shape).help(help);
                command.arg(argument.help_heading(EVERYWHERE))
            }
            None => command,
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = DECLARATIONS.iter().filter_map(|declaration| {
            let value = matches.get_one::<String>(declaration.flag?)?;
            Some((declaration.name(), value.clone()))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A page of a long list.
#[derive(Debug, Args)]
struct PageArgs {
    /// Number of the page, from 1.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    page: u32,
    /// Rows on the page.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    size: u32,
}

impl PageArgs {
    fn page(&self) -> Page {
        Page { number: self.page, size: self.size }
    }
}

/// The user whom somebody means by an id, a phone number or an email address.
fn find_user(app: &App, who: &str) -> Result<User> {
    let unknown = || Error::new(Code::NotFound).detail(format!("There is no user `{who}`."));
    let found = if let Ok(phone_number) = PhoneNumber::parse(who, &app.phone_rules) {
        app.store.read(|tx| ops_users::find_by_phone_in(tx, &phone_number))
    } else if let Ok(email) = EmailAddress::parse(who) {
        app.store.read(|tx| ops_users::find_by_address_in(tx, &Address::Email(email))?.ok_or_else(unknown))
    } else {
        let id = who.trim().parse().map(UserId).map_err(|_| unknown())?;
        app.store.read(|tx| ops_users::find_in(tx, id))
    };
    found.map_err(|error| if error.code == Code::NotFound { unknown() } else { error })
}

/// The same, where rows outlive their user: an id is taken as it is. What reads as a phone number is none.
fn find_user_id(app: &App, who: &str) -> Result<UserId> {
    let is_phone_number = PhoneNumber::parse(who, &app.phone_rules).is_ok();
    match find_user(app, who) {
        Err(error) if error.code == Code::NotFound && !is_phone_number => {
            who.trim().parse().map(UserId).map_err(|_| error)
        }
        found => found.map(|user| user.id),
    }
}

/// Names what is not there: here that tells nobody more than they may know.
fn unknown(what: &str, which: impl Display) -> impl FnOnce(Error) -> Error {
    move |error| match error.code {
        Code::NotFound => error.detail(format!("There is no {what} `{which}`.")),
        _ => error,
    }
}

/// A time as it was given for this option.
fn time(app: &App, option: &str, text: &str) -> Result<Timestamp> {
    Timestamp::parse(text, &app.config.limits.time_zone).map_err(|fault| Error::field(option, fault))
}

/// The bounds of a period as they were given: times from the first on, and before the second.
fn period(app: &App, from: Option<&str>, to: Option<&str>) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let from = from.map(|text| time(app, "from", text)).transpose()?;
    let to = to.map(|text| time(app, "to", text)).transpose()?;
    if let Some((from, to)) = from.zip(to) {
        in_order(("from", from), ("to", to))?;
    }
    Ok((from, to))
}

/// Why something is done, for the audit: not nothing, and no more than over HTTP.
fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("say why".into()),
        1..=LONGEST_REASON => Ok(text.to_owned()),
        _ => Err(format!("must be at most {LONGEST_REASON} characters long")),
    }
}

/// Who acts by a command, for what is written down about a change.
fn authority(reason: Option<String>) -> Authority {
    let request_id = format!("cli-{}", std::process::id());
    Authority { actor: "cli".into(), reason: reason.unwrap_or_default(), request_id }
}

/// Writes down that a command was done.
fn record(app: &App, command: &str, user: Option<UserId>, by: Authority) -> Result<()> {
    record_outcome(app, command, user, by, 200)
}

/// Writes down that a command begins what may be done although the command hears nothing of it, or is killed.
fn record_beginning(app: &App, command: &str, user: Option<UserId>, by: Authority) -> Result<()> {
    record_outcome(app, command, user, by, BEGUN)
}

fn record_outcome(app: &App, command: &str, user: Option<UserId>, by: Authority, outcome: u16) -> Result<()> {
    let act = Act {
        actor: by.actor,
        action: format!("yarrow {command}"),
        user,
        reason: Some(by.reason).filter(|reason| !reason.is_empty()),
        outcome,
        client_ip: None,
        request_id: by.request_id,
    };
    ops_audit::record(app, act).wait()
}

/// Asks whoever sits at the terminal; elsewhere `--yes` must have been given.
fn confirm(yes: bool, question: &str) -> Result<()> {
    let refused = |detail: &'static str| Err(Error::new(Code::InvalidRequest).detail(detail));
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return refused("This cannot be taken back; say --yes.");
    }
    drop(write!(std::io::stderr(), "{question} [y/N] "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(unreadable_input)?;
    if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) { Ok(()) } else { refused("Nothing was done.") }
}

/// What is said of input that is no text: whoever typed it can do something about that.
fn unreadable_input(error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidData => Error::new(Code::InvalidRequest).detail("Standard input is not UTF-8."),
        _ => Error::internal(error),
    }
}

/// One page of a list, in the shape that it has over HTTP.
fn paged(page: Page, items: &[Value], total: i64) -> Value {
    json!({ "items": items, "page": page.number, "size": page.size, "total": total })
}

fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    // Where no terminal shows it, a line stays one line, for the next program.
    if let Some((Width(columns), _)) = terminal_size::terminal_size_of(std::io::stdout()) {
        table.set_width(columns);
    }
    table.set_header(header);
    table.add_rows(rows.into_iter().map(|row| row.map(|cell| tamed_line(&cell).into_owned())));
    table.to_string()
}

/// Prints to standard output, with nothing in it that acts on a terminal. A reader that has gone away, as in `| head`,
/// is no failure.
fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{}", tamed(text)) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::new(Code::StorageFailed).detail("Standard output cannot be written to.").caused_by(error))
        }
        _ => Ok(()),
    }
}

/// Prints lines for whoever watches a long-running command, on standard error beside the log.
fn announce() -> Announce {
    Arc::new(|line| {
        // Nobody may be watching any more, and that must not end the service.
        drop(writeln!(std::io::stderr(), "{line}"));
    })
}

impl Failure {
    /// Says on standard error why the command failed. If nobody listens, the exit code still does.
    pub fn tell(&self) {
        let Self { error, is_told_in_json } = self;
        let line = if *is_told_in_json { problem(error).to_string() } else { format!("yarrow: {}", sentence(error)) };
        drop(writeln!(std::io::stderr(), "{line}"));
    }
}

/// What is the same of an error here and over HTTP: code, sentence and bad parameters.
fn problem(error: &Error) -> Value {
    let fault =
        |fault: &FieldError| json!({ "field": fault.field, "code": fault.code.name(), "message": fault.message });
    let mut problem = json!({ "code": error.code.name(), "detail": sentence(error) });
    if !error.fields.is_empty() {
        problem["errors"] = error.fields.iter().map(fault).collect();
    }
    problem
}

fn sentence(error: &Error) -> String {
    let fields = error.fields.iter().map(|fault| format!("`{}` {}", fault.field, fault.message));
    match error.code {
        Code::InvalidParameters => fields.collect::<Vec<_>>().join("; "),
        Code::Configuration => format!("the configuration is wrong:\n{}", error.detail),
        _ => error.explained(),
    }
}

/// Sends log lines to standard error from here on.
fn start_logging(settings: &yarrow::config::Log) -> Result<()> {
    let filter: Targets = settings.level.parse().map_err(Error::internal)?;
    let registry = tracing_subscriber::registry().with(filter);
    // Colours are for terminals; in a journal or a file they are noise.
    let is_terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_ansi(is_terminal);
    let started = match settings.format {
        LogFormat::Text => {
            let told_lost = |lost| format!(" WARN yarrow::cli: nobody read the log; lines are missing lost={lost}\n");
            registry.with(lines.with_writer(move || LogLines { told_lost })).try_init()
        }
        LogFormat::Json => {
            let told_lost = |lost| {
                let message = "nobody read the log; lines are missing";
                format!("{}\n", json!({ "level": "WARN", "message": message, "lost": lost }))
            };
            registry.with(lines.with_writer(move || LogLines { told_lost }).json().flatten_event(true)).try_init()
        }
    };
    started.map_err(Error::internal)
}
