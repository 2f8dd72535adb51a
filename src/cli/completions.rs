//! `yarrow completions`: what shells need to complete commands and options.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, print};
use crate::error::{Error, Result};

/// Print the completions of a shell.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    shell: Shell,
}

pub fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "yarrow", &mut script);
    print(String::from_utf8(script).map_err(Error::internal)?.trim_end())
}
