//! The command line: one file a subcommand, each with its arguments and `run`. The only room that talks to a terminal.

mod config;
mod demo;
mod healthcheck;
mod openapi;
mod serve;

use std::{collections::BTreeMap, io::Write, path::PathBuf, sync::Arc};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    app::Announce,
    config::{DECLARATIONS, Loaded, LogFormat, Sources, load},
    error::{Error, Result},
};

/// The whole backend of an I Ching app in one binary over one SQLite file.
#[derive(Debug, Parser)]
#[command(name = "yarrow", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Subcommands,
}

/// Options of every command, before or after its own.
#[derive(Debug, Args)]
pub struct Common {
    /// TOML file with settings; `yarrow config sample` prints one.
    #[arg(long, global = true, value_name = "FILE", env = "YARROW_CONFIG")]
    config: Option<PathBuf>,
    /// Answer in JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    flags: SettingFlags,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Serve(serve::ServeArgs),
    Demo(demo::DemoArgs),
    Config(config::ConfigArgs),
    Healthcheck(healthcheck::HealthcheckArgs),
    Openapi(openapi::OpenapiArgs),
}

/// Runs the command that this process was started with.
///
/// # Errors
/// Whatever the command fails with; wrong usage ends the process with code 2 before that.
pub fn run() -> Result<()> {
    let Cli { common, command } = Cli::parse();
    match command {
        Subcommands::Serve(args) => serve::run(&common, &args),
        Subcommands::Demo(args) => demo::run(&common, &args),
        Subcommands::Config(args) => config::run(&common, &args),
        Subcommands::Healthcheck(args) => healthcheck::run(&common, &args),
        Subcommands::Openapi(args) => openapi::run(&common, &args),
    }
}

impl Common {
    fn load(&self) -> Result<Loaded> {
        load(Sources::of_process(self.flags.0.clone(), self.config.clone()))
    }
}

/// The flags that settings declared, by the setting's name.
#[derive(Debug, Default)]
struct SettingFlags(BTreeMap<String, String>);

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        DECLARATIONS.iter().fold(command, |command, declaration| match declaration.flag {
            Some(flag) => command.arg(Arg::new(flag).long(flag).global(true).value_name(flag).help(format!(
                "{} [env: {}]",
                declaration.help,
                declaration.variable()
            ))),
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

/// Prints to standard output. A reader that has gone away, as in `| head`, is no failure.
fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::internal(error)),
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

/// Says why the command failed. If nobody listens, the exit code still does.
pub fn complain(sentence: &str) {
    drop(writeln!(std::io::stderr(), "yarrow: {sentence}"));
}

/// Sends log lines to standard error from here on.
fn start_logging(settings: &crate::config::Log) -> Result<()> {
    let filter: Targets = settings.level.parse().map_err(Error::internal)?;
    let registry = tracing_subscriber::registry().with(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let started = match settings.format {
        LogFormat::Text => registry.with(lines).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
    started.map_err(Error::internal)
}
