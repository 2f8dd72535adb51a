//! `yarrow man`: the manual pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::{Cli, print};
use crate::error::{Error, Result};

/// Print the manual page, or write one for every command into a directory.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory for `yarrow.1`, `yarrow-serve.1` and so on, which must exist.
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

pub fn run(args: &ManArgs) -> Result<()> {
    if let Some(directory) = &args.out_dir {
        return clap_mangen::generate_to(Cli::command(), directory)
            .map_err(|error| Error::internal(error).detail(format!("Cannot write to {}.", directory.display())));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(Error::internal)?;
    print(String::from_utf8(page).map_err(Error::internal)?.trim_end())
}
