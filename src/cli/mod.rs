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
mod users;
mod logging;
mod progress;
mod table;
mod terminal_escape;
mod terminal;

use std::{borrow::Cow, collections::BTreeMap, fmt::Display, path::PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use self::{
    logging::start_logging,
    progress::progress_bar,
    table::{blank, facts, row, table},
    terminal::{Failure, announce, confirm, first_line, print},
};
use yarrow::{
    app::{App, OpenMode},
    config::{Config, DECLARATIONS, Loaded, Sources, is_argument_given, load, load_and_examine},
    domain::{
        identity::users::{self as ops_users, Address, User},
        money::ledger::Authority,
        operations::audit::{self as ops_audit, Act, BEGUN, LONGEST_REASON},
    },
    error::{Code, Error, Result},
    types::{EmailAddress, Listing, Page, PhoneNumber, Timestamp, UserId, in_order},
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
        self.open_as(OpenMode::Attach)
    }

    fn open_as(&self, role: OpenMode) -> Result<App> {
        let config = self.load()?.config;
        start_logging(&config.log)?;
        App::open(config, role, &announce())
    }

    /// Prints the answer as JSON if that is wanted, else what `text` makes of it.
    fn answer(&self, json: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if !self.json {
            return print(&text());
        }
        // As a value, whose members stand in the order of their names.
        print(&serde_json::to_value(json).map_err(Error::internal)?.to_string())
    }

    /// The same for a page of a list. In JSON it has the shape that it has over HTTP, each row as a `T`.
    fn answer_page<R, T: From<R> + Serialize>(
        &self,
        page: Page,
        found: Listing<R>,
        text: impl FnOnce(&Listing<R>) -> String,
    ) -> Result<()> {
        if !self.json {
            return print(&text(&found));
        }
        let items: Vec<_> = found.items.into_iter().map(T::from).collect();
        print(&paged(page, &items, found.total).to_string())
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

/// A time, from its start until before its end.
#[derive(Debug, Args)]
struct RangeArgs {
    /// This time or later, such as 2026-01-31 or 2026-01-31T08:00:00Z.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

impl RangeArgs {
    fn bounds(&self, app: &App) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
        let bound = |option, given: &Option<String>| given.as_deref().map(|text| time(app, option, text)).transpose();
        let (from, to) = (bound("from", &self.from)?, bound("to", &self.to)?);
        if let Some((from, to)) = from.zip(to) {
            in_order(("from", from), ("to", to))?;
        }
        Ok((from, to))
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
    explained(Code::NotFound, format!("There is no {what} `{which}`."))
}

/// A time as it was given for this option.
fn time(app: &App, option: &str, text: &str) -> Result<Timestamp> {
    Timestamp::parse(text, &app.config.limits.time_zone).map_err(|fault| Error::field(option, fault))
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

/// Rows as they are shown over HTTP.
fn shown<R: Clone, T: From<R>>(rows: &[R]) -> Vec<T> {
    rows.iter().cloned().map(T::from).collect()
}

/// One page of a list, in the shape that it has over HTTP.
fn paged(page: Page, items: &[impl Serialize], total: i64) -> Value {
    json!({ "items": items, "page": page.number, "size": page.size, "total": total })
}

/// Fails as a check does, unless all was as it should be.
fn check(is_sound: bool, fault: impl Into<Cow<'static, str>>) -> Result<()> {
    if is_sound { Ok(()) } else { Err(Error::new(Code::ChecksFailed).detail(fault)) }
}

/// Says of errors with this code what a command knows more of them.
fn explained(code: Code, detail: String) -> impl FnOnce(Error) -> Error {
    move |error| if error.code == code { error.detail(detail) } else { error }
}
