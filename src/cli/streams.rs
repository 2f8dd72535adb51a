//! The streams and the environment of a command: those of the process, or given ones, so that tests run commands by calls.

use std::{
    ffi::OsString,
    io::{self, BufRead, Cursor, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard},
};

use crate::concurrency::lock::lock_unpoisoned;

/// The streams and the environment of a command.
#[derive(Clone, Debug, Default)]
pub enum Streams {
    #[default]
    OfProcess,
    /// Those of a caller in this process. The command does not start to log.
    Given(Arc<GivenStreams>),
}

/// The environment and input that a caller gives, and what the command has printed.
#[derive(Debug, Default)]
pub struct GivenStreams {
    pub variables: Vec<(OsString, OsString)>,
    pub input: Mutex<Vec<u8>>,
    pub output: Mutex<Vec<u8>>,
    pub errors: Mutex<Vec<u8>>,
}

impl Streams {
    pub(super) fn output(&self) -> Box<dyn Write + '_> {
        match self {
            Self::OfProcess => Box::new(io::stdout().lock()),
            Self::Given(given) => Box::new(Appender(lock_unpoisoned(&given.output))),
        }
    }

    pub(super) fn errors(&self) -> Box<dyn Write + '_> {
        match self {
            Self::OfProcess => Box::new(io::stderr().lock()),
            Self::Given(given) => Box::new(Appender(lock_unpoisoned(&given.errors))),
        }
    }

    pub(super) fn input(&self) -> Box<dyn BufRead> {
        match self {
            Self::OfProcess => Box::new(io::stdin().lock()),
            Self::Given(given) => Box::new(Cursor::new(std::mem::take(&mut *lock_unpoisoned(&given.input)))),
        }
    }

    /// Returns true if somebody can be asked.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::OfProcess) && io::stdin().is_terminal()
    }

    /// Prints the help or the error of a command line that was not parsed, and returns the exit code.
    pub(super) fn print_usage(&self, usage: &clap::Error) -> u8 {
        // Streams may be closed.
        match self {
            Self::OfProcess => drop(usage.print()),
            Self::Given(_) => {
                let mut stream = if usage.use_stderr() { self.errors() } else { self.output() };
                drop(write!(stream, "{usage}"));
            }
        }
        u8::try_from(usage.exit_code()).unwrap_or(1)
    }
}

/// Adds to a text in memory.
struct Appender<'text>(MutexGuard<'text, Vec<u8>>);

impl Write for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
