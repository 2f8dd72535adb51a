//! Messages, prompts and errors on the terminal.

use std::{
    io::{BufRead, ErrorKind, Write},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{Common, Streams, terminal_escape::escape};
use crate::{
    error::{Code, Error, FieldError, Result},
    providers::factory::Announce,
    types::random_text,
};

/// Characters of a generated password: 20 of these 57 have 116 random bits.
const GENERATED_LENGTH: usize = 20;
const UNAMBIGUOUS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";

/// A failed command, with the format in which to print the error.
pub struct CommandFailure {
    pub error: Error,
    pub as_json: bool,
}

impl Common {
    /// Prints to standard output, with control characters escaped. A closed pipe, as in `| head`, is not an error.
    pub fn print(&self, text: &str) -> Result<()> {
        match writeln!(self.streams.output(), "{}", escape(text)) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Error::new(Code::StorageFailed).english_detail("Cannot write to standard output.").caused_by(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns a function that prints lines to standard error, beside the log.
    pub fn announce(&self) -> Announce {
        let streams = self.streams.clone();
        Arc::new(move |line| {
            // Standard error may be closed. The service keeps running.
            drop(writeln!(streams.errors(), "{line}"));
        })
    }

    /// Asks for confirmation on a terminal. Without a terminal, `--yes` is required.
    pub fn confirm(&self, yes: bool, question: &str) -> Result<()> {
        let refused = |detail: &'static str| Err(Error::new(Code::InvalidRequest).english_detail(detail));
        if yes {
            return Ok(());
        }
        if !self.streams.is_terminal() {
            return refused("This cannot be undone. Repeat the command with --yes.");
        }
        drop(write!(self.streams.errors(), "{question} [y/N] "));
        let reply = self.first_line()?;
        if ["y", "yes"].contains(&reply.trim().to_lowercase().as_str()) {
            Ok(())
        } else {
            refused("Cancelled. Nothing was changed.")
        }
    }

    /// Reads the first line of standard input, without its line break and the byte order mark of some editors.
    pub fn first_line(&self) -> Result<String> {
        let mut line = String::new();
        self.streams.input().read_line(&mut line).map_err(|error| match error.kind() {
            ErrorKind::InvalidData => Error::new(Code::InvalidRequest).english_detail("Standard input is not UTF-8."),
            _ => Error::internal(error),
        })?;
        Ok(line.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Takes a new password from the first line of standard input, generates one, or asks for it on a terminal.
    pub fn new_password(&self, from_stdin: bool, is_generated: bool) -> Result<String> {
        let refused = |detail: &'static str| Err(Error::new(Code::InvalidRequest).english_detail(detail));
        if from_stdin {
            return self.first_line();
        }
        if is_generated {
            return random_text(GENERATED_LENGTH, UNAMBIGUOUS);
        }
        if !self.streams.is_terminal() {
            return refused("Use --password-stdin or --generate without a terminal.");
        }
        let password = prompt("New password: ")?;
        if prompt("Repeat the password: ")? == password {
            Ok(password)
        } else {
            refused("The passwords differ. Nothing was changed.")
        }
    }
}

fn prompt(text: &str) -> Result<String> {
    rpassword::prompt_password(text).map_err(Error::internal)
}

impl CommandFailure {
    /// Prints the error to standard error, if anybody reads it.
    pub fn print(&self, streams: &Streams) {
        let Self { error, as_json } = self;
        let line = if *as_json { problem(error).to_string() } else { format!("yarrow: {}", message(error)) };
        drop(writeln!(streams.errors(), "{line}"));
    }
}

/// Returns the error as a problem of the HTTP API: code, detail and invalid parameters.
fn problem(error: &Error) -> Value {
    let to_json = |fault: &FieldError| json!({ "field": fault.field, "code": fault.code.name(), "message": fault.message.english });
    let mut problem = json!({ "code": error.code.name(), "detail": message(error) });
    if !error.fields.is_empty() {
        problem["errors"] = error.fields.iter().map(to_json).collect();
    }
    problem
}

fn message(error: &Error) -> String {
    let fields = error.fields.iter().map(|fault| format!("`{}` {}", fault.field, fault.message));
    match error.code {
        Code::InvalidParameters => fields.collect::<Vec<_>>().join("; "),
        Code::Configuration => format!("The configuration is invalid:\n{}", error.detail),
        _ => error.describe(),
    }
}
