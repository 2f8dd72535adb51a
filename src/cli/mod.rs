//! The command line: one file per command, with its arguments and `run`. The only module that prints.
//!
//! Commands for the staff call endpoints of administrators in this process (`endpoint_commands`); the others call operations.
//! Both work whether or not a server is running.

mod admin;
mod ai;
mod alerts;
mod audit_trail;
mod backup;
mod choice;
mod cleanup;
mod coins;
mod commands;
mod completions;
mod config;
mod database;
mod demo;
mod doctor;
mod endpoint_commands;
mod figures;
mod healthcheck;
mod import;
mod json_text;
mod ledger;
mod log_buffer;
mod log_writer;
mod logging;
mod man;
mod notify;
mod openapi;
mod options;
mod output;
mod payments;
mod points;
mod products;
mod progress;
mod records;
mod restore;
mod serve;
mod streams;
mod sync;
mod system_user;
mod table;
mod terminal;
mod terminal_escape;
mod users;
mod version;
mod words;

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches, Parser};

pub use self::streams::{GivenStreams, Streams};
use self::{
    audit_trail::{cli_authority, record_audit, record_audit_start},
    commands::{Commands, help_template},
    options::{
        Common, PageArgs, RangeArgs, find_address, find_user, find_user_id, parse_adjustment, parse_reason, parse_time,
        time_range,
    },
    output::{check, http_rows, name_missing, page_json, unreadable_file, with_detail},
    progress::progress_bar,
    table::{key_values, list_of, or_empty, row, table},
    terminal::CommandFailure,
};
use crate::error::{Code, Error};

const AFTER_HELP: &str = "\
Run `yarrow help COMMAND` for the arguments of a command.

Exit codes: 0 success, 1 failure, 2 usage, 3 configuration, 4 not found, 5 a check found problems, 6 the data directory \
is locked, unusable, or newer or older than this program.";

/// The backend of an I Ching app: one program over SQLite or PostgreSQL.
#[derive(Debug, Parser)]
#[command(
    name = "yarrow",
    version,
    arg_required_else_help = true,
    help_template = help_template(),
    after_help = AFTER_HELP
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Commands,
}

/// Runs a command and returns its exit code. The first argument is the name of the program.
pub fn run(arguments: &[OsString], streams: &Streams) -> u8 {
    let outcome = match run_parsed(arguments, streams) {
        Ok(outcome) => outcome,
        Err(usage) if usage.use_stderr() && arguments.iter().any(|argument| argument == "--json") => {
            Err(usage_failure(&usage))
        }
        Err(usage) => return streams.print_usage(&usage),
    };
    let Err(failure) = outcome else { return 0 };
    failure.print(streams);
    exit_code(failure.error.code)
}

/// Returns all commands.
fn program() -> Command {
    endpoint_commands::add_to(Cli::command())
}

/// Parses a command line and runs its command.
fn run_parsed(arguments: &[OsString], streams: &Streams) -> Result<Result<(), CommandFailure>, clap::Error> {
    let mut program = program();
    let matches = program.try_get_matches_from_mut(arguments)?;
    let in_program = |error: clap::Error| error.format(&mut program);
    let mut common = Common::from_arg_matches(&matches).map_err(in_program)?;
    common.streams = streams.clone();
    let outcome = match endpoint_commands::run(&common, &matches) {
        Some(outcome) => outcome,
        None => Commands::from_arg_matches(&matches).map_err(|error| error.format(&mut program))?.run(&common),
    };
    Ok(outcome.map_err(|error| CommandFailure { error, as_json: common.json }))
}

/// Returns the exit code of an error. `yarrow help` documents the codes.
const fn exit_code(code: Code) -> u8 {
    match code {
        Code::InvalidRequest | Code::InvalidParameters => 2,
        Code::Configuration => 3,
        Code::NotFound => 4,
        Code::ChecksFailed => 5,
        Code::DataDirectoryUnusable => 6,
        _ => 1,
    }
}

/// Returns wrong usage as a failure, as `--json` asks for it.
fn usage_failure(usage: &clap::Error) -> CommandFailure {
    let text = usage.to_string();
    let lines = text.trim_start_matches("error: ").lines().take_while(|line| !line.is_empty()).map(str::trim);
    let detail = lines.collect::<Vec<_>>().join(" ");
    CommandFailure { error: Error::new(Code::InvalidRequest).english_detail(detail), as_json: true }
}
