//! The program. Its command line is a part of the library, so that tests can call it.

use std::process::ExitCode;

use yarrow::{
    cli::{self, Streams},
    config,
};

fn main() -> ExitCode {
    ExitCode::from(cli::run(&config::arguments(), &Streams::OfProcess))
}
