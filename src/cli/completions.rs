//! `yarrow completions`: shell completion scripts.

use clap::Args;
use clap_complete::Shell;

use serde_json::json;

use super::{Common, program};
use crate::error::{Error, Result};

/// Print the completion script of a shell
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

pub fn run(common: &Common, args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program(), "yarrow", &mut script);
    let script = String::from_utf8(script).map_err(Error::internal)?;
    let json = json!({ "shell": args.shell.to_string(), "script": script });
    common.output(&json, || script.trim_end().to_owned())
}
