//! Runs the command line, and turns what went wrong into an exit code. The command line is a crate of its own over the
//! library that serves: what few call is compiled for size (`packaging/profile/rustc`).

use std::process::ExitCode;

mod cli;

use yarrow::error::Code;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::from(exit_code(failure.error.code))
        }
    }
}

/// 1 failed, 2 usage (mostly found by the parser), 3 configuration, 4 not found, 5 a check found problems,
/// 6 the data directory is in use, newer or older than the program, or may not be used.
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
