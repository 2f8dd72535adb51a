//! What is said to whoever gave a command, and asked of them.

use std::{
    io::{ErrorKind, IsTerminal, Write},
    sync::Arc,
};

use serde_json::{Value, json};

use super::terminal_escape::tamed;
use yarrow::{
    error::{Code, Error, FieldError, Result},
    providers::factory::Announce,
};

/// Why a command failed, for whoever gave it.
pub struct Failure {
    pub error: Error,
    pub is_told_in_json: bool,
}

/// Prints to standard output, with nothing in it that acts on a terminal. A reader that has gone away, as in `| head`,
/// is no failure.
pub fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{}", tamed(text)) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new(Code::StorageFailed).detail("Standard output cannot be written to.").caused_by(error))
        }
        _ => Ok(()),
    }
}

/// Prints lines for whoever watches a long-running command, on standard error beside the log.
pub fn announce() -> Announce {
    Arc::new(|line| {
        // Nobody may be watching any more, and that must not end the service.
        drop(writeln!(std::io::stderr(), "{line}"));
    })
}

/// Asks whoever sits at the terminal; elsewhere `--yes` must have been given.
pub fn confirm(yes: bool, question: &str) -> Result<()> {
    let refused = |detail: &'static str| Err(Error::new(Code::InvalidRequest).detail(detail));
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return refused("This cannot be taken back; say --yes.");
    }
    drop(write!(std::io::stderr(), "{question} [y/N] "));
    let answer = first_line()?;
    if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) { Ok(()) } else { refused("Nothing was done.") }
}

/// The first line of standard input, without its end.
pub fn first_line() -> Result<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| match error.kind() {
        // Whoever typed it can do something about that.
        ErrorKind::InvalidData => Error::new(Code::InvalidRequest).detail("Standard input is not UTF-8."),
        _ => Error::internal(error),
    })?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
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
