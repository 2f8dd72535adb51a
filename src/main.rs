//! Runs the command line and maps errors to exit codes.
//!
//! The command line is a crate of its own over the library.

use std::process::ExitCode;

mod cli;

use yarrow::error::Code;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(exit_code(failure.error.code))
        }
    }
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
